"""Pictures of lines, rectangles and words, as SVG, and as PNG where Pillow is installed."""

from __future__ import annotations

import io
from html import escape
from math import floor, log10
from typing import TYPE_CHECKING, NamedTuple

from nbxrt.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Pixels of a PNG for each unit of a picture, so that it is sharp where it is shown at its size.
SCALE = 2
SIZE = 12
INK = "#333333"


class Rectangle(NamedTuple):
    """A filled rectangle; `says` is shown by browsers when it is pointed at."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    says: str = ""


class Line(NamedTuple):
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float = 1.5


class Words(NamedTuple):
    """Words at a place: `start`, `middle` or `end` of them is there, on their base line."""

    x: float
    y: float
    said: str
    colour: str = INK
    anchor: str = "start"
    size: int = SIZE


Shape = Rectangle | Line | Words


class Picture(NamedTuple):
    """Shapes on white, the first ones below."""

    width: int
    height: int
    shapes: tuple[Shape, ...]


def as_svg(picture: Picture) -> bytes:
    """The picture as SVG."""
    body = "\n".join(map(_element, picture.shapes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture.width}" height="{picture.height}" '
        f'viewBox="0 0 {picture.width} {picture.height}" font-family="sans-serif">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    ).encode()


def _element(shape: Shape) -> str:
    if isinstance(shape, Rectangle):
        title = f"<title>{escape(shape.says)}</title>" if shape.says else ""
        return (
            f'<rect x="{shape.x:.2f}" y="{shape.y:.2f}" width="{shape.width:.2f}" height="{shape.height:.2f}" '
            f'fill="{shape.colour}">{title}</rect>'
        )
    if isinstance(shape, Line):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        return f'<polyline fill="none" stroke="{shape.colour}" stroke-width="{shape.width}" points="{points}"/>'
    return (
        f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" fill="{shape.colour}" font-size="{shape.size}" '
        f'text-anchor="{shape.anchor}">{escape(shape.said)}</text>'
    )


def as_png(picture: Picture) -> bytes:
    """The picture as PNG. Raises: CapabilityError where Pillow is not installed."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        message = "PNG is drawn by Pillow, which is not installed"
        raise CapabilityError(message, hint="`pip install nbxrt[plot]`, or write SVG: `-o FILE.svg`") from error
    image = Image.new("RGB", (picture.width * SCALE, picture.height * SCALE), "white")
    draw = ImageDraw.Draw(image)
    for shape in picture.shapes:
        if isinstance(shape, Rectangle):
            left, top = shape.x * SCALE, shape.y * SCALE
            right, bottom = left + max(shape.width * SCALE - 1, 0), top + max(shape.height * SCALE - 1, 0)
            draw.rectangle((left, top, right, bottom), fill=shape.colour)
        elif isinstance(shape, Line):
            points = [(x * SCALE, y * SCALE) for x, y in shape.points]
            draw.line(points, fill=shape.colour, width=round(shape.width * SCALE), joint="curve")
        else:
            anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
            font = ImageFont.load_default(shape.size * SCALE)
            draw.text((shape.x * SCALE, shape.y * SCALE), shape.said, fill=shape.colour, font=font, anchor=anchor)
    written = io.BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def ticks(most: float, count: int) -> Iterator[float]:
    """At most so many round numbers after 0, up to `most`."""
    power = 10 ** floor(log10(most / count)) if most > 0 else 1.0
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * count >= most)
    for index in range(floor(most / step + 1e-9) + 1):
        yield index * step


def legend(x: float, y: float, entries: Iterable[tuple[str, str]]) -> Iterator[Shape]:
    """Names beside their colours, from left to right."""
    for name, colour in entries:
        yield Rectangle(x, y - 9, 10, 10, colour)
        yield Words(x + 15, y, name)
        x += 15 + 7 * len(name) + 20
