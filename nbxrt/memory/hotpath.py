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
    from typing import Any, Protocol

    class Account(Protocol):
        """What the two functions need of their account when a request is not met from a bin."""

        runtime: Any
        live: "dict[int, Any]"
        table: "dict[Any, Any]"

        def entry(self, nbytes: Any, device: Any, stream: Any) -> Any:
            """What stands for a request; None for no bytes. Raises: ArgumentError, DeviceError."""

        def rescue(self, entry: Any, error: errors.OutOfMemoryError) -> int:
            """An address after memory was found somewhere. Raises: OutOfMemoryError."""

        def refilled(self, entry: Any) -> tuple[Any, int]:
            """An entry of the same size, and the address of a block that its bin does not have. Raises: DeviceError."""

        def aside(self, entry: Any) -> tuple[Any, int]:
            """An entry of the same size that does not need the pool, and its address. Raises: DeviceError."""

        def refuse(self, ptr: Any, what: str) -> None:
            """Raises: the error for an address that is not held."""

        def ordered_after(self, ptr: int, entry: Any, stream: int) -> Any:
            """The entry of a block that another stream than its own frees. Raises: ArgumentError, and it stays held."""

        def failed(self, error: errors.DeviceError) -> bool:
            """Note an error of the vendor's library; whether it is to be raised."""


def make_paths(account: "Account", *, several: bool) -> "tuple[Callable[..., int], Callable[..., None]]":
    """`malloc` and `free` of an account; `several` says whether there is more than one device."""
    malloc, free = guarded(make_malloc(account, several=several), make_free(account))
    return malloc, free


def make_malloc(account: "Account", *, several: bool) -> "Callable[..., int]":
    """`malloc` of an account."""
    live, table, current = account.live, account.table, account.runtime.current  # few: each call copies them all

    def malloc(nbytes: int, device: "int | None" = None, stream: int = 0) -> int:
        try:
            entry = table[current.index if several and device is None else device][stream][nbytes]
            if nbytes.__class__ is not int:
                entry = account.entry(nbytes, device, stream)
        except (KeyError, AttributeError, TypeError):
            entry = account.entry(nbytes, device, stream)
            if entry is None:
                return 0
        try:
            ptr: int = entry.pop() if entry else entry.refill()
        except IndexError:  # another thread took the last block
            entry, ptr = account.refilled(entry)
        except errors.OutOfMemoryError as error:
            ptr = account.rescue(entry, error)
        except errors.DeviceError as error:
            account.failed(error)
            raise
        except Reentered:
            entry, ptr = account.aside(entry)
        tally = entry.tally
        allocated = tally.allocated = tally.allocated + entry.nbytes
        if allocated > tally.peak_allocated:  # noqa: PLR1730  # `max` is a call
            tally.peak_allocated = allocated
        live[ptr] = entry
        return ptr

    return malloc


def make_free(account: "Account") -> "Callable[..., None]":
    """`free` of an account."""
    take, device_error = account.live.pop, errors.DeviceError

    def free(ptr: int, stream: "int | None" = None) -> None:
        try:
            entry = take(ptr)
        except (KeyError, TypeError):
            account.refuse(ptr, "free")
            return
        if stream is not None and stream != entry.stream:
            entry = account.ordered_after(ptr, entry, stream)
        entry.tally.allocated -= entry.nbytes
        try:
            entry.append(ptr)
        except device_error as error:
            if account.failed(error):
                raise
        if entry.clean:
            entry.clean = False
            entry.heap.dirty.append(entry)

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
