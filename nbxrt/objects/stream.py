"""Streams: work runs in them in order. Which one is current for the calling thread; streams of other libraries."""

from nbxrt import errors
from nbxrt.binding.prebuilt import argument
from nbxrt.errors import integer, wrong_type
from nbxrt.objects.closing import Closing, process
from nbxrt.objects.device import Device, as_device, current_index, left_elsewhere
from nbxrt.objects.state import (
    follow_runtimes,
    refuse_copying,
    refuse_stranger,
    runtime_in_force,
    state_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    from typing_extensions import Self

    from nbxrt.objects.event import Event
    from nbxrt.objects.given import DeviceLike
    from nbxrt.objects.graph import Capture
    from nbxrt.runtime import Runtime

    R = TypeVar("R")


class Stream(Closing):
    """A stream of a device, made here and destroyed with this object.

    A `non_blocking` one does not wait for the default stream. `priority`: lower numbers go first, and the vendor brings
    a number into the device's range. As a context manager it makes its device the thread's current one, and is itself
    where work without `stream=` goes; it is not closed after the block.
    `handle` is the vendor's, None once closed. Safe to use from several threads.
    Raises: CapabilityError, DeviceError; as `Device`.
    """

    __slots__ = (
        "__weakref__",
        "_device_idx",
        "_is_ours",
        "_owner",
        "_process",
        "argument",
        "device",
        "handle",
        "key",
        "runtime",
    )

    handle: int

    def __init__(
        self, device: "DeviceLike" = None, *, non_blocking: bool = False, priority: "int | None" = None
    ) -> None:
        errors.boolean("`Stream`", "non_blocking", non_blocking)
        device = as_device(device)
        self._stand_for(device, device.on(_created, device.runtime, non_blocking, priority), None)
        self._is_ours = True

    @classmethod
    def from_handle(cls, handle: int, device: "DeviceLike" = None, *, owner: "Any" = None) -> "Stream":
        """A stream of another library, by the vendor's handle, an integer; 0 is the device's default stream.

        It is never destroyed here; `owner` is kept as long as it is used, and with the runtime once memory of the
        account was used on it. Without an owner it must outlive that memory, or `account.forget_stream` be called.
        Raises: ArgumentTypeError; as `Device`.
        """
        handle = integer("`Stream.from_handle`", "a handle, an integer", handle, "`Stream.wrap` takes objects")
        if not 0 <= handle < 1 << 64:
            raise errors.ArgumentValueError(f"`Stream.from_handle`: {handle} is no handle", value=handle)
        stream = cls.__new__(cls)
        stream._stand_for(as_device(device), handle, owner)  # noqa: SLF001
        return stream

    @classmethod
    def wrap(cls, stream: "Stream | object", device: "DeviceLike" = None) -> "Stream":
        """The stream that an object stands for: a Stream itself, or what has the backend's protocol of streams.

        Raises: ArgumentTypeError; ArgumentValueError for a Stream that is closed or of another backend.
        """
        if isinstance(stream, Stream):
            stream.check()
            return stream
        device = as_device(device)
        protocol = device.runtime.description["interop"]["stream_protocol"]
        method = getattr(stream, protocol, None) if protocol else None
        if method is None:
            others = f" or what has `{protocol}`" if protocol else ""
            raise wrong_type("`stream`", f"a Stream{others}", stream, "`Stream.from_handle` takes a vendor's handle")
        return cls.from_handle(_handle_by_protocol(protocol, method), device, owner=stream)

    def _stand_for(self, device: Device, handle: int, owner: "Any") -> None:
        self.device, self.runtime, self._device_idx = device, device.runtime, device.index
        self.handle, self._owner, self._is_ours, self._process = handle, owner, False, process[0]
        #: The handle for calls whose arguments are prebuilt; there is none once it is closed.
        self.argument = argument(handle)
        #: What tells it from other streams: device and handle.
        self.key = (device.index, handle)

    def __repr__(self) -> str:
        if self.handle is None:
            return f"<nbxrt.Stream of {self.device}, closed>"
        return (
            f"<nbxrt.Stream {self.handle:#x} of {self.device}>" if self.handle else f"<default stream of {self.device}>"
        )

    def __reduce__(self) -> "Any":
        raise refuse_copying(self, "each process and each owner makes its own")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.runtime is other.runtime and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    # what it does

    def sync(self) -> None:
        """Wait until its work has finished. Raises: DeviceError; ArgumentValueError when it is closed."""
        self.check()
        self.call(self.runtime.stream_sync, self.handle)
        state_of(self.runtime).keeper.waited_for(self)

    def query(self) -> bool:
        """Whether all work given to it has finished.

        Raises: CapabilityError, DeviceError; ArgumentValueError when it is closed.
        """
        self.check()
        return self.call(self.runtime.stream_query, self.handle)

    def record(self, event: "Event | None" = None) -> "Event":
        """Record an event, a new one when left out, and return it: it stands for all work given to the stream so far.

        Raises: as `Event.record`.
        """
        if event is None:
            from nbxrt.objects.event import Event

            self.check()
            event = Event(self.device)
        elif isinstance(event, type) or not hasattr(event, "is_recorded"):
            raise wrong_type("`record`", "an Event", event)
        event.record(self)
        return event

    def wait(self, other: "Any") -> None:
        """Let later work of this stream wait for an event, or for all work given to another stream so far.

        The calling thread does not wait.

        Raises: CapabilityError, DeviceError; ArgumentTypeError, ArgumentValueError.
        """
        from nbxrt.objects.event import Event

        self.check()
        if isinstance(other, Event):
            refuse_stranger(repr(other), other.runtime, self.runtime)
            self.call(self.runtime.stream_wait_event, self.handle, other.usable_handle())
            return
        other = Stream.wrap(other, self.device)
        refuse_stranger(repr(other), other.runtime, self.runtime)
        if other.key != self.key:
            with Event(other.device, timing=False) as event:
                event.record(other)
                self.call(self.runtime.stream_wait_event, self.handle, event.handle)

    def capture(self, mode: str = "thread_local") -> "Capture":
        """Record what is given to the stream into a graph instead of running it: `with stream.capture() as graph:`.

        `mode` says which unsafe calls it forbids: those of every thread (`global`), of this one, or none (`relaxed`).
        Raises: CapabilityError where the backend has no graphs; ArgumentValueError for the default stream.
        """
        from nbxrt.objects.graph import Capture

        return Capture(self, mode)

    def _close(self, on: "Callable[..., object]") -> None:
        """Destroy it, if it was made here.

        Work already in it still runs; where memory of the account is on it, that work is waited for.
        """
        handle, self.handle, self._owner = self.handle, None, None  # type: ignore[assignment]
        del self.argument
        if self._is_ours:
            state_of(self.runtime).keeper.closed(self)
            on(self.runtime.stream_destroy, handle)

    def __enter__(self) -> "Self":
        self.check()
        self.device.__enter__()
        current = self.runtime.current
        streams = current.streams
        if streams is None:
            streams = current.streams = {}
        current.__dict__.setdefault("left", []).append(streams.get(self._device_idx))
        streams[self._device_idx] = self
        self.runtime.entered.append(None)
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        current = self.runtime.current
        try:
            before = current.left.pop()
        except (AttributeError, IndexError):
            raise left_elsewhere(self) from None
        self.runtime.entered.pop()
        if before is None:
            del current.streams[self._device_idx]
        else:
            current.streams[self._device_idx] = before
        self.device.__exit__(kind, error, trace)

    # for the other objects

    def check(self) -> None:
        """Refuse to go on with a closed stream. Raises: ArgumentValueError."""
        if self.handle is None:
            raise errors.ArgumentValueError(f"the stream of {self.device} is closed", value=self)

    def keep_owner(self) -> None:
        """Keep another library's stream as long as the runtime: the account may name it when memory on it is freed."""
        if self._owner is not None:
            state_of(self.runtime).owners[self.key] = self._owner

    def call(self, function: "Callable[..., R]", *arguments: "Any") -> "R":
        """Call a function that is given the handle, on the stream's device."""
        return self.device.on(function, *arguments)


@follow_runtimes
def _offer_protocol(runtime: "Runtime") -> None:
    """Give streams the method that other libraries take streams by, as a backend's file names it."""
    name = runtime.description["interop"]["stream_protocol"]

    def protocol(stream: Stream) -> "Callable[[], tuple[int, int]]":
        if name != stream.runtime.description["interop"]["stream_protocol"]:
            raise AttributeError(f"{type(stream).__name__!r} object of {stream.runtime.name} has no attribute {name!r}")
        stream.check()
        return lambda: (0, stream.handle)

    if name and not hasattr(Stream, name):
        setattr(Stream, name, property(protocol))


def current_stream(device: "DeviceLike" = None) -> Stream:
    """The stream that work of this thread without `stream=` is given to, on a device or the current one.

    It is the device's default stream, but inside `with stream:`. Raises: as `Device`.
    """
    if device is None:
        runtime = runtime_in_force()
        device = Device(current_index(runtime), runtime=runtime)
    else:
        device = as_device(device)
    return current_stream_of(device)


def current_stream_of(device: Device) -> Stream:
    """The calling thread's current stream on a device."""
    if device.runtime.entered:  # by some thread
        streams = device.runtime.current.streams
        if streams and device.index in streams:
            stream: Stream = streams[device.index]
            return stream
    default: Stream | None = device._default  # noqa: SLF001  # on the way of every array, where one call more costs
    return device.default_stream if default is None else default


def as_stream(stream: "Any", device: Device) -> Stream:
    """The stream that a caller means by `stream=`: None is the thread's current one on the device.

    Raises: as `Stream.wrap`; ArgumentValueError for a stream of another backend.
    """
    if stream is None:
        return current_stream_of(device)
    if stream.__class__ is not Stream:
        return Stream.wrap(stream, device)
    if stream.runtime is not device.runtime:
        refuse_stranger(repr(stream), stream.runtime, device.runtime)
    stream.check()
    return stream


def _created(runtime: "Runtime", non_blocking: bool, priority: "int | None") -> int:
    if priority is not None:
        return runtime.stream_create_priority(priority, non_blocking)
    return runtime.stream_create_flags(non_blocking) if non_blocking else runtime.stream_create()


def _handle_by_protocol(protocol: str, method: "Any") -> int:
    """The handle that an object's stream protocol gives: a version, 0 so far, and the handle."""
    answer = method() if callable(method) else method
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise wrong_type(f"`{protocol}`", "a pair of version and handle", answer)
    if answer[0] != 0:
        raise errors.ArgumentValueError(
            f"`{protocol}` is of version {answer[0]!r}, and this nbxrt knows version 0", value=answer
        )
    handle: int = answer[1]
    return handle
