"""Locks and per-thread values, without `threading`: importing it is a fifth of what opening a backend costs.

They are the very types that `threading` gives out.
"""

import sys
from _thread import RLock, _local, allocate_lock, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

Lock = allocate_lock
local = _local

__all__ = ["Lock", "RLock", "local", "others_are_inside"]


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
