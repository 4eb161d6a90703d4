"""Locks and per-thread values, without `threading`: importing it is a fifth of what opening a backend costs.

They are the very types that `threading` gives out.
"""

from _thread import RLock, _local, allocate_lock

Lock = allocate_lock
local = _local

__all__ = ["Lock", "RLock", "local"]
