"""Which collectives of a communicator are not done yet, by two events that follow each other.

After every operation an event is recorded in the caller's thread. The older of two stays as it is until it is so old
that somebody asks for it; until then the younger one is recorded anew after each operation. So however many operations
are given, it takes one record each, and what has been outstanding for too long is known to within one operation.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.objects.keeping import plain_event

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime


class Marks:
    """The events of one communicator. Its lock guards them: the caller's thread records, the watch asks."""

    def __init__(self, runtime: Runtime, seconds: float) -> None:
        self._runtime = runtime
        self._record = runtime.event_record
        self._query = runtime.event_query
        self._seconds = seconds
        self._lock = threading.Lock()
        self._free = [plain_event(runtime) for _each in range(2)]
        #: (event, what was called, when), the older one first.
        self._outstanding: list[tuple[int, str, float]] = []

    def put(self, said: str, stream: int) -> None:
        """Mark the operation that was just given to a stream.

        In a stream that is being captured the mark means nothing, and counts as passed when it is asked for.
        """
        with self._lock:
            event = self._free.pop() if self._free else self._outstanding.pop()[0]
            self._record(event, stream)
            self._outstanding.append((event, said, time.monotonic()))

    def overdue(self, now: float) -> str:
        """What has been outstanding for too long, or nothing. The runtime is asked only about a mark of that age."""
        with self._lock:
            while self._outstanding and now - self._outstanding[0][2] >= self._seconds:
                if not self._retire():
                    return self._outstanding[0][1]
        return ""

    def oldest(self) -> str:
        """What was called first of what is outstanding, as far as it is known."""
        with self._lock:
            while self._outstanding and self._retire():
                pass
            return self._outstanding[0][1] if self._outstanding else ""

    def _retire(self) -> bool:
        """Take back the older event if it has passed, or cannot be asked for: captured, or of a device that is lost."""
        try:
            if not self._query(self._outstanding[0][0]):
                return False
        except errors.DeviceError:
            pass
        self._free.append(self._outstanding.pop(0)[0])
        return True

    def close(self) -> None:
        """Release the events."""
        with self._lock:
            for event in [*self._free, *(entry[0] for entry in self._outstanding)]:
                try:
                    self._runtime.event_destroy(event)
                except errors.DeviceError:
                    break
            self._free, self._outstanding = [], []
