"""Values that are not what the schema expects: what is said of each kind of mistake, and where.

The plain sentence is "expected this, found that"; a mistake that people make often has one of its own, in a table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue import advice
from nbxrt.catalogue.diagnostics import Diagnostic, did_you_mean, listed, path_text, quoted
from nbxrt.catalogue.schema_extends import CHANGES, SECTIONS
from nbxrt.catalogue.schema_parts import PLATFORMS, VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.catalogue.contract import Contract, Operation
    from nbxrt.catalogue.document import Document, Path


@attrs.frozen(eq=False)
class Error:
    """An error of the schema: where, which keyword with which value, on what; `title` names the form around it."""

    path: Path
    keyword: str
    value: Any
    instance: Any
    schema: dict[str, Any]
    title: str
    is_key: bool
    document: Document
    contract: Contract

    def diagnostic(self, reference: str, message: str, **facts: Any) -> Diagnostic:
        """A fault at the value that the error is about."""
        return self.document.diagnostic(self.path, reference, message, **facts)

    @property
    def written(self) -> str:
        """The value as it stands in the file, in backticks."""
        written = self.document.place(self.path).written
        return quoted(self.instance if written is None else written)


def wrong_type(error: Error) -> Diagnostic:
    """What is said of a value of the wrong type."""
    types = error.value if isinstance(error.value, list) else [error.value]
    told = next((fault for tell in _COMMON if (fault := tell(error, types)) is not None), None)
    if told is not None:
        return told
    names = [TYPES[each] for each in types]
    expected = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    hint = advice.for_type(error.path, error.instance, types)
    return error.diagnostic("wrong-type", f"expected {expected}, found {_found(error)}", hint=hint)


#: Every type of the schema in words.
TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "boolean": "true or false",
    "null": "null",
}


def _found(error: Error) -> str:
    instance = error.instance
    if instance is None:
        return "null" if error.document.place(error.path).written else "nothing"
    if isinstance(instance, (dict, list)):
        return "a mapping" if isinstance(instance, dict) else "a list"
    if isinstance(instance, bool):
        return error.written
    return f"the {'text' if isinstance(instance, str) else 'number'} {error.written}"


def empty_library_name(error: Error, _types: object = None) -> Diagnostic | None:
    """The file name of a library is null, empty or blank: a loader that is given it opens the process itself."""
    is_name = error.path[:1] == ("libraries",) and error.path[2:3] == ("names",) and error.path[-1] in PLATFORMS
    is_blank = isinstance(error.instance, str) and not error.instance.strip()
    if not is_name or not (is_blank or error.instance is None):
        return None
    message = f"the library name at index {error.path[3]} is empty for {error.path[4]}"
    return error.diagnostic("empty-library-name", message, hint="leave the system out when the library is not there")


def _turned_off(error: Error, _types: list[str]) -> Diagnostic | None:
    """What has to be there, in a file that would take it out of the one that it extends."""
    if error.instance is not None or "extends" not in (error.document.data or ()):
        return None
    if not error.document.place(error.path).written:
        return None  # nothing was written: what was meant to stand there is told
    name, depth = quoted(path_text(error.path)), len(error.path)
    if error.path in (("evidence",), ("override",)):
        return error.diagnostic("nothing-to-change", f"{name} is a file's own, so there is nothing to take out")
    if error.path[0] in SECTIONS and depth == 1:
        hint = "take out its entries, each by `null`"
        return error.diagnostic("required-key", f"{name} cannot be taken out as a whole", hint=hint)
    if depth > (3 if error.path[0] == "libraries" else 2 if error.path[0] in SECTIONS else 1):
        return None  # it is a part of what is replaced as a whole
    return error.diagnostic("required-key", f"{name} is required, and cannot be taken out")


def _misspelt_change(error: Error, types: list[str]) -> Diagnostic | None:
    """A mapping where a list stands, in a file that may also change the list of the one that it extends."""
    is_list = error.path[-1:] in (("names",), ("search",), ("platforms",), ("visibility",)) and types == ["array"]
    if not is_list or not isinstance(error.instance, dict) or "extends" not in error.document.data:
        return None
    keys = [str(key) for key in error.instance]
    hint = next(filter(None, (did_you_mean(key, CHANGES) for key in keys)), "")
    label = f"known here: {listed(CHANGES)}"
    message = f"a change to a list has none of {listed(keys)}" if keys else "a change to a list changes something"
    return error.diagnostic("unknown-key", message, label=label, hint=hint)


def _bare_symbol(error: Error, types: list[str]) -> Diagnostic | None:
    """A symbol alone, for an operation to which the contract gives no usual order."""
    is_operation = error.path[:1] == ("operations",) and len(error.path) > 1 and "object" in types
    operation = error.contract.operations.get(str(error.path[1])) if is_operation else None
    if operation is None or operation.c is not None or not isinstance(error.instance, str):
        return None
    if len(error.path) > len(("operations", "malloc", 0)):
        return None
    return error.diagnostic("missing-arguments", **without_arguments(operation, error.instance))


def without_arguments(operation: Operation, symbol: str) -> dict[str, str]:
    """What is said of a call without `args` where the contract has no usual order to fall back on."""
    takes, gives = (listed([each.name for each in side]) or "nothing" for side in (operation.takes, operation.gives))
    return {
        "message": f"`{operation.name}` calls {quoted(symbol)} without `args`, and the contract has no order for it",
        "label": f"it takes {takes} and gives {gives}",
        "hint": f"write `{{call: {symbol}, args: […]}}`",
    }


def _version_float(error: Error, _types: list[str]) -> Diagnostic | None:
    if not isinstance(error.instance, float) or error.schema.get("pattern") != VERSION:
        return None
    message = f"the version {error.written} is a number with a fraction, as which `12.10` is `12.1`"
    is_version = re.search(VERSION, str(error.document.place(error.path).written)) is not None
    hint = _quote_it(error) if is_version else 'write it in quotes: `"12.4"`'
    return error.diagnostic("float-version", message, hint=hint)


def _odd_number(error: Error, types: list[str]) -> Diagnostic | None:
    """A number in a spelling that YAML's readers disagree about, or with a fraction."""
    is_plain = error.document.place(error.path).is_plain
    looks_so = isinstance(error.instance, str) and is_plain and _NUMBER_LIKE.fullmatch(error.instance)
    if "integer" not in types or not (isinstance(error.instance, float) or looks_so):
        return None
    hint = "write it in decimal or hexadecimal, without underscores, leading zeros or a fraction"
    return error.diagnostic("bad-number", f"expected an integer, found {error.written}", hint=hint)


_NUMBER_LIKE = re.compile(r"[-+]?[0-9.][0-9a-fA-FoOxX_:.eE+-]*")


def _old_boolean(error: Error, types: list[str]) -> Diagnostic | None:
    """A word that is a boolean in YAML 1.1 only."""
    word = str(error.instance).lower()
    if types != ["boolean"] or word not in _OLD_BOOLEANS:
        return None
    hint = f"write `{_OLD_BOOLEANS[word]}`"
    return error.diagnostic("wrong-type", f"expected true or false, found {_found(error)}", hint=hint)


_OLD_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def _unquoted_text(error: Error, types: list[str]) -> Diagnostic | None:
    is_scalar = isinstance(error.instance, (bool, int, float)) or bool(
        error.instance is None and types == ["string"] and error.document.place(error.path).written
    )
    if not is_scalar or "string" not in types or {"array", "object"} & set(types):
        return None
    return error.diagnostic("wrong-type", f"expected text, found {_found(error)}", hint=_quote_it(error))


def _quote_it(error: Error) -> str:
    return f'quote it: `"{error.document.place(error.path).written}"`'


# Mistakes with a sentence of their own; the first that applies is told.
_COMMON: tuple[Callable[[Error, list[str]], Diagnostic | None], ...] = (
    empty_library_name,
    _turned_off,
    _misspelt_change,
    _bare_symbol,
    _version_float,
    _odd_number,
    _old_boolean,
    _unquoted_text,
)
