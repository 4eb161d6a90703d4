"""The account of one runtime's device and pinned memory: who allocates goes through it, so it knows what is held."""

import threading

from nbxrt import errors
from nbxrt.memory.classwide import classwide
from nbxrt.memory.primitives import DeviceMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.runtime import Runtime

#: The largest request that is passed on: more than any machine has, and far from where sums would wrap.
LARGEST = 1 << 60

_making = threading.Lock()


def account_of(runtime: "Runtime") -> "DeviceAllocator":
    """The account of a runtime, made once."""
    with _making:
        if runtime.account is None:
            runtime.account = DeviceAllocator(runtime)
        return runtime.account


class DeviceAllocator:
    """The account of a runtime's device and pinned memory. `nbxrt.memory.account()` gives the one of this process.

    Called on the class, a method is that of the account of the runtime in force. Safe to use from several threads.
    """

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime
        self._memory = DeviceMemory(runtime)
        self._lock = threading.RLock()  # guards what follows
        self._live: dict[int, tuple[int, int]] = {}
        self._pinned: dict[int, int] = {}
        self._allocated: dict[int, int] = {}
        self._release = runtime.free  # bound now: nothing may have to be made on a finalizer's path
        self._release_host = runtime.free_host

    @classwide
    def malloc(self, nbytes: int, device: "int | None" = None, stream: int = 0) -> int:  # noqa: ARG002
        """Address of new device memory of at least `nbytes` bytes, for use on the stream; 0 bytes give address 0.

        `device` is the calling thread's current one when left out; the thread's current device stays.
        Raises: ArgumentTypeError, ArgumentValueError, DeviceIndexError; OutOfMemoryError; DeviceError.
        """
        nbytes = _size(nbytes)
        if not nbytes:
            return 0
        current = self.runtime.get_device()
        device = current if device is None else self._ordinal(device)
        address: int = self._memory.malloc(nbytes) if device == current else self._elsewhere(device, current, nbytes)
        with self._lock:
            self._live[address] = (nbytes, device)
            self._allocated[device] = self._allocated.get(device, 0) + nbytes
        return address

    @classwide
    def free(self, ptr: int, stream: "int | None" = None) -> None:  # noqa: ARG002
        """Give memory of `malloc` back; address 0 does nothing.

        Work that was given to `stream` (the one of `malloc` when left out) before may still use it.
        Raises: PointerError; DeviceError.
        """
        if not ptr:
            return
        with self._lock:
            nbytes, device = self._live.pop(ptr, (0, -1))
            if device < 0:
                raise errors.PointerError(f"`free`: {ptr!r} is no address of this account's memory", value=ptr)
            self._allocated[device] -= nbytes
        self._release(ptr)

    @classwide
    def malloc_host(self, nbytes: int) -> int:
        """Address of new page-locked host memory; 0 bytes give address 0.

        Raises: ArgumentTypeError, ArgumentValueError; CapabilityError; OutOfMemoryError; DeviceError.
        """
        nbytes = _size(nbytes)
        if not nbytes:
            return 0
        address: int = self._memory.malloc_host(nbytes)
        with self._lock:
            self._pinned[address] = nbytes
        return address

    @classwide
    def free_host(self, ptr: int) -> None:
        """Give memory of `malloc_host` back; address 0 does nothing.

        Raises: PointerError; DeviceError.
        """
        if not ptr:
            return
        with self._lock:
            if self._pinned.pop(ptr, None) is None:
                raise errors.PointerError(f"`free_host`: {ptr!r} is no address of this account's memory", value=ptr)
        self._release_host(ptr)

    @classwide
    def record_use(self, ptr: int, stream: int) -> None:  # noqa: ARG002  # the vendor's `free` waits for every stream
        """Say that work given to another stream than that of `malloc` uses the memory: it is not reused before.

        Raises: PointerError.
        """
        if ptr not in self._live:
            raise errors.PointerError(f"`record_use`: {ptr!r} is no address of this account's memory", value=ptr)

    @classwide
    def holds(self, ptr: int) -> bool:
        """Whether an address is that of memory which `malloc` or `malloc_host` gave and nobody freed."""
        return ptr in self._live or ptr in self._pinned

    @classwide
    def memory_allocated(self, device: "int | None" = None) -> int:
        """Bytes of a device that are allocated and not freed; of the current one when left out."""
        device = self.runtime.get_device() if device is None else self._ordinal(device)
        return self._allocated.get(device, 0)

    def _elsewhere(self, device: int, current: int, nbytes: int) -> int:
        self.runtime.set_device(device)
        try:
            address: int = self._memory.malloc(nbytes)
        finally:
            self.runtime.set_device(current)
        return address

    def _ordinal(self, device: "Any") -> int:
        count = self.runtime.device_count()
        if device.__class__ is not int:
            raise errors.ArgumentTypeError(f"`device` is an ordinal, not {device!r}", parameter="device", value=device)
        if not 0 <= device < count:
            raise errors.DeviceIndexError(
                f"`device` is an ordinal below {count}, not {device}", parameter="device", value=device, count=count
            )
        return int(device)

    def __repr__(self) -> str:
        return f"<nbxrt.DeviceAllocator of {self.runtime.name}>"


def _size(nbytes: "Any") -> int:
    """A size in bytes as an int. Raises: ArgumentTypeError, ArgumentValueError."""
    if isinstance(nbytes, bool) or not hasattr(type(nbytes), "__index__"):
        raise errors.ArgumentTypeError(
            f"`nbytes` is a number of bytes, not {type(nbytes).__name__} {nbytes!r}", parameter="nbytes", value=nbytes
        )
    size = int(nbytes.__index__())
    if not 0 <= size <= LARGEST:
        raise errors.ArgumentValueError(f"`nbytes` is from 0 to {LARGEST}, not {size}", parameter="nbytes", value=size)
    return size
