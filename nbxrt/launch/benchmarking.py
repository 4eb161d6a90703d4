"""What measuring a kernel needs, on nbxrt's events and streams: Triton's `do_bench` and autotuner find it here."""

import sys
import time

from nbxrt.launch import streams
from nbxrt.memory.allocator import account_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nbxrt.runtime import Runtime

#: Bytes that are written to clear a cache whose size is not known.
_USUAL_CACHE = 256 << 20
#: Triton divides by what an event measures, in milliseconds.
_LEAST_TIME = 1e-6


class DeviceInterface:
    """Synchronisation and events of the current device, by the names that `do_bench` uses."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime

    def synchronize(self) -> None:
        """Wait until the device has finished."""
        self._runtime.sync()

    def Event(self, enable_timing: bool = True) -> "Event":  # noqa: N802, ARG002  # Triton's name and argument
        """A new event that records its time."""
        return Event(self._runtime)

    def current_device(self) -> int:
        """The thread's current device."""
        return self._runtime.get_device()


class Event:
    """A point in a stream, with its time."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self.handle = runtime.event_create()

    def record(self) -> None:
        """Stand for the work that the current stream has now."""
        self._runtime.event_record(self.handle, streams.current(self._runtime, self._runtime.get_device()))

    def synchronize(self) -> None:
        """Wait for that work."""
        self._runtime.event_sync(self.handle)

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds from this event to another one; never 0."""
        return max(_LEAST_TIME, self._runtime.event_elapsed(self.handle, end.handle))

    def __del__(self) -> None:
        if not sys.is_finalizing() and "handle" in self.__dict__:
            self._runtime.event_destroy(self.handle)


class Cache:
    """Memory that takes the place of whatever the device's cache holds, when it is written."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        device = runtime.get_device()
        size = runtime.device_attribute("l2_cache_size", device)
        self._nbytes = 2 * size if size > 0 else _USUAL_CACHE
        self._device = device
        self._account = account_of(runtime)
        self._address = self._account.malloc(self._nbytes, device)

    def clear(self) -> None:
        """Write all of it, in the order of the current stream."""
        self._runtime.memset_async(self._address, 0, self._nbytes, streams.current(self._runtime, self._device))

    def __del__(self) -> None:
        if not sys.is_finalizing() and "_address" in self.__dict__:
            self._account.free(self._address)


def measure_on_host(
    call: "Callable[[], Any]", quantiles: "Sequence[float] | None" = None, *, repetitions: int = 5, **_more: "Any"
) -> "Any":
    """Milliseconds of a call by the host's clock: the quantiles asked for, or the median."""
    call()
    times = []
    for _each in range(repetitions):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    chosen = [times[round(quantile * (repetitions - 1))] for quantile in quantiles or (0.5,)]
    return chosen if quantiles else chosen[0]
