"""Layers over an account: each a small object over another, with `malloc` and `free`, put in by `account.add_layer`.

What a layer does not define is that of the layer below, at no cost. A layer of your own is a subclass:

    class Doubling(nbxrt.memory.layers.Layer):
        def malloc(self, nbytes, device=None, stream=0):
            return self.below.malloc(2 * nbytes, device, stream)

    account.add_layer(Doubling)
"""

import sys
from collections import deque
from time import perf_counter_ns

from nbxrt import errors
from nbxrt.memory import checking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType
    from typing import Any

    Site = tuple[Any, ...]

#: Frames of a call site that are kept.
DEPTH = 8


class Layer:
    """What stands between callers and the account; `below` is the next layer, or the account itself."""

    def __init__(self, below: "Any") -> None:
        self.below = below

    def __getattr__(self, name: str) -> "Any":
        if name == "below":
            raise AttributeError(name)
        return getattr(self.below, name)


class Statistics(Layer):
    """Counts what callers do: calls, bytes, sizes. `reset` starts anew."""

    def __init__(self, below: "Any") -> None:
        super().__init__(below)
        self.reset()

    def reset(self) -> None:
        """Forget what was counted."""
        self.mallocs = self.frees = self.failures = self.nbytes = 0
        #: How many requests there were of each size, by the power of two that is not less.
        self.sizes: dict[int, int] = {}

    def malloc(self, nbytes: int, device: "int | None" = None, stream: int = 0) -> int:
        try:
            ptr: int = self.below.malloc(nbytes, device, stream)
        except BaseException:
            self.failures += 1
            raise
        self.mallocs += 1
        self.nbytes += nbytes
        power = 1 << max(0, nbytes - 1).bit_length()
        self.sizes[power] = self.sizes.get(power, 0) + 1
        return ptr

    def free(self, ptr: int, stream: "int | None" = None) -> None:
        self.below.free(ptr, stream)
        self.frees += 1


class Limit(Layer):
    """Refuses what would make callers hold more than so many bytes through it; `held` is what they hold.

    The limit of a device, `account.limit`, counts what is reserved; this one what is asked for, of whatever device.
    """

    def __init__(self, below: "Any", nbytes: int) -> None:
        super().__init__(below)
        self.nbytes = checking.size("Limit", nbytes)
        self.held = 0
        self._sizes: dict[int, int] = {}

    def malloc(self, nbytes: int, device: "int | None" = None, stream: int = 0) -> int:
        size = checking.size("malloc", nbytes)
        self.held += size
        try:
            self._demand(size)
            ptr: int = self.below.malloc(size, device, stream)
        except BaseException:
            self.held -= size
            raise
        self._sizes[ptr] = size
        return ptr

    def _demand(self, nbytes: int) -> None:
        if self.held > self.nbytes:
            raise errors.OutOfMemoryError(
                f"{nbytes} bytes more would pass the limit of {self.nbytes} bytes: {self.held - nbytes} are held",
                hint="free memory first",
                kind="out_of_memory",
                requested=nbytes,
                limit=self.nbytes,
            )

    def free(self, ptr: int, stream: "int | None" = None) -> None:
        size = self._sizes.pop(ptr, 0)  # before another thread can be given the address
        try:
            self.below.free(ptr, stream)
        except errors.ArgumentError:  # it stays held
            if size:
                self._sizes[ptr] = size
            raise
        self.held -= size


class Tracking(Layer):
    """Keeps the call site of every block that is held, so that a leak has a name."""

    def __init__(self, below: "Any", depth: int = DEPTH) -> None:
        super().__init__(below)
        self._depth = checking.amount("depth", depth)
        self._held: dict[int, tuple[int, Site]] = {}

    def malloc(self, nbytes: int, device: "int | None" = None, stream: int = 0) -> int:
        ptr: int = self.below.malloc(nbytes, device, stream)
        if ptr:
            self._held[ptr] = (nbytes, call_site(self._depth))
        return ptr

    def free(self, ptr: int, stream: "int | None" = None) -> None:
        held = self._held.pop(ptr, None)  # before another thread can be given the address
        try:
            self.below.free(ptr, stream)
        except errors.ArgumentError:  # it stays held
            if held is not None:
                self._held[ptr] = held
            raise

    def site(self, ptr: int) -> "Site":
        """The call site of a block; empty when it is not known."""
        return self._held.get(ptr, (0, ()))[1]

    def leaks(self) -> "list[tuple[int, int, str]]":
        """(address, bytes, call site) of all that is held, the largest first."""
        rows = [(ptr, nbytes, said_site(site)) for ptr, (nbytes, site) in self._held.copy().items()]
        return sorted(rows, key=lambda row: -row[1])

    def report(self) -> str:
        """What is held, by call site; empty when nothing is."""
        by_site: dict[str, list[int]] = {}
        for _ptr, nbytes, site in self.leaks():
            by_site.setdefault(site, []).append(nbytes)
        rows = sorted(by_site.items(), key=lambda row: -sum(row[1]))
        return "\n".join(
            f"{sum(sizes)} bytes in {len(sizes)} block{'s' * (len(sizes) > 1)} allocated at\n  {site or 'unknown'}"
            for site, sizes in rows
        )


class Logging(Layer):
    """Writes one line of comma-separated values for every event: time in ns, event, address, bytes, device, stream."""

    HEADER = "time_ns,event,address,nbytes,device,stream"

    def __init__(self, below: "Any", write: "Callable[[str], object]") -> None:
        super().__init__(below)
        self._write = checking.function("Logging", "a function that takes a line", write)
        write(self.HEADER + "\n")

    def malloc(self, nbytes: int, device: "int | None" = None, stream: int = 0) -> int:
        try:
            ptr: int = self.below.malloc(nbytes, device, stream)
        except BaseException as error:
            self._line("failure", type(error).__name__, nbytes, device, stream)
            raise
        self._line("malloc", ptr, nbytes, device, stream)
        return ptr

    def free(self, ptr: int, stream: "int | None" = None) -> None:
        self.below.free(ptr, stream)
        self._line("free", ptr, "", "", stream)

    def _line(self, event: str, address: object, nbytes: object, device: object, stream: object) -> None:
        shown = hex(address) if isinstance(address, int) else address
        said = ["" if value is None else str(value) for value in (nbytes, device, stream)]
        self._write(f"{perf_counter_ns()},{event},{shown},{','.join(said)}\n")


class History(Layer):
    """Remembers the last events, allocations with their call sites, for `snapshot`; the oldest are forgotten first.

    Growing and shrinking of what is reserved is remembered too, from when the layer is put in.
    """

    def __init__(self, below: "Any", most: int = 100_000, depth: int = DEPTH) -> None:
        super().__init__(below)
        self._depth = checking.amount("depth", depth)
        self._live = below.account.live
        #: (action, address, bytes, stream, device, time in ns, call site) of each event.
        self.events: deque[tuple[str, int, int, Any, int, int, Site]] = deque(maxlen=checking.amount("most", most))
        below.account.watch(self._reserved)

    def malloc(self, nbytes: int, device: "int | None" = None, stream: int = 0) -> int:
        ptr: int = self.below.malloc(nbytes, device, stream)
        entry = self._live.get(ptr)
        if entry is not None:
            where, site = entry.tally.device, call_site(self._depth)
            self.events.append(("alloc", ptr, entry.nbytes, stream, where, perf_counter_ns(), site))
        return ptr

    def free(self, ptr: int, stream: "int | None" = None) -> None:
        entry = self._live.get(ptr)
        self.below.free(ptr, stream)
        if entry is not None:
            self.events.append(("free", ptr, entry.nbytes, entry.stream, entry.tally.device, perf_counter_ns(), ()))

    def _reserved(self, device: int, address: int, nbytes: int) -> None:
        action = "reserve" if nbytes > 0 else "release"
        self.events.append((action, address, abs(nbytes), 0, device, perf_counter_ns(), ()))

    def site(self, ptr: int) -> "Site":
        """The call site of the last allocation at an address that is remembered; empty when none is."""
        found = (event[6] for event in reversed(self.events) if event[1] == ptr and event[0] == "alloc")
        return next(found, ())


def report_at_exit(tracking: Tracking) -> None:
    """Write what is still held when the interpreter ends to standard error, by call site; nothing when nothing is.

    Raises: ArgumentTypeError.
    """
    import atexit

    if not isinstance(tracking, Tracking):
        raise errors.wrong_type("`report_at_exit`", "a `Tracking` layer", tracking)

    def report() -> None:
        said = tracking.report()
        if said:
            sys.stderr.write(f"nbxrt: memory that was never freed\n{said}\n")

    atexit.register(report)


def call_site(depth: int) -> "Site":
    """The calls that led to the caller of a layer, the innermost first: code objects and instructions in turn.

    Text is made of them when somebody reads it. One flat tuple, since this is on the way of every event.
    """
    frame: Any = sys._getframe(2)  # noqa: SLF001  # the documented way costs fifty times as much
    found: list[Any] = []
    add = found.append
    while frame is not None and depth:
        add(frame.f_code)
        add(frame.f_lasti)
        frame = frame.f_back
        depth -= 1
    return tuple(found)


def line_of(code: "CodeType", instruction: int) -> int:
    """The line that an instruction is of."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def frames(site: "Site") -> "Iterator[tuple[str, int, str]]":
    """File, line and function of each call of a site."""
    for code, instruction in zip(site[::2], site[1::2], strict=True):
        yield code.co_filename, line_of(code, instruction), code.co_name


def said_site(site: "Site") -> str:
    """A call site as people read it, the innermost call first."""
    return " < ".join(f"{file}:{line} {function}" for file, line, function in frames(site))
