"""Marks as points on a stream's counter, which the device raises and other streams wait for.

An event stands for a value of its stream's counter and for the work that raises it: the work tells the host how far it
is and when it ended, the counter holds other streams back.
"""

from nbxrt import locks
from nbxrt.binding.marks import Mark, Marks
from nbxrt.locks import is_mine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nbxrt.binding.binder import Binder
    from nbxrt.binding.queues import Stream


class Counter(Mark):
    """The counter of a stream: it rises by one with each event that is recorded there."""

    def __init__(self, policy: "Counters", record: "Stream") -> None:
        super().__init__(policy.drop, record.state, policy.make(record.state))
        self.value = 0
        #: Held from taking a value until the work that raises it is given: values rise in the order of work.
        self.order = locks.RLock()


class Point(Mark):
    """A value of a counter, and the work that raises it."""

    def __init__(self, policy: "Counters", counter: Counter, value: int, work: int) -> None:
        super().__init__(policy.release, counter.state, work)
        self.counter = counter
        self.value = value
        counter.keep()

    def give_up(self) -> bool:
        """One user less; with the last one the counter has one less too."""
        last = super().give_up()
        if last:
            self.counter.give_up()
        return last


class Counters(Marks):
    """Events that are values of counters: the policy `marks` of a file that makes such."""

    def __init__(self, binder: "Binder") -> None:
        super().__init__(binder)
        self.make, self.drop, self._raise, self._hold = (
            binder.part("marks", part) for part in ("make", "drop", "raise", "hold")
        )

    def event_record(self, event: int, stream: int) -> None:
        target = self._events.get(event)
        record = self._queues.find(stream)
        counter = self._counter(record)
        if is_mine(counter.order):  # a finalizer, which cannot know whether the value before is raised already
            self._queues.drain(record)
            target.replace(None)
            return
        with counter.order:
            value = counter.value + 1
            work = self._raise(record.state, record.queue, counter.handle, value)
            counter.value = value
            point = Point(self, counter, value, work)
            self._queues.keep(record.state, work)
        self._queues.pend(record, work)  # it may wait, and who is waited for may record in a finalizer
        target.replace(point)

    def stream_wait_event(self, stream: int, event: int) -> None:
        record = self._queues.find(stream)
        point = self._events.get(event).using()
        if point is None:
            return
        try:
            if self._is_passed(point, "stream_wait_event"):
                return
            work = self._hold(record.state, record.queue, point.counter.handle, point.value)
            self._queues.pend(record, work)
        finally:
            point.give_up()

    def _counter(self, record: "Stream") -> Counter:
        """The counter of a stream, made when it is first needed."""
        if record.counter is None:
            made = Counter(self, record)
            with record.lock:
                if record.counter is None:
                    record.counter = made
            if record.counter is not made:  # another thread was quicker, or a finalizer
                made.give_up()
        counter: Counter = record.counter
        return counter
