"""Locks, per-thread values and threads, without `threading`: importing it is a fifth of what opening a backend costs.

They are the very types that `threading` gives out.

The garbage collector runs finalizers inside whatever the thread is at, and these may come to a lock that it holds. So
whatever guards something is an `RLock`, and its holder sees to it that a finalizer in between finds everything whole,
and leaves it so; `is_mine` tells it that it is one. A `Lock` is for one thread to let another go on.
"""

import sys
from _thread import RLock, _local, allocate_lock, get_ident, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, TypeVar

    R = TypeVar("R")

Lock = allocate_lock
local = _local

__all__ = ["Lock", "RLock", "in_another_thread", "is_mine", "local", "others_are_inside"]


def is_mine(lock: RLock) -> bool:
    """Whether the calling thread holds the lock already: it is in a finalizer then, inside of what the lock guards."""
    return lock._is_owned()  # type: ignore[attr-defined,no-any-return]  # noqa: SLF001  # `threading` asks it the same


def in_another_thread(function: "Callable[..., R]", *arguments: "Any") -> "R":
    """Call a function in a new thread and wait for it: its answer, or what it raised, raised here."""
    answers: list[Any] = []
    done = Lock()
    done.acquire()

    def work() -> None:
        try:
            answers.append((function(*arguments), None))
        except BaseException as error:  # noqa: BLE001  # raised in the caller
            answers.append((None, error))
        finally:
            done.release()

    start_new_thread(work, ())
    done.acquire()
    answer, error = answers.pop()
    if error is not None:
        raise error
    return answer  # type: ignore[no-any-return]


def others_are_inside(backend: str) -> bool:
    """Whether another thread is in an operation of a backend's now: its generated function is among those it calls."""
    frames = sys._current_frames()  # noqa: SLF001  # there is no other way to ask
    return any(ident != get_ident() and _is_inside(frame, f"<nbxrt {backend}.") for ident, frame in frames.items())


def _is_inside(frame: "FrameType | None", file: str) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(file):
            return True
        frame = frame.f_back
    return False
