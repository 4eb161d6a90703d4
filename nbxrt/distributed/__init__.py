"""Programs on several devices and machines: the backend's collectives, under engines that start and place processes.

    import nbxrt.distributed as dist

    comm = dist.init()                                # under mpirun, srun with MPI, or in a worker of `dist.ray.run`
    comm.all_reduce(x, op="sum", stream=s)

MPI or Ray start the processes and carry the identity of the communicator to them; the vendor's library, as the backend
file describes it, moves the elements. Where a backend has no collectives, those of the engine move them.
docs/distributed.md is the guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.distributed.communicator import TIMEOUT, Communicator
from nbxrt.distributed.groups import Group
from nbxrt.errors import CapabilityError, CommunicatorError, CommunicatorTimeoutError

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime

__all__ = [
    "TIMEOUT",
    "Communicator",
    "CommunicatorError",
    "CommunicatorTimeoutError",
    "Group",
    "group",
    "init",
    "join",
    "unique_id",
]


def init(
    engine: str | None = None,
    *,
    runtime: Runtime | None = None,
    device: int | None = None,
    share_device: bool = False,
    timeout: float = TIMEOUT,
) -> Communicator:
    """The communicator of all ranks that MPI or Ray has started; every rank calls it.

    `engine` is `mpi` or `ray`, and found out when left out. `runtime` is the one in force when left out, else the best
    that is here. Each rank takes the device of its number on its host, the only one that it sees, or the one that Ray
    gave it, and that becomes the thread's current device; `device` says another. `share_device` allows two on one.
    Where the backend has no collectives, the engine's own are used, on host memory. `timeout` is in seconds.
    Raises, on every rank and before anything hangs: ArgumentValueError; BackendNotFoundError; CapabilityError;
    LibraryNotFoundError; DeviceIndexError; CommunicatorError, CommunicatorTimeoutError; DeviceError.
    """
    from nbxrt.distributed.initializing import communicator
    from nbxrt.distributed.worlds import find_world

    return communicator(find_world(engine, timeout), runtime, device, share_device, timeout)


def unique_id(runtime: Runtime | None = None) -> bytes:
    """The identity of a new communicator, made by one rank for all: for engines that carry it to the others themselves.

    `runtime` is the one in force when left out.
    Raises: CapabilityError for a backend without collectives; LibraryNotFoundError; DeviceError.
    """
    return _meant("`unique_id`", runtime).comm_unique_id()


def join(
    identity: bytes,
    rank: int,
    size: int,
    *,
    device: int | None = None,
    runtime: Runtime | None = None,
    timeout: float = TIMEOUT,
) -> Communicator:
    """Join the communicator of an identity; returns when all ranks have.

    `device` is the thread's current one when left out, and it becomes the current one. `timeout` is in seconds.
    Raises: ArgumentTypeError, ArgumentValueError; CommunicatorTimeoutError; CapabilityError; DeviceError.
    """
    from nbxrt.distributed.joining import join as join_device

    runtime = _meant("`join`", runtime)
    device = runtime.get_device() if device is None else device
    return join_device(runtime, device, identity, rank, size, timeout)


def group(*communicators: Communicator) -> Group:
    """`with dist.group(a, b):` starts the operations of several communicators together, at the end of the block."""
    return Group(communicators)


def _meant(function: str, runtime: Runtime | None) -> Runtime:
    """The runtime that is asked for, or the one in force. Raises: ArgumentTypeError."""
    from nbxrt import runtime as runtimes
    from nbxrt.detection import gpu_runtime

    if runtime is not None:
        return runtimes.checked(function, runtime)
    return runtimes.in_force() or gpu_runtime()


def __getattr__(name: str) -> Any:
    """`ray` at its first use: it imports Ray. Raises: CapabilityError where Ray is not installed."""
    if name != "ray":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module, util

    if util.find_spec("ray") is None:
        raise CapabilityError("the package `ray` is not installed", hint="`pip install nbxrt[ray]`")
    return import_module("nbxrt.distributed.ray")
