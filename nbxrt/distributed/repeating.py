"""A call with an array that was seen before: what cannot have changed since is not asked again.

A communicator keeps such calls by their array and stream. They are gone with the array, whose memory they do not keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from nbxrt.distributed.links import MESSAGES
from nbxrt.memory.allocator import account_of
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.buffer import Buffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.distributed.spans import Spans
    from nbxrt.distributed.standing import Standing, Work
    from nbxrt.objects.memory import Memory

#: Calls that a communicator keeps: of a program that calls with the same arrays again and again.
_MOST = 1024


def keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    """Keep a value; where there are too many, that one alone."""
    if len(kept) >= _MOST:
        kept.clear()
    kept[key] = value


def keep_repeat(
    kept: dict[Any, Callable[..., bool]], key: Any, x: Any, work: Work, standing: Standing, spans: Spans
) -> None:
    """Keep what makes the call again that was made just now, of an array of nbxrt's own: those stay as they are."""
    call, is_own = work[3], x.__class__ is DeviceArray or x.__class__ is Buffer
    if call is None or not is_own:
        return

    def forget(_dead: Any) -> None:
        kept.pop(key, None)

    keep(kept, key, _repeat(ref(x, forget), x.memory, work, call, standing, spans))


def _repeat(
    of: Any, memory: Memory, work: Work, call: Callable[[], object], standing: Standing, spans: Spans
) -> Callable[..., bool]:
    """What makes a call again; it answers False, and has done nothing, where it is to be looked at anew."""
    name, _arguments, stream, _call = work
    runtime, guard, put = standing.link.runtime, standing.link.guard, standing.marks.put
    advance = standing.progress.advance_message if name in MESSAGES else standing.progress.advance
    revision, captures, live = runtime.revision, spans.captures, account_of(runtime).live

    def repeat(_of: Any = of) -> bool:
        if not memory.is_open or runtime.revision != revision:
            return False
        if memory.home != stream:
            entry = live.get(memory.address)
            if captures or entry is None or stream not in entry.users:  # the account is to be told of this use
                return False
        with guard:  # nobody gives the library's communicator back between the look and the call
            if standing.is_over:
                return False
            standing.last = name
            advance()
            call()
            put(name, stream)
        return not standing.is_over  # it may have been broken while it was in the library, which let it go then

    return repeat
