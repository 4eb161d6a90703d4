"""What a file's words mean together: what no schema sees. Each question is one function of a table.

signatures.py asks about calls and their arguments, fitting.py about what passes through their types, layouts.py about
structures and numbers, ranges.py about versions and systems, launches.py about the launch, searches.py about where
libraries are found; here are the questions about libraries, and about what is absent, needed or never used.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import (
    evidence,
    explanations,
    fitting,
    identities,
    launches,
    layouts,
    messages,
    minting,
    ranges,
    searches,
    sequences,
    signatures,
)
from nbxrt.catalogue.diagnostics import did_you_mean, listed, quoted
from nbxrt.catalogue.forms import names_in
from nbxrt.catalogue.schema_libraries import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject, Variant


def check(subject: Subject) -> tuple[Diagnostic, ...]:
    """Every fault of meaning in the sound parts of a file."""
    faults = islice((fault for question in CHECKS for fault in question(subject)), MAX_FAULTS)
    return tuple(fault for fault in faults if fault.file == subject.document.name or fault.reference not in LEFTOVERS)


# A file of the largest size may have a fault in every line, which nobody reads to the end.
MAX_FAULTS = 500

# What nothing uses is a mistake in the file that says it, and none in a file that extends that one.
LEFTOVERS = (
    "idle-need", "unreachable-name", "unreachable-step",
    "unused-enum", "unused-message", "unused-role", "unused-struct",
)  # fmt: skip


# Libraries


def check_same_as(subject: Subject) -> Iterator[Diagnostic]:
    """A role that is the same as another needs that other one, in full."""
    libraries = subject.section("libraries")
    for role, library in libraries.items():
        target = library.get("same_as")
        if target is not None and "same_as" in (subject.mapping("libraries", target) or {"same_as": ""}):
            path = ("libraries", role, "same_as")
            message = f"the library `{role}` is the same as `{target}`, which the file does not describe"
            yield subject.diagnostic(path, "unknown-role", message)


def check_roles_exist(subject: Subject) -> Iterator[Diagnostic]:
    """Every call finds its library among the file's."""
    known = subject.mapping("libraries")
    if not known or any(path[:1] == ("libraries",) and path[1:2] not in _ROLES for path in subject.faulty):
        return  # a role that is misspelt may be the one that is called
    users: dict[str, list[tuple[Path, str]]] = {}
    for variant in subject.invocations():
        role = subject.role_of(variant)
        if role not in known:
            path = (*variant.path, "library") if "library" in variant.spec else variant.path
            users.setdefault(role, []).append((path, variant.operation.name))
    launch = subject.mapping("launch")
    role = launch.get("library", "driver")
    if "call" in launch and role not in known and ("launch",) not in subject.broken:
        users.setdefault(role, []).append((("launch", "library" if "library" in launch else "call"), "launch"))
    for role, found in users.items():
        says = f"the file has no library `{role}`, which USERS call(s)"
        hint = f"describe it under `libraries`, or say `library` where it is called: {listed([*known], 'or')}"
        facts = subject.lacking(found, says, of=("libraries",))
        yield subject.diagnostic(found[0][0], "unknown-role", **facts, hint=hint)
    for path, call in _library_calls(subject):
        if "library" in call and call["library"] not in known:
            message = f"the file has no library {quoted(call['library'])}"
            yield subject.diagnostic((*path, "library"), "unknown-role", message)


_ROLES = [(role,) for role in ROLES]
_CALLS = ("version", "driver_version", "init", "enter", "has_context", "close")


def _library_calls(subject: Subject) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    for role, library in subject.section("libraries").items():
        here = ("libraries", role)
        yield from (((*here, key), library[key]) for key in _CALLS if key in library)
        status = library.get("status", {})
        yield from (((*here, "status", key), status[key]) for key in ("clear", "name", "text") if key in status)


def check_status(subject: Subject) -> Iterator[Diagnostic]:
    """A library whose calls return a status says what its codes mean."""
    readers: dict[str, Variant] = {}
    for variant in subject.invocations():
        if signatures.reads_status(variant):
            readers.setdefault(subject.library(subject.role_of(variant))[0], variant)
    for role, variant in readers.items():
        library = subject.section("libraries").get(role)
        if library is not None and "status" not in library and "same_as" not in library:
            message = f"the library `{role}` has no `status`, which `{variant.operation.name}` returns"
            hint = "add `status: {success: 0}`, or say what the calls return instead"
            yield subject.diagnostic(("libraries", role), "missing-status", message, at="key", hint=hint)


def check_library_answers(subject: Subject) -> Iterator[Diagnostic]:
    """A call of a library that is made for an answer gives it."""
    for path, call in _library_calls(subject):
        wanted = _ANSWERS.get(path[-1])
        if wanted is None or any(place[: len(path)] == path for place in subject.broken):
            continue
        by_itself = "text" if wanted == "text" else "code"
        is_usual = "args" not in call and wanted == "version"
        cells = (each for each in call.get("args", ()) if isinstance(each, dict))
        if is_usual or call.get("returns") == by_itself or any(wanted in each.values() for each in cells):
            continue
        message = f"`{path[-1]}` calls {quoted(call['call'])}, and nothing gives `{wanted}`"
        hint = f"`{{out: {wanted}}}` among `args`, or `returns: {by_itself}`"
        yield subject.diagnostic(path, "unbound-result", message, hint=hint)


#: What calls of a library give.
_ANSWERS = {"version": "version", "driver_version": "version", "has_context": "active", "name": "text", "text": "text"}


def check_answers(subject: Subject) -> Iterator[Diagnostic]:
    """An operation whose answer is a status needs that status among the library's kinds."""
    users: dict[tuple[str, str], list[tuple[Path, str]]] = {}
    for variant in subject.calls():
        kind = variant.operation.done
        role, library = subject.library(subject.role_of(variant))
        if kind is None or library is None or "status" not in library or not signatures.answers_by_status(variant):
            continue
        if kind not in library["status"].get("kinds", {}):
            users.setdefault((role, kind), []).append((variant.path, variant.operation.name))
    for (role, kind), found in users.items():
        says = f"`{role}` has no code for the status `{kind}`, by which USERS answer(s)"
        hint = f"add `{kind}` to `libraries.{role}.status.kinds`, or make the result with `result`"
        facts = subject.lacking(found, says, of=("libraries", role, "status"))
        yield subject.diagnostic(found[0][0], "missing-kind", **facts, at="key", hint=hint)


def check_tolerated(subject: Subject) -> Iterator[Diagnostic]:
    """What a library's first call tolerates has a code in that library."""
    for role, library in subject.section("libraries").items():
        known = library.get("status", {}).get("kinds", {})
        for index, kind in enumerate(library.get("init", {}).get("tolerates", ())):
            if kind not in known:
                message = f"`init` tolerates `{kind}`, which `{role}` has no code for"
                hint = f"add `{kind}` to `libraries.{role}.status.kinds`"
                path = ("libraries", role, "init", "tolerates", index)
                yield subject.diagnostic(path, "missing-kind", message, hint=hint)


def check_kinds(subject: Subject) -> Iterator[Diagnostic]:
    """A status code means one thing."""
    for role, library in subject.section("libraries").items():
        status = library.get("status", {})
        here = ("libraries", role, "status")
        seen: dict[int, tuple[str, Path]] = {}
        if "success" in status:
            seen[status["success"]] = "success", (*here, "success")
        for kind, codes in status.get("kinds", {}).items():
            for path, code in subject.entries((*here, "kinds", kind), codes):
                first, there = seen.setdefault(code, (kind, path))
                if there != path:
                    related = (subject.related(there, "there"),)
                    message = f"the code {code} is `{first}` already"
                    yield subject.diagnostic(path, "duplicate-number", message, related=related)


def check_platforms(subject: Subject) -> Iterator[Diagnostic]:
    """The runtime has a file name on every system that the file is written for."""
    library = subject.section("libraries").get("runtime", {})
    platforms = subject.value("platforms")
    if "names" not in library or "process" in library.get("search", ()) or not isinstance(platforms, list):
        return
    for index, platform in enumerate(platforms):
        if not any(platform in name for name in library["names"]):
            message = f"the library `runtime` has no file name for `{platform}`"
            related = subject.nearest("libraries", "runtime", "names")
            yield subject.diagnostic(("platforms", index), "missing-library-name", message, related=related)


# What is absent, needed or not used


def check_absent(subject: Subject) -> Iterator[Diagnostic]:
    """Nothing is absent and bound. A reason of its own beside its group's is fine: it says more."""
    absent = subject.section("absent")
    bound = subject.mapping("operations")
    for name in absent:
        operation = subject.contract.operations.get(name)
        if operation is None:
            yield from _idle_group(subject, name, bound)
        elif name in bound:
            message = f"`{name}` is absent and bound"
            bound_at = subject.related(("operations", name), "bound")
            yield subject.diagnostic(("absent", name), "bound-and-absent", message, at="key", related=(bound_at,))
        elif absent[name] == absent.get(operation.group):
            message = f"`{name}` is absent by itself and by its group `{operation.group}`, with the same reason"
            yield subject.diagnostic(("absent", name), "absent-twice", message, at="key")


def _idle_group(subject: Subject, group: str, bound: dict[str, Any]) -> Iterator[Diagnostic]:
    members = [each.name for each in subject.contract.operations.values() if each.group == group]
    if members and all(name in bound for name in members):
        message = f"the group `{group}` is absent, and all of it is bound"
        yield subject.diagnostic(("absent", group), "bound-and-absent", message, at="key")


def check_needs(subject: Subject) -> Iterator[Diagnostic]:
    """An attribute that an operation needs has a number, and the operation or one of its group is bound."""
    bound = [each for name, each in subject.contract.operations.items() if name in subject.mapping("operations")]
    written = subject.mapping("enums").get("device_attribute", {})
    entries = subject.entries(("enums", "device_attribute"), written)
    mapped = {word for _path, entry in entries for word in entry.get("words", entry)}
    is_known = ("enums", "device_attribute") not in subject.broken  # or what else it has is not known
    for name, attribute in subject.section("needs").items():
        if is_known and attribute not in mapped:
            message = f"`{name}` needs the attribute `{attribute}`, which `enums.device_attribute` does not map"
            hint = did_you_mean(attribute, mapped)
            related = subject.nearest("enums", "device_attribute")
            yield subject.diagnostic(("needs", name), "unmapped-attribute", message, related=related, hint=hint)
        if bound and not any(name in (each.name, each.group) for each in bound):
            message = f"`{name}` is not offered, so nothing needs the attribute `{attribute}`"
            hint = f"bind `{name}` under `operations`, or drop this line"
            yield subject.diagnostic(("needs", name), "idle-need", message, at="key", hint=hint)


def check_unused_roles(subject: Subject) -> Iterator[Diagnostic]:
    """A library that nothing calls is a leftover. Without `runtime` nothing opens; in `objc` `driver` carries all."""
    if any(path[:1] in (("operations",), ("libraries",), ("abi",)) for path in subject.broken):
        return
    roles = {subject.role_of(variant) for variant in subject.invocations()}
    roles |= {call["library"] for _path, call in _library_calls(subject) if "library" in call}
    served = {subject.library(role)[0] for role in roles}
    needed = {"runtime"} | ({"driver"} if subject.value("abi") == "objc" else set())
    for role, library in subject.section("libraries").items():
        if role not in roles | served | needed and "same_as" not in library:
            message = f"no operation calls the library `{role}`"
            hint = "drop it, or say `library` where it is called"
            yield subject.diagnostic(("libraries", role), "unused-role", message, at="key", hint=hint)


def check_unused(subject: Subject) -> Iterator[Diagnostic]:
    """A structure or an enum that nothing uses is a leftover, or its user is misspelt."""
    if any(path[:1] == ("operations",) for path in subject.broken):
        return
    structs, enums = used_layouts(subject)
    for section, used in (("structs", structs), ("enums", enums)):
        for name in subject.mapping(section):
            if name not in used and (section, name) not in subject.broken:
                message = f"{quoted(name)} is used by no operation"
                yield subject.diagnostic((section, name), f"unused-{section[:-1]}", message, at="key")


def used_layouts(subject: Subject) -> tuple[set[str], set[str]]:
    """The structures and the enums that the operations of a file use."""
    structs: set[str] = set()
    enums: set[str] = {"device_attribute"} if subject.mapping("needs") else set()
    for variant in subject.variants():
        enums |= {each.type for each in (*variant.operation.takes, *variant.operation.gives)}
    for variant in subject.invocations():
        for _path, argument in variant.arguments():
            names = list(names_in(argument))
            structs |= {each.name for each in names if each.role == "struct"}
            enums |= {each.name for each in names if each.role == "flags"}
    return structs, enums


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    check_same_as,
    check_roles_exist,
    check_status,
    check_answers,
    check_library_answers,
    check_tolerated,
    check_kinds,
    check_platforms,
    check_absent,
    check_needs,
    check_unused_roles,
    check_unused,
    *searches.CHECKS,
    *identities.CHECKS,
    *explanations.CHECKS,
    *evidence.CHECKS,
    *signatures.CHECKS,
    *sequences.CHECKS,
    *minting.CHECKS,
    *layouts.CHECKS,
    *ranges.CHECKS,
    *launches.CHECKS,
    *fitting.CHECKS,
    *messages.CHECKS,
)
