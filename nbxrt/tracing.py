"""Following calls by NBXRT_LOG=calls or `nbxrt.trace()`: operation, arguments, result or error, and time.

The generated functions are swapped for logging ones, so that there is no test for logging on the normal path.
"""

import sys
import time
from collections import deque

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

    from nbxrt.runtime import Runtime

#: How many of the last calls an error quotes.
QUOTED = 8


class Trace:
    """Calls that were followed: the last ones, and where they are written as they happen (None: nowhere)."""

    def __init__(self, stream: "TextIO | None") -> None:
        self.stream = stream
        self.last: deque[str] = deque(maxlen=QUOTED)

    def logging(self, runtime: "Runtime", operation: str, function: "Callable[..., Any]") -> "Callable[..., Any]":
        """The function, writing down each call."""

        def logged(*args: "Any", **named: "Any") -> "Any":
            given = ", ".join([*map(_short, args), *(f"{name}={_short(value)}" for name, value in named.items())])
            start = time.perf_counter_ns()
            try:
                answer = function(*args, **named)
            except errors.NbxrtError as error:
                self._write(f"{runtime.name}.{operation}({given})", f"raised {type(error).__name__}", start)
                _quote(error, self.last)
                raise
            self._write(f"{runtime.name}.{operation}({given})", _short(answer), start)
            return answer

        logged.__name__ = operation
        logged.__doc__ = function.__doc__
        return logged

    def _write(self, call: str, said: str, start: int) -> None:
        line = f"{call} -> {said}  {(time.perf_counter_ns() - start) / 1000:.1f} us"
        self.last.append(line)
        if self.stream is not None:
            try:
                self.stream.write(f"nbxrt: {line}\n")
            except (OSError, ValueError):  # closed: what is followed matters more than where it is told
                self.stream = None


def _quote(error: errors.NbxrtError, calls: "deque[str]") -> None:
    """Give the error the last calls, in its text too."""
    error.calls = tuple(calls)  # type: ignore[attr-defined]
    error.message += "\n  last calls:" + "".join(f"\n    {call}" for call in calls)


def _short(value: "Any") -> str:
    if isinstance(value, int) and value > 0xFFFF:
        return hex(value)
    return errors.shown(value)


def follow(runtime: "Runtime", stream: "TextIO | None" = None) -> Trace:
    """Follow every call of one runtime, written to `stream` (standard error if none is given)."""
    trace = Trace(sys.stderr if stream is None else stream)
    runtime.follow(trace)
    return trace


class trace:  # noqa: N801  # read as a verb: `with nbxrt.trace():`
    """Follow every call of the runtime in force: from here on, or inside a `with` block.

    Functions that were taken from the runtime before (`malloc = rt.malloc`) are not followed.
    Raises: ArgumentTypeError; BackendNotFoundError when no runtime is in force.
    """

    def __init__(self, stream: "TextIO | None" = None) -> None:
        from nbxrt import runtime

        if stream is not None and not hasattr(stream, "write"):
            raise errors.wrong_type("`trace`", "a stream of text", stream)
        in_force = runtime.in_force()
        if in_force is None:
            raise errors.BackendNotFoundError("no runtime is in force", hint="open one first: `nbxrt.open()`")
        self._runtime = in_force
        self._trace = follow(in_force, stream)

    @property
    def calls(self) -> "tuple[str, ...]":
        """The last calls, as lines of text."""
        return tuple(self._trace.last)

    def __enter__(self) -> "trace":  # noqa: PYI034  # Self is of Python 3.11
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Follow no more."""
        self._runtime.follow(None)
