"""What was probably meant where a file is no YAML, or a key no text: hints that need nothing but the text itself.

advice.py has those for what a schema refuses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import short

if TYPE_CHECKING:
    from collections.abc import Iterator

# The parser's own words, and what is behind them.
_SYNTAX = {
    "expected key": "the line is indented like none of those that it belongs to, or something before it is not closed",
    "expected '-' indicator": "all items of a list begin with `-` in one column; a backend file itself is no list",
    "mapping values are not allowed": "a key's `:` has a space behind it, and a text with `: ` in it stands in quotes",
    "unknown escape character": "in double quotes a `\\` begins an escape: use single quotes, or `/`",
    "cannot start any token": "a text that begins with this character stands in quotes",
    "alphabetic or numeric character": "a text with `*` or `&` at its beginning or behind a bracket stands in quotes",
    "expected node content": "a value is missing here, or the `]` or `}` of what is open",
    "expected ',' or ']'": "the list that begins with `[` ends with `]`",
    "expected ',' or '}'": "the mapping that begins with `{` ends with `}`",
    "could not find expected ':'": "a line of a mapping is a key of up to 1,024 characters, `:`, a space and a value",
    "expected <document start>": "the file's one document ends before this: at a bracket, a quote or a `...`",
    "unknown directive": "no line of a backend file begins with `%`",
    "unexpected end of stream": "a quote or a bracket that begins here is never closed",
}


_UNBEGUN = "a line `---` stands between lines that begin with `%` and the document"

_CONFLICT = re.compile(r"(?m)^<{7} .*$")
_NO_SPACE = re.compile("(?m)(?:^ *|: *|- *)([\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000])")


def for_syntax(problem: str, *, is_begun: bool = True) -> str:
    """What to look for when the parser gives up with these words, in the document or before it has begun."""
    if not is_begun and "expected <document start>" in problem:
        return _UNBEGUN
    return next((hint for words, hint in _SYNTAX.items() if words in problem), "")


def lookalikes(text: str, index: int) -> Iterator[tuple[int, str, str]]:
    """What may be behind a fault at `index`, in its line or the one before, or anywhere: (where, what it is, hint)."""
    conflict = _CONFLICT.search(text)
    if conflict:
        hint = "keep one of the two versions, and drop the lines that mark them"
        yield conflict.start(), "a merge conflict begins here", hint
    begins = text.rfind("\n", 0, max(text.rfind("\n", 0, index), 0)) + 1
    blank = _NO_SPACE.search(text, begins)
    if blank and blank.start(1) <= index:
        message = f"the character U+{ord(blank.group(1)):04X} stands where a space is meant"
        yield blank.start(1), message, "use spaces: others come along with text that is copied from a page"


def for_mapping_as_key(beginning: str) -> str:
    """What a mapping as a key was meant for; `beginning` is its bracket and the character before."""
    return "what begins with `{{` stands in quotes: templates are not filled in" if beginning == "{{" else ""


def for_number_as_key(above: list[Any], written: str) -> str:
    """What a number as a key should be; `above` are the keys that it stands below, the innermost last."""
    if "kinds" in above[-1:] or "enums" in above[-2:]:
        return short(f"the word comes first, then its number: `WORD: {written}`")
    return f'quote it: `"{written}"`' if written else ""
