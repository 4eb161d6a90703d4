"""Memory that work on another stream still uses: it comes back when that work's events have finished."""

from _collections import deque  # type: ignore[import-not-found]  # `collections` is slow to import
from _thread import get_ident

from nbxrt import errors

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
        self._wait, self._sync = runtime.event_sync, runtime.sync
        self._events: list[int] = []
        self._queues: dict[Any, deque[tuple[int, tuple[tuple[Any, int], ...], Taker, int]]] = {}

    def __len__(self) -> int:
        return sum(map(len, list(self._queues.values())))

    def put(self, address: int, streams: "tuple[Any, ...]", taker: "Taker") -> None:
        """Let the taker have the memory back when the work that these streams have now has finished.

        Raises: DeviceError when not even waiting for the device tells that it has; then the memory is not given back.
        """
        try:
            if any(stream.__class__ is tuple and stream[1] != get_ident() for stream in streams):
                self._home.run(self._sync)  # another thread's own stream cannot be named here
                taker.settle(address)
                return
            marks = tuple((stream, self._home.run(self._marked, stream)) for stream in streams)
        except errors.DeviceError as error:  # a stream that is destroyed already, say: its work can only be waited for
            if error.sticky:
                raise
            self._home.run(self._sync)
            taker.settle(address)
            return
        self._enqueue(marks, taker, address)

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
        if self._queues:
            self._look(self._query)

    def drain(self) -> None:
        """Wait for everything, and give it back.

        Raises: DeviceError; what waited still waits.
        """

        def waited(event: int) -> bool:
            self._wait(event)
            return True

        while len(self):
            self._look(waited)

    def _look(self, is_done: "Any") -> None:
        for queue in list(self._queues.values()):
            while queue:
                try:
                    first = queue.popleft()
                except IndexError:  # another thread looks too
                    break
                event, rest, taker, address = first
                try:
                    done = is_done(event)
                except BaseException:
                    queue.appendleft(first)
                    raise
                if not done:
                    queue.appendleft(first)
                    break
                self._events.append(event)
                if rest:
                    self._enqueue(rest, taker, address)
                else:
                    taker.settle(address)

    def release(self) -> None:
        """Destroy the events that are not in use.

        Raises: DeviceError; the rest is kept.
        """
        while self._events:
            self._destroy(self._events[-1])
            self._events.pop()
