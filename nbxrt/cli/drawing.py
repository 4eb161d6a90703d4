"""What a snapshot of memory shows: bytes over time, and a map of the segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.cli.pictures import SIZE, Line, Picture, Rectangle, Shape, Words, legend, ticks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WIDTH, LEFT, RIGHT = 1000, 90, 30
#: Heights: of the title, of the panel over time with what is said around it, and of a row of the map.
TITLE, PANEL, AROUND, ROW = 40, 260, 90, 20
#: Most points of a line, and most segments of a map; of more the rest is said in words.
POINTS, SEGMENTS = 2000, 40
GRID = "#dddddd"
STATES = {
    "active_allocated": ("held", "#3572b0"),
    "active_pending_free": ("freed, in use on another stream", "#d9a441"),
    "active_awaiting_free": ("freed, in use on another stream", "#d9a441"),
    "inactive": ("free", "#d4d4d4"),
}
#: The lines over time, and what the events mean for each.
LINES = {
    "reserved": ("#b04a35", {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}),
    "held": ("#3572b0", {"alloc": 1, "free_completed": -1}),
}

Point = tuple[float, int]


def devices(snapshot: dict[str, Any]) -> list[int]:
    """The devices that a snapshot has something of."""
    traced = (device for device, events in enumerate(snapshot.get("device_traces", [])) if events)
    return sorted({*traced, *(segment.get("device", 0) for segment in snapshot["segments"])})


def drawn(snapshot: dict[str, Any], device: int) -> Picture:
    """The picture of one device."""
    segments = [segment for segment in snapshot["segments"] if segment.get("device", 0) == device]
    traces = snapshot.get("device_traces", [])
    events = traces[device] if device < len(traces) else []
    over_time = PANEL + AROUND if events else 0
    height = TITLE + over_time + 50 + ROW * (min(len(segments), SEGMENTS) + 1)
    shapes = [*_title(segments, device), *_timeline(events, segments), *_map(segments, TITLE + over_time)]
    return Picture(WIDTH, height, tuple(shapes))


def _title(segments: list[dict[str, Any]], device: int) -> Iterator[Shape]:
    held = sum(segment["allocated_size"] for segment in segments)
    reserved = sum(segment["total_size"] for segment in segments)
    count = f"{len(segments)} segment{'s' * (len(segments) != 1)}"
    yield Words(
        LEFT, 24, f"Device {device}: {_said(held)} held of {_said(reserved)} reserved in {count}", size=SIZE + 3
    )


# Over time


def _timeline(events: list[dict[str, Any]], segments: list[dict[str, Any]]) -> Iterator[Shape]:
    if not events:
        return
    now = {
        "held": sum(segment["allocated_size"] for segment in segments),
        "reserved": sum(segment["total_size"] for segment in segments),
    }
    lines = {name: _line(events, meaning, now[name]) for name, (_colour, meaning) in LINES.items()}
    most = max(value for line in lines.values() for _when, value in line) or 1
    start, end = events[0].get("time_us", 0), events[-1].get("time_us", 0)
    panel = _Panel(TITLE + 36, start, max(end - start, 1), most)
    yield from legend(LEFT, TITLE + 22, ((name, colour) for name, (colour, _meaning) in LINES.items()))
    yield Words(WIDTH - RIGHT, TITLE + 22, f"{len(events):,} events", anchor="end")
    yield from panel.axes()
    for name, line in lines.items():
        yield Line(tuple(_steps(map(panel.place, line))), LINES[name][0])


class _Panel:
    """The place of the lines over time, and its axes."""

    def __init__(self, top: float, start: float, span: float, most: int) -> None:
        self.top, self.start, self.span = top, start, span
        self.unit = _unit(most)
        self.most = most * 1.04

    def place(self, point: Point) -> tuple[float, float]:
        across = (point[0] - self.start) / self.span
        return LEFT + (WIDTH - LEFT - RIGHT) * across, self.top + PANEL * (1 - point[1] / self.most)

    def axes(self) -> Iterator[Shape]:
        name, size = self.unit
        for value in ticks(self.most / size, 6):
            _x, y = self.place((self.start, round(value * size)))
            yield Rectangle(LEFT, y, WIDTH - LEFT - RIGHT, 1, GRID)
            yield Words(LEFT - 8, y + 4, f"{value:g}", anchor="end")
        yield Words(LEFT - 8, self.top - 14, name, anchor="end")
        word, microseconds = ("s", 1e6) if self.span >= 1e6 else ("ms", 1e3)
        bottom = self.top + PANEL
        for value in ticks(self.span / microseconds, 8):
            x, _y = self.place((self.start + value * microseconds, 0))
            yield Rectangle(x, bottom, 1, 5, GRID)
            yield Words(x, bottom + 18, f"{value:g}", anchor="middle")
        yield Words(WIDTH - RIGHT, bottom + 36, f"time, {word}", anchor="end")


def _line(events: list[dict[str, Any]], meaning: dict[str, int], now: int) -> list[Point]:
    """Bytes after each event; the last is what the snapshot holds, since the first events may be forgotten."""
    steps = [(event.get("time_us", 0), meaning.get(event["action"], 0) * event["size"]) for event in events]
    value = now - sum(step for _when, step in steps)
    points = [(steps[0][0], max(value, 0))]
    for when, step in steps:
        value += step
        if step:
            points.append((when, max(value, 0)))
    points.append((steps[-1][0], max(value, 0)))
    return _thinned(points)


def _thinned(points: list[Point]) -> list[Point]:
    """Few enough points, among them the highest of each stretch."""
    if len(points) <= POINTS:
        return points
    size = -(-len(points) // (POINTS // 2))
    stretches = (points[index : index + size] for index in range(0, len(points), size))
    return [point for stretch in stretches for point in sorted({max(stretch, key=lambda each: each[1]), stretch[-1]})]


def _steps(places: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """A line that is level between its points."""
    last: float | None = None
    for x, y in places:
        if last is not None:
            yield x, last
        yield x, y
        last = y


# The map


def _map(segments: list[dict[str, Any]], top: int) -> Iterator[Shape]:
    if not segments:
        return
    largest = max(segment["total_size"] for segment in segments)
    present = {block["state"] for segment in segments for block in segment["blocks"]}
    entries = dict(entry for state, entry in STATES.items() if state in present)
    yield Words(LEFT, top + 10, "Segments, the largest first", size=SIZE + 1)
    yield from legend(LEFT + 210, top + 10, entries.items())
    shown = sorted(segments, key=lambda segment: (-segment["total_size"], segment["address"]))[:SEGMENTS]
    for row, segment in enumerate(shown):
        yield from _row(segment, top + 26 + ROW * row, (WIDTH - LEFT - RIGHT) / largest)
    if len(segments) > SEGMENTS:
        yield Words(LEFT, top + 40 + ROW * SEGMENTS, f"and {len(segments) - SEGMENTS} smaller ones")


def _row(segment: dict[str, Any], y: int, scale: float) -> Iterator[Shape]:
    yield Words(LEFT - 8, y + 12, _said(segment["total_size"]), anchor="end")
    x = float(LEFT)
    for state, nbytes, label in _runs(segment["blocks"], scale):
        width = nbytes * scale
        gap = 0.4 if width > 2 else 0  # neighbours can be told apart
        yield Rectangle(x, y, max(width - gap, 0.5), ROW - 4, STATES.get(state, ("", "#999999"))[1], label)
        x += width


def _runs(blocks: Iterable[dict[str, Any]], scale: float) -> Iterator[tuple[str, int, str]]:
    """(state, bytes, label) of each block; neighbours that are too narrow to be seen are one."""
    run: tuple[str, int, int] | None = None
    for block in blocks:
        state, nbytes = block["state"], block["size"]
        if nbytes * scale >= 1:
            if run:
                yield run[0], run[1], f"{run[2]} blocks, {_said(run[1])}"
            run = None
            word = STATES.get(state, (state, ""))[0]
            yield state, nbytes, f"{word}, {_said(nbytes)} at {block.get('address', 0):#x}{_site(block)}"
        elif run and run[0] == state:
            run = (state, run[1] + nbytes, run[2] + 1)
        else:
            if run:
                yield run[0], run[1], f"{run[2]} blocks, {_said(run[1])}"
            run = (state, nbytes, 1)
    if run:
        yield run[0], run[1], f"{run[2]} blocks, {_said(run[1])}"


def _site(block: dict[str, Any]) -> str:
    return "".join(f"\n{frame['filename']}:{frame['line']} {frame['name']}" for frame in block.get("frames", ()))


def _unit(nbytes: int) -> tuple[str, int]:
    """The unit in which a number of bytes is easiest to read."""
    units = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
    return next((unit for unit in units if nbytes >= 2 * unit[1]), ("bytes", 1))


def _said(nbytes: int) -> str:
    name, size = _unit(nbytes)
    return f"{nbytes / size:.1f} {name}" if size > 1 else f"{nbytes} bytes"
