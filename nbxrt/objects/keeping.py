"""Owners of memory that a stream still reads or writes, each kept until the stream has passed its use."""

from nbxrt import errors, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.objects.stream import Stream
    from nbxrt.runtime import Runtime


class Keeper:
    """Owners by the stream that uses them, each behind an event. Its lock guards the queues and the spare events.

    Passed owners are dropped at the next use, and whenever a stream or an event is waited for. They are dropped outside
    the lock: dropping one may run any finalizer.
    """

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._lock = locks.RLock()  # a finalizer may run inside the lock and come here again
        self._queues: dict[tuple[int, int], list[tuple[int, Any]]] = {}
        self._spare: dict[int, list[int]] = {}
        self._apart = 0

    def renew_lock(self) -> None:
        """Make the lock anew, in a process that was forked; what the parent's streams use is left to the parent."""
        self._lock = locks.RLock()
        self._queues, self._spare = {}, {}

    def keep(self, owner: "Any", stream: "Stream") -> None:
        """Keep an owner until the stream has passed what was given to it so far. Raises: DeviceError."""
        stream.call(self._keep, owner, stream)

    def _keep(self, owner: "Any", stream: "Stream") -> None:
        event = self._event(stream.key[0])
        self._runtime.event_record(event, stream.handle)
        with self._lock:
            self._queues.setdefault(stream.key, []).append((event, owner))
        self._drop_passed(stream.key[0])

    def drop_passed(self, device: "Device") -> None:
        """Drop the owners that the streams of a device have passed."""
        if self._queues:
            device.on(self._drop_passed, device.index)

    def _drop_passed(self, device: int) -> None:
        query = self._runtime.event_query if self._runtime.supports("event_query") else _never
        dropped = []
        with self._lock:
            for key in [key for key in self._queues if key[0] == device]:
                dropped += self._drop(key, query)
        del dropped

    def waited_for(self, stream: "Stream") -> None:
        """Drop what the stream used, after it was waited for."""
        if not self._queues:
            return
        with self._lock:
            queue = self._queues.pop(stream.key, [])
            self._spare.setdefault(stream.key[0], []).extend(event for event, _owner in queue)
        del queue

    def closed(self, stream: "Stream") -> None:
        """A stream is destroyed, and its handle may be given to another one: what its work uses is kept apart."""
        if stream.key not in self._queues:
            return
        with self._lock:
            queue = self._queues.pop(stream.key, None)
            if queue:
                self._apart += 1
                self._queues[stream.key[0], -self._apart] = queue

    def __len__(self) -> int:
        """How many owners are kept."""
        return sum(map(len, list(self._queues.values())))

    def _drop(self, key: "tuple[int, int]", query: "Callable[[int], bool]") -> "list[Any]":
        queue = self._queues[key]
        passed = 0
        while passed < len(queue) and _has_passed(query, queue[passed][0]):
            passed += 1
        dropped = queue[:passed]
        del queue[:passed]
        self._spare.setdefault(key[0], []).extend(event for event, _owner in dropped)
        if not queue:
            del self._queues[key]
        return dropped

    def _event(self, device: int) -> int:
        """A spare event of the device, or a new one, without timing where the backend has such."""
        with self._lock:
            spare = self._spare.get(device)
            if spare:
                return spare.pop()
        return plain_event(self._runtime)


def plain_event(runtime: "Runtime") -> int:
    """An event that need not record its time, where the backend has such."""
    if runtime.supports("event_create_flags"):
        return runtime.event_create_flags(timing=False)
    return runtime.event_create()


def _never(_event: int) -> bool:
    return False


def _has_passed(query: "Callable[[int], bool]", event: int) -> bool:
    """Whether an event has passed; after an error of the device nothing that it used is used any more."""
    try:
        return query(event)
    except errors.DeviceError:
        return True
