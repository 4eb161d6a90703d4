"""From a world to a communicator: ranks agree on backend and devices before anything could hang."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.communicator import Communicator, start
from nbxrt.distributed.joining import join
from nbxrt.distributed.progress import joining
from nbxrt.distributed.stagedlink import StagedLink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbxrt.distributed.worlds import World
    from nbxrt.runtime import Runtime


def communicator(
    world: World, runtime: Runtime | None, device: int | None, share_device: bool, timeout: float
) -> Communicator:
    """The communicator of all ranks of a world.

    Raises: as `nbxrt.distributed.init`.
    """
    facts, failure = _prepared(world, runtime, device, share_device)
    everybody = world.exchange(facts)
    if failure is not None:
        raise failure
    _demand_agreement(everybody, share_device)
    made = _joined(world, _opened(runtime), facts["device"], timeout)
    world.close()
    return made


def _prepared(
    world: World, runtime: Runtime | None, device: int | None, share_device: bool
) -> tuple[dict[str, Any], errors.NbxrtError | None]:
    """What this rank tells the others, and its own error: it is raised when they know of it, and do not wait."""
    try:
        chosen = _opened(runtime)
        own = _device(world, chosen, device, share_device)
        if has_collectives(chosen):
            chosen.library("collectives")
        return {"backend": chosen.name, "device": own, "label": device_label(chosen, own)}, None
    except errors.NbxrtError as error:
        return {"error": error.summary}, error


def _opened(runtime: Runtime | None) -> Runtime:
    from nbxrt import runtime as runtimes

    if runtime is not None:
        return runtimes.checked("`init`", runtime)
    return runtimes.in_force() or runtimes.open()


def has_collectives(runtime: Runtime) -> bool:
    """Whether the backend file describes a collectives library."""
    return "comm_init_rank" in runtime.description["operations"]


def _device(world: World, runtime: Runtime, device: int | None, share_device: bool) -> int:
    """The rank's device: the one that is asked for, that the engine gives, or of its number on the host."""
    count = runtime.device_count()
    if not count:
        raise runtime.why_no_device() or errors.NoDeviceError(f"{runtime.title} shows no device to this process")
    wanted = world.device if device is None else errors.integer("`init`: `device`", "an ordinal", device)
    if runtime.kind == "cpu" and device is None:
        return 0
    if wanted is not None:
        if not 0 <= wanted < count:
            raise errors.DeviceIndexError(
                f"there is no device {wanted}: {count} are visible", value=wanted, count=count
            )
        return wanted
    if count == 1:  # a launcher may show each rank its own alone; that two have the same one the ranks find together
        return 0
    if world.local_rank < count:
        return world.local_rank
    if share_device:
        return world.local_rank % count
    raise errors.ArgumentValueError(
        f"rank {world.rank} is number {world.local_rank} of {world.local_size} on {socket.gethostname()}, "
        f"where {count} devices are visible",
        hint=f"start at most {count} ranks there; `share_device=True` lets ranks share one, if the library can do it",
    )


def device_label(runtime: Runtime, device: int) -> str:
    """What tells a device from every other: host, and UUID or place on PCI; empty where sharing does not matter."""
    if runtime.kind == "cpu":
        return ""
    own = str(device)
    for name in ("device_uuid", "pci_bus_id"):
        if runtime.supports(name):
            answer = getattr(runtime, name)(device)
            own = answer.hex() if isinstance(answer, bytes) else answer
            break
    return f"{socket.gethostname()} {own}"


def _demand_agreement(everybody: Sequence[dict[str, Any]], share_device: bool) -> None:
    for rank, said in enumerate(everybody):
        if "error" in said:
            raise errors.CommunicatorError(f"rank {rank} cannot take part: {said['error']}", missing=(rank,))
    backends = [said["backend"] for said in everybody]
    for rank, backend in enumerate(backends):
        if backend != backends[0]:
            raise errors.ArgumentValueError(
                f"rank 0 has the backend {backends[0]}, and rank {rank} has {backend}",
                hint="NBX_GPU_BACKEND names one for all",
            )
    seen: dict[str, int] = {}
    for rank, said in enumerate(everybody):
        first = seen.setdefault(said["label"], rank)
        if said["label"] and first != rank and not share_device:
            raise errors.ArgumentValueError(
                f"ranks {first} and {rank} are on one device ({said['label']})",
                hint="give each a device of its own, or say `share_device=True`",
            )


def _joined(world: World, runtime: Runtime, device: int, timeout: float) -> Communicator:
    if not has_collectives(runtime):
        link, name = world.link(runtime, device, timeout)
        if runtime.kind != "cpu":
            runtime.set_device(device)
            link = StagedLink(link, runtime, device, world.rank, world.size)
        with joining(name, world.rank, world.size) as progress:
            return start(link, world.rank, world.size, timeout=timeout, progress=progress)
    identity, failure = b"", None
    if world.rank == 0:
        try:
            identity = runtime.comm_unique_id()
        except errors.NbxrtError as error:
            failure = error
    identity = world.exchange(identity)[0]
    if failure is not None:
        raise failure
    if not identity:
        raise errors.CommunicatorError("rank 0 could not make an identity of the communicator", missing=(0,))
    return join(runtime, device, identity, world.rank, world.size, timeout)
