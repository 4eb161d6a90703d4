"""Streams of APIs whose streams are objects: queues with the work in flight on each.

What is done to a queue is steps of the backend's file (`policies`); here is what needs a memory of its own.
"""

from _thread import get_ident

from nbxrt import errors, locks
from nbxrt.binding.failures import unknown
from nbxrt.locks import is_mine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.states import State


#: Pieces of work that are given up at once.
_AT_ONCE = 8


class Stream:
    """A queue, the state of its device, and the work in flight, oldest first. `failed` is the status of lost work."""

    __slots__ = ("_policy", "counter", "draining", "failed", "in_flight", "lock", "queue", "state")

    def __init__(self, policy: "Queues", queue: int, state: "State") -> None:
        self._policy = policy
        self.queue = queue
        self.state = state
        self.in_flight: list[int] = []
        self.failed = 0
        #: Held while work is waited for and taken out: work that a thread waits for is not released by another.
        self.draining = locks.RLock()
        #: Held while work is asked or released: work that is asked how far it is, is there.
        self.lock = locks.RLock()
        #: What marks of this stream count by, where they do (counters.py).
        self.counter: Any = None

    def is_walked(self) -> bool:
        """Whether the calling thread is at the work already, and is in a finalizer now: none of it may be released."""
        return is_mine(self.lock) or is_mine(self.draining)

    def failure(self) -> errors.DeviceError:
        """The error of work that failed after the call that gave it; told once, by the next call on the stream."""
        code, self.failed = self.failed, 0
        return self._policy.failure(code, "work that was given to the stream before")


class Walks:
    """The threads that walk over streams now, each as often as it does. What ends waits for them, and nobody else."""

    def __init__(self, after: "Callable[[], None]") -> None:
        self.threads: list[int] = []
        self._after = after

    def __enter__(self) -> None:
        self.threads.append(get_ident())

    def __exit__(self, *_failure: object) -> None:
        self.threads.remove(get_ident())
        self._after()


class Queues:
    """Streams that are the vendor's queues.

    The last pieces of work given to each are kept: whether a stream has finished is asked of the last one, because a
    marker that is made to ask would itself have to be waited for.
    """

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        values = binder.values("queues")
        #: Every stream by its handle, which is the queue's.
        self.records: dict[int, Stream] = {}
        self._of_parent = False
        #: As many pieces of work are kept of a stream; with `finish`, as many may be in flight.
        self.window: int = values.get("window", 1)
        self._complete: int = values.get("complete", 0)
        self._busy = frozenset(values.get("busy", ()))
        self._defaults: dict[State, Stream] = {}
        #: The queues of each device, that of its default stream among them where it was used.
        self.by_state: dict[State, tuple[int, ...]] = {}
        #: Entered while all streams of a device are walked: no queue of theirs goes meanwhile.
        self.walks = Walks(self._release_ended)
        #: Held while `by_state` changes, and for nothing else: a default stream is made under the lock of the devices.
        self._listing = locks.RLock()
        #: Streams that nobody finds any more, whose queues are still to be released, and who walked when they ended.
        self._ended: list[tuple[Stream, set[int]]] = []
        self._create, self._destroy = (binder.part("queues", part) for part in ("create", "destroy"))
        #: The parts that a file may leave out; None where it does.
        self._wait, self._status, self._finish, self._release, self._idle, self._error, self._keep = (
            binder.optional_part("queues", part)
            for part in ("wait", "status", "finish", "release", "idle", "error", "keep")
        )

        #: More work than this is given up, down to the window: at once where nothing is waited for, since each time
        #: costs a lock.
        self.most = self.window if self._finish is not None else self.window + _AT_ONCE
        #: The function that gives work up, where that is one call; else None.
        self._release_alone: Any = binder.single_call("queues", "release")

    # operations

    def stream_create(self) -> int:
        record = self._new(self._binder.state())
        self.records[record.queue] = record
        return record.queue

    def _new(self, state: "State") -> Stream:
        queue: int = self._create(state)
        self._list(state, lambda queues: (*queues, queue))
        return Stream(self, queue, state)

    def _list(self, state: "State", change: "Callable[[tuple[int, ...]], tuple[int, ...]]") -> None:
        """Change which queues a device has; anew where a finalizer has changed it meanwhile."""
        with self._listing:
            self.by_state.setdefault(state, ())
            while True:
                before = self.by_state[state]
                after = change(before)
                if self.by_state[state] is before:  # between this and the next line nothing can come
                    self.by_state[state] = after
                    return

    def stream_create_flags(self, _non_blocking: bool) -> int:
        return self.stream_create()

    def stream_destroy(self, stream: int) -> None:
        record = self.records.pop(stream, None)
        if record is None:
            raise self.unknown(stream)
        self.end(record)

    def stream_sync(self, stream: int) -> None:
        self.drain(self.find(stream))

    def sync(self) -> None:
        self.drain_all(self._binder.state())

    def stream_query(self, stream: int) -> bool:
        record = self.find(stream)
        if record.failed:
            raise record.failure()
        if self._idle is not None:
            return self._is_done(self._idle(record.state, record.queue), "stream_query")
        if self._status is None:
            raise self._binder.failures.lacks_part("queues", "status")
        # of threads that give work at the same time, the last to note it need not be the last to give
        with record.lock:
            statuses = [self._status(record.state, work) for work in list(record.in_flight)]
        return all(self._is_done(status, "stream_query") for status in statuses)

    # for other policies and for steps

    def renew_lock(self) -> None:
        """Make the lock anew, in a process that was forked; the streams are the parent's."""
        self._listing = locks.RLock()
        self._ended.clear()
        self.walks.threads.clear()
        self._of_parent = self._of_parent or bool(self.records)
        for kept in (self.records, self._defaults, self.by_state):
            kept.clear()

    def find(self, stream: int) -> Stream:
        """The record of a stream; 0 is the current device's default one. Raises: ArgumentValueError."""
        if not stream:
            return self.of_current()
        try:
            return self.records[stream]
        except KeyError:
            raise self.unknown(stream) from None

    def of_current(self) -> Stream:
        """The record of the current device's default stream."""
        default: Stream = self._binder.state().default_stream
        return default

    def unknown(self, stream: int) -> errors.ArgumentValueError:
        """The error for a handle that is no stream's."""
        said = f"no stream has the handle {stream:#x}: unknown, or destroyed already"
        return unknown(said, of_parent=self._of_parent)

    def default(self, state: "State") -> Stream:
        """A new default stream of a device."""
        record = self._defaults[state] = self._new(state)
        return record

    def end(self, record: Stream) -> None:
        """Wait for a stream and release its queue; where somebody walks over the streams, he does it afterwards.

        Nobody is waited for: a finalizer may end a stream inside of what the walker waits for.
        """
        try:
            self.drain(record)
        finally:
            if self._defaults.get(record.state) is record:
                del self._defaults[record.state]
            self._list(record.state, lambda queues: tuple([queue for queue in queues if queue != record.queue]))
            self._ended.append((record, {*self.walks.threads.copy()}))
            self._release_ended()

    def _release_ended(self) -> None:
        for ended in self._ended.copy():
            record, walkers = ended
            if walkers.isdisjoint(self.walks.threads.copy()):
                try:
                    self._ended.remove(ended)
                except ValueError:  # another thread does it, or a finalizer
                    continue
                self._release_queue(record)

    def _release_queue(self, record: Stream) -> None:
        try:
            while record.in_flight:  # given and waited for by a finalizer while the stream was walked
                self._take_out(record, record.in_flight[0])
        finally:
            self._destroy_queue(record)

    def _destroy_queue(self, record: Stream) -> None:
        try:
            self._destroy(record.state, record.queue)
        finally:
            if record.counter is not None:
                record.counter.give_up()

    def retire(self, record: Stream) -> None:
        """Keep less work of a stream: the oldest is waited for where the file says how, and its handle given up."""
        if record.is_walked():
            return
        if self._finish is None:  # nothing is waited for
            with record.lock:
                going = record.in_flight[: -self.window]
                del record.in_flight[: len(going)]  # others add to it meanwhile
                for work in going:
                    if self._release_alone is not None:
                        self._release_alone(work)
                    elif self._release is not None:
                        self._release(record.state, work)
            return
        with record.draining:
            while len(record.in_flight) > self.window:
                work = record.in_flight[0]
                self._finish(record.state, work)
                self._take_out(record, work)

    def _take_out(self, record: Stream, work: int) -> None:
        """Give work up that was waited for, and note that it failed; the stream is being drained."""
        with record.lock:
            if work not in record.in_flight:  # retired meanwhile
                return
            record.in_flight.remove(work)
            failed = self._failed(record, work)
            record.failed = record.failed or failed
            if self._release is not None:
                self._release(record.state, work)

    def pend(self, record: Stream, work: int) -> None:
        """Leave work in flight on a stream, which is then the owner of its handle."""
        record.in_flight.append(work)
        if len(record.in_flight) > self.most:
            self.retire(record)

    def keep(self, state: "State", work: int) -> None:
        """One owner more of the handle of work."""
        if self._keep is None:
            raise self._binder.failures.lacks_part("queues", "keep")
        self._keep(state, work)

    def failure(self, code: int, operation: str) -> errors.DeviceError:
        """The error of work that failed with a status."""
        return self._binder.library("runtime").failure(code, operation, "the stream's work")

    def _records_of(self, state: "State") -> "list[Stream]":
        records = [record for record in list(self.records.values()) if record.state is state]
        default = self._defaults.get(state)
        return [default, *records] if default is not None else records

    def drain(self, record: Stream) -> None:
        """Wait until the stream has finished; its work is given up, and what failed is raised."""
        if record.is_walked():
            self._await(record)
            return
        with record.draining:
            for work in self._await(record):
                self._take_out(record, work)
        if record.failed:
            raise record.failure()

    def _await(self, record: Stream) -> "list[int]":
        """Wait for the work of a stream, which nobody releases meanwhile; what it is."""
        pending = list(record.in_flight)
        if self._wait is not None:
            self._wait(record.state, record.queue)
        elif self._finish is not None:
            for work in pending:
                self._finish(record.state, work)
        return pending

    def drain_all(self, state: "State") -> None:
        """Wait until every stream of a device has finished. Raises: DeviceError of work that failed."""
        with self.walks:
            for record in self._records_of(state):
                self.drain(record)

    def _failed(self, record: Stream, work: int) -> int:
        """The code of work that has failed, or 0."""
        if self._status is None:
            return 0
        status: int = self._status(record.state, work)
        if status == self._complete or status in self._busy:
            return 0
        told: int = self._error(record.state, work) if self._error is not None else 0
        return told or status

    def _is_done(self, status: int, operation: str) -> bool:
        if status == self._complete or status in self._busy:
            return status == self._complete
        raise self.failure(status, operation)
