"""A first draft of a backend file, made after another one: complete and valid, with marks at all that must be checked.

What a base says of its own vendor alone (its packages, its PCI number, how it explains codes) is left out and noted.
The names are derived by prefixes.py, and yaml_text.py writes the file.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue import meaning, prefixes, yaml_text
from nbxrt.catalogue.document import Document
from nbxrt.catalogue.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nbxrt.catalogue.contract import Contract, Operation
    from nbxrt.catalogue.prefixes import Renaming

#: The word that stands where the author has something to check.
MARK = "CHECK"

#: The usual name of the schema beside a file, which `nbxrt schema -o` writes.
SCHEMA_FILE = "backend.schema.json"

_LEFT_OUT = ("presence", "triton", "interop", "binaries", "override", "extends", "headers", "evidence")
_NOT_CHECKED = "not checked yet"


@attrs.frozen(eq=False)
class Draft:
    """A new file as data, and what has to be known to explain it.

    `left_out` is what only the base has, by the path at which it is noted.
    """

    data: dict[str, Any]
    base: str
    renaming: Renaming
    left_out: Mapping[str, Sequence[Any]]


def draft(base: Mapping[str, Any], name: str, prefix: str, contract: Contract) -> Draft:
    """A file for the backend `name`, after the data of another one, whose names get the prefix `prefix`."""
    renaming = prefixes.found(base, prefix)
    data = {key: value for key, value in base.items() if key not in _LEFT_OUT and not key.startswith("x-")}
    data |= {"contract": contract.number, "name": name, "title": name.upper(), "priority": base["priority"] + 1}
    left_out: dict[str, list[Any]] = {
        place: [{key: base[key]} for key in keys if key in base] for place, keys in _STANDS_AT.items()
    }
    data["libraries"] = {
        role: _library(library, renaming, left_out, role) for role, library in base["libraries"].items()
    }
    data["structs"] = {renaming.symbol(struct): layout for struct, layout in base.get("structs", {}).items()}
    if "launch" in base:
        calls = {key: renaming.symbol(base["launch"][key]) for key in ("call", "parameters") if key in base["launch"]}
        data["launch"] = base["launch"] | calls
    data["operations"] = {
        each: _symbols(base["operations"][each], renaming) for each in contract.operations if each in base["operations"]
    }
    for section in ("devices", "state", "policies"):
        if section in base:
            data[section] = _symbols(base[section], renaming, section)
    data["absent"] = _absent(base, contract)
    _drop_leftovers(data, contract)
    empty = [section for section in ("structs", "enums", "absent") if section in data and not data[section]]
    return Draft({key: data[key] for key in _ordered(data) if key not in empty}, base["name"], renaming, left_out)


def _drop_leftovers(data: dict[str, Any], contract: Contract) -> None:
    """Take out structures and enums that only operations used which the base turned off."""
    whole = Document("", data, (), ((1, 1, 1), None, None, False), {})
    structs, enums = meaning.used_layouts(Subject.of(whole, contract, ()))
    for section, used in (("structs", structs), ("enums", enums)):
        if section in data:
            data[section] = {name: value for name, value in data[section].items() if name in used}


def _ordered(data: Mapping[str, Any]) -> list[str]:
    """The keys of a file, the three sections that may be new in their usual places."""
    late = ("structs", "messages", "enums", "needs", "operations", "absent")
    return [*(key for key in data if key not in late), *(key for key in late if key in data)]


def _library(
    library: Mapping[str, Any], renaming: Renaming, left_out: dict[str, list[Any]], role: str
) -> dict[str, Any]:
    """A library with the new names, in the order of the base; what tells it from look-alikes is the base's alone."""
    renamed = {key: _symbols(value, renaming, key) for key, value in library.items() if key != "identity"}
    if "names" in library:
        renamed["names"] = _names(library["names"], renaming)
    if "search" in library:
        steps = [_step(step, renaming) for step in library["search"]]
        renamed["search"] = [step for step in steps if step is not None] or ["system"]
        gone = [step for step, new in zip(library["search"], steps, strict=True) if new is None]
        left_out[f"libraries.{role}.search"] = gone
    if "identity" in library:
        left_out[f"libraries.{role}"] = [{"identity": library["identity"]}]
    explains = library.get("status", {}).get("explains")
    if explains:
        renamed["status"] = {key: value for key, value in renamed["status"].items() if key != "explains"}
        left_out[f"libraries.{role}.status"] = [{"explains": explains}]
    if "hint" in library:
        renamed["hint"] = f"{MARK}: say how people get this library"
    return renamed


def _step(step: Any, renaming: Renaming) -> Any:
    """A step of a search with the new names; None for one that has none, and so is the base's alone."""
    if isinstance(step, str):
        return step
    renamed = _names(step, renaming)
    if "environment" in step:
        renamed["environment"] = [new for new in renamed["environment"] if new not in step["environment"]]
    return renamed if any(renamed.get(key) not in (step.get(key), []) for key in ("environment", "root")) else None


def _names(node: Any, renaming: Renaming) -> Any:
    """Names of files, folders and variables, however deep."""
    if isinstance(node, dict):
        return {key: _names(value, renaming) for key, value in node.items()}
    if isinstance(node, list):
        return [_names(each, renaming) for each in node]
    return renaming.name(node) if isinstance(node, str) else node


def _symbols(node: Any, renaming: Renaming, key: str = "call") -> Any:
    """What an operation is bound to, with its symbols and structures renamed."""
    if isinstance(node, dict):
        return {inner: _symbols(value, renaming, inner) for inner, value in node.items()}
    if isinstance(node, list):
        return [_symbols(each, renaming, key) for each in node]
    return renaming.symbol(node) if isinstance(node, str) and key in ("call", "struct", "rows") else node


def _absent(base: Mapping[str, Any], contract: Contract) -> dict[str, str]:
    """Every operation that is not bound, by itself, so that each is looked at."""
    reasons = base.get("absent", {})
    return {
        name: _reason(reasons.get(name, reasons.get(operation.group)), base["name"])
        for name, operation in contract.operations.items()
        if name not in base["operations"]
    }


def _reason(reason: str | None, base: str) -> str:
    return f"{_NOT_CHECKED}; in {base}: {reason}" if reason else _NOT_CHECKED


def rendered(draft: Draft, contract: Contract, signature: Callable[[str], Sequence[str]]) -> str:
    """The file's text; `signature` gives the C declarations of an operation, as it is bound or would usually be."""
    notes = _Notes(draft, contract, signature)
    return "\n".join(f"# {line}".rstrip() for line in notes.head()) + "\n" + yaml_text.written(draft.data, notes)


@attrs.frozen(eq=False)
class _Notes:
    """The comments of a draft: what each part means, and what is to be checked."""

    draft: Draft
    contract: Contract
    signature: Callable[[str], Sequence[str]]

    def __call__(self, path: tuple[str, ...]) -> Sequence[str]:
        if path[0] in ("operations", "absent") and len(path) == 2:
            return self._operation(self.contract.operations[path[1]], is_bound=path[0] == "operations")
        said = [*_wrapped(_SECTIONS.get(path, "").format(base=self.draft.base))]
        if path[0] == "libraries" and len(path) == 2:
            said += _wrapped(f"{MARK}: {_ROLE.format(base=self.draft.base)}")
        return [*said, *self._left_out(self.draft.left_out.get(".".join(path), ()))]

    def head(self) -> list[str]:
        data, base, renaming = self.draft.data, self.draft.base, self.draft.renaming
        pairs = ", ".join(f"{old} to {new}" for old, new in renaming.pairs()) or "none"
        kept = f" Kept, since the new ones cannot be told: {', '.join(renaming.kept)}." if renaming.kept else ""
        return [
            f"yaml-language-server: $schema={SCHEMA_FILE}",
            f"The line above is for editors: `nbxrt schema -o {SCHEMA_FILE}` writes that file beside this one.",
            "",
            *_wrapped(f"A first draft of `{data['name']}`, made after `{base}`. {_HOW_TO_GO_ON}"),
            "",
            *_wrapped(f"{MARK}: the prefixes of names that were changed: {pairs}.{kept}"),
        ]

    def _operation(self, operation: Operation, *, is_bound: bool) -> list[str]:
        mark = MARK if is_bound else "usual C form"
        declarations = [line for each in self.signature(operation.name) for line in _wrapped(f"{mark}: {each}")]
        return [*_wrapped(operation.says), *declarations, *([] if is_bound else [f"{MARK}: is there really none?"])]

    def _left_out(self, parts: Sequence[Any]) -> list[str]:
        if not parts:
            return []
        said = f"{MARK}: left out, since it is of {self.draft.base} alone:"
        return [said, *(f"  {line}" for part in parts for line in _wrapped(_bare(part)))]


_HOW_TO_GO_ON = (
    f"It is complete and valid, and nothing in it is known to be true: compare what stands at each {MARK} with the "
    f"vendor's headers and libraries, then remove the {MARK}. `nbxrt validate FILE` finds what does not hold together, "
    "`nbxrt verify FILE` what the vendor's headers say otherwise, and `nbxrt conform FILE` tries the rest on a device."
)
_ROLE = (
    "names of files, versions and symbols, and where the library is looked for, are those of {base} with the new prefix"
)
_SECTIONS: dict[tuple[str, ...], str] = {
    ("title",): f"{MARK}: the name that people read.",
    ("platforms",): f"{MARK}: the systems on which the vendor's runtime exists.",
    ("priority",): f"{MARK}: the order of detection, lowest first.",
    ("structs",): f"{MARK}: sizes, offsets and constants are those of {{base}}.",
    ("launch",): f"{MARK}: offsets and numbers are those of {{base}}.",
    ("enums",): f"{MARK}: the numbers are those of {{base}}.",
    ("needs",): f"{MARK}: the device attribute that must not be 0.",
    ("operations",): "Each operation with its meaning and the C signature that is assumed of the vendor's function.",
    ("absent",): "Operations that are not offered, each with the reason that a user reads.",
}

# What was left out is noted where an author would put it back.
_STANDS_AT = {"libraries": ("presence",), "platforms": ("triton",), "priority": ("interop", "binaries")}


def _bare(part: Any) -> str:
    """A value on one line; that of a single key as it stands in a file, without braces."""
    if isinstance(part, dict) and len(part) == 1:
        ((key, value),) = part.items()
        return f"{key}: {yaml_text.flow(value)}"
    return yaml_text.flow(part)


def _wrapped(text: str) -> list[str]:
    """A comment's text in lines, those after the first set in; never broken at a no-break space."""
    lines = textwrap.wrap(text, yaml_text.WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
