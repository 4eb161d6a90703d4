"""Curves over a number that is a power of two or between two, as SVG."""

from __future__ import annotations

from html import escape
from math import log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Curve = Sequence[tuple[float, float]]

WIDTH, HEIGHT, LEFT, TOP = 640, 220, 70, 40
COLOURS = ("#3572b0", "#b04a35", "#4c8c4a", "#8a5fa8", "#d9a441")


def drawn(panels: Mapping[str, Mapping[str, Curve]], below: str) -> str:
    """A picture of panels one under the other, each of its curves by name; `below` says what x is."""
    body: list[str] = []
    for row, (title, curves) in enumerate(panels.items()):
        body += _panel(title, curves, TOP + row * (HEIGHT + 70))
    height = len(panels) * (HEIGHT + 70) + 30
    body.append(_text(LEFT, height - 10, below))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 200} {height}" font-family="sans-serif" '
        f'font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _panel(title: str, curves: Mapping[str, Curve], top: float) -> Iterable[str]:
    points = [point for curve in curves.values() for point in curve]
    low_x, high_x = (edge(log2(x) for x, _y in points) for edge in (min, max))
    low_y, high_y = (edge(y for _x, y in points) for edge in (min, max))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log2(x) - low_x) / ((high_x - low_x) or 1)
        up = (y - low_y) / ((high_y - low_y) or 1)
        return LEFT + (WIDTH - LEFT) * across, top + HEIGHT * (1 - up)

    yield _text(LEFT, top - 14, title)
    yield _text(4, top + 4, f"{high_y:.6g}")
    yield _text(4, top + HEIGHT + 4, f"{low_y:.6g}")
    for x in sorted({x for x, _y in points}):
        yield _text(place(x, low_y)[0] - 6, top + HEIGHT + 20, f"{x:g}")
    for index, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        places = [place(*point) for point in sorted(curve)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places)
        yield _text(WIDTH + 12, top + 12 + 16 * index, name, colour)


def _text(x: float, y: float, said: str, colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{escape(said)}</text>'
