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


def others_are_inside() -> bool:
    """Whether another thread is in a call of nbxrt's now, be it in C or in a generated function."""
    frames = sys._current_frames()  # noqa: SLF001  # there is no other way to ask
    return any(ident != get_ident() and _is_inside(frame) for ident, frame in frames.items())


def _is_inside(frame: "FrameType | None") -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<nbxrt ") or str(frame.f_globals.get("__name__")).startswith("nbxrt."):
            return True
        frame = frame.f_back
    return False
