"""Memory that work on another stream still uses: it comes back when that work's events have finished."""

from _collections import deque  # type: ignore[import-not-found]  # `collections` is slow to import

from nbxrt import errors
from nbxrt.memory.entries import this_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from nbxrt.memory.home import Home

    class Taker(Protocol):
        """Who takes memory back."""

        def settle(self, address: int) -> None:
            """The memory at this address may be used again."""


class Deferred:
    """What waits for events, in a queue for each stream, so that one slow stream holds nobody else up.

    Events are pooled. Nothing is asked unless somebody polls. Safe to use from several threads and from finalizers.
    A stream is its handle, or (handle, thread) where the handle means a stream of each thread's own.
    """

    def __init__(self, home: "Home") -> None:
        runtime = home.runtime
        self._home = home
        self._make = runtime.event_create_flags if runtime.supports("event_create_flags") else runtime.event_create
        self._flags = {"timing": False} if runtime.supports("event_create_flags") else {}
        self._record, self._query, self._destroy = runtime.event_record, runtime.event_query, runtime.event_destroy
        self._wait, self._sync, self._sync_stream = runtime.event_sync, runtime.sync, runtime.stream_sync
        self._events: list[int] = []
        #: Memory of which no event could be had.
        self._unsure: list[tuple[int, Taker]] = []
        #: Memory whose streams are marked once no capture is under way.
        self._put_off: deque[tuple[int, tuple[Any, ...], Taker]] = deque()
        self._queues: dict[Any, deque[tuple[int, tuple[tuple[Any, int], ...], Taker, int]]] = {}

    def __len__(self) -> int:
        return len(self._unsure) + len(self._put_off) + sum(map(len, list(self._queues.values())))

    def addresses(self) -> "set[int]":
        """Where the memory is that waits."""
        waiting = [item[3] for queue in list(self._queues.values()) for item in list(queue)]
        return {*waiting, *(address for address, *_rest in [*self._unsure, *self._put_off])}

    def put(self, address: int, streams: "tuple[Any, ...]", taker: "Taker") -> None:
        """Let the taker have the memory back when the work that these streams have now has finished.

        Where no event can be had of a stream its work is waited for at once, or if that fails too, at the next look.
        Raises: DeviceError after which the context is lost.
        """
        if not streams:  # those that used it were destroyed, and their work was waited for
            taker.settle(address)
            return
        if any(map(self._home.captures.holds, streams)):
            self._put_off.append((address, streams, taker))
            return
        if any(stream.__class__ is tuple and stream[1] != this_thread() for stream in streams):
            self._wait_for_all(address, (), taker)  # another thread's own stream cannot be named here
            return
        try:
            marks = tuple((stream, self._home.run(self._marked, stream)) for stream in streams)
        except errors.DeviceError as error:  # the stream is destroyed already, say, or of another device
            if error.sticky:
                raise
            self._wait_for_all(address, streams, taker)
            return
        self._enqueue(marks, taker, address)

    def _wait_for_all(self, address: int, streams: "tuple[Any, ...]", taker: "Taker") -> None:
        try:
            for stream in streams:
                self._wait_for(stream)
            self._home.run(self._sync)
        except errors.DeviceError as error:
            if error.sticky:
                raise
            self._unsure.append((address, taker))
            return
        taker.settle(address)

    def _wait_for(self, stream: "Any") -> None:
        try:
            self._sync_stream(stream[0] if stream.__class__ is tuple else stream)
        except errors.DeviceError as error:
            if error.kind != "invalid_handle":  # of a stream that is gone only its device can be waited for
                raise

    def _marked(self, stream: "Any") -> int:
        event = self._event()
        try:
            self._record(event, stream[0] if stream.__class__ is tuple else stream)
        except BaseException:
            self._events.append(event)
            raise
        return event

    def _event(self) -> int:
        try:
            return self._events.pop()
        except IndexError:
            event: int = self._make(**self._flags)
            return event

    def _enqueue(self, marks: "tuple[tuple[Any, int], ...]", taker: "Taker", address: int) -> None:
        (stream, event), *rest = marks
        self._queues.setdefault(stream, deque()).append((event, tuple(rest), taker, address))

    def poll(self) -> None:
        """Give back what has finished.

        Raises: DeviceError; what waited still waits.
        """
        if self._put_off:
            self.resume()
        if (self._queues or self._unsure) and not self._home.captures:
            self._look(self._query)

    def resume(self) -> None:
        """Mark the streams of what was put off while a graph was recorded.

        Raises: DeviceError after which the context is lost.
        """
        for _item in range(len(self._put_off)):  # what is put off again is last
            try:
                item = self._put_off.popleft()
            except IndexError:  # another thread does it too
                break
            self.put(*item)

    def drain(self) -> None:
        """Wait for everything but what a capture that is under way may use, and give it back.

        Raises: DeviceError; what waited still waits.
        """

        def waited(event: int) -> bool:
            self._wait(event)
            return True

        self.resume()
        while len(self) > len(self._put_off) and not self._home.captures:
            self._look(waited)

    def _look(self, is_done: "Any") -> None:
        waited_for = self._unsure[:]
        if waited_for:
            self._home.run(self._sync)
            for item in waited_for:
                try:
                    self._unsure.remove(item)
                except ValueError:  # another thread looks too, or a finalizer
                    continue
                item[1].settle(item[0])
        moved = True
        while moved:
            moved = False
            for queue in list(self._queues.values()):
                moved |= self._look_at(queue, is_done)

    def _look_at(self, queue: "deque[Any]", is_done: "Any") -> bool:
        """Take what has finished from one stream's queue; whether something goes on to another stream's."""
        moved = False
        while queue:
            try:
                first = queue.popleft()
            except IndexError:  # another thread looks too
                break
            event, rest, taker, address = first
            done = False
            try:
                done = is_done(event)
            finally:
                if not done:
                    queue.appendleft(first)
            if not done:
                break
            self._events.append(event)
            if rest:
                self._enqueue(rest, taker, address)
                moved = True
            else:
                taker.settle(address)
        return moved

    def release(self) -> None:
        """Destroy the events that are not in use.

        Raises: DeviceError; the rest is kept.
        """
        while self._events:
            try:
                event = self._events.pop()
            except IndexError:  # another thread took the last one, or a finalizer
                return
            try:
                self._destroy(event)
            except BaseException:
                self._events.append(event)
                raise
