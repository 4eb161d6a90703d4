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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Numbers of a slot, of eight bytes each: the process, the calls it has made, how it stands to the communicator, and
#: how many of the calls are those that all ranks make.
_NUMBERS = 4
_SLOT = 8 * _NUMBERS
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
        self._slots[_NUMBERS * rank] = os.getpid()
        self._calls, self._standing, self._shared = (_NUMBERS * rank + number for number in (1, 2, 3))
        self._joining = 0

    def all_are_here(self) -> None:
        """Take the file off the file system: every rank of this host has it mapped."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def begin(self) -> None:
        """Tell of calls from here on: what ranks have called to join, all as often, is nobody's concern."""
        self._joining = self._slots[self._calls]

    def advance(self, *, for_all: bool = True) -> None:
        """Count a call of this rank: one that all ranks make, or a message."""
        self._slots[self._calls] += 1
        if for_all:
            self._slots[self._shared] += 1

    def behind(self) -> list[tuple[int, str]]:
        """The ranks of this host that have ended or made fewer calls than this one, and what is known of each."""
        own, found = self._slots[self._calls], []
        for rank, process, calls, standing, _shared in self._others():
            if not _lives(process):
                found.append((rank, _said(rank, process, "ended")))
            elif calls < own and standing == _GONE:
                found.append((rank, _said(rank, process, "left")))
            elif calls < own:
                made, wanted = calls - self._joining, own - self._joining
                found.append((rank, f"rank {rank} (process {process}) has made {made} calls of {wanted}"))
        return found

    def lost(self) -> str:
        """The first rank that will not come as far as this one, since it has ended or left; empty when there is none.

        One that has left may owe fewer messages than this rank had with others.
        """
        own, own_shared = self._slots[self._calls], self._slots[self._shared]
        for rank, process, calls, standing, shared in self._others():
            if calls < own and not _lives(process):
                return _said(rank, process, "ended")
            if shared < own_shared and standing == _GONE:
                return _said(rank, process, "left")
        return ""

    # leaving

    def leave(self) -> None:
        """Say that this rank waits for the others to leave with it."""
        self._slots[self._standing] = _LEAVING

    def break_off(self) -> None:
        """Say that this rank has left without the others."""
        self._slots[self._standing] = _GONE

    def is_broken_off(self) -> bool:
        """Whether another rank of this host has left without this one, or has ended before it left."""
        return any(
            standing == _GONE or (standing == _HERE and not _lives(process))
            for _rank, process, _calls, standing, _shared in self._others()
        )

    def staying(self) -> list[int]:
        """The other ranks of this host that do not leave."""
        return [rank for rank, _process, _calls, standing, _shared in self._others() if standing != _LEAVING]

    def _others(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Rank, process, calls, standing, and calls that all make, of the other ranks of this host."""
        for rank in range(self.size):
            process, calls, standing, shared = self._slots[_NUMBERS * rank : _NUMBERS * (rank + 1)]
            if process and rank != self.rank:
                yield rank, process, calls, standing, shared


def _said(rank: int, process: int, what: str) -> str:
    return f"rank {rank} (process {process}) has {what}"


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
