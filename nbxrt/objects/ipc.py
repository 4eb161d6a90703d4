"""Memory and events shared with other processes, by handles that can be pickled."""

import os

from nbxrt import errors
from nbxrt.errors import wrong_type
from nbxrt.memory.allocator import account_of
from nbxrt.objects.device import as_device, devices
from nbxrt.objects.memory import Memory, OwnedMemory
from nbxrt.objects.state import runtime_in_force, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.memory.policies import Policy
    from nbxrt.objects.buffer import Buffer
    from nbxrt.objects.device import Device
    from nbxrt.objects.event import Event
    from nbxrt.runtime import Runtime


#: What tells this process from one of the same number in another namespace, such as another container: random, by the
#: process, since a forked child is another one.
_marks: "dict[int, bytes]" = {}


class Handle:
    """A handle of a `what`, `memory` or an `event`, for another process of the same machine. It can be pickled.

    What it stands for has to live, in the process that made the handle, as long as others use it.
    """

    __slots__ = ("backend", "content", "device", "mark", "nbytes", "offset", "process", "uuid", "what")

    def __init__(self, what: str, device: "Device", content: bytes, *, offset: int = 0, nbytes: int = 0) -> None:
        self.what, self.content, self.offset, self.nbytes = what, content, offset, nbytes
        self.backend, self.device, self.process = device.runtime.name, device.index, os.getpid()
        self.mark = _marks.setdefault(self.process, os.urandom(8))
        self.uuid = device.uuid if device.supports("device_uuid") else ""

    def __repr__(self) -> str:
        return f"<nbxrt handle of {self.what} of {self.backend}:{self.device} in process {self.process}>"


def shareable(nbytes: int, device: "Device") -> Memory:
    """New device memory that other processes can open: an allocation of the driver, which no pool serves.

    Its handle is made at once: whether a device gives one shows only then, and is known of this device alone.
    Raises: ArgumentError; CapabilityError quoting the backend's file; OutOfMemoryError, DeviceError.
    """
    runtime = device.runtime
    _demand(runtime, "ipc_get_mem_handle", device)
    account = account_of(runtime)
    address = device.on(account.malloc_alone, nbytes, device.index)
    memory = OwnedMemory(device, address, int(nbytes), account.free)
    try:
        memory.export = device.on(runtime.ipc_get_mem_handle, memory.address, nbytes) if memory.address else None
    except errors.DeviceError:
        memory.close()
        raise
    return memory


def of_buffer(buffer: "Buffer") -> Handle:
    """A handle of a buffer's bytes: by files where its memory has them, else plain data.

    Raises: CapabilityError quoting the backend's file; ArgumentValueError for memory that has no handle of its own;
    DeviceError.
    """
    memory = buffer.memory
    memory.check()
    pieces = _policy(memory).pieces_of(buffer.ptr, buffer.nbytes) if _is_pooled(memory) and buffer.nbytes else []
    if not pieces:
        return plain_of_buffer(buffer)
    from nbxrt.objects.segmentfiles import of_pieces

    return of_pieces(memory.device, pieces, buffer.ptr, buffer.nbytes)


def plain_of_buffer(buffer: "Buffer") -> Handle:
    """A handle of a buffer's bytes that is plain data. Raises: as `of_buffer`."""
    memory = buffer.memory
    memory.check()
    _demand(buffer.runtime, "ipc_get_mem_handle", memory.device)
    if memory.export is None:
        raise errors.ArgumentValueError(
            f"{buffer!r} has no handle for other processes: `ipc_get_mem_handle` takes an allocation of the driver's "
            f"own, and this is {_origin(memory) if buffer.nbytes else 'no memory at all'}",
            hint="`Buffer(nbytes, shareable=True)` is one", value=buffer,
        )  # fmt: skip
    return Handle("memory", memory.device, memory.export, offset=buffer.ptr - memory.address, nbytes=buffer.nbytes)


def _is_pooled(memory: Memory) -> bool:
    """Whether memory is a part of what an account's policy has."""
    return memory.is_counted and memory.kind == "device"


def _policy(memory: Memory) -> "Policy":
    return account_of(memory.device.runtime).policy(memory.device.index)


def _origin(memory: Memory) -> str:
    """What memory is a part of, in words."""
    if not memory.is_counted:
        return f"memory of somebody else on {memory.device}"
    if memory.kind != "device":
        return f"{memory.kind} memory"
    policy = _policy(memory)
    private = policy.why_private()
    why = f", which has no file descriptor: {private}" if private else ""
    return f"{policy.segment} of {memory.device}, by the policy `{policy.name}`{why}"


def open_memory(handle: "Any") -> "tuple[Memory, int, int]":
    """The memory that a handle of another process stands for, and the address and size of the part that was shared.

    Memory of the driver's own, opened several times, is one mapping, which is closed with the last Buffer of it.
    Raises: ArgumentTypeError, ArgumentValueError; CapabilityError, OutOfMemoryError, DeviceError.
    """
    runtime, device = _place(handle, "memory")
    if not handle.content:
        from nbxrt.objects.segmentfiles import open_pieces

        _demand(runtime, "mem_import", device)
        return open_pieces(handle, device)
    _demand(runtime, "ipc_open_mem_handle", device)
    whole = handle.offset + handle.nbytes
    address = device.on(_opened, runtime, handle.content, whole)
    memory = OwnedMemory(device, address, whole, _Closing(runtime, handle.content))
    return memory, address + handle.offset, handle.nbytes


def _opened(runtime: "Runtime", content: bytes, nbytes: int) -> int:
    """The address of a mapping, which is made where there is none; it has one user more."""
    state = state_of(runtime)
    with state.opening:  # taken in the thread that calls, since a finalizer in it may close another mapping
        entry = state.opened.get(content)
        if entry is None:
            entry = state.opened[content] = [runtime.ipc_open_mem_handle(content, nbytes), 0]
        entry[1] += 1
        return entry[0]


class _Closing:
    """Closes a mapping when nobody uses it any more."""

    __slots__ = ("_close", "_content", "_state")

    def __init__(self, runtime: "Runtime", content: bytes) -> None:
        self._state, self._content, self._close = state_of(runtime), content, runtime.ipc_close_mem_handle

    def __call__(self, address: int) -> None:
        with self._state.opening:
            entry = self._state.opened[self._content]
            entry[1] -= 1
            if entry[1]:
                return
            del self._state.opened[self._content]
            self._close(address, self._content)


def of_event(event: "Event") -> Handle:
    """A handle of an event that was made with `interprocess=True`.

    Raises: CapabilityError, DeviceError; ArgumentValueError for another event, and for one that is closed.
    """
    _demand(event.runtime, "ipc_get_event_handle", event.device)
    handle = event.usable_handle()
    if not event.interprocess:
        raise errors.ArgumentValueError(
            f"{event!r} was not made here for other processes", hint="`Event(timing=False, interprocess=True)` is",
            value=event,
        )  # fmt: skip
    return Handle("event", event.device, event.device.on(event.runtime.ipc_get_event_handle, handle))


def open_event(handle: "Any") -> "tuple[Device, int]":
    """Device and vendor's handle of another process's event. Raises: as `open_memory`."""
    runtime, device = _place(handle, "event")
    _demand(runtime, "ipc_open_event_handle", device)
    return device, device.on(runtime.ipc_open_event_handle, handle.content)


def _place(handle: "Any", what: str) -> "tuple[Runtime, Device]":
    """Runtime and device of a handle, which must be of another process and of the backend in force."""
    if not isinstance(handle, Handle) or handle.what != what:
        raise wrong_type("`from_ipc_handle`", f"a handle of {what} that `ipc_handle()` gave", handle)
    runtime = runtime_in_force()
    if handle.backend != runtime.name:
        raise errors.ArgumentValueError(f"{handle!r} is of another backend than {runtime!r}", value=handle)
    if handle.process == os.getpid() and handle.mark == _marks.get(handle.process):
        raise errors.ArgumentValueError(f"{handle!r} was made in this process, and is for others", value=handle)
    if not handle.uuid:
        return runtime, as_device(handle.device, runtime)
    for device in devices(runtime):  # numbers differ between processes that see other devices
        if device.uuid == handle.uuid:
            return runtime, device
    raise errors.ArgumentValueError(
        f"{handle!r}: its device {handle.uuid} is not visible to this process", value=handle
    )


def _demand(runtime: "Runtime", operation: str, device: "Device") -> None:
    """Raise what says why an operation is not offered. Raises: CapabilityError."""
    if not runtime.supports(operation, device.index):
        why = getattr(getattr(runtime, operation), "__doc__", "")
        raise errors.CapabilityError(f"memory of {device} is not shared between processes: {why}", operation=operation)
