"""The opt-in check that all ranks call the same: NBXRT_DIST_CHECK=1 costs two small collectives for each operation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.links import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Sequence


def is_asked_for() -> bool:
    """Whether the environment asks for the check."""
    return os.environ.get("NBXRT_DIST_CHECK", "").strip() == "1"


def said(operation: str, arguments: tuple[Any, ...]) -> str:
    """A call as people read it: operation, count, type, and how or from whom; not the addresses.

    Of a message it is what both ends have in common.
    """
    if operation in MESSAGES:
        _address, count, datatype, _peer = arguments
        return f"a message of {count} {datatype}"
    count, datatype, *rest = arguments[2:]
    more = ", ".join(each if isinstance(each, str) else f"root {each}" for each in rest)
    return f"{operation} of {count} {datatype}" + (f" ({more})" if more else "")


def demand(calls: Sequence[str]) -> None:
    """Raise where the ranks' calls differ, naming the most common one and the first that is another.

    Raises: ArgumentValueError, on every rank; nothing was sent.
    """
    usual = max(calls, key=calls.count)
    others = [(rank, call) for rank, call in enumerate(calls) if call != usual]
    if not others:
        return
    rank, call = others[0]
    raise errors.ArgumentValueError(
        f"the ranks do not call the same: rank {calls.index(usual)} calls {usual}, rank {rank} calls {call}",
        hint="every rank of a communicator makes the same calls in the same order",
        operation=call.partition(" ")[0],
        calls=tuple(calls),
    )
