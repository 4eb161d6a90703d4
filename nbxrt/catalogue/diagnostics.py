"""One fault of one file: where it is, what is wrong, and what would be right.

The reader, the schema and the meaning checks all answer with these; who prints them, and how, is decided elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# A file may hold one line of a megabyte, and a value of the same size: neither may flood the message.
EXCERPT_WIDTH = 120
QUOTE_WIDTH = 60
LISTED = 12
LONGEST_HINT = 160
# Notes that people are shown: with place, line and hint a fault has fewer than ten lines. Programs are given all.
SHOWN = 2
# Programs are given a line once a fault.
SOURCE_WIDTH = 1000


@attrs.frozen
class Related:
    """Another place that a fault has to do with: `the first one is`, `taken out`, and where that is."""

    message: str
    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.message} at {self.file}:{self.line}:{self.column}"


@attrs.frozen(order=True)
class Diagnostic:
    """A fault of a file. Lines and columns count from 1, columns in characters; diagnostics order by place.

    `related` are other places that it has to do with, in this file or another, and `notes` what else is to be said.
    """

    file: str
    line: int
    column: int
    end_column: int
    reference: str
    message: str
    path: str = attrs.field(default="", order=False)
    label: str = attrs.field(default="", order=False)
    source: str = attrs.field(default="", order=False)
    related: tuple[Related, ...] = attrs.field(default=(), order=False)
    notes: tuple[str, ...] = attrs.field(default=(), order=False)
    hint: str = attrs.field(default="", order=False)

    def one_line(self) -> str:
        """The fault as `file:line:column: message`, the form that editors and `grep` understand."""
        return _escaped(f"{self.file}:{self.line}:{self.column}: {self.message}")

    def render(self) -> str:
        """The fault for people: the message, the place, the line with a caret, notes and a hint; plain text."""
        return "\n".join(map(_escaped, (*self._heading(), *self._excerpt(), *self._notes(), *self._advice())))

    def to_dict(self) -> dict[str, object]:
        """The fault as data that JSON can carry; a longer line than SOURCE_WIDTH is left out."""
        source = self.source if len(self.source) <= SOURCE_WIDTH else ""
        related = [attrs.asdict(each) for each in self.related]
        return {**attrs.asdict(self), "related": related, "notes": list(self.notes), "source": source}

    def __str__(self) -> str:
        return self.render()

    def _heading(self) -> list[str]:
        where = f", `{self.path}`" if self.path else ""
        return [f"error[{self.reference}]: {self.message}", f"  --> {self.file}:{self.line}:{self.column}{where}"]

    def _excerpt(self) -> list[str]:
        if not self.source:
            return []
        number = str(self.line)
        margin = " " * len(number)
        line, start, end = _window(self.source, self.column - 1, self.end_column - 1)
        caret = " " * _columns(line[:start]) + "^" * max(1, _columns(line[start:end]))
        return [f"{margin} |", f"{number} | {line}", f"{margin} | {caret} {self.label}".rstrip()]

    def _notes(self) -> list[str]:
        margin = " " * len(str(self.line))
        room = max(0, SHOWN - len(self.notes))
        places = [str(each) for each in self.related[:room]]
        if places and len(self.related) > room:
            places[-1] += f", and {len(self.related) - room} more"
        return [f"{margin} = note: {note}" for note in (*places, *self.notes)]

    def _advice(self) -> list[str]:
        return ["", f"hint: {self.hint}"] if self.hint else []


def rendered(diagnostics: Iterable[Diagnostic]) -> str:
    """All faults for people, an empty line between two of them."""
    return "\n\n".join(diagnostic.render() for diagnostic in diagnostics)


_BLANK = re.compile(r"[ \t\r\n]+")


def quoted(value: object) -> str:
    """A value in backticks, on one line and cut to a bearable length; what cannot be seen in it is escaped."""
    text = _BLANK.sub(" ", value).strip(" ") if isinstance(value, str) and value.strip() else str(value)
    text = _escaped(text)
    return f"`{text[: QUOTE_WIDTH - 1]}…`" if len(text) > QUOTE_WIDTH else f"`{text}`"


def listed(words: Sequence[str], conjunction: str = "and") -> str:
    """Words in backticks, as a sentence lists them; a long list ends with how many are left out."""
    shown = [quoted(word) for word in words[:LISTED]]
    left_out = len(words) - len(shown)
    if left_out:
        shown.append(f"{left_out} more")
    return f" {conjunction} ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, or an empty text."""
    import difflib  # only a file with a fault needs it

    if len(word) > QUOTE_WIDTH:
        return ""
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.65)
    return by_lower[close[0]] if close else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The hint that offers the nearest known word, or an empty text."""
    near = nearest(word, known)
    return f"did you mean `{near}`?" if near else ""


def short(hint: str) -> str:
    """A hint, or none where what stands in the file would make it longer than people read."""
    return hint if len(hint) <= LONGEST_HINT else ""


def path_text(path: Sequence[str | int]) -> str:
    """A path of keys and indices, written `operations.malloc.args[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text if len(text) <= 2 * QUOTE_WIDTH else text[: 2 * QUOTE_WIDTH - 1] + "…"


def _window(source: str, start: int, end: int) -> tuple[str, int, int]:
    """The part of a line around a caret, and the caret's ends in it."""
    end = max(start + 1, min(end, len(source)))
    if len(source) <= EXCERPT_WIDTH:
        return _printable(source).rstrip(), start, end
    first = max(0, start - EXCERPT_WIDTH // 3)
    last = first + EXCERPT_WIDTH
    before, after = "…" if first else "", "…" if last < len(source) else ""
    line = f"{before}{_printable(source[first:last])}{after}"
    return line, start - first + len(before), min(end, last) - first + len(before)


def _columns(text: str) -> int:
    """The columns that a terminal takes for a text: two for a wide character, none for what joins the one before."""
    if text.isascii():
        return len(text)
    import unicodedata  # few files need it

    widths = {"W": 2, "F": 2}
    return sum(
        0 if unicodedata.category(each) in ("Mn", "Me") else widths.get(unicodedata.east_asian_width(each), 1)
        for each in text
    )


def _escaped(line: str) -> str:
    """A line with every character that would break it, move the cursor or colour the terminal as Python writes it."""
    return line if line.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)


def _printable(text: str) -> str:
    """The text with a space for each character that would move the cursor or colour the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)
