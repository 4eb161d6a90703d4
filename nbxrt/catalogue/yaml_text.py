"""Plain data as the YAML that people write here: short mappings on one line, a note above what needs one."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    #: What is to be said of a node, in lines of a comment above it.
    Notes = Callable[[tuple[str, ...]], Sequence[str]]

WIDTH = 110

# Text that every reader takes for text without quotes; all else is quoted.
_PLAIN = re.compile(r"[A-Za-z_/][\w/.$+*-]*(?: [\w/.$+()-]+)*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"}


def written(data: dict[str, Any], notes: Notes) -> str:
    """The mapping as YAML; `notes` has the lines of a comment for the path of a key, and none for most."""
    lines = [line for key, value in data.items() for line in ("", *_entry(key, value, (key,), notes))]
    return "\n".join(line.rstrip() for line in lines[1:]) + "\n"


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)


def _entry(key: str, value: Any, path: tuple[str, ...], notes: Notes) -> Iterator[str]:
    margin = "  " * (len(path) - 1)
    said = notes(path)
    if said and len(path) > 1:
        yield ""
    yield from (f"{margin}# {line}" for line in said)
    one_line = f"{margin}{_scalar(key)}: {flow(value)}"
    has_notes = isinstance(value, dict) and any(notes((*path, each)) for each in value)
    is_short = not value or not isinstance(value, (dict, list)) or len(one_line) <= WIDTH
    if is_short and not has_notes and not (len(path) == 1 and isinstance(value, dict) and value):
        yield one_line
        return
    yield f"{margin}{_scalar(key)}:"
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _entry(inner, each, (*path, inner), notes)
    else:
        yield from _items(value, margin + "  ")


def _items(values: list[Any], margin: str) -> Iterator[str]:
    """A long list, an item a line; a mapping that is too long for one has its keys below each other."""
    for value in values:
        one_line = f"{margin}- {flow(value)}"
        if len(one_line) <= WIDTH or not isinstance(value, dict):
            yield one_line
            continue
        dash = "- "
        for key, inner in value.items():
            yield f"{margin}{dash}{_scalar(key)}: {flow(inner)}"
            dash = "  "
