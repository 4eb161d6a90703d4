"""Vendor-neutral behaviour that a backend file may choose by name where a vendor has no call for an operation.

A policy is a class made with the binder; its methods are the operations that it serves. Each serves several backends.
"""

import os
import sys
import time

from nbxrt import errors, locks
from nbxrt.binding.failures import unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.binding.binder import Binder


class CurrentDevice:
    """The current device is kept here, per thread, for APIs that have none."""

    def __init__(self, _binder: "Binder") -> None:
        self._thread = locks.local()

    def set_device(self, device: int) -> None:
        self._thread.device = device

    def get_device(self) -> int:
        return getattr(self._thread, "device", 0)


class SystemMemory:
    """Free and total memory as the operating system tells them, for devices that use the host's memory."""

    def __init__(self, binder: "Binder") -> None:
        self._ask = _MEMORY[binder.machine.system]

    def mem_get_info(self) -> "tuple[int, int]":
        return self._ask()


def _memory_linux() -> "tuple[int, int]":
    with open("/proc/meminfo", "rb") as file:
        rows = dict(line.split(b":", 1) for line in file if b":" in line)
    kib = {key: int(rows[key].split()[0]) for key in (b"MemAvailable", b"MemTotal")}
    return kib[b"MemAvailable"] * 1024, kib[b"MemTotal"] * 1024


def _memory_macos() -> "tuple[int, int]":
    if sys.platform == "win32":
        raise OSError("these are calls of macOS")
    page = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page
    import ctypes

    class Statistics(ctypes.Structure):  # vm_statistics64 of <mach/vm_statistics.h>: free and inactive pages come first
        _fields_ = [("free", ctypes.c_uint32), ("active", ctypes.c_uint32), ("inactive", ctypes.c_uint32),
                    ("rest", ctypes.c_uint32 * 61)]  # fmt: skip

    system = ctypes.CDLL(None)
    statistics, count = Statistics(), ctypes.c_uint32(38)
    if system.host_statistics64(system.mach_host_self(), 4, ctypes.byref(statistics), ctypes.byref(count)):
        return total, total
    return (statistics.free + statistics.inactive) * page, total


def _memory_windows() -> "tuple[int, int]":
    import ctypes

    class Status(ctypes.Structure):  # MEMORYSTATUSEX of <sysinfoapi.h>
        _fields_ = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32), ("total", ctypes.c_uint64),
                    ("available", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 5)]  # fmt: skip

    status = Status()
    status.length = ctypes.sizeof(status)
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined,unused-ignore]
    return status.available, status.total


_MEMORY = {"linux": _memory_linux, "macos": _memory_macos, "windows": _memory_windows}


class Handles:
    """Handles that nbxrt gives out itself, for things that the vendor has none for. Its lock guards the numbers."""

    def __init__(self, what: str, *, of_parent: bool = False) -> None:
        self._what = what
        self._of_parent = of_parent
        self._lock = locks.RLock()
        self._table: dict[int, Any] = {}
        self._next = 0x1000

    def add(self, value: "Any") -> int:
        with self._lock:
            self._next += 16
            self._table[self._next] = value
            return self._next

    def get(self, handle: int) -> "Any":
        try:
            return self._table[handle]
        except KeyError:
            raise self._unknown(handle) from None

    def remove(self, handle: int) -> "Any":
        try:
            return self._table.pop(handle)
        except KeyError:
            raise self._unknown(handle) from None

    def all(self) -> "list[Any]":
        """What is behind every handle."""
        return list(self._table.copy().values())

    def renew_lock(self) -> None:
        """Make the lock anew, in a process that was forked."""
        self._lock = locks.RLock()

    def _unknown(self, handle: int) -> errors.ArgumentValueError:
        said = f"no {self._what} has the handle {handle:#x}: unknown, or destroyed already"
        return unknown(said, of_parent=self._of_parent)

    def for_a_child(self) -> "Handles":
        """The handles of a process that was forked, to which those here are nothing."""
        return Handles(self._what, of_parent=self._of_parent or bool(self._table))


class Synchronous:
    """Streams and events of a backend whose every call has finished when it returns: nothing is ever waited for.

    Times are the host's clock's.
    """

    def __init__(self, _binder: "Binder") -> None:
        self._streams = Handles("stream")
        self._events = Handles("event")

    def stream_create(self) -> int:
        return self._streams.add(True)

    def stream_create_flags(self, _non_blocking: bool) -> int:
        return self._streams.add(True)

    def stream_create_priority(self, _priority: int, _non_blocking: bool) -> int:
        return self._streams.add(True)

    def stream_destroy(self, stream: int) -> None:
        self._streams.remove(stream)

    def stream_sync(self, stream: int) -> None:
        self._check(stream)

    def stream_query(self, stream: int) -> bool:
        self._check(stream)
        return True

    def _check(self, stream: int) -> None:
        """Refuse a stream that is not there; 0 is the default stream."""
        if stream:
            self._streams.get(stream)

    def event_create(self) -> int:
        return self._events.add([True, None])

    def event_create_flags(self, timing: bool, _blocking: bool, interprocess: bool) -> int:
        if interprocess:
            raise errors.CapabilityError("events by the host's clock cannot be shared with other processes")
        return self._events.add([timing, None])

    def event_destroy(self, event: int) -> None:
        self._events.remove(event)

    def event_record(self, event: int, stream: int) -> None:
        self._check(stream)
        self._events.get(event)[1] = time.perf_counter_ns()

    def event_sync(self, event: int) -> None:
        self._events.get(event)

    def event_query(self, event: int) -> bool:
        self._events.get(event)
        return True

    def stream_wait_event(self, stream: int, event: int) -> None:
        self._check(stream)
        self._events.get(event)

    def event_elapsed(self, start: int, end: int) -> float:
        stamps = []
        for name, event in (("start", start), ("end", end)):
            timing, stamp = self._events.get(event)
            if not timing:
                raise errors.ArgumentValueError(f"`{name}` was made without timing")
            if stamp is None:
                raise errors.ArgumentValueError(f"`{name}` was never recorded")
            stamps.append(stamp)
        return float(stamps[1] - stamps[0]) / 1e6


class Budget:
    """Free memory as what is left of the device's total, for APIs that do not tell."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._total = binder.part("budget", "total")

    def mem_get_info(self) -> "tuple[int, int]":
        state = self._binder.state()
        total: int = self._total(state)
        return max(total - self._binder.addresses.allocated(state), 0), total


class AddressTable:
    """What nbxrt knows of an address."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder

    def pointer_attributes(self, address: int) -> "tuple[str, int, int, int]":
        block = self._binder.addresses.look(address)
        if block is None:
            return "unregistered", 0, 0, address
        return block.memory, block.state.index, address, 0 if block.memory == "device" else address


def _of(module: str, name: str) -> "Callable[[Binder], Any]":
    """A policy whose module is imported when it is first used: most backends need none of them."""

    def make(binder: "Binder") -> "Any":
        return getattr(__import__(f"nbxrt.binding.{module}", fromlist=[name]), name)(binder)

    return make


def _marks(binder: "Binder") -> "Any":
    """Events as marks: values of counters where the file makes such, handles elsewhere."""
    by_counters = "make" in binder.description["policies"]["marks"]["parts"]
    return _of(*(("counters", "Counters") if by_counters else ("marks", "Marks")))(binder)


POLICIES: "dict[str, Callable[[Binder], Any]]" = {
    "current_device": CurrentDevice,
    "system_memory": SystemMemory,
    "synchronous": Synchronous,
    "listed_devices": _of("states", "ListedDevices"),
    "queues": _of("queues", "Queues"),
    "marks": _marks,
    "facts": _of("states", "Facts"),
    "budget": Budget,
    "transfers": _of("transfers", "Transfers"),
    "kernels": _of("kernels", "Kernels"),
    "address_table": AddressTable,
}
