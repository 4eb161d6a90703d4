"""A backend file brought to a newer contract: what is new there is added as absent, for its author to look at.

The text is edited at the places that the reader gives, and read again as a proof. A library that loads and dumps YAML
would keep the comments too, but rewrites what it did not mean to: ruamel.yaml makes `[{out: x}]` into `[out: x]` and
moves comments behind anchors, 15 to 50 lines of each file that ships.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue import reading, validation
from nbxrt.errors import DescriptionError, NbxrtError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbxrt.catalogue.contract import Contract, Operation
    from nbxrt.catalogue.document import Document

_BREAK = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


@attrs.frozen
class Upgrade:
    """The new text of a file, the contract that it was written for and is now, and the operations that were added."""

    text: str
    before: int
    now: int
    added: tuple[str, ...]


def upgraded(text: str, contract: Contract, name: str) -> Upgrade:
    """The text of a file, shown as `name`, for the contract; the same text where there is nothing newer.

    A file that extends another gets the contract's number alone: what is new is answered by the one that it extends.
    Raises: DescriptionError for a file that is no YAML or is for no contract that is known, NbxrtError for one that has
    no contract of its own or is written in a way that cannot be edited.
    """
    document = reading.read(text.encode(), name)
    data = document.data if isinstance(document.data, dict) else {}
    if "contract" not in data:
        hint = "what a file extends is what has to be upgraded" if "extends" in data else ""
        raise NbxrtError(f"`{name}` does not say which contract it was written for", hint=hint)
    wrong = [fault for fault in validation.check(document, contract) if fault.path == "contract"]
    if wrong:
        raise DescriptionError(wrong)
    before = data["contract"]
    if before == contract.number:
        return Upgrade(text, before, before, ())
    is_whole = "extends" not in data
    added = [each for each in contract.operations.values() if is_whole and _is_new(each, before, data)]
    edited = _edited(text, document, contract.number, added)
    _prove(edited, data, contract.number, added, name)
    return Upgrade(edited, before, contract.number, tuple(each.name for each in added))


def _is_new(operation: Operation, before: int, data: dict[str, Any]) -> bool:
    """Whether an operation came after a contract, and the file does not answer it, alone or by its group."""
    answers = {*(data.get("operations") or ()), *(data.get("absent") or ())}
    return operation.since > before and not answers & {operation.name, operation.group}


def _reason(operation: Operation) -> str:
    return f"new in contract {operation.since}, not looked at yet"


def _edited(text: str, document: Document, number: int, added: Sequence[Operation]) -> str:
    lines = _LINE.findall(text)
    first = _BREAK.search(text)
    end = first.group() if first else "\n"
    place = document.place(("contract",)).value
    line = lines[place.line - 1]
    lines[place.line - 1] = line[: place.column - 1] + str(number) + line[place.end_column - 1 :]
    if added:
        _insert(lines, document, added, end)
    return "".join(lines)


def _insert(lines: list[str], document: Document, added: Sequence[Operation], end: str) -> None:
    """Add the operations before the first entry of `absent`; comments above that entry stay above them."""
    absent = document.data.get("absent")
    if not absent:
        _begin(lines, document, added, end)
        return
    first = document.place(("absent", next(iter(absent)))).key
    assert first is not None  # noqa: S101  # what stands in a mapping has a key
    line = lines[first.line - 1]
    before, after = line[: first.column - 1], line[first.column - 1 :]
    if before.strip():  # a flow mapping: `absent: {…}`
        entries = "".join(f"{each.name}: {json.dumps(_reason(each))}, " for each in added)
        lines[first.line - 1] = before + entries + after
    else:
        lines[first.line - 1 : first.line - 1] = _entries(added, before, end)


def _begin(lines: list[str], document: Document, added: Sequence[Operation], end: str) -> None:
    """Write the section where the file has none, or an empty one."""
    if "absent" not in document.data:
        if lines and not lines[-1].endswith(("\r", "\n")):
            lines[-1] += end
        lines += [end, f"absent:{end}", *_entries(added, "  ", end)]
        return
    place = document.place(("absent",)).value
    line = lines[place.line - 1]
    lines[place.line - 1] = line[: place.column - 1].rstrip() + line[place.end_column - 1 :]
    lines[place.line : place.line] = _entries(added, "  ", end)


def _entries(added: Sequence[Operation], margin: str, end: str) -> list[str]:
    return [f"{margin}{each.name}: {_reason(each)}   # {each.says}{end}" for each in added]


def _prove(edited: str, data: dict[str, Any], number: int, added: Sequence[Operation], name: str) -> None:
    """Raise an error unless the edited text says what the old one did, and the additions."""
    absent = {**(data.get("absent") or {}), **{each.name: _reason(each) for each in added}}
    wanted = data | {"contract": number} | ({"absent": absent} if absent else {})
    found = reading.scan(edited.encode(), name)
    if found.diagnostics or found.document is None or found.document.data != wanted:
        lines = "".join(f"\n  {each.name}: {_reason(each)}" for each in added)
        raise NbxrtError(f"`{name}` is written in a way that cannot be edited", hint=f"add to `absent` by hand:{lines}")
