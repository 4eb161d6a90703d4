"""The thread that watches the communicators of this process, and what becomes of them at its end.

It looks for errors that the library reports after a call returned, and for operations that are outstanding for too
long; either ends the communicator, which lets whoever waits on a stream go on. It asks the vendor's runtime nothing
while all is well: questions from another thread can spoil a capture.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbxrt.distributed.standing import Standing

#: Seconds between two looks, at the least and at the most, and the part of a timeout that they are.
SOONEST, LATEST, PART = 0.02, 0.5, 8

#: Seconds that the end of a process waits for what is under way.
GRACE = 5.0

_lock = threading.RLock()  # guards what follows; a finalizer may come here meanwhile
#: In the order in which they were made, by which all ranks leave them at the end. One that nobody holds any more is
#: watched until it is closed: its work goes on.
_watched: dict[Standing, None] = {}
_thread: threading.Thread | None = None
_wake = threading.Event()
_has_failed = False


def watch(communicator: Standing) -> None:
    """Watch a communicator until it is closed."""
    global _thread  # noqa: PLW0603  # one thread for all of them
    with _lock:
        _watched[communicator] = None
        if _thread is None or not _thread.is_alive():
            if _thread is None:
                _prepare()
            _thread = threading.Thread(target=_look_again_and_again, name="nbxrt watch", daemon=True)
            _thread.start()
    _wake.set()


_prepared = False


def _prepare() -> None:
    """Once a process: what becomes of communicators at its end, and in its forked children."""
    global _prepared  # noqa: PLW0603
    if not _prepared:
        atexit.register(close_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_leave_them_to_the_parent)
    _prepared = True


def _leave_them_to_the_parent() -> None:
    """In a forked child: libraries of collectives do not survive a fork, and their threads are the parent's."""
    global _lock, _thread, _wake, _has_failed
    _lock, _thread, _wake, _has_failed = threading.RLock(), None, threading.Event(), False
    for communicator in list(_watched.copy()):
        communicator.disown()
    _watched.clear()


def forget(communicator: Standing) -> None:
    """Watch a communicator no longer."""
    with _lock:
        _watched.pop(communicator, None)


def others(communicator: Standing) -> list[Standing]:
    """What is watched beside one."""
    with _lock:
        return [each for each in _watched.copy() if each is not communicator]


def _look_again_and_again() -> None:
    while True:
        with _lock:
            communicators = list(_watched.copy())
        for communicator in communicators:
            communicator.look()
        shortest = min((each.timeout for each in communicators), default=LATEST * PART)
        del communicators
        _wake.wait(min(max(shortest / PART, SOONEST), LATEST))
        _wake.clear()


def close_all() -> None:
    """At the end of the process: leave every communicator, without waiting for ranks that do not come."""
    with _lock:
        communicators = list(_watched.copy())
    for communicator in communicators:
        communicator.leave_at_exit()


def abort_all() -> None:
    """Leave every communicator of this process at once: whoever uses them has failed, and the process goes on."""
    with _lock:
        communicators = list(_watched.copy())
    for communicator in communicators:
        communicator.abort()


def note_failure() -> None:
    """A communicator of this process broke."""
    global _has_failed  # noqa: PLW0603
    _has_failed = True


def has_failed() -> bool:
    """Whether a communicator of this process broke: at its end, other ranks may not come."""
    return _has_failed
