"""Whether variants are there for every version and every system, in a row: none hidden, none twice, none missing."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.diagnostics import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject

Version = tuple[int, ...]


@attrs.frozen
class Range:
    """Versions from `since`, which is included, to `before`, which is not."""

    since: Version | None
    before: Version | None

    @property
    def is_everything(self) -> bool:
        return self.since is None and self.before is None

    @property
    def is_empty(self) -> bool:
        return self.since is not None and self.before is not None and self.since >= self.before

    def overlaps(self, other: Range) -> bool:
        if self.is_empty or other.is_empty:
            return False
        return _is_below(self.since, other.before) and _is_below(other.since, self.before)


def _is_below(since: Version | None, before: Version | None) -> bool:
    return since is None or before is None or since < before


def range_of(spec: Mapping[str, Any]) -> Range:
    """The versions that a variant, a layout or numbers are for."""
    return Range(_version(spec.get("since")), _version(spec.get("before")))


def _version(written: str | int | None) -> Version | None:
    """A version as numbers, without zeros at the end: `12` and `"12.0"` are the same one."""
    if written is None:
        return None
    parts = [int(part) for part in str(written).split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def said(span: Range) -> str:
    """A range in words, empty for every version."""
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
        if range_of(spec).is_empty:
            yield subject.diagnostic(path, "empty-range", f"no version is {said(range_of(spec))}")


def _order_faults(subject: Subject, group: Sequence[tuple[Path, dict[str, Any]]]) -> Iterator[Diagnostic]:
    """Variants that an earlier one hides, in whole or in part."""
    for later, (path, spec) in enumerate(group):
        for earlier_path, earlier in group[:later]:
            if _may_precede(earlier, spec) or not range_of(earlier).overlaps(range_of(spec)):
                continue
            related = (subject.related(earlier_path, "the earlier one is"),)
            if range_of(earlier).is_everything:
                message = "this variant is never reached: an earlier one takes every version"
                yield subject.diagnostic(path, "unreachable-variant", message, related=related)
            elif not range_of(spec).is_everything:
                message = f"the versions {said(range_of(spec))} overlap those {said(range_of(earlier))}"
                yield subject.diagnostic(path, "overlapping-versions", message, related=related)


def _may_precede(earlier: dict[str, Any], later: dict[str, Any]) -> bool:
    """Whether the earlier of two variants leaves something to the later one of the same versions.

    It may be for fewer systems or one model of device, or call a symbol that not every library exports.
    """
    if any(key in earlier and earlier[key] != later.get(key) for key in ("platform", "model")):
        return True
    if "steps" in earlier:
        return range_of(earlier).is_everything and earlier["steps"] != later.get("steps")
    is_other = (earlier.get("call"), earlier.get("library")) != (later.get("call"), later.get("library"))
    return "call" in earlier and is_other and range_of(earlier).is_everything


def _holes(subject: Subject, group: Sequence[tuple[Path, dict[str, Any]]]) -> Iterator[Diagnostic]:
    if any(range_of(spec).is_everything for _path, spec in group):
        return
    ordered = sorted(((range_of(spec), path) for path, spec in group), key=lambda each: each[0].since or ())
    for (one, _one_path), (other, path) in pairwise(ordered):
        if one.before is not None and other.since is not None and one.before < other.since:
            message = f"nothing is said of the versions {said(Range(one.before, other.since))}"
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
        if not range_of(variant.spec).is_everything and library is not None and not _tells_version(library):
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
    check_versions,
    check_required,
    check_versions_are_known,
    check_digits,
    check_platforms,
)
