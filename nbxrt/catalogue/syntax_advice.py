"""What was probably meant where a file is no YAML, or a key no text: hints that need nothing but the text itself.

advice.py has those for what a schema refuses.
"""

from __future__ import annotations

from typing import Any

from nbxrt.catalogue.diagnostics import short

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
    "could not find expected ':'": "every line of a mapping is a key, `:`, a space and a value",
    "expected <document start>": "the file's one document ends before this: at a bracket, a quote or a `...`",
    "unexpected end of stream": "a quote or a bracket that begins here is never closed",
}


def for_syntax(problem: str) -> str:
    """What to look for when the parser gives up with these words."""
    return next((hint for words, hint in _SYNTAX.items() if words in problem), "")


def for_number_as_key(above: list[Any], written: str) -> str:
    """What a number as a key should be; `above` are the keys that it stands below, the innermost last."""
    if "kinds" in above[-1:] or "enums" in above[-2:]:
        return short(f"the word comes first, then its number: `WORD: {written}`")
    return f'quote it: `"{written}"`' if written else ""
