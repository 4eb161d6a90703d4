"""The two functions that every allocation goes through, written to cost what Python's own containers cost.

A request whose bin has a block, and a free, are a handful of steps on dictionaries and lists, each atomic by itself, in
one frame, with no lock. The numbers between such steps are exact because CPython changes threads only at calls and at
jumps backwards; where it runs without its global lock, a lock is taken.
"""

import sys

from nbxrt import errors
from nbxrt.locks import RLock
from nbxrt.memory.exclusive import Reentered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.memory.requests import Requests


class NoBin(Exception):  # noqa: N818  # no error: the caller goes another way
    """A request of which no bin is known."""


class _Unknown:
    """What stands for a request of which no bin is known."""

    def refill(self) -> int:
        raise NoBin

    def __bool__(self) -> bool:
        return False


_UNKNOWN = _Unknown()


def make_paths(requests: "Requests") -> "tuple[Callable[..., int], Callable[..., None]]":
    """`malloc` and `free` of an account."""
    malloc, free = guarded(make_malloc(requests), make_free(requests))
    return malloc, free


def make_malloc(requests: "Requests") -> "Callable[..., int]":
    """`malloc` of an account."""
    live, table = requests.live, requests.table  # few: each call copies them all
    current, several, unknown = requests.devices.runtime.current, requests.devices.count > 1, _UNKNOWN

    def malloc(nbytes: int, device: "int | None" = None, stream: int = 0) -> int:
        try:
            entry = table[current.index if several and device is None else device][stream][nbytes]
            if nbytes.__class__ is not int:
                entry = unknown
        except (KeyError, AttributeError, TypeError, ValueError):
            entry = unknown
        try:
            ptr: int = entry.pop() if entry else entry.refill()
        except (NoBin, IndexError, errors.DeviceError, Reentered) as error:
            failure = error
        else:
            tally = entry.tally
            allocated = tally.allocated = tally.allocated + entry.nbytes
            if allocated > tally.peak_allocated:  # noqa: PLR1730  # `max` is a call
                tally.peak_allocated = allocated
            live[ptr] = entry
            return ptr
        try:  # outside of what was handled: it is no part of the errors that are raised here
            return requests.missed(nbytes, device, stream, failure)
        finally:
            del failure

    return malloc


def make_free(requests: "Requests") -> "Callable[..., None]":
    """`free` of an account."""
    take, device_error = requests.live.pop, errors.DeviceError

    def free(ptr: int, stream: "int | None" = None) -> None:
        try:
            entry = take(ptr)
        except (KeyError, TypeError, ValueError):
            pass
        else:
            if stream is not None and stream != entry.stream:
                entry = requests.ordered_after(ptr, entry, stream)
            entry.tally.allocated -= entry.nbytes
            try:
                entry.append(ptr)
            except device_error as error:
                if requests.failed(error):
                    raise
            if entry.clean:
                entry.clean = False
                entry.heap.dirty.append(entry)
            return
        requests.refuse(ptr, "free")

    return free


def guarded(*functions: "Callable[..., Any]") -> "tuple[Callable[..., Any], ...]":
    """The functions; one thread at a time is in them where Python has no lock of its own."""
    has_gil = getattr(sys, "_is_gil_enabled", None)
    return functions if has_gil is None or has_gil() else locked(*functions)


def locked(*functions: "Callable[..., Any]") -> "tuple[Callable[..., Any], ...]":
    """The same functions, one thread at a time."""
    lock = RLock()

    def one(function: "Callable[..., Any]") -> "Callable[..., Any]":
        def locked_function(*arguments: "Any", **named: "Any") -> "Any":
            with lock:
                return function(*arguments, **named)

        return locked_function

    return tuple(map(one, functions))
