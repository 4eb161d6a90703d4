"""Text without quotes that other readers of YAML take for something else.

Booleans, numbers and dates of YAML 1.1; the spellings of numbers in YAML 1.2 that nbxrt does not take, octal ones and
leading zeros; and two signs that YAML 1.1 keeps for itself. In places that are not text they are refused for what they
are not, so here only those are told that stand where text does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbxrt.catalogue.diagnostics import quoted

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Document, Path

_BOOLEANS = frozenset(spelt for word in ("yes", "no", "on", "off") for spelt in (word, word.title(), word.upper()))
_SIGNS = frozenset(("=", "<<"))
# Most words begin otherwise, and are not looked at twice.
_BEGINNINGS = frozenset("yYnNoO=<-+.0123456789")
_DIGITS = "[0-9][0-9_]*"
_NUMBER = re.compile(
    rf"[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|{_DIGITS}(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    rf"|{_DIGITS}(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)?"
)


def misread_words(document: Document, told: Container[tuple[int, int]]) -> Iterator[Diagnostic]:
    """Values and keys that other readers take for something else; not at places of which a fault is told already."""
    for path, (at, key_at, written, is_plain) in document.nodes():
        key = path[-1]
        if is_plain and written and written[0] in _BEGINNINGS and at[:2] not in told:
            yield from _misread(document, path, written, "value")
        if key_at and key and str(key)[0] in _BEGINNINGS and key_at[:2] not in told:
            yield from _misread(document, path, str(key), "key")


def _misread(document: Document, path: Path, word: str, at: str) -> Iterator[Diagnostic]:
    is_text = not document.is_quoted(path) if at == "key" else isinstance(document.at(path), str)
    other = taken_for(word) if is_text and not str(path[0]).startswith("x-") else ""
    if other:
        message = f"{quoted(word)} is text here, and {other} to other YAML readers"
        yield document.diagnostic(path, "misread-word", message, at=at, hint=f'quote it: `"{word}"`')


def taken_for(word: str) -> str:
    """What other readers take the word for; empty when it is text to all."""
    if word in _BOOLEANS:
        return "a boolean"
    if word in _SIGNS:
        return "a sign of its own"
    if _NUMBER.fullmatch(word):
        return "a number"
    return "a date" if _DATE.fullmatch(word) else ""
