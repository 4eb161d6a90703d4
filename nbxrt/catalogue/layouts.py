"""Whether structures, numbers and versions hold together: fields inside, numbers once, ranges in a row."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.diagnostics import did_you_mean, listed, quoted
from nbxrt.catalogue.forms import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
    bounds = _said(_range(layout))
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


# Versions

Version = tuple[int, ...]


@attrs.frozen
class _Range:
    since: Version | None
    before: Version | None

    @property
    def is_everything(self) -> bool:
        return self.since is None and self.before is None

    @property
    def is_empty(self) -> bool:
        return self.since is not None and self.before is not None and self.since >= self.before

    def overlaps(self, other: _Range) -> bool:
        if self.is_empty or other.is_empty:
            return False
        return _is_below(self.since, other.before) and _is_below(other.since, self.before)


def _is_below(since: Version | None, before: Version | None) -> bool:
    return since is None or before is None or since < before


def _range(spec: dict[str, Any]) -> _Range:
    return _Range(_version(spec.get("since")), _version(spec.get("before")))


def _version(written: str | int | None) -> Version | None:
    """A version as numbers, without zeros at the end: `12` and `"12.0"` are the same one."""
    if written is None:
        return None
    parts = [int(part) for part in str(written).split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _said(span: _Range) -> str:
    since = f"from {_text(span.since)}" if span.since else ""
    before = f"before {_text(span.before)}" if span.before else ""
    return " ".join(filter(None, (since, before)))


def _text(version: Version) -> str:
    return ".".join(map(str, version if len(version) > 1 else (*version, 0)))


def check_versions(subject: Subject) -> Iterator[Diagnostic]:
    """The ranges of variants neither overlap nor leave a hole, on any system."""
    platforms = subject.value("platforms")
    for group in _variant_lists(subject):
        yield from _empty_ranges(subject, group)
        for platform in platforms if isinstance(platforms, list) else ():
            applying = [(path, spec) for path, spec in group if _is_for(spec, platform)]
            yield from _order_faults(subject, applying)
            yield from _holes(subject, applying)


def _variant_lists(subject: Subject) -> Iterator[list[tuple[Path, dict[str, Any]]]]:
    for section in ("operations", "structs", "enums"):
        for name, entries in subject.section(section).items():
            if isinstance(entries, list):
                found = subject.entries((section, name), entries)
                yield [(path, {"call": entry} if isinstance(entry, str) else entry) for path, entry in found]


def _is_for(spec: dict[str, Any], platform: str) -> bool:
    wanted = spec.get("platform", platform)
    return platform in wanted if isinstance(wanted, list) else platform == wanted


def _empty_ranges(subject: Subject, group: Iterable[tuple[Path, dict[str, Any]]]) -> Iterator[Diagnostic]:
    for path, spec in group:
        if _range(spec).is_empty:
            yield subject.diagnostic(path, "empty-range", f"no version is {_said(_range(spec))}")


def _order_faults(subject: Subject, group: Sequence[tuple[Path, dict[str, Any]]]) -> Iterator[Diagnostic]:
    """Variants that an earlier one hides, in whole or in part."""
    for later, (path, spec) in enumerate(group):
        for earlier_path, earlier in group[:later]:
            if _may_precede(earlier, spec) or not _range(earlier).overlaps(_range(spec)):
                continue
            related = (subject.related(earlier_path, "the earlier one is"),)
            if _range(earlier).is_everything:
                message = "this variant is never reached: an earlier one takes every version"
                yield subject.diagnostic(path, "unreachable-variant", message, related=related)
            elif not _range(spec).is_everything:
                message = f"the versions {_said(_range(spec))} overlap those {_said(_range(earlier))}"
                yield subject.diagnostic(path, "overlapping-versions", message, related=related)


def _may_precede(earlier: dict[str, Any], later: dict[str, Any]) -> bool:
    """Whether the earlier of two variants leaves something to the later one of the same versions.

    It may be for fewer systems or one model of device, or call a symbol that not every library exports.
    """
    if any(key in earlier and earlier[key] != later.get(key) for key in ("platform", "model")):
        return True
    if "steps" in earlier:
        return _range(earlier).is_everything and earlier["steps"] != later.get("steps")
    is_other = (earlier.get("call"), earlier.get("library")) != (later.get("call"), later.get("library"))
    return "call" in earlier and is_other and _range(earlier).is_everything


def _holes(subject: Subject, group: Sequence[tuple[Path, dict[str, Any]]]) -> Iterator[Diagnostic]:
    if any(_range(spec).is_everything for _path, spec in group):
        return
    ordered = sorted(((_range(spec), path) for path, spec in group), key=lambda each: each[0].since or ())
    for (one, _one_path), (other, path) in pairwise(ordered):
        if one.before is not None and other.since is not None and one.before < other.since:
            message = f"nothing is said of the versions {_said(_Range(one.before, other.since))}"
            yield subject.diagnostic(path, "version-hole", message)


def check_required(subject: Subject) -> Iterator[Diagnostic]:
    """An operation that every backend has is there on every system that the file is written for."""
    platforms = subject.value("platforms")
    for name, entries in subject.section("operations").items():
        operation = subject.contract.operations.get(name)
        if operation is None or not operation.required:
            continue
        specs = [
            each if isinstance(each, dict) else {} for _path, each in subject.entries(("operations", name), entries)
        ]
        for platform in platforms if isinstance(platforms, list) else ():
            if not any(_is_for(spec, platform) for spec in specs):
                message = f"`{name}` is required, and nothing is said of it for `{platform}`"
                hint = f"add a variant for `{platform}`, or drop `{platform}` from `platforms`"
                yield subject.diagnostic(("operations", name), "required-operation", message, at="key", hint=hint)


def check_versions_are_known(subject: Subject) -> Iterator[Diagnostic]:
    """Variants by version need a library that can tell its version, by a call or by the file's name."""
    users: dict[str, list[tuple[Path, str]]] = {}
    for variant in subject.variants():
        role, library = subject.library(subject.role_of(variant))
        if not _range(dict(variant.spec)).is_everything and library is not None and not _tells_version(library):
            users.setdefault(role, []).append((variant.path, variant.operation.name))
    for role, found in users.items():
        says = f"the library `{role}` has neither `version` nor majors, and USERS differ(s) by version"
        facts = subject.lacking(found, says, of=("libraries", role))
        yield subject.diagnostic(found[0][0], "unknown-version", **facts, at="key")


def _tells_version(library: dict[str, Any]) -> bool:
    return "version" in library or all("major" in name for name in library.get("names", ({},)))


def check_digits(subject: Subject) -> Iterator[Diagnostic]:
    """The divisors of a version go down: each takes apart what the one before it has left."""
    for role, library in subject.section("libraries").items():
        for key in ("version", "driver_version"):
            digits = library.get(key, {}).get("digits", ())
            for index, (one, other) in enumerate(pairwise(digits), 1):
                if other >= one:
                    path = ("libraries", role, key, "digits", index)
                    message = f"the divisor {other} is not below {one}, which stands before it"
                    hint = "the largest comes first: with `[1000, 10]`, 12090 is 12.9"
                    yield subject.diagnostic(path, "out-of-range", message, hint=hint)


def check_platforms(subject: Subject) -> Iterator[Diagnostic]:
    """A variant is for a system that the file is written for."""
    platforms = subject.value("platforms")
    for variant in subject.variants():
        path = (*variant.path, "platform")
        if "platform" not in variant.spec or not isinstance(platforms, list) or subject.is_inherited(path):
            continue  # a file may leave a system out of those that its base is for
        if not any(_is_for(dict(variant.spec), platform) for platform in platforms):
            message = f"the file is not written for {listed(_listed(variant.spec['platform']), 'or')}"
            related = (subject.related(("platforms",), "`platforms` is"),)
            yield subject.diagnostic(path, "unreachable-variant", message, related=related)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    check_fields,
    check_struct_uses,
    check_by_value,
    check_numbers,
    check_versions,
    check_required,
    check_versions_are_known,
    check_digits,
    check_platforms,
)
