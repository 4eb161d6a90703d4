"""Graphs: work captured from a stream once and launched many times."""

from nbxrt import errors
from nbxrt.binding.prebuilt import argument
from nbxrt.errors import wrong_type
from nbxrt.memory.allocator import account_of
from nbxrt.objects.closing import Closing, process
from nbxrt.objects.device import as_device
from nbxrt.objects.state import refuse_copying, refuse_stranger, state_of
from nbxrt.objects.stream import Stream, as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.objects.given import StreamLike
    from nbxrt.objects.state import State
    from nbxrt.runtime import Runtime


#: So many streams that it was launched on a graph remembers; after more, its end waits for the device.
_STREAMS = 16


class Graph(Closing):
    """Work that was captured from a stream. `with stream.capture() as graph:` makes one.

    What its work uses lives as long as the graph, and until its last launches have finished: both sides of copies and
    fills that were captured, memory that was given back during the capture, code that was loaded then, which its
    kernels may be of, and what `keep` is told.
    Raises where the backend has no graphs: CapabilityError quoting its file.
    """

    __slots__ = (
        "__weakref__", "_argument", "_calls", "_captures", "_current", "_device_idx", "_executable", "_graph",
        "_is_only", "_kept", "_last", "_launched", "_process", "device", "runtime",
    )  # fmt: skip

    def __init__(self, device: "Device") -> None:
        self.device = device = as_device(device)
        self.runtime, self._device_idx = device.runtime, device.index
        self._calls, self._current = device.runtime.prebuilt, device.runtime.current
        self._graph = self._executable = 0
        self._kept = Kept(device)
        #: The streams that it was launched on, None where those are too many to hold; and the last one.
        self._launched: dict[Any, Stream] | None = {}
        self._last: Stream | None = None
        self._captures = state_of(device.runtime).captures
        self._is_only, self._process = device.is_only, process[0]
        # bound now: nothing may have to be made on a finalizer's path
        for operation in ("graph_destroy", "graph_exec_destroy", "stream_query", "event_record", "sync"):
            getattr(self.runtime, operation)

    def __repr__(self) -> str:
        state = "executable" if self._executable else "captured" if self._graph else "empty"
        return f"<nbxrt.Graph of {self.device}, {state}>"

    def __reduce__(self) -> "Any":
        raise refuse_copying(self, "each process captures its own")

    @property
    def handle(self) -> int:
        """The vendor's handle of the captured graph; 0 while there is none."""
        return self._graph

    @property
    def executable(self) -> int:
        """The vendor's handle of the executable graph; 0 while there is none."""
        return self._executable

    def keep(self, *owners: "Any") -> None:
        """Keep objects as long as the graph: what its kernels use."""
        self._kept.owners += owners

    def instantiate(self) -> "Graph":
        """Make it executable, once; `launch` does so where it was not done. Raises: ArgumentValueError, DeviceError."""
        if not self._executable:
            made = self.device.on(self.runtime.graph_instantiate, self._captured())
            as_argument = argument(made)
            with state_of(self.runtime).lock:
                is_first = not self._executable
                if is_first:
                    self._executable, self._argument = made, as_argument
            if not is_first:  # another thread was quicker
                self.device.on(self.runtime.graph_exec_destroy, made)
        return self

    def launch(self, stream: "StreamLike" = None) -> None:
        """Run it, ordered on the stream, the thread's current one when left out.

        Raises: ArgumentValueError, DeviceError.
        """
        if type(stream) is not Stream:
            stream = as_stream(stream, self.device)
        code = None
        try:  # the usual case: executable, an open stream, both of the current device
            if stream.device is self.device and (self._is_only or self._current.__dict__["index"] == self._device_idx):
                code = self._calls.graph_launch(self._argument, stream.argument)
        except (AttributeError, KeyError):
            pass
        if code != 0:
            self._launch(stream, code)
        if self._captures or stream is not self._last:
            self._note(stream)

    def _note(self, stream: Stream) -> None:
        """Remember a stream that it was launched on; a graph that is captured there keeps what this one keeps."""
        if self._captures and keep_if_captured(state_of(self.runtime), stream, (self._kept,)):
            return
        self._last, launched = stream, self._launched
        if launched is not None:
            launched[stream.key] = stream
            if len(launched) > _STREAMS:
                self._launched = None

    def _launch(self, stream: Stream, code: "int | None") -> None:
        """Launch it after a closer look, and after the quick call has answered with another code than success."""
        refuse_stranger(repr(stream), stream.runtime, self.runtime)
        stream.check()
        self.instantiate()
        if code is not None:
            self._calls.failed("graph_launch", code, {"graph_exec": self._executable, "stream": stream.handle})
        stream.call(self.runtime.graph_launch, self._executable, stream.handle)

    def update(self, other: "Graph") -> bool:
        """Take the parameters of another graph of the same shape; False, and nothing changed, where the shapes differ.

        It then keeps what the other keeps as well. Raises: ArgumentTypeError, ArgumentValueError, DeviceError.
        """
        if not isinstance(other, Graph):
            raise wrong_type("`update`", "a Graph", other)
        refuse_stranger(repr(other), other.runtime, self.runtime)
        self.instantiate()
        updated = self.device.on(self.runtime.graph_exec_update, self._executable, other._captured())  # noqa: SLF001
        if updated:
            self._kept.owners.append(other)
        return updated

    def _close(self, on: "Callable[..., object]") -> None:
        """Release it; what it kept outlasts its launches."""
        executable, graph, self._executable, self._graph = self._executable, self._graph, 0, 0
        kept, self._kept = self._kept, Kept(self.device)
        launched, self._launched, self._last = self._launched, {}, None
        if kept.owners or kept.given:
            _outlast(kept, launched, self.device, on.__name__)
        if executable:
            del self._argument
            on(self.runtime.graph_exec_destroy, executable)
        if graph:
            on(self.runtime.graph_destroy, graph)

    # for the other objects

    def captured(self, handle: int) -> None:
        """Take the handle of what was captured."""
        self._graph = handle

    def _captured(self) -> int:
        if not self._graph:
            raise errors.ArgumentValueError(f"{self!r}: nothing is captured in it, or it is closed", value=self)
        return self._graph


class Kept(Closing):
    """What graphs keep: objects, and what is given back with this object, by device, function and address or handle."""

    __slots__ = ("__weakref__", "_process", "device", "given", "owners")

    def __init__(self, device: "Device") -> None:
        self.device, self._process = device, process[0]
        self.owners: list[Any] = []
        self.given: list[tuple[Device, Callable[[int], Any], int]] = []

    def _close(self, on: "Callable[..., object]") -> None:
        for device, release, address in self.given:
            getattr(device, on.__name__)(release, address)


def _outlast(kept: Kept, launched: "dict[Any, Stream] | None", device: "Device", way: str) -> None:
    """Let what a graph kept live until streams have passed the graph's launches; `way` is a method of `Device`."""
    if launched is None:
        getattr(device, way)(_waited, device.runtime, kept)
        return
    state = state_of(device.runtime)
    for stream in launched.values():
        on = getattr(stream.device, way)
        if stream.handle is None:  # closed since, and nothing else tells of its work
            on(_waited, stream.runtime, kept)
        elif not (state.captures and keep_if_captured(state, stream, (kept,))):
            on(_until_passed, kept, stream)


def _until_passed(kept: Kept, stream: Stream) -> None:
    runtime = stream.runtime
    if not (runtime.supports("stream_query") and runtime.stream_query(stream.handle)):
        state_of(runtime).keeper.keep(kept, stream)


def _waited(runtime: "Runtime", _kept: Kept) -> None:
    runtime.sync()


class Capture:
    """A capture of a stream, as a context manager that gives the graph. An error inside ends it and is raised."""

    __slots__ = ("_graph", "_mode", "_stream")

    def __init__(self, stream: Stream, mode: str) -> None:
        stream.check()
        if not isinstance(mode, str):
            raise wrong_type("`capture`", "`global`, `thread_local` or `relaxed` for `mode`", mode)
        if not stream.handle:
            raise errors.ArgumentValueError(
                "the default stream cannot be captured",
                hint="`device.create_stream()` makes one that can",
                value=stream,
            )
        self._stream, self._mode = stream, mode
        self._graph = Graph(stream.device)

    def __enter__(self) -> Graph:
        runtime: Any = self._stream.runtime
        device = self._stream.device
        device.__enter__()  # a capture begins and ends in one thread, on its device
        try:
            account_of(runtime).policy(device.index)  # what it tries at its first use would spoil the capture
            runtime.stream_begin_capture(self._stream.handle, self._mode)
        except BaseException:
            device.__exit__(None, None, None)
            raise
        state_of(runtime).captures.append(self._graph)
        return self._graph

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        runtime = self._stream.runtime
        if error is None:  # while it is captured still: nothing is unloaded meanwhile
            self._graph.keep(*_code(state_of(runtime)))
        try:
            state_of(runtime).captures.remove(self._graph)
        except ValueError:
            raise errors.ArgumentValueError(f"{self._stream!r} is not captured by this block", value=self) from None
        try:
            self._stream.check()
            with self._stream.device:
                handle = runtime.stream_end_capture(self._stream.handle)
        except (errors.DeviceError, errors.ArgumentValueError):
            if error is None:
                raise
            return  # what ended the capture is the error that is on its way
        finally:
            self._stream.device.__exit__(kind, error, trace)
        if error is None:
            self._graph.captured(handle)
        else:
            self._stream.call(runtime.graph_destroy, handle)


def _code(state: "State") -> "Iterator[Kept]":
    """What keeps the code that is loaded. Launches do not tell of which their kernels are: that would cost each one."""
    for reference in list(state.code.values()):
        module = reference()
        if module is not None:
            yield module.for_graphs()


def hand_over(captures: "list[Graph]", device: "Device", release: "Callable[[int], Any]", address: int) -> None:
    """Give something back with the last of the graphs that are being captured, any of which may use it."""
    kept = Kept(device)
    kept.given.append((device, release, address))
    for graph in list(captures):
        graph.keep(kept)


def keep_if_captured(state: "State", stream: Stream, owners: "tuple[Any, ...]") -> bool:
    """Let the graphs that are being captured keep what a copy uses, if the copy was captured; whether it was."""
    runtime: Runtime = stream.runtime
    if not stream.call(runtime.stream_is_capturing, stream.handle):
        return False
    for graph in list(state.captures):
        graph.keep(*owners)
    return True
