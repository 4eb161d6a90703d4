"""How far the ranks of this host have come, so that whoever waits too long can say for whom.

A small file that the ranks of one host map: each has a slot with its process and the number of its calls. It is found
by what tells the communicator apart and taken off the file system as soon as all ranks have it. Ranks of other hosts
have no slot here, and nothing is said about them.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import sys
import tempfile
from pathlib import Path

#: Eight bytes each: the process, the number of calls it has made, and how it stands to the communicator.
_SLOT = 24
#: A rank takes part, waits for the others to leave with it, or has left without them.
_HERE, _LEAVING, _GONE = range(3)


class Progress:
    """The slots of one communicator's ranks on this host."""

    def __init__(self, identity: bytes, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        name = hashlib.sha256(identity).hexdigest()[:24]
        folder = Path("/dev/shm")  # noqa: S108  # unreadable to other users, and gone before the program uses it
        folder = folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())
        self._path = folder / f"nbxrt-ranks-{name}"
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(file, size * _SLOT)
            self._map = mmap.mmap(file, size * _SLOT)
        finally:
            os.close(file)
        self._slots = memoryview(self._map).cast("q")
        self._slots[3 * rank] = os.getpid()
        self._own = 3 * rank + 1

    def all_are_here(self) -> None:
        """Take the file off the file system: every rank of this host has it mapped."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def begin(self) -> None:
        """Count from here on: what a rank has called to join is nobody's concern."""
        self._slots[self._own] = 0

    def advance(self) -> None:
        """Count a call of this rank."""
        self._slots[self._own] += 1

    def behind(self) -> list[tuple[int, str]]:
        """The ranks of this host that have ended or made fewer calls than this one, and what is known of each."""
        own, found = self._slots[self._own], []
        for rank in range(self.size):
            process, calls, _standing = self._slots[3 * rank : 3 * rank + 3]
            if rank == self.rank or not process:
                continue
            if not _lives(process):
                found.append((rank, f"rank {rank} (process {process}) has ended"))
            elif calls < own:
                found.append((rank, f"rank {rank} (process {process}) has made {calls} calls of {own}"))
        return found

    def lost(self) -> str:
        """The first rank that has ended before it came as far as this one; empty when there is none."""
        own = self._slots[self._own]
        for rank in range(self.size):
            process, calls, _standing = self._slots[3 * rank : 3 * rank + 3]
            if process and calls < own and rank != self.rank and not _lives(process):
                return f"rank {rank} (process {process}) has ended"
        return ""

    # leaving

    def leave(self) -> None:
        """Say that this rank waits for the others to leave with it."""
        self._slots[self._own + 1] = _LEAVING

    def break_off(self) -> None:
        """Say that this rank has left without the others."""
        self._slots[self._own + 1] = _GONE

    def is_broken_off(self) -> bool:
        """Whether another rank of this host has left without this one, or has ended before it left."""
        return any(standing == _GONE or (standing == _HERE and not _lives(pid)) for pid, standing in self._others())

    def all_leave(self) -> bool:
        """Whether the other ranks of this host leave, too."""
        return all(standing == _LEAVING for _process, standing in self._others())

    def _others(self) -> list[tuple[int, int]]:
        """Process and standing of the other ranks of this host."""
        slots = [self._slots[3 * rank : 3 * rank + 3] for rank in range(self.size) if rank != self.rank]
        return [(process, standing) for process, _calls, standing in slots if process]


def _lives(process: int) -> bool:
    """Whether a process of this host runs; one that nobody has asked for its exit status has ended."""
    if sys.platform == "win32":  # where signal 0 is no question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{process}/stat").read_text("ascii", "replace").rpartition(") ")[2][:1]
    except OSError:
        return True
    return state not in ("Z", "X")
