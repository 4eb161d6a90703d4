"""Events: points in a stream that can be waited for, asked for and timed."""

from nbxrt import errors
from nbxrt.binding.prebuilt import argument
from nbxrt.errors import wrong_type
from nbxrt.objects.closing import Closing, process
from nbxrt.objects.device import Device, as_device
from nbxrt.objects.state import refuse_copying, state_of
from nbxrt.objects.stream import Stream, as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.objects.given import DeviceLike, StreamLike
    from nbxrt.objects.ipc import Handle
    from nbxrt.runtime import Runtime


class Event(Closing):
    """A point in a stream's work. `end - start` is the time between two of them, in milliseconds.

    With `timing` it records when it was reached. With `blocking` a thread that waits for it sleeps instead of spinning.
    With `interprocess` other processes may open it, which needs `timing=False`.
    `handle` is the vendor's, None once closed. As a context manager it is closed after the block. Safe to use from
    several threads.
    Raises: CapabilityError, DeviceError; as `Device`.
    """

    __slots__ = (
        "__weakref__", "_arguments", "_calls", "_current", "_device_idx", "_is_only", "_process", "device", "handle",
        "interprocess", "is_recorded", "runtime", "timing",
    )  # fmt: skip

    device: Device
    handle: int
    is_recorded: bool

    def __init__(
        self, device: "DeviceLike" = None, *, timing: bool = True, blocking: bool = False, interprocess: bool = False
    ) -> None:
        for name, value in (("timing", timing), ("blocking", blocking), ("interprocess", interprocess)):
            errors.boolean("`Event`", name, value)
        if interprocess and timing:
            raise errors.ArgumentValueError(
                "an event for other processes cannot record its time", hint="`timing=False`", parameter="timing"
            )
        device = as_device(device)
        handle = device.on(_created, device.runtime, timing, blocking, interprocess)
        self._stand_for(device, handle, timing, interprocess)

    def _stand_for(self, device: Device, handle: int, timing: bool, interprocess: bool) -> None:
        self.device, self.runtime, self._device_idx = device, device.runtime, device.index
        self.handle, self.timing, self.interprocess = handle, timing, interprocess
        self.is_recorded = False
        self._calls, self._current = device.runtime.prebuilt, device.runtime.current
        #: The arguments of the last prebuilt call: making them anew costs a fifth of it.
        self._arguments = argument(handle), None
        self._is_only, self._process = device.is_only, process[0]

    def __repr__(self) -> str:
        state = "closed" if self.handle is None else "recorded" if self.is_recorded else "never recorded"
        return f"<nbxrt.Event of {self.device}, {state}>"

    def __reduce__(self) -> "Any":
        raise refuse_copying(self, "`event.ipc_handle()` is for other processes")

    def record(self, stream: "StreamLike" = None) -> None:
        """Record it in a stream, the thread's current one when left out: it stands for all work given to that so far.

        Raises: DeviceError; ArgumentTypeError; ArgumentValueError for a stream of another device, or a closed one.
        """
        if type(stream) is not Stream:
            stream = as_stream(stream, self.device)
        code = None
        try:  # the usual case: both of the current device, and open
            if self._is_only or self._current.__dict__["index"] == self._device_idx:
                arguments = self._arguments
                if arguments[1] is not stream.argument:
                    arguments = self._prepared(stream)
                code = self._calls.event_record(*arguments)
        except (AttributeError, KeyError):
            pass
        if code != 0:
            self._record(stream, code)
        self.is_recorded = True

    def _prepared(self, stream: Stream) -> "tuple[Any, Any]":
        """The arguments for another stream than before."""
        self._refuse_another_device(stream)
        arguments = self._arguments = self._arguments[0], stream.argument
        if self.handle is None:  # closed by another thread meanwhile
            del self._arguments
        return arguments

    def _refuse_another_device(self, stream: Stream) -> None:
        if stream.device is not self.device:
            raise self._misuse(
                f"the event is of {self.device}, and {stream!r} is of another",
                "record it in a stream of its own device",
            )

    def _record(self, stream: Stream, code: "int | None") -> None:
        """Record it after a closer look, and after the quick call has answered with another code than success."""
        self._refuse_another_device(stream)
        handle = self.usable_handle()
        stream.check()
        if code is not None:
            self._calls.failed("event_record", code, {"event": handle, "stream": stream.handle})
        self.device.on(self.runtime.event_record, handle, stream.handle)

    def sync(self) -> None:
        """Wait until the work that it stands for has finished.

        Raises: DeviceError; ArgumentValueError when it is closed.
        """
        self.device.on(self.runtime.event_sync, self.usable_handle())
        state_of(self.runtime).keeper.drop_passed(self.device)

    def query(self) -> bool:
        """Whether the work that it stands for has finished; True where it was never recorded. Raises: as `sync`."""
        return self.device.on(self.runtime.event_query, self.usable_handle())

    def __sub__(self, start: "Event") -> float:
        """The time from `start` to this event, in milliseconds.

        Raises: ArgumentTypeError; ArgumentValueError for an event never recorded, without timing, closed, of another
        device, or whose work has not finished; DeviceError.
        """
        if not isinstance(start, Event):
            raise wrong_type("the time between events", "two events", start)
        for event, which in ((start, "start"), (self, "end")):
            event.usable_handle()
            if not event.timing:
                raise event._misuse(f"the {which} was made without timing", "`timing=True`")
            if not event.is_recorded:
                raise event._misuse(f"the {which} was never recorded", "`event.record(stream)` first")
        if start.device is not self.device:
            raise self._misuse(
                f"the end is of {self.device}, and the start is of {start.device}",
                "times of two devices cannot be compared",
            )
        try:
            return self.device.on(self.runtime.event_elapsed, start.handle, self.handle)
        except errors.DeviceError as error:
            if error.kind != "not_ready":
                raise
            raise self._misuse("the work before it has not finished", "`end.sync()` first") from None

    def ipc_handle(self) -> "Handle":
        """A handle for another process, which can be pickled; of an event that was made with `interprocess=True`.

        Raises: CapabilityError, DeviceError; ArgumentValueError for another event, and for one that is closed.
        """
        from nbxrt.objects import ipc

        return ipc.of_event(self)

    @classmethod
    def from_ipc_handle(cls, handle: "Handle") -> "Event":
        """The event of another process by its handle. Raises: as `Buffer.from_ipc_handle`."""
        from nbxrt.objects import ipc

        event = cls.__new__(cls)
        event._stand_for(*ipc.open_event(handle), timing=False, interprocess=False)  # noqa: SLF001
        return event

    def _close(self, on: "Callable[..., object]") -> None:
        """Destroy it; work that waits for it goes on as it would."""
        handle, self.handle = self.handle, None  # type: ignore[assignment]
        del self._arguments
        on(self.runtime.event_destroy, handle)

    def usable_handle(self) -> int:
        """The vendor's handle. Raises: ArgumentValueError when the event is closed."""
        if self.handle is None:
            raise errors.ArgumentValueError(f"the event of {self.device} is closed", value=self)
        return self.handle

    def _misuse(self, said: str, hint: str) -> errors.ArgumentValueError:
        return errors.ArgumentValueError(said, hint=hint, value=self)


def _created(runtime: "Runtime", timing: bool, blocking: bool, interprocess: bool) -> int:
    plain = not blocking and not interprocess
    if plain and (timing or not runtime.supports("event_create_flags")):  # a time that nobody asks for does no harm
        return runtime.event_create()
    return runtime.event_create_flags(timing, blocking, interprocess)
