"""Which streams record a graph: while one does, the account makes no call that would spoil it.

Waiting, asking events and giving memory back are put off until no capture is under way; what would have to be called at
once is refused. Captures that another library begins without the runtime are seen only by asking a stream, which is
done of each that a call would name.
"""

from _thread import get_ident

from nbxrt import errors
from nbxrt.memory.entries import handle_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.runtime import Runtime


class Captures:
    """The captures that were begun by a runtime. It is true while one is under way."""

    def __init__(self, runtime: "Runtime") -> None:
        self._ask = runtime.stream_is_capturing if runtime.supports("stream_is_capturing") else None
        #: The mode of each capture and the thread that began it, by the stream.
        self._under_way: dict[int, tuple[Any, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def __contains__(self, stream: object) -> bool:
        return stream in self._under_way

    def begins(self, stream: int, mode: "Any") -> "tuple[Any, int] | None":
        """A capture begins: from now on nothing may spoil it. What was noted of the stream before."""
        former = self._under_way.get(stream)
        self._under_way[stream] = (mode, get_ident())
        return former

    def ended(self, stream: int, left: "tuple[Any, int] | None" = None) -> None:
        """A capture has ended, or has not begun, and `left` is what is under way."""
        if left is None:
            self._under_way.pop(stream, None)
        else:
            self._under_way[stream] = left

    def holds(self, stream: "Any") -> bool:
        """Whether work of a stream, or waiting for it, would be part of a capture or spoil it. Raises: DeviceError."""
        if self._under_way:
            return True
        handle = handle_of(stream)
        if (
            self._ask is None or not handle
        ):  # the default stream is never captured, another thread's own not to be named
            return False
        try:
            return bool(self._ask(handle))
        except errors.DeviceError as error:  # the stream is destroyed
            if error.sticky:
                raise
            return False

    def forbid(self) -> bool:
        """Whether calls of this thread that allocate or free by themselves would spoil a capture."""
        return any(
            mode != "relaxed" and (mode != "thread_local" or thread == get_ident())
            for mode, thread in list(self._under_way.values())
        )

    def demand_none(self, what: str, device: "int | None" = None) -> None:
        """Refuse a call that would spoil a capture, before it is made. Raises: DeviceError."""
        if self.forbid():
            raise errors.DeviceError(
                f"{what} while a stream records a graph: that would spoil the graph",
                hint="allocate before the capture, or capture in the mode `relaxed`; `NBXRT_ALLOCATOR=expandable` can "
                "take device memory meanwhile",
                kind="capture_unsupported",
                device=device,
            )


def follow(runtime: "Runtime", account: "Callable[[], Any]") -> None:
    """Let the operations of the runtime tell an account, as long as it is there, of captures and of streams' ends."""
    runtime.wrap("stream_destroy", lambda destroy: _destroying(account, destroy))
    runtime.wrap("stream_begin_capture", lambda begin: _beginning(account, begin))
    runtime.wrap("stream_end_capture", lambda end: _ending(account, end))


def _destroying(account: "Callable[[], Any]", destroy: "Callable[[int], None]") -> "Callable[[int], None]":
    def stream_destroy(stream: int) -> None:
        here = account()
        try:
            if here is not None and stream.__class__ is int:
                if here.must_wait_with(stream):  # a finalizer may be at it
                    return
                here.forget_stream(stream)
        except errors.DeviceError:  # the vendor's own answer to the call below says it
            pass
        destroy(stream)

    stream_destroy.__doc__ = destroy.__doc__
    return stream_destroy


def _beginning(account: "Callable[[], Any]", begin: "Callable[..., None]") -> "Callable[..., None]":
    def stream_begin_capture(stream: int, mode: "Any" = "global") -> None:
        here = account()
        try:
            if here is not None:
                here.policy()  # what it tries at its first use would spoil the capture
        except errors.NbxrtError:
            pass
        former = here.captures.begins(stream, mode) if here is not None else None
        try:
            begin(stream, mode)
        except BaseException:
            if here is not None:
                here.captures.ended(stream, former)
                here.resume()
            raise

    stream_begin_capture.__doc__ = begin.__doc__
    return stream_begin_capture


def _ending(account: "Callable[[], Any]", end: "Callable[[int], int]") -> "Callable[[int], int]":
    def stream_end_capture(stream: int) -> int:
        here = account()
        try:
            return end(stream)
        finally:
            if here is not None:
                here.captures.ended(stream)
                here.resume()

    stream_end_capture.__doc__ = end.__doc__
    return stream_end_capture
