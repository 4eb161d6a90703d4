"""Keys that are unknown or missing, put together once all of a file's are known.

A misspelt key is unknown and missing at once to the schema, and one mistake to the person who made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue import advice, schema_parts
from nbxrt.catalogue.diagnostics import Diagnostic, did_you_mean, listed, nearest, quoted
from nbxrt.catalogue.forms import C_TYPES
from nbxrt.catalogue.schema_extends import REQUIRED
from nbxrt.catalogue.verbs import VERBS
from nbxrt.catalogue.wrong_values import without_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbxrt.catalogue.contract import Contract
    from nbxrt.catalogue.document import Document, Path


@attrs.frozen
class Unknown:
    """A key that its form does not have, and the keys that it has."""

    path: Path
    key: str
    title: str
    known: tuple[str, ...]


@attrs.frozen
class Missing:
    """A key that its form must have."""

    path: Path
    key: str
    title: str


# Forms of which a key must tell the kind, and those keys.
CHOICES: dict[str, tuple[str, ...]] = {
    "an operation": ("call", "value", "same", "policy", "steps"),
    "a step": tuple(VERBS),
    "a search step": ("package", "environment", "root"),
    "a `struct` argument": ("by_pointer", "by_value", "out"),
    "a library name": schema_parts.PLATFORMS,
    "a device probe": ("bits", "equals", "has"),
}


def told(
    unknown: Iterable[Unknown], missing: Iterable[Missing], document: Document, contract: Contract
) -> Iterator[Diagnostic]:
    """The faults behind unknown and missing keys."""
    yield from (_unknown_key(each, document, contract) for each in _without_heads(unknown))
    yield from _missing_keys(_not_misspelt(missing, unknown, contract), document, contract)


def _without_heads(unknown: Iterable[Unknown]) -> Iterator[Unknown]:
    """What is unknown, less what stands beside a misspelt key that tells the form: what the others are is not known."""
    misspelt = {each.path for each in unknown if each.title == "an argument" and nearest(each.key, each.known)}
    return (each for each in unknown if each.path not in misspelt or nearest(each.key, each.known))


def _unknown_key(unknown: Unknown, document: Document, contract: Contract) -> Diagnostic:
    if unknown.path == ("absent",) and unknown.key in contract.operations:
        return _required_absent(unknown.key, f"`{unknown.key}` is required, and cannot be absent", document)
    is_group = unknown.path == ("operations",) and unknown.key in contract.groups
    group = f"`{unknown.key}` is a group of operations, which stands under `absent`" if is_group else ""
    reference, message = _SECTIONS.get(unknown.path, ("unknown-key", f"unknown key {{}} in {unknown.title}"))
    few = len(unknown.known) <= _LABELLED
    return document.diagnostic(
        (*unknown.path, unknown.key),
        reference,
        message.format(quoted(unknown.key)),
        at="key",
        label=f"known here: {listed(unknown.known)}" if few else "",
        hint=group
        or advice.for_key(unknown.path, unknown.key, _AT_THE_TOP)
        or did_you_mean(unknown.key, _names(unknown, contract)),
    )


def _required_absent(name: str, message: str, document: Document) -> Diagnostic:
    is_bound = "extends" in document.data or name in (document.data.get("operations") or ())
    hint = "drop this line: it is bound" if is_bound else _TO_BIND
    return document.diagnostic(("absent", name), "required-operation", message, at="key", hint=hint)


#: No backend is without its required operations.
_TO_BIND = (
    "bind what is required under `operations`; where the vendor has no such call it may be a constant or a policy"
)


def _names(unknown: Unknown, contract: Contract) -> Iterable[str]:
    """The names that may have been meant: a required operation too where it cannot stand."""
    return (*contract.groups, *contract.operations) if unknown.path == ("absent",) else unknown.known


_LABELLED = 12
_AT_THE_TOP = ("contract", "extends", *REQUIRED, "structs", "enums", "absent", "presence", "needs", "triton")
_SECTIONS: dict[Path, tuple[str, str]] = {
    ("operations",): ("unknown-operation", "unknown operation {}"),
    ("absent",): ("unknown-operation", "unknown operation or group {}"),
    ("needs",): ("unknown-operation", "unknown operation or group {}"),
    ("enums",): ("unknown-enum", "unknown enum {}"),
    ("libraries",): ("unknown-role", "unknown library role {}"),
}


def _not_misspelt(missing: Iterable[Missing], unknown: Iterable[Unknown], contract: Contract) -> list[Missing]:
    """What is missing, less what stands there misspelt and is told as unknown."""
    meant = {where_and_key for each in unknown for where_and_key in _meant(each, contract)}
    told = {each.path for each in unknown if nearest(each.key, CHOICES.get(each.title, ()))}
    return [
        each
        for each in missing
        if (each.path, each.key) not in meant and not (each.title in CHOICES and each.path in told)
    ]


def _meant(unknown: Unknown, contract: Contract) -> Iterator[tuple[Path, str]]:
    near = nearest(unknown.key, _names(unknown, contract))
    yield unknown.path, near
    if unknown.path == ("absent",):
        yield ("operations",), near
        yield from ((("operations",), each.name) for each in contract.operations.values() if each.group == near)


def _missing_keys(missing: list[Missing], document: Document, contract: Contract) -> Iterator[Diagnostic]:
    operations = [each.key for each in missing if each.path == ("operations",)]
    yield from _missing_operations(operations, document, contract)
    forms = dict.fromkeys((each.path, each.title) for each in missing if each.path != ("operations",))
    for path, title in forms:
        keys = [each.key for each in missing if (each.path, each.title) == (path, title)]
        if title in CHOICES:
            message = f"{title} needs one of {listed(CHOICES[title], 'or')}"
        elif title == "a call" and path[:1] == ("operations",):
            yield _call_without_arguments(path, document, contract)
            continue
        else:
            message = f"missing key{'s' * (len(keys) > 1)} {listed(keys)} in {title}"
        hint = _C_TYPE if "type" in keys and title.endswith(" argument") else ""
        yield document.diagnostic(path, "missing-key", message, at="key", hint=hint)


_C_TYPE = f"`type` is the C type that is passed: {', '.join(C_TYPES)}"


def _call_without_arguments(path: Path, document: Document, contract: Contract) -> Diagnostic:
    symbol = document.at((*path, "call"))
    first = symbol[0] if isinstance(symbol, list) and symbol else symbol
    facts = without_arguments(contract.operations[str(path[1])], str(first))
    return document.diagnostic(path, "missing-arguments", **facts, at="key")


def _missing_operations(names: list[str], document: Document, contract: Contract) -> Iterator[Diagnostic]:
    """One message an operation; one a group where all of it is missing, as in a file that was just begun.

    Of an absent group only required operations can be missing: they are told where the group is absent.
    """
    absent = document.data.get("absent") if names else None
    facts: dict[str, Any] = {"at": "key", "related": document.nearest(("absent",))}
    for group in contract.groups:
        whole = [operation for operation in contract.operations.values() if operation.group == group]
        gone = [operation for operation in whole if operation.name in names]
        said = listed([operation.name for operation in gone])
        if gone and isinstance(absent, dict) and group in absent:
            message = f"`{group}` is absent, and of it {said} {'is' if len(gone) == 1 else 'are'} required"
            yield _required_absent(group, message, document)
        elif len(gone) == len(whole) > 1:
            message = f"missing operations of group `{group}`: {', '.join(f'`{each.name}`' for each in gone)}"
            needed = [operation.name for operation in gone if operation.required]
            but = f"; {listed(needed)} cannot be absent" if needed else ""
            hint = f"bind them under `operations`, or give a reason for `{group}` under `absent`{but}"
            yield document.diagnostic(("operations",), "missing-operation", message, **facts, hint=hint)
        else:
            for operation in gone:
                message = f"missing operation `{operation.name}`"
                hint = _TO_BIND if operation.required else "bind it under `operations`, or give a reason under `absent`"
                yield document.diagnostic(("operations",), "missing-operation", message, **facts, hint=hint)
