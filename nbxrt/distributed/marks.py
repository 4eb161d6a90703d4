"""Which collectives of a communicator are not done yet, by two events that follow each other.

After every operation an event is recorded in the caller's thread. The older of two stays as it is until it is so old
that somebody asks for it; until then the younger one is recorded anew after each operation. So however many operations
are given, it takes one record each, and what has been outstanding for too long is known to within one operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.objects.keeping import plain_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.distributed.links import Link
    from nbxrt.runtime import Runtime

#: Records that are kept, of a program with a few streams.
_MOST = 64
#: No stream.
_NONE = -1


class Marks:
    """The events of one communicator: the caller's thread records, the watch asks. Whoever calls holds the guard."""

    def __init__(self, runtime: Runtime, seconds: float) -> None:
        self._runtime = runtime
        self._query = runtime.event_query
        self._seconds = seconds
        self._free = [plain_event(runtime) for _each in range(2)]
        #: Event, what was called, when it was first seen to be outstanding: 0 until somebody looks.
        self._older: tuple[int, str, float] | None = None
        #: The same of the younger one, whose event is 0 until it has one; what records it, in which stream.
        self._event, self._said, self._when = 0, "", 0.0
        self._record: Callable[[], object] = _nothing
        self._stream = _NONE
        #: What records an event in a stream, made once for both, until the runtime makes its functions anew.
        self._records: dict[tuple[int, int], Callable[[], object]] = {}
        self._revision = runtime.revision
        self._is_closed = False

    def put(self, said: str, stream: int) -> None:
        """Mark the operation that was just given to a stream.

        In a stream that is being captured the mark means nothing, and counts as passed when it is asked for.
        """
        if stream != self._stream or self._revision != self._runtime.revision:
            if self._is_closed:  # by the watch, while this thread was in the call
                return
            self._prepare(stream)
        self._record()
        self._said, self._when = said, 0.0  # no clock here: it costs as much as the rest of this
        if self._older is None:
            self._grow_old()

    def _prepare(self, stream: int) -> None:
        if self._revision != self._runtime.revision or len(self._records) >= _MOST:
            self._records.clear()
            self._revision = self._runtime.revision
        if not self._event:
            self._event = self._free.pop()
        key = self._event, stream
        if key not in self._records:
            self._records[key] = self._runtime.prepared("event_record", *key)
        self._record, self._stream = self._records[key], stream

    def _grow_old(self) -> None:
        """The younger mark is the older one now, if there is one."""
        self._older = (self._event, self._said, self._when) if self._said else None
        if self._older is not None:
            self._event, self._said, self._stream = 0, "", _NONE

    def overdue(self, now: float) -> str:
        """What has been outstanding for too long, or nothing. The runtime is asked only about a mark of that age.

        The time of a mark runs from the first look at it, so that looks are to be short after one another.
        """
        self._when = self._when or now
        if self._older is not None and not self._older[2]:
            self._older = (*self._older[:2], now)
        while self._older is not None and now - self._older[2] >= self._seconds:
            if not self._retire():
                return self._older[1]
        return ""

    def oldest(self) -> str:
        """What was called first of what is outstanding, as far as it is known."""
        while self._older is not None and self._retire():
            pass
        return self._older[1] if self._older is not None else ""

    def _retire(self) -> bool:
        """Take back the older event if it has passed, or cannot be asked for: captured, or of a device that is lost."""
        if self._older is None:
            return False
        try:
            if not self._query(self._older[0]):
                return False
        except errors.DeviceError:
            pass
        self._free.append(self._older[0])
        self._grow_old()
        return True

    def close(self) -> None:
        """Release the events."""
        self._is_closed = True
        events = {*self._free, self._event, self._older[0] if self._older is not None else 0} - {0}
        for event in events:
            try:
                self._runtime.event_destroy(event)
            except errors.DeviceError:
                break
        self._free, self._older, self._event, self._said, self._stream = [], None, 0, "", _NONE


class NoMarks:
    """Of a link whose operations are done when they return."""

    def put(self, said: str, stream: int) -> None:
        """Nothing to mark."""

    def overdue(self, now: float) -> str:  # noqa: ARG002
        """Nothing is."""
        return ""

    def oldest(self) -> str:
        """Nothing is outstanding."""
        return ""

    def close(self) -> None:
        """Nothing to release."""


def marks_of(link: Link, seconds: float) -> Marks | NoMarks:
    """What keeps track of the work that a link has given to streams."""
    return Marks(link.runtime, seconds) if link.asynchronous else NoMarks()


def _nothing() -> None:
    pass
