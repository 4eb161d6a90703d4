"""Snapshots of memory as SVG: bytes over time, and a map of the segments. No library is needed."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WIDTH, MARGIN = 1000, 60
TIMELINE, ROW = 260, 18
#: Most points of a line, and most segments of a map; of more the rest is said in words.
POINTS, SEGMENTS = 2000, 400
COLOURS = {
    "active_allocated": "#3572b0", "active_pending_free": "#d9a441", "active_awaiting_free": "#d9a441",
    "inactive": "#e4e4e4",
}  # fmt: skip
#: What the events mean for the bytes that are held, and for those that are reserved.
HELD = {"alloc": 1, "free_completed": -1}
RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}

Point = tuple[float, int]


def drawn(snapshot: dict[str, Any], device: int) -> str:
    """The picture of one device."""
    segments = [segment for segment in snapshot["segments"] if segment.get("device", 0) == device]
    traces = snapshot.get("device_traces", [])
    events = traces[device] if device < len(traces) else []
    timeline = list(_timeline(events, segments))
    rows = list(_map(segments, TIMELINE + 40 if events else 40))
    height = (TIMELINE if events else 0) + 60 + ROW * (min(len(segments), SEGMENTS) + 1)
    body = "\n".join([*_title(segments, device), *timeline, *rows])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _title(segments: list[dict[str, Any]], device: int) -> Iterator[str]:
    held = sum(segment["allocated_size"] for segment in segments)
    reserved = sum(segment["total_size"] for segment in segments)
    yield _text(MARGIN, 20, f"device {device}: {_mib(held)} held of {_mib(reserved)} in {len(segments)} segments")


# Over time


def _timeline(events: list[dict[str, Any]], segments: list[dict[str, Any]]) -> Iterator[str]:
    if not events:
        return
    held = _line(events, HELD, sum(segment["allocated_size"] for segment in segments))
    reserved = _line(events, RESERVED, sum(segment["total_size"] for segment in segments))
    most = max(max(value for _when, value in line) for line in (held, reserved)) or 1
    start, end = events[0].get("time_us", 0), events[-1].get("time_us", 0)
    for name, line, colour in (("reserved", reserved, "#b04a35"), ("held", held, "#3572b0")):
        yield _drawn_line(line, start, max(end - start, 1), most, colour)
        yield _text(WIDTH - MARGIN + 4, 44 if name == "reserved" else 58, name, colour)
    yield _text(4, 44, _mib(most))
    yield _text(MARGIN, TIMELINE + 26, f"{(end - start) / 1e6:.3f} s, {len(events)} events")


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


def _drawn_line(line: list[Point], start: float, span: float, most: int, colour: str) -> str:
    def place(point: Point) -> tuple[float, float]:
        x = MARGIN + (WIDTH - 2 * MARGIN) * (point[0] - start) / span
        return x, 36 + (TIMELINE - 36) * (1 - point[1] / most)

    path: list[str] = []
    last: float | None = None
    for x, y in map(place, line):
        path += [f"{x:.1f},{last:.1f}"] if last is not None else []
        path.append(f"{x:.1f},{y:.1f}")
        last = y
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.2" points="{" ".join(path)}"/>'


# The map


def _map(segments: list[dict[str, Any]], top: int) -> Iterator[str]:
    largest = max((segment["total_size"] for segment in segments), default=1)
    shown = sorted(segments, key=lambda segment: (-segment["total_size"], segment["address"]))[:SEGMENTS]
    for row, segment in enumerate(shown):
        scale = (WIDTH - 2 * MARGIN) / largest
        yield from _row(segment, top + ROW * row, scale)
    if len(segments) > SEGMENTS:
        yield _text(MARGIN, top + ROW * SEGMENTS + 12, f"and {len(segments) - SEGMENTS} smaller ones")


def _row(segment: dict[str, Any], y: int, scale: float) -> Iterator[str]:
    yield _text(4, y + 11, _mib(segment["total_size"]))
    x = float(MARGIN)
    for state, nbytes, label in _runs(segment["blocks"], scale):
        width = nbytes * scale
        colour = COLOURS.get(state, "#999999")
        yield (
            f'<rect x="{x:.2f}" y="{y}" width="{max(width, 0.2):.2f}" height="{ROW - 4}" fill="{colour}" '
            f'stroke="white" stroke-width="0.3"><title>{escape(label)}</title></rect>'
        )
        x += width


def _runs(blocks: Iterable[dict[str, Any]], scale: float) -> Iterator[tuple[str, int, str]]:
    """(state, bytes, label) of each block; neighbours that are too narrow to be seen are one."""
    run: tuple[str, int, int] | None = None
    for block in blocks:
        state, nbytes = block["state"], block["size"]
        if nbytes * scale >= 1:
            if run:
                yield run[0], run[1], f"{run[2]} blocks, {_mib(run[1])}"
            run = None
            yield state, nbytes, f"{state}, {_mib(nbytes)} at {block.get('address', 0):#x}{_site(block)}"
        elif run and run[0] == state:
            run = (state, run[1] + nbytes, run[2] + 1)
        else:
            if run:
                yield run[0], run[1], f"{run[2]} blocks, {_mib(run[1])}"
            run = (state, nbytes, 1)
    if run:
        yield run[0], run[1], f"{run[2]} blocks, {_mib(run[1])}"


def _site(block: dict[str, Any]) -> str:
    return "".join(f"\n{frame['filename']}:{frame['line']} {frame['name']}" for frame in block.get("frames", ()))


def _text(x: float, y: float, said: str, colour: str = "#333333") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}">{escape(said)}</text>'


def _mib(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):.1f} MiB" if nbytes >= 1 << 20 else f"{nbytes / 1024:.1f} KiB"
