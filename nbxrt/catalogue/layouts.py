"""Whether structures and numbers hold together: fields inside, numbers once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import did_you_mean, listed, quoted
from nbxrt.catalogue.forms import names_in
from nbxrt.catalogue.ranges import range_of, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject

# Sizes of C types on the 64-bit systems that nbxrt runs on, which are also their alignments.
SIZES = {
    "int": 4,
    "uint": 4,
    "int64": 8,
    "uint64": 8,
    "size": 8,
    "pointer": 8,
    "float": 4,
    "double": 8,
    "uint8": 1,
    "uint16": 2,
}

# Up to this size a structure that is passed by value travels in registers, by the types of its fields.
IN_REGISTERS = 16


# Structures


def check_fields(subject: Subject) -> Iterator[Diagnostic]:
    """Fields lie inside their structure, and constants are fields."""
    for name, path, layout in struct_entries(subject):
        for field, spec in layout.get("fields", {}).items():
            end = spec[0] + _size(spec)
            if end > layout["bytes"]:
                message = (
                    f"the field {quoted(field)} ends at byte {end}, and {quoted(name)} has {layout['bytes']} bytes"
                )
                size = f", {spec[2]} bytes" if len(spec) > 2 else ""
                where, label = (*path, "fields", field), f"at {spec[0]}, of type {spec[1]}{size}"
                related = (
                    subject.related((*where, 0), "it begins"),
                    subject.related((*path, "bytes"), "the size stands"),
                )
                facts: dict[str, Any] = {"label": label, "related": related}
                yield subject.diagnostic(where, "field-outside-struct", message, at="key", **facts)
        for field in layout.get("constants", {}):
            if field not in layout.get("fields", {}):
                facts = _unknown_field(name, field, layout)
                yield subject.diagnostic((*path, "constants", field), "unknown-field", **facts, at="key")


def check_struct_uses(subject: Subject) -> Iterator[Diagnostic]:
    """A structure that a call names is described, with the fields that the call uses."""
    structs = subject.mapping("structs")
    users: dict[str, list[tuple[Path, str]]] = {}
    for variant in subject.invocations():
        if "args" not in variant.spec:
            continue
        for path, argument in variant.arguments():
            for each in names_in(argument):
                if each.role == "struct" and each.name not in structs:
                    users.setdefault(each.name, []).append(((*path, *each.path), variant.operation.name))
            if isinstance(argument, dict):
                yield from _field_faults(subject, path, argument)
    for name, found in users.items():
        says = f"{quoted(name)} is not among the file's `structs`, and USERS use(s) it"
        facts = subject.lacking(found, says, of=("structs",))
        yield subject.diagnostic(found[0][0], "unknown-struct", **facts, hint=did_you_mean(name, structs))


def _field_faults(subject: Subject, path: Path, argument: dict[str, Any]) -> Iterator[Diagnostic]:
    name = argument.get("struct", argument.get("rows"))
    layouts = [layout for struct, _path, layout in struct_entries(subject) if struct == name]
    for where, field, at in _fields_used(path, argument):
        lacking = next((layout for layout in layouts if field not in layout.get("fields", {})), None)
        if lacking is not None:
            facts = _unknown_field(str(name), field, lacking)
            related = subject.nearest("structs", str(name))
            yield subject.diagnostic(where, "unknown-field", **facts, at=at, related=related)


def _fields_used(path: Path, argument: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """Path, field and whether the field stands at the key or the value of that path."""
    for key in ("by_pointer", "by_value"):
        if isinstance(argument.get(key), dict):
            yield from (((*path, key, field), field, "key") for field in argument[key])
    if "struct" in argument and isinstance(argument.get("out"), dict):
        yield from (((*path, "out", result), field, "value") for result, field in argument["out"].items())
    if "rows" in argument:
        yield from (((*path, "fields", index), field, "value") for index, field in enumerate(argument["fields"]))


def _unknown_field(struct: str, field: str, layout: dict[str, Any]) -> dict[str, str]:
    known = [*layout.get("fields", {})]
    bounds = said(range_of(layout))
    return {
        "message": f"{quoted(struct)} has no field {quoted(field)}{f' {bounds}' if bounds else ''}",
        "label": f"it has {listed(known)}" if known else "its fields are not described",
        "hint": did_you_mean(field, known),
    }


def check_by_value(subject: Subject) -> Iterator[Diagnostic]:
    """A small structure that is passed by value lists every field."""
    by_value = {
        argument["struct"]
        for variant in subject.invocations()
        for _path, argument in variant.arguments()
        if isinstance(argument, dict) and "by_value" in argument
    }
    for name, path, layout in struct_entries(subject):
        if name in by_value and layout["bytes"] <= IN_REGISTERS:
            gap = _first_gap(layout)
            if gap is not None:
                size = f"{layout['bytes']} byte{'s' * (layout['bytes'] != 1)}"
                message = f"{quoted(name)}, of {size}, is passed by value in registers; nothing is said of byte {gap}"
                hint = f"list every field: the types decide the registers of a structure of up to {IN_REGISTERS} bytes"
                size_at = subject.related((*path, "bytes"), "the size stands")
                yield subject.diagnostic(path, "incomplete-struct", message, at="key", related=(size_at,), hint=hint)


def _first_gap(layout: dict[str, Any]) -> int | None:
    """The first byte that is neither in a field nor padding before one or at the end."""
    end, widest = 0, 1
    for spec in sorted(layout.get("fields", {}).values(), key=lambda each: each[0]):
        alignment = SIZES.get(spec[1], 1)
        if spec[0] > _aligned(end, alignment):
            return end
        end, widest = max(end, spec[0] + _size(spec)), max(widest, alignment)
    return end if layout["bytes"] > _aligned(end, widest) else None


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _size(spec: Sequence[Any]) -> int:
    return int(spec[2]) if len(spec) > 2 else SIZES[spec[1]]


def struct_entries(subject: Subject) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Name, path and layout of every sound structure, in all its ranges of versions."""
    for name, layouts in subject.mapping("structs").items():
        for path, layout in subject.entries(("structs", name), layouts):
            yield name, path, layout


# Numbers


def check_numbers(subject: Subject) -> Iterator[Diagnostic]:
    """Two words of an enum are two numbers, two flags two bits."""
    for _name, path, entry in _enums(subject):
        seen: dict[int, str] = {}
        here = (*path, "words") if "words" in entry else path
        for word, number in entry.get("words", entry).items():
            first = seen.setdefault(number, word)
            if first != word:
                message = f"the number {number} is `{first}` already"
                related = (subject.related((*here, first), "there"),)
                yield subject.diagnostic((*here, word), "duplicate-number", message, related=related)


def _enums(subject: Subject) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    for name, entries in subject.mapping("enums").items():
        for path, entry in subject.entries(("enums", name), entries):
            yield name, path, entry


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    check_fields,
    check_struct_uses,
    check_by_value,
    check_numbers,
)
