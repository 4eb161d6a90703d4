"""How far the ranks of this host have come, so that whoever waits too long can say for whom.

A small file that the ranks of one host map: each has a slot with its process and the numbers of its calls. Ranks of
other hosts have no slot here, and nothing is said about them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from nbxrt.distributed.rankfile import file_of

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A slot is of its rank's own pieces of the processor's cache, two of which are fetched at once: ranks that write into
#: one piece wait for each other at every call.
_SLOT = 128
#: Numbers of eight bytes between two slots, and what stands in one: the process, how it stands to the communicator, how
#: many calls it has made of those that all ranks make, and how many messages.
_NUMBERS = _SLOT // 8
_PROCESS, _STANDING, _SHARED, _MESSAGES = range(4)
#: A rank takes part, waits for the others to leave with it, has left without them, or has left since it was broken.
_HERE, _LEAVING, _GONE, _BROKEN = range(4)


class Progress:
    """The slots of one communicator's ranks on this host; that of this rank alone where they can share no file."""

    def __init__(self, identity: bytes, rank: int, size: int) -> None:
        self.identity, self.rank, self.size = identity, rank, size
        self._file = file_of(identity, size * _SLOT) if size > 1 else None
        self._slots: memoryview | list[int]
        self._slots = [0] * (size * _NUMBERS) if self._file is None else memoryview(self._file.map).cast("q")
        own = _NUMBERS * rank
        self._standing, self._shared, self._messages = (own + each for each in (_STANDING, _SHARED, _MESSAGES))
        self._slots[own + _PROCESS] = os.getpid()
        self._next_shared, self._next_message = count(1).__next__, count(1).__next__
        self._joining = 0

    def joined(self) -> None:
        """No rank looks for the file any more: all of this host have it, or give up."""
        if self._file is not None:
            self._file.unlink()
            self._file = None

    def begin(self) -> None:
        """Tell of calls from here on: what ranks have called to join, all as often, is nobody's concern."""
        self._joining = self.made()

    def advance(self) -> None:
        """Count a call of this rank that all ranks make."""
        self._slots[self._shared] = self._next_shared()

    def advance_message(self) -> None:
        """Count a message of this rank, sent or received."""
        self._slots[self._messages] = self._next_message()

    def made(self) -> int:
        """The calls of this rank."""
        return self._slots[self._shared] + self._slots[self._messages]

    def behind(self) -> dict[int, str]:
        """The ranks of this host that have ended or made fewer calls than this one, and what is known of each."""
        own, found = self.made(), {}
        for rank, (process, standing, shared, messages) in self._others():
            calls = shared + messages
            if not _lives(process):
                found[rank] = _said(rank, process, "ended")
            elif calls < own and standing in (_GONE, _BROKEN):
                found[rank] = _said(rank, process, "left")
            elif calls < own:
                made, wanted = calls - self._joining, own - self._joining
                found[rank] = f"rank {rank} (process {process}) has made {made} calls of {wanted}"
        return found

    def gone(self) -> dict[int, str]:
        """The ranks of this host that have ended or left by themselves, whether or not they owe this one a call."""
        return {
            rank: _said(rank, process, "left" if standing == _GONE else "ended")
            for rank, (process, standing, *_calls) in self._others()
            if standing == _GONE or not _lives(process)
        }

    def ended(self) -> str:
        """The first rank of this host that has ended; empty when there is none."""
        return next((said for said in self.gone().values()), "")

    def lost(self) -> str:
        """The first rank that will not come as far as this one, since it has ended or left; empty when there is none.

        One that has left may owe fewer messages than this rank had with others.
        """
        own, own_shared = self.made(), self._slots[self._shared]
        for rank, (process, standing, shared, messages) in self._others():
            if shared + messages < own and not _lives(process):
                return _said(rank, process, "ended")
            if shared < own_shared and standing in (_GONE, _BROKEN):
                return _said(rank, process, "left")
        return ""

    # leaving

    def leave(self) -> None:
        """Say that this rank waits for the others to leave with it."""
        self._slots[self._standing] = _LEAVING

    def break_off(self, *, was_broken: bool = False) -> None:
        """Say that this rank has left without the others: by itself, or since it found the communicator broken."""
        self._slots[self._standing] = _BROKEN if was_broken else _GONE

    def is_broken_off(self) -> bool:
        """Whether another rank of this host has left without this one, or has ended before it left."""
        return any(
            standing in (_GONE, _BROKEN) or (standing == _HERE and not _lives(process))
            for _rank, (process, standing, *_calls) in self._others()
        )

    def staying(self) -> list[int]:
        """The other ranks of this host that do not leave."""
        return [rank for rank, (_process, standing, *_calls) in self._others() if standing != _LEAVING]

    def is_awaited(self) -> bool:
        """Whether all other ranks are of this host, and wait for this one to leave with them."""
        standings = [standing for _rank, (_process, standing, *_calls) in self._others()]
        return len(standings) == self.size - 1 > 0 and all(standing == _LEAVING for standing in standings)

    def _others(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Rank, and process, standing, calls that all make, and messages, of the other ranks of this host."""
        for rank in range(self.size):
            slot = tuple(self._slots[_NUMBERS * rank : _NUMBERS * rank + 4])
            if slot[_PROCESS] and rank != self.rank:
                yield rank, slot


@contextlib.contextmanager
def joining(identity: bytes, rank: int, size: int) -> Iterator[Progress]:
    """The progress of ranks that join a communicator, found by what is the same for all of them and nobody else.

    By the end of the block all ranks of this host have found it, or no more of them will.
    """
    progress = Progress(identity, rank, size)
    try:
        yield progress
    finally:
        progress.joined()


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
