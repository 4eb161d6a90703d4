"""What the ranks of a communicator say to each other by itself: short messages, each with what it is said for.

A message is two small collectives, of its head and of what was said: the ranks say as much as they like. A head tells
apart what different ranks call at once, where no check was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.distributed import agreement

if TYPE_CHECKING:
    from nbxrt.distributed.standing import Standing

#: What every head begins with: another collective's elements seldom do.
_MAGIC = b"nbx"
_LENGTH = 4
#: What messages are for, by their number in a head.
BARRIER, SPLIT, SHARE, CHECK = _PURPOSES = ("barrier", "split", "share", "check (NBXRT_DIST_CHECK=1)")


def exchanged(standing: Standing, operation: str, said: bytes, purpose: str) -> list[bytes]:
    """What every rank says, in order of rank; the operation is the one that needs it.

    Raises: ArgumentValueError, on every rank, where they do not call the same; CommunicatorError; DeviceError.
    """
    head = _MAGIC + bytes([_PURPOSES.index(purpose)]) + len(said).to_bytes(_LENGTH, "little")
    heads = _parts(standing, operation, head)
    if any(each[: len(_MAGIC)] != _MAGIC or each[len(_MAGIC)] >= len(_PURPOSES) for each in heads):
        raise standing.broken(operation, said="another rank calls something else, whose elements came in its place")
    agreement.demand([_PURPOSES[each[len(_MAGIC)]] for each in heads])
    lengths = [int.from_bytes(each[-_LENGTH:], "little") for each in heads]
    longest = max(lengths)
    answers = _parts(standing, operation, said.ljust(longest, b"\0")) if longest else [b""] * standing.size
    return [answer[:length] for answer, length in zip(answers, lengths, strict=True)]


def _parts(standing: Standing, operation: str, part: bytes) -> list[bytes]:
    whole, nbytes = standing.gathered(operation, part), len(part)
    return [whole[start : start + nbytes] for start in range(0, len(whole), nbytes)]
