"""How the command line writes: one text, with colour where a terminal takes it and nobody has said NO_COLOR."""

from __future__ import annotations

import json
import os
import textwrap
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

#: Prose is not made wider than this, however wide the terminal is.
WIDEST = 100

#: A space at which no line is broken.
TIED = "\N{NO-BREAK SPACE}"


class Writer:
    """Writes lines to standard output, or to standard error. A path is never broken, so that it can be copied."""

    def __init__(self, *, stderr: bool = False) -> None:
        # Without a colour system rich writes no escape at all; NO_COLOR alone would leave it bold and dim.
        system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        self._console = Console(
            stderr=stderr, color_system=system, highlight=False, markup=False, emoji=False, soft_wrap=True
        )
        self.width = min(self._console.width, WIDEST)

    def _print(self, text: Text) -> None:
        try:
            self._console.print(text)
        except OSError:
            if not self._console.stderr:
                raise  # talk may be lost, an answer may not

    def line(self, text: str = "", style: str = "") -> None:
        """One line, or several, as they are."""
        self._print(Text(printable(text), style))

    def heading(self, text: str) -> None:
        """A title, with an empty line before it."""
        self.line()
        self.line(text, "bold")

    def row(self, label: str, text: str, *, indent: int = 2, column: int = 12, style: str = "", word: str = "") -> None:
        """A label, then text from a column on, which its further lines keep to; its beginning, `word`, has the style.

        Lines are broken at spaces, and never at TIED ones.
        """
        start = max(column, len(label) + 2)
        room = max(self.width - indent - start, 24)
        lines = [
            part
            for given in (text.splitlines() or [""])
            for part in textwrap.wrap(printable(given), room, break_long_words=False, break_on_hyphens=False) or [""]
        ]
        margin = " " * (indent + start)
        first = f"{' ' * indent}{printable(label):<{start}}"
        text = "\n".join([(first + lines[0]).rstrip(), *((margin + line).rstrip() for line in lines[1:])])
        shown = Text(text.replace(TIED, " "))
        if style:
            shown.stylize(style, len(first), len(first) + len(word))
        self._print(shown)

    def json(self, value: Any) -> None:
        """A value as JSON, in ASCII: any reader can take it."""
        self._print(Text(json.dumps(value, indent=2)))


def printable(text: str) -> str:
    """The text with what would move the cursor or colour the terminal written as an escape."""
    return "".join(each if each.isprintable() or each in ("\n", TIED) else repr(each)[1:-1] for each in text)
