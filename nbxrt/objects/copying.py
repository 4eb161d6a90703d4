"""Copies between memory of any kind: their direction, their way between devices, and what they keep alive."""

from nbxrt import errors
from nbxrt.objects import peer
from nbxrt.objects.handover import order
from nbxrt.objects.hostmemory import address_of, view_of
from nbxrt.objects.memory import allocated
from nbxrt.objects.state import refuse_stranger, state_of
from nbxrt.objects.stream import as_stream, current_stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.objects.memory import Memory
    from nbxrt.objects.stream import Stream


#: Bytes that a copy through the host carries at a time.
_STAGE = 32 << 20


class Side:
    """One side of a copy: an address with so many bytes, the Memory that it lies in, and what has to stay alive.

    `memory` is None for plain memory of the host.
    """

    __slots__ = ("address", "memory", "nbytes", "owner")

    def __init__(self, address: int, nbytes: int, memory: "Memory | None", owner: "Any") -> None:
        self.address, self.nbytes, self.memory, self.owner = address, nbytes, memory, owner

    @property
    def where(self) -> str:
        """The word of a copy's direction."""
        return "host" if self.memory is None or self.memory.kind == "pinned" else "device"

    def __str__(self) -> str:
        where = (
            "plain memory of the host" if self.memory is None else f"{self.memory.kind} memory of {self.memory.device}"
        )
        return f"{self.nbytes} bytes of {where}"


def host_side(value: "Any", what: str, *, written: bool) -> Side:
    """The memory of an object of the host as a side of a copy.

    Raises: ArgumentTypeError, ArgumentValueError, also for memory that may not be written.
    """
    view = view_of(value, what)
    if written and view.readonly:
        raise errors.ArgumentValueError(f"{what}: {type(value).__name__} is read-only", value=value)
    return Side(address_of(view), view.nbytes, None, view)


def copy(target: Side, source: Side, device: "Device", stream: "Any") -> None:
    """Copy all bytes; with a stream ordered on it and both sides kept until it has passed, without one at once.

    Raises: ArgumentValueError where the sizes differ, the sides overlap, or one is closed, read-only or of another
    backend; DeviceError.
    """
    if target.nbytes != source.nbytes:
        raise errors.ArgumentValueError(f"a copy has sides of one size, not {source} and {target}", value=source.nbytes)
    for side in (target, source):
        if side.memory is not None:
            side.memory.check()
            refuse_stranger("the memory", side.memory.device.runtime, device.runtime)
    apart = abs(target.address - source.address) if target.memory is not None and source.memory is not None else None
    if apart is not None and 0 < apart < target.nbytes:
        raise errors.ArgumentValueError("the two sides of a copy overlap, which no vendor copies", value=target.address)
    if target.memory is not None and target.memory.readonly:
        raise errors.ArgumentValueError(f"{target} may only be read", value=target.address)
    ordered = as_stream(stream, device)
    if not source.nbytes or apart == 0:
        return
    _give(target, source, device, ordered)
    if stream is None:
        ordered.sync()
    else:
        _keep(target, source, ordered)


def _give(target: Side, source: Side, device: "Device", stream: "Stream") -> None:
    """Give the copy to the stream."""
    runtime, nbytes = device.runtime, source.nbytes
    for side in (target, source):
        if side.memory is not None:
            side.memory.used_on(stream)
    if target.where == source.where == "device" and target.memory.device is not source.memory.device:  # type: ignore[union-attr]
        _between(target, source, stream)
        return
    stream.call(
        runtime.memcpy_async, target.address, source.address, nbytes, f"{source.where}_to_{target.where}", stream.handle
    )


def _between(target: Side, source: Side, stream: "Stream") -> None:
    """A copy from one device to another: by the peers' own way, else through page-locked memory of the host."""
    there, here = target.memory.device, source.memory.device  # type: ignore[union-attr]
    runtime = here.runtime
    if peer.prepare(here, there) == peer.PEER:
        stream.call(
            runtime.memcpy_peer_async,
            target.address, there.index, source.address, here.index, source.nbytes, stream.handle,
        )  # fmt: skip
        return
    out = stream if stream.device is here else current_stream_of(here)
    back = stream if stream.device is there else current_stream_of(there)
    room = allocated(min(source.nbytes, _STAGE), here, out, "pinned")
    order(stream, out)
    for offset in range(0, source.nbytes, _STAGE):
        nbytes = min(_STAGE, source.nbytes - offset)
        out.call(runtime.memcpy_async, room.address, source.address + offset, nbytes, "device_to_host", out.handle)
        order(out, back)
        back.call(runtime.memcpy_async, target.address + offset, room.address, nbytes, "host_to_device", back.handle)
        order(back, out)
    order(back, stream)
    state_of(runtime).keeper.keep((room, target.owner, source.owner), back)


def _keep(target: Side, source: Side, stream: "Stream") -> None:
    """Keep both sides until the stream has passed the copy; for as long as the graph lives where it is captured."""
    owners = (target.owner, source.owner)
    state = state_of(stream.runtime)
    if state.captures:
        from nbxrt.objects.graph import keep_if_captured

        if keep_if_captured(state, stream, owners):
            return
    state.keeper.keep(owners, stream)
