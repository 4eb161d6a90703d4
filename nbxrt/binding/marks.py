"""Marks: events of APIs whose events are objects, as handles that are made in a queue when one is recorded.

What is done to a mark is steps of the backend's file (`policies`); here is what needs a memory of its own.
"""

from nbxrt import errors, locks
from nbxrt.binding.policies import Handles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.queues import Queues
    from nbxrt.binding.states import State


class Mark:
    """A mark in a queue, which lives until nobody uses it: an event may be recorded anew while a thread waits."""

    def __init__(self, release: "Callable[..., Any]", state: "State", handle: int) -> None:
        self._release = release
        self._lock = locks.RLock()
        self._users = 1
        self.state = state
        self.handle = handle

    def keep(self) -> bool:
        """One user more; false where it was released already."""
        with self._lock:
            if not self._users:
                return False
            self._users += 1
        return True

    def give_up(self) -> bool:
        """One user less; the last one releases the mark. Whether it was the last."""
        with self._lock:
            self._users -= 1
            last = not self._users
        if last:
            self._release(self.state, self.handle)
        return last


class Event:
    """An event: whether it records its time, and the mark of where it was recorded last."""

    __slots__ = ("lock", "mark", "timing")

    def __init__(self, timing: bool) -> None:
        self.timing = timing
        self.mark: Mark | None = None
        self.lock = locks.RLock()

    def replace(self, mark: "Mark | None") -> None:
        """Let the event stand for another mark."""
        with self.lock:
            former, self.mark = self.mark, mark
        if former is not None:
            former.give_up()

    def using(self) -> "Mark | None":
        """The mark, kept alive until it is given up; None for an event never recorded."""
        while True:
            mark = self.mark
            if mark is None or mark.keep():
                return mark


class Marks:
    """Events that are marks in queues: handles of the vendor's, one for each time that an event is recorded."""

    def __init__(self, binder: "Binder") -> None:
        values = binder.values("marks")
        self._binder = binder
        self._events = Handles("event")
        self._queues: Queues = binder.policy("queues")
        self._complete: int = values.get("complete", 0)
        self._busy = frozenset(values.get("busy", ()))
        self._tick: int = values.get("tick", 1)
        self._status, self._wait, self.release = (binder.part("marks", part) for part in ("status", "wait", "release"))
        self._record, self._pass, self._time, self._clock = (
            binder.optional_part("marks", part) for part in ("record", "pass", "time", "clock")
        )

    def renew_lock(self) -> None:
        """Begin with no events, in a process that was forked: their marks are the parent's."""
        self._events = self._events.for_a_child()

    def event_create(self) -> int:
        self._binder.state()  # an event needs a device, though it is made when it is recorded
        return self._events.add(Event(timing=True))

    def event_create_flags(self, timing: bool, _blocking: bool, interprocess: bool) -> int:
        if interprocess:
            raise self._binder.failures.lacks_flag("event_create_flags", "interprocess")
        self._binder.state()
        return self._events.add(Event(timing))

    def event_destroy(self, event: int) -> None:
        self._events.remove(event).replace(None)

    def event_record(self, event: int, stream: int) -> None:
        target: Event = self._events.get(event)
        record = self._queues.find(stream)
        assert self._record is not None  # noqa: S101  # a file without counters has it
        handle = self._record(record.state, record.queue)
        target.replace(Mark(self.release, record.state, handle))

    def let_go(self) -> None:
        """Give up the marks of events that somebody still keeps: what is kept of the devices goes, and they with it."""
        for event in self._events.all():
            event.replace(None)

    def event_sync(self, event: int) -> None:
        mark = self._events.get(event).using()
        if mark is not None:
            try:
                self._wait(mark.state, mark.handle)
            finally:
                mark.give_up()

    def event_query(self, event: int) -> bool:
        mark = self._events.get(event).using()
        if mark is None:
            return True
        try:
            return self._is_passed(mark, "event_query")
        finally:
            mark.give_up()

    def _is_passed(self, mark: Mark, operation: str) -> bool:
        """Whether a mark was passed. Raises: DeviceError where the work before it failed."""
        status: int = self._status(mark.state, mark.handle)
        if status == self._complete or status in self._busy:
            return status == self._complete
        raise self._queues.failure(status, operation)

    def stream_wait_event(self, stream: int, event: int) -> None:
        record = self._queues.find(stream)
        mark = self._events.get(event).using()
        if mark is None:
            return
        try:
            if self._pass is not None and mark.state is record.state:
                self._pass(record.state, record.queue, mark.handle)
            else:  # a mark of another device cannot go into this one's queue: the host waits for it
                self._wait(mark.state, mark.handle)
        finally:
            mark.give_up()

    def event_elapsed(self, start: int, end: int) -> float:
        (_state, begin), (state, finish) = (
            self._ticks(name, event) for name, event in (("start", start), ("end", end))
        )
        elapsed, tick = finish - begin, self._tick
        if self._clock is not None:
            tick, bits = self._clock(state)
            half = 1 << (bits - 1)
            elapsed = (elapsed + half) % (2 * half) - half  # ticks may have begun anew between the two
        return elapsed * tick / 1e6

    def _ticks(self, name: str, event: int) -> "tuple[State, int]":
        target: Event = self._events.get(event)
        if not target.timing:
            raise errors.ArgumentValueError(f"`{name}` was made without timing")
        if self._time is None:
            raise self._binder.failures.lacks_part("marks", "time")
        mark = target.using()
        if mark is None:
            raise errors.ArgumentValueError(f"`{name}` was never recorded")
        try:
            ticks: int = self._time(mark.state, mark.handle)
        finally:
            mark.give_up()
        return mark.state, ticks
