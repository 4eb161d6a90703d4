"""Whether what a file says of its evidence, and of names in headers, fits what else it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import did_you_mean, listed, path_text, quoted
from nbxrt.catalogue.policies import NUMBERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject


def check_evidence(subject: Subject) -> Iterator[Diagnostic]:
    """Every bound operation rests on one entry, and no entry is for what is not bound."""
    entries = subject.value("evidence")
    if not isinstance(entries, list):
        return
    calling = _calling(subject)
    bound = [name for name in subject.contract.operations if name in calling]
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        for at, name in enumerate(entry.get("for", ("",))):
            path = ("evidence", index, "for", at) if name else ("evidence", index)
            if name in seen:
                said = f"{quoted(name)} has evidence already" if name else "another entry is for all the rest already"
                yield subject.diagnostic(path, "doubtful-evidence", said)
            elif name and not _is_bound(subject, name, bound):
                message = f"{quoted(name)} is not offered, so nothing is to be known of it"
                yield subject.diagnostic(path, "doubtful-evidence", message)
            seen.setdefault(name, index)
    rest = [name for name in bound if seen.keys().isdisjoint((name, subject.contract.operations[name].group, ""))]
    if rest:
        message = f"nothing is said of {listed(rest)}"
        hint = "name them under `for`, or leave `for` out in the entry for all the rest"
        yield subject.diagnostic(("evidence",), "doubtful-evidence", message, at="key", hint=hint)


def _calling(subject: Subject) -> set[str]:
    """The operations that call the vendor; of the others there is nothing to be known."""
    own = ("value", "same", "policy")
    return {each.operation.name for each in subject.variants() if not any(form in each.spec for form in own)}


def _is_bound(subject: Subject, name: str, bound: list[str]) -> bool:
    return name in bound or any(subject.contract.operations[each].group == name for each in bound)


def check_header_names(subject: Subject) -> Iterator[Diagnostic]:
    """Names in headers are of words, codes and fields that the file has."""
    headers = subject.section("headers")
    for enum, names in (headers.get("enums") or {}).items():
        if names is None or ("enums", enum) in subject.broken:
            continue  # nothing has a name, or what else it has is not known
        known = {word for _path, entry in _entries(subject, enum) for word in entry.get("words", entry)}
        yield from _strangers(subject, ("headers", "enums", enum), names, known, ("enums", enum))
    for role, names in (headers.get("codes") or {}).items():
        kinds = subject.mapping("libraries", role, "status", "kinds")
        path, of = ("headers", "codes", role), ("libraries", role, "status")
        yield from _strangers(subject, path, names, {"success", *kinds}, of)
        yield from _wrong_counts(subject, path, names, kinds, (*of, "kinds"), "codes")
    for policy, names in (headers.get("policies") or {}).items():
        yield from _names_of_policy(subject, policy, names)
    attributes = (headers.get("launch") or {}).get("attributes") or {}
    if subject.mapping("launch"):  # names may be taken over from a file that has a launch of its own
        known = set(subject.mapping("launch", "attributes"))
        named = ("headers", "launch", "attributes")
        yield from _strangers(subject, named, attributes, known, ("launch", "attributes"))
    for struct, names in (headers.get("structs") or {}).items():
        if ("structs", struct) in subject.broken:
            continue
        layouts = [
            entry for _path, entry in subject.entries(("structs", struct), subject.mapping("structs").get(struct))
        ]
        known = {field for layout in layouts if layout for field in layout.get("fields", {})}
        yield from _strangers(subject, ("headers", "structs", struct), names, known, ("structs", struct))
    yield from _uncalled(subject, headers.get("constants") or {})


def _uncalled(subject: Subject, named: dict[str, Any]) -> Iterator[Diagnostic]:
    """Numbers in calls are of functions that the file calls, and of its structures."""
    if any(path and path[0] not in ("headers", "enums", "evidence") for path in subject.broken):
        return  # what is called there is not known
    calls = [each.spec["call"] for each in (*subject.invocations(), *subject.role_calls())]
    symbols = {symbol for call in calls for symbol in (call if isinstance(call, list) else [call])}
    known = symbols | set(subject.mapping("structs"))
    for name in named:
        if name not in known and not subject.is_inherited(("headers", "constants", name)):
            message = f"the file calls no {quoted(name)} and has no such structure, so nothing has a name in a header"
            hint = did_you_mean(name, known)
            yield subject.diagnostic(("headers", "constants", name), "unknown-named", message, at="key", hint=hint)


def _entries(subject: Subject, enum: str) -> list[tuple[Any, dict[str, Any]]]:
    return list(subject.entries(("enums", enum), subject.value("enums", enum) or {}))


def _strangers(subject: Subject, path: Path, names: dict[str, Any], known: set[str], of: Path) -> Iterator[Diagnostic]:
    """Names under `headers` for what is not there, in what is described at `of`."""
    for name in names:
        if name not in known:
            message = f"{quoted(path_text(of))} has no {quoted(name)} that could have a name in a header"
            facts: dict[str, Any] = {"related": subject.nearest(*of), "hint": did_you_mean(name, known)}
            yield subject.diagnostic((*path, name), "unknown-named", message, at="key", **facts)


def _names_of_policy(subject: Subject, policy: str, names: dict[str, Any]) -> Iterator[Diagnostic]:
    path, of = ("headers", "policies", policy), ("policies", policy)
    given = {word: value for word, value in subject.mapping(*of).items() if word in NUMBERED[policy]}
    yield from _strangers(subject, path, names, set(given), of)
    yield from _wrong_counts(subject, path, names, given, of, "numbers")


def _wrong_counts(
    subject: Subject, path: Path, names: dict[str, Any], given: dict[str, Any], of: Path, what: str
) -> Iterator[Diagnostic]:
    for word, called in names.items():
        if word in given and _count(given[word]) != _count(called):
            message = f"the {what} of `{word}` are {_count(given[word])}, and the names {_count(called)}"
            related = subject.nearest(*of, word)
            yield subject.diagnostic((*path, word), "unknown-named", message, related=related)


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (check_evidence, check_header_names)
