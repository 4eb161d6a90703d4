"""Whether schema/operations.yaml holds together: its shape first, then that every name in it is known.

A fault here is a fault of nbxrt itself, so the sentences are short.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import Diagnostic, did_you_mean, listed
from nbxrt.catalogue.forms import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.document import Document

ROLES = ("runtime", "driver", "management", "collectives")

# The C types of contract types: those of forms.py, and the two that Python objects travel as.
_C_TYPES = ("pointer", "size", "int", "uint", "int64", "uint64", "float", "double", "text", "bytes")
_ZEROS = ("skips", "refused")

# YAML 1.1 readers, PyYAML among them, take these for booleans or null, so a file would mean two things.
_MISREAD = re.compile(r"y|n|yes|no|on|off|true|false|null|~", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")


def check(document: Document) -> tuple[Diagnostic, ...]:
    """Every fault of a contract, in order of place."""
    faults = tuple(_check_shape(document)) or tuple(fault for ask in _QUESTIONS for fault in ask(document))
    return tuple(sorted(faults))


# What the entries of each section hold: required keys, then optional ones, each with the Python type of its value.
_SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "types": ({"c": str, "says": str}, {"zero": str}),
    "enums": ({"says": str, "words": dict}, {"numbered": bool}),
    "flags": ({"says": str, "words": dict}, {}),
    "errors": ({"says": str}, {"is": str, "raises": str, "sticky": bool}),
    "groups": ({"library": str, "says": str}, {}),
    "operations": (
        {"group": str, "says": str, "takes": dict, "gives": dict},
        {
            "c": list,
            "since": int,
            "required": bool,
            "never_waits": bool,
            "released_by": str,
            "errors": list,
            "tolerates": list,
            "done": str,
            "zero_on": str,
            "answers": str,
        },
    ),
}
_PARAMETER_SHAPE: tuple[dict[str, Any], dict[str, Any]] = ({"type": str}, {"zero": str, "default": object})


def _check_shape(document: Document) -> Iterator[Diagnostic]:
    required = {"contract": int, **dict.fromkeys(_SHAPES, dict)}
    yield from (top := list(_entry_faults(document, (), required, {})))
    if top:
        return
    for section, (needed, optional) in _SHAPES.items():
        for name in document.data[section]:
            yield from (faults := list(_entry_faults(document, (section, name), needed, optional)))
            if section == "operations" and not faults:
                yield from _parameter_faults(document, name)


def _parameter_faults(document: Document, operation: str) -> Iterator[Diagnostic]:
    for side in ("takes", "gives"):
        for name, entry in document.data["operations"][operation][side].items():
            if not isinstance(entry, str):
                yield from _entry_faults(document, ("operations", operation, side, name), *_PARAMETER_SHAPE)


def _entry_faults(
    document: Document, path: tuple[str, ...], needed: dict[str, Any], optional: dict[str, Any]
) -> Iterator[Diagnostic]:
    entry = document.at(path)
    if not isinstance(entry, dict):
        yield document.diagnostic(path, "wrong-type", "a mapping is expected here")
        return
    known = {**needed, **optional}
    for key in needed.keys() - entry.keys():
        yield document.diagnostic(path, "missing-key", f"missing key `{key}`", at="key")
    for key, value in entry.items():
        if key not in known:
            hint = did_you_mean(key, known)
            yield document.diagnostic((*path, key), "unknown-key", f"unknown key `{key}`", at="key", hint=hint)
        elif not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
            yield document.diagnostic((*path, key), "wrong-type", f"`{key}` holds the wrong type of value")


def _check_words(document: Document) -> Iterator[Diagnostic]:
    """Names that YAML readers disagree about, or that are no identifiers."""
    data = document.data
    paths: list[tuple[str, ...]] = [(section, name) for section in _SHAPES for name in data[section]]
    paths += [
        (section, name, "words", word)
        for section in ("enums", "flags")
        for name in data[section]
        for word in data[section][name]["words"]
    ]
    paths += [
        ("operations", name, side, parameter)
        for name, entry in data["operations"].items()
        for side in ("takes", "gives")
        for parameter in entry[side]
    ]
    for path in paths:
        if _MISREAD.fullmatch(path[-1]):
            message = f"`{path[-1]}` is a boolean or null to some YAML readers: it cannot be a word"
            yield document.diagnostic(path, "misread-word", message, at="key")
        elif not _IDENTIFIER.fullmatch(path[-1]):
            yield document.diagnostic(path, "bad-name", f"`{path[-1]}` is not a lower-case name", at="key")


def _check_references(document: Document) -> Iterator[Diagnostic]:
    """Values that must be names of something else."""
    data = document.data
    types = [*data["types"], *data["enums"]]
    for name, entry in data["types"].items():
        yield from _unknown(document, ("types", name, "c"), _C_TYPES, "C type")
        if "zero" in entry:
            yield from _unknown(document, ("types", name, "zero"), _ZEROS, "meaning of zero")
    for name, entry in data["errors"].items():
        if "is" in entry:
            yield from _unknown(document, ("errors", name, "is"), data["errors"], "error")
    for name in data["groups"]:
        yield from _unknown(document, ("groups", name, "library"), ROLES, "library role")
    for name, entry in data["operations"].items():
        yield from _unknown(document, ("operations", name, "group"), data["groups"], "group")
        yield from _operation_references(document, name, entry, types)


def _operation_references(
    document: Document, name: str, entry: dict[str, Any], types: list[str]
) -> Iterator[Diagnostic]:
    here = ("operations", name)
    known = {"released_by": document.data["operations"], "answers": entry["gives"]}
    known |= dict.fromkeys(("done", "zero_on"), document.data["errors"])
    for key in known.keys() & entry.keys():
        yield from _unknown(document, (*here, key), known[key], key)
    for key in ("errors", "tolerates"):
        for index in range(len(entry.get(key, ()))):
            yield from _unknown(document, (*here, key, index), document.data["errors"], "error")
    for side in ("takes", "gives"):
        for parameter, spec in entry[side].items():
            where = (*here, side, parameter)
            yield from _unknown(document, where if isinstance(spec, str) else (*where, "type"), types, "type")
            if isinstance(spec, dict) and "zero" in spec:
                yield from _unknown(document, (*where, "zero"), _ZEROS, "meaning of zero")


def _unknown(document: Document, path: tuple[str | int, ...], known: Any, what: str) -> Iterator[Diagnostic]:
    value: Any = document.at(path)
    if value not in known:
        hint = did_you_mean(str(value), known)
        yield document.diagnostic(path, "unknown-name", f"unknown {what} `{value}`", hint=hint)


def _check_numbers(document: Document) -> Iterator[Diagnostic]:
    number = document.data["contract"]
    for name, entry in document.data["operations"].items():
        if not 1 <= entry.get("since", 1) <= number:
            path = ("operations", name, "since")
            yield document.diagnostic(path, "bad-number", f"`since` is a number of the contract, 1 to {number}")
        elif entry.get("since", 1) > 1 and entry.get("required", False):
            message = f"`{name}` came later, and files that were written before it have to open"
            yield document.diagnostic(("operations", name, "required"), "bad-number", message)


def _check_distinct(document: Document) -> Iterator[Diagnostic]:
    """`absent` and `needs` take operations and groups alike, and a type may be an enum."""
    for one, other in (("operations", "groups"), ("enums", "types")):
        for name in document.data[one].keys() & document.data[other].keys():
            message = f"`{name}` is both one of `{one}` and one of `{other}`"
            yield document.diagnostic((one, name), "same-name", message, at="key")


def _check_results(document: Document) -> Iterator[Diagnostic]:
    for name, entry in document.data["operations"].items():
        if "done" in entry and list(entry["gives"].values()) != ["boolean"]:
            yield document.diagnostic(("operations", name, "done"), "bad-done", "`done` needs one boolean result")


def _check_defaults(document: Document) -> Iterator[Diagnostic]:
    for name, entry in document.data["operations"].items():
        for parameter, spec in entry["takes"].items():
            if isinstance(spec, dict) and "default" in spec and not _fits(document.data, spec["type"], spec["default"]):
                path = ("operations", name, "takes", parameter, "default")
                yield document.diagnostic(path, "bad-default", f"the default is not of type `{spec['type']}`")


def _fits(data: dict[str, Any], type_name: str, value: object) -> bool:
    if type_name in data["enums"]:
        return value in data["enums"][type_name]["words"]
    if type_name == "boolean":
        return isinstance(value, bool)
    if type_name == "text":
        return isinstance(value, str)
    return isinstance(value, int) and not isinstance(value, bool)


def _check_orders(document: Document) -> Iterator[Diagnostic]:
    """The usual C order names every parameter and every result, and nothing else."""
    for name, entry in document.data["operations"].items():
        if "c" not in entry:
            continue
        here = ("operations", name, "c")
        named = [(index, each) for index, argument in enumerate(entry["c"]) for each in names_in(argument)]
        for index, each in named:
            known = {"parameter": entry["takes"], "mention": entry["takes"], "result": entry["gives"]}
            words = known.get(each.role, document.data["flags"])
            if each.name not in words:
                message = f"`{each.name}` is no {each.role} of `{name}`"
                hint = did_you_mean(each.name, words)
                yield document.diagnostic((*here, index, *each.path), "unknown-name", message, hint=hint)
        missing = _unnamed(entry, {each.name for _, each in named}, document.data["flags"])
        if missing:
            yield document.diagnostic(here, "incomplete-order", f"`c` of `{name}` does not name {listed(missing)}")


def _unnamed(entry: dict[str, Any], named: set[str], flags: dict[str, Any]) -> list[str]:
    """The parameters that `c` does not pass; and the results, unless the status or the returned value is the result."""
    by_flags = {word for name in named & flags.keys() for word in flags[name]["words"]}
    results = () if "done" in entry or "answers" in entry else entry["gives"]
    return [name for name in (*entry["takes"], *results) if name not in named | by_flags]


_QUESTIONS: tuple[Callable[[Document], Iterator[Diagnostic]], ...] = (
    _check_words,
    _check_references,
    _check_numbers,
    _check_distinct,
    _check_results,
    _check_defaults,
    _check_orders,
)
