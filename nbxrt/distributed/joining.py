"""Joining a communicator of the backend's own collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.checks import seconds_of
from nbxrt.distributed.communicator import Communicator, start
from nbxrt.distributed.devicelink import DeviceLink
from nbxrt.distributed.links import Lost, Stuck
from nbxrt.distributed.progress import joining

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime


def join(runtime: Runtime, device: int, identity: bytes, rank: int, size: int, timeout: float) -> Communicator:
    """Join; returns when all ranks have.

    Raises: as `nbxrt.distributed.join`.
    """
    _demand_rank(rank, size)
    seconds_of(timeout)
    with joining(identity, rank, size) as progress:
        try:
            link = DeviceLink.join(runtime, device, identity, rank, size, timeout, progress.ended)
        except Stuck:
            raise _not_joined(rank, size, f"the others did not join within {timeout:g} s", timeout) from None
        except Lost as lost:
            raise _not_joined(rank, size, f"{lost} before all had joined") from None
        return start(link, rank, size, timeout=timeout, progress=progress)


def _demand_rank(rank: Any, size: Any) -> None:
    for name, value in (("rank", rank), ("size", size)):
        if value.__class__ is not int:
            raise errors.ArgumentTypeError(f"`{name}` is an integer, not {value!r}", parameter=name, value=value)
    if size < 1 or not 0 <= rank < size:
        raise errors.ArgumentValueError(f"rank {rank} is none of a communicator of {size}", parameter="rank")


def _not_joined(rank: int, size: int, why: str, seconds: float = 0.0) -> errors.CommunicatorError:
    kind = errors.CommunicatorTimeoutError if seconds else errors.CommunicatorError
    return kind(
        f"rank {rank} of {size}: {why}",
        hint="see whether all ranks started, and whether their hosts reach each other",
        operation="comm_init_rank",
        rank=rank,
        size=size,
        seconds=seconds,
    )
