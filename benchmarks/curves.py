"""Curves over a number that is a power of two or between two, as a picture."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from nbxrt.cli.pictures import SIZE, Line, Picture, Rectangle, Shape, Words, legend

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Curve = Sequence[tuple[float, float]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BETWEEN = 760, 170, 70, 30, 60, 60
COLOURS = ("#3572b0", "#b04a35", "#4c8c4a", "#8a5fa8", "#d9a441")
GRID = "#dddddd"
#: Parts of a panel between two lines of its grid.
PARTS = 4


def drawn(panels: Mapping[str, Mapping[str, Curve]], below: str) -> Picture:
    """A picture of panels one under the other, each of its curves by name; `below` says what x is."""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    shapes: list[Shape] = [*legend(LEFT, 22, colours.items())]
    for row, (title, curves) in enumerate(panels.items()):
        shapes += _panel(title, curves, colours, TOP + row * (HEIGHT + BETWEEN))
    height = TOP + len(panels) * (HEIGHT + BETWEEN) + 10
    shapes.append(Words(WIDTH - RIGHT, height - 22, below, anchor="end"))
    return Picture(WIDTH, height, tuple(shapes))


def _panel(title: str, curves: Mapping[str, Curve], colours: Mapping[str, str], top: float) -> Iterator[Shape]:
    points = [point for curve in curves.values() for point in curve]
    low_x, high_x = (edge(log2(x) for x, _y in points) for edge in (min, max))
    low_y, high_y = (edge(y for _x, y in points) for edge in (min, max))
    span = (high_y - low_y) or 1

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log2(x) - low_x) / ((high_x - low_x) or 1)
        return LEFT + (WIDTH - LEFT - RIGHT) * across, top + HEIGHT * (1 - (y - low_y) / span)

    yield Words(LEFT, top - 12, title, size=SIZE + 1)
    for part in range(PARTS + 1):
        value = low_y + span * part / PARTS
        _x, y = place(points[0][0], value)
        yield Rectangle(LEFT, y, WIDTH - LEFT - RIGHT, 1, GRID)
        yield Words(LEFT - 8, y + 4, f"{value:.4f}" if high_y < 10 else f"{value:.0f}", anchor="end")
    for x in sorted({x for x, _y in points}):
        yield Words(place(x, low_y)[0], top + HEIGHT + 18, f"{x:g}", anchor="middle")
    for name, curve in curves.items():
        places = tuple(place(*point) for point in sorted(curve))
        yield Line(places, colours[name])
        yield from (Rectangle(x - 2.5, y - 2.5, 5, 5, colours[name]) for x, y in places)
