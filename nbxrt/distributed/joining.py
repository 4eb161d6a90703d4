"""Joining a communicator of the backend's own collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.communicator import Communicator, start
from nbxrt.distributed.devicelink import DeviceLink
from nbxrt.distributed.links import Stuck

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime


def join(runtime: Runtime, device: int, identity: bytes, rank: int, size: int, timeout: float) -> Communicator:
    """Join; returns when all ranks have.

    Raises: as `nbxrt.distributed.join`.
    """
    _demand_rank(rank, size)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise errors.ArgumentTypeError(f"`timeout` is seconds, not {timeout!r}", parameter="timeout", value=timeout)
    if not timeout > 0:
        raise errors.ArgumentValueError(f"`timeout` is more than 0 seconds, not {timeout!r}", parameter="timeout")
    try:
        link = DeviceLink.join(runtime, device, identity, rank, size, timeout)
    except Stuck:
        raise _not_joined(rank, size, timeout) from None
    return start(link, identity, rank, size, timeout=timeout)


def _demand_rank(rank: Any, size: Any) -> None:
    for name, value in (("rank", rank), ("size", size)):
        if value.__class__ is not int:
            raise errors.ArgumentTypeError(f"`{name}` is an integer, not {value!r}", parameter=name, value=value)
    if size < 1 or not 0 <= rank < size:
        raise errors.ArgumentValueError(f"rank {rank} is none of a communicator of {size}", parameter="rank")


def _not_joined(rank: int, size: int, seconds: float) -> errors.CommunicatorTimeoutError:
    return errors.CommunicatorTimeoutError(
        f"rank {rank} of {size}: the others did not join within {seconds:g} s",
        hint="see whether all ranks started, and whether their hosts reach each other",
        operation="comm_init_rank",
        rank=rank,
        size=size,
        seconds=seconds,
    )
