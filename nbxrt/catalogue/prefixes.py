"""The names of one vendor turned into those of another, by the prefixes that its symbols show.

Vendors that follow another's interface rename it: the prefix of the main library in every spelling, and a shorter
prefix that is its beginning, as the driver's often is. A rename happens when a file is written, never when it is read.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_PREFIX = re.compile(r"([a-z]+)(?=[A-Z_])")


@attrs.frozen
class Renaming:
    """`main` becomes `new` anywhere in a name, a prefix of `short` its counterpart at the beginning of a symbol.

    `kept` has the prefixes of other interfaces, of which the new vendor's names cannot be told.
    """

    main: str
    new: str
    short: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each prefix with what takes its place."""
        if self.main:
            yield self.main, self.new
        yield from ((prefix, self.new[: len(prefix)]) for prefix in self.short)

    def name(self, text: str) -> str:
        """A name that may hold the main prefix anywhere: a file, a folder, a variable."""
        for spell in (str.lower, str.upper, str.capitalize) if self.main else ():
            text = text.replace(spell(self.main), spell(self.new))
        return text

    def symbol(self, text: str) -> str:
        """A symbol or the name of a structure."""
        renamed = self.name(text)
        if renamed != text:
            return renamed
        for prefix, new in self.pairs():
            for spell in (str.lower, str.upper):
                rest = text[len(prefix) :]
                if text.startswith(spell(prefix)) and (spell is str.upper or rest[:1].isupper()):
                    return spell(new) + rest
        return text


def found(data: Mapping[str, Any], new: str) -> Renaming:
    """How the names in a backend file become those of the prefix `new`.

    The main prefix is the one that most of the runtime's own calls have (version, status); without one no name changes.
    """
    counts = Counter(_prefixes([*_bound(data["operations"]), *_called(data["libraries"])]))
    runtime = Counter(_prefixes(_called(data["libraries"].get("runtime", {}))))
    main = runtime.most_common(1)[0][0] if runtime else ""
    others = [prefix for prefix in counts if prefix != main and counts[prefix] > 1]
    short = tuple(prefix for prefix in others if main.startswith(prefix))
    return Renaming(main, new, short, tuple(prefix for prefix in others if prefix not in short))


def _prefixes(symbols: Iterable[str]) -> Iterator[str]:
    for symbol in symbols:
        match = _PREFIX.match(symbol)
        if match:
            yield match[1]


def _called(node: Any) -> Iterator[str]:
    """The symbols that stand under `call`, however deep."""
    if isinstance(node, dict):
        call = node.get("call", ()) if "finder" not in node else ()  # what a finder calls is Python's
        yield from [call] if isinstance(call, str) else call
        for value in node.values():
            yield from _called(value)
    elif isinstance(node, list):
        for value in node:
            yield from _called(value)


def _bound(operations: Mapping[str, Any]) -> Iterator[str]:
    """The symbols of operations; one that stands alone is a symbol too."""
    for forms in operations.values():
        each = forms if isinstance(forms, list) else [forms]
        yield from (form for form in each if isinstance(form, str))
        yield from _called(each)
