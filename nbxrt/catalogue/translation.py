"""From the errors of the JSON Schema to sentences for people: one for each mistake, at the place where it was made.

Each keyword has one function in a table. wrong_values.py says what is wrong with a value's type, keys.py what is wrong
with keys.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue import advice, keys, schema_parts, schema_steps, verdicts
from nbxrt.catalogue.diagnostics import Diagnostic, did_you_mean, listed, quoted
from nbxrt.catalogue.forms import C_TYPES, SIZED_TYPES
from nbxrt.catalogue.keys import Missing, Unknown
from nbxrt.catalogue.wrong_values import Error, empty_library_name, wrong_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nbxrt.catalogue.contract import Contract
    from nbxrt.catalogue.document import Document, Path


# A file of the largest size may have an error in every line, which nobody reads to the end.
MAX_ERRORS = 500


@attrs.frozen
class Translation:
    """The faults of a file's form, the paths at which they are, and whether these are all."""

    diagnostics: tuple[Diagnostic, ...]
    broken: tuple[Path, ...]
    is_complete: bool


def translated(errors: Iterable[Any], schema: dict[str, Any], document: Document, contract: Contract) -> Translation:
    """The faults behind the errors of jsonschema, whose paths lead through a schema without references."""
    diagnostics: list[Diagnostic] = []
    unknown: list[Unknown] = []
    missing: dict[Missing, None] = {}
    broken: list[Path] = []
    for raw in islice(errors, MAX_ERRORS):
        error = _understood(raw, schema, document, contract)
        broken.append((*error.path, error.instance) if error.is_key else error.path)
        for found in _KEYWORDS.get(error.keyword, _other)(error):
            if isinstance(found, Unknown):
                unknown.append(found)
            elif isinstance(found, Missing):
                missing[found] = None
            else:
                diagnostics.append(found)
    diagnostics += keys.told(unknown, missing, document, contract)
    return Translation(tuple(diagnostics), tuple(broken), len(broken) < MAX_ERRORS)


def _understood(raw: Any, schema: dict[str, Any], document: Document, contract: Contract) -> Error:
    way = list(raw.absolute_schema_path)
    return Error(
        path=tuple(raw.absolute_path),
        keyword=str(raw.validator),
        value=raw.validator_value,
        instance=raw.instance,
        schema=raw.schema if isinstance(raw.schema, dict) else {},
        title=_title(schema, way),
        is_key="propertyNames" in way[-2:-1],
        document=document,
        contract=contract,
    )


def _title(schema: dict[str, Any], way: list[str | int]) -> str:
    """The title of the innermost form on the way to a keyword."""
    title, node = "", schema
    for part in way:
        found = node.get("title") if isinstance(node, dict) else None
        title = found if isinstance(found, str) else title  # `properties` may have one of that name
        node = node[part]  # type: ignore[index]
    return title


# What each keyword's error means.


def _enum(error: Error) -> Iterator[Diagnostic | Unknown]:
    if error.title in _SIDES and error.path[:1] == ("operations",):
        yield _unknown_name(error)
    elif error.is_key:
        yield Unknown(error.path, error.instance, error.title, tuple(error.value))
    elif error.path == ("contract",) and not verdicts.is_integer(error.instance):
        return  # its type is told
    elif error.path == ("contract",):
        message = f"the file is written for contract {error.written}, and this nbxrt knows {error.value[-1]}"
        yield error.diagnostic("unknown-contract", message)
    elif error.title == "a field" and error.instance in (*C_TYPES, *SIZED_TYPES):
        needs = "needs its size as well" if error.instance in SIZED_TYPES else "has its size by its type"
        yield error.diagnostic("wrong-length", f"a field of type {error.written} {needs}")
    else:
        words = [str(word) for word in error.value]
        hint = did_you_mean(str(error.instance), words) or advice.for_word(error.path, error.instance)
        yield error.diagnostic(
            "unknown-value", f"unknown value {error.written}", label=f"one of {listed(words, 'or')}", hint=hint
        )


# How the schema calls the names of an operation, and how people do.
_SIDES = {"a parameter": ("parameter", "takes"), "a result": ("result", "gives")}


def _unknown_name(error: Error) -> Diagnostic:
    what, side = _SIDES[error.title]
    operation = error.contract.operations[str(error.path[1])]
    known = [each.name for each in getattr(operation, side)]
    label = f"it {side} {listed(known)}" if known else f"it {side} nothing"
    message = f"`{operation.name}` has no {what} {quoted(error.instance)}"
    path, at = ((*error.path, error.instance), "key") if error.is_key else (error.path, "value")
    hint = did_you_mean(str(error.instance), known)
    return error.document.diagnostic(path, "unknown-name", message, at=at, label=label, hint=hint)


def _required(error: Error) -> Iterator[Missing]:
    yield from (Missing(error.path, key, error.title) for key in error.value if key not in error.instance)


def _additional(error: Error) -> Iterator[Unknown]:
    known = error.schema["properties"]
    unknown = (key for key in error.instance if key not in known and not key.startswith("x-"))
    yield from (Unknown(error.path, key, "a backend file", tuple(known)) for key in islice(unknown, MAX_ERRORS))


def _pattern(error: Error) -> Iterator[Diagnostic]:
    empty_name = empty_library_name(error)
    if empty_name is not None:
        yield empty_name
    elif error.is_key:
        message = f"{quoted(error.instance)} {PATTERNS[error.value]}"
        path = (*error.path, error.instance)
        yield error.document.diagnostic(path, "bad-text", message, at="key")
    else:
        hint = advice.for_text(error.path, error.instance, error.value, error.contract)
        yield error.diagnostic("bad-text", f"{error.written} {PATTERNS[error.value]}", hint=hint)


#: What is wrong with a text that does not match, for every pattern of the schema.
PATTERNS = {
    schema_parts.NAME: "is not a name of lower-case letters, digits and `_` that begins with a letter",
    schema_parts.STRUCT_NAME: "is not a name of letters, digits and `_` that begins with no digit",
    schema_parts.SYMBOL: "is not a C symbol",
    schema_parts.SELECTOR: "is not a selector",
    schema_parts.ENCODING: "is not a type encoding: it has no spaces",
    schema_steps.STEP_NAME: "is not a name, nor `state.` and a name",
    schema_parts.PACKAGE: "is not the dotted name of a package",
    schema_parts.VERSION: "is not a version such as `12.4`",
    schema_parts.DISTRIBUTION: "is not the name of a distribution, in lower case with hyphens",
    schema_parts.ROOT: "is not an absolute path or `$VARIABLE`",
    schema_parts.STEM: "is not a plain name, without slash or space",
    schema_parts.TARGET: "is not the beginning of a target's name, such as `sm_`",
    schema_parts.DEVICE_TARGET: "does not name a target by `{major}` and `{minor}`",
    schema_parts.PROTOCOL: "is not the name of a protocol such as `__dlpack__`",
    schema_parts.MEMBER: "is not a member of a structure, nor a path of such with dots",
    schema_parts.MACRO: "is not a macro, nor a macro and its value with `=`",
    schema_parts.CONSTANT: "is not the name of a number, nor names with ` | ` between them",
    schema_parts.NOT_BLANK: "is empty",
    schema_parts.C_TEXT: "is no text for C, which ends at a character 0",
    schema_parts.ABSOLUTE: "is not an absolute path: nothing is taken from the working folder",
    schema_parts.LIBRARY_FILE: "is not the name of a file, nor the absolute path of one",
    schema_parts.RELATIVE: "is not a relative path, in which only `{machine}` stands in braces",
}


def _range(error: Error) -> Iterator[Diagnostic]:
    if isinstance(error.instance, float):
        return  # its type is told
    least, greatest = error.schema.get("minimum"), error.schema.get("maximum")
    label = f"{least} to {greatest}" if greatest is not None else f"not below {least}"
    yield error.diagnostic("out-of-range", f"the number {error.written} is out of range", label=label)


def _too_few(error: Error) -> Iterator[Diagnostic]:
    if error.title in keys.CHOICES:
        message = f"{error.title} needs one of {listed(keys.CHOICES[error.title], 'or')}"
        yield error.diagnostic("missing-key", message)
    elif error.instance:
        message = f"expected {error.value} or more items, found {len(error.instance)}"
        yield error.diagnostic("wrong-length", message)
    else:
        yield error.diagnostic("wrong-length", f"the {_container(error)} is empty")


def _too_many(error: Error) -> Iterator[Diagnostic]:
    if isinstance(error.instance, dict):
        choices = keys.CHOICES.get(error.title, tuple(error.instance))
        message = f"{error.title} takes only one of {listed([key for key in error.instance if key in choices])}"
        yield error.diagnostic("too-many-keys", message)
    else:
        message = f"expected at most {error.value} items, found {len(error.instance)}"
        yield error.diagnostic("wrong-length", message)


def _container(error: Error) -> str:
    return "mapping" if isinstance(error.instance, dict) else "list"


def _repeated(error: Error) -> Iterator[Diagnostic]:
    for index, first in islice(verdicts.repeated(error.instance), MAX_ERRORS):
        message = f"{quoted(error.instance[index])} is in the list twice"
        related = (error.document.related((*error.path, first), "first"),)
        yield error.document.diagnostic((*error.path, index), "repeated", message, related=related)


def _other(error: Error) -> Iterator[Diagnostic]:
    yield error.diagnostic("wrong-form", f"the schema's `{error.keyword}` does not hold here")


_KEYWORDS: dict[str, Callable[[Error], Iterator[Any]]] = {
    "enum": _enum,
    "required": _required,
    "additionalProperties": _additional,
    "type": lambda error: iter((wrong_type(error),)),
    "pattern": _pattern,
    "minimum": _range,
    "maximum": _range,
    "minItems": _too_few,
    "minProperties": _too_few,
    "maxItems": _too_many,
    "maxProperties": _too_many,
    "uniqueItems": _repeated,
}
