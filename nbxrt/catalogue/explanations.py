"""Whether what a file says of its status codes can ever be said, and has what it speaks of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.subject import Subject

#: What a text may have put in; binding/library.py puts it in.
WORDS = ("{version}", "{driver}")
_BRACES = re.compile(r"\{[^{}]*\}?|\}")


def _explanations(subject: Subject) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any], dict[str, Any]]]:
    """(path, entry, library) of every explanation."""
    for role, library in subject.section("libraries").items():
        for index, entry in enumerate((library.get("status") or {}).get("explains") or ()):
            yield ("libraries", role, "status", "explains", index), entry, library


def check_words(subject: Subject) -> Iterator[Diagnostic]:
    """What is put into a text is known."""
    for path, entry, _library in _explanations(subject):
        for key in ("says", "hint"):
            for word in _BRACES.findall(entry.get(key, "")):
                if word not in WORDS:
                    message = f"{quoted(word)} is nothing that can be put in here"
                    hint = "`{version}` is the library's, and `{driver}` the driver's"
                    yield subject.diagnostic((*path, key), "unknown-placeholder", message, hint=hint)


def check_drivers(subject: Subject) -> Iterator[Diagnostic]:
    """What speaks of the driver's version can ask for it."""
    for path, entry, library in _explanations(subject):
        speaks = [key for key in ("says", "hint") if "{driver}" in entry.get(key, "")]
        for key in ["driver"] * ("driver" in entry) or speaks[:1]:
            if not library.get("driver_version"):
                message = "this depends on the driver's version, which nothing asks for"
                hint = f"say how with `driver_version` under `libraries.{path[1]}`"
                yield subject.diagnostic((*path, key), "missing-driver-version", message, hint=hint)


def check_order(subject: Subject) -> Iterator[Diagnostic]:
    """No explanation stands behind one that is always taken before it."""
    taken: set[tuple[Any, ...]] = set()
    for path, entry, _library in _explanations(subject):
        codes = entry["code"] if isinstance(entry["code"], list) else [entry["code"]]
        for code in codes:
            role, driver = path[1], entry.get("driver", "")
            if {(role, code, driver), (role, code, "")} & taken:
                message = f"the code {code} is explained further up, and the first explanation that fits is taken"
                yield subject.diagnostic((*path, "code"), "unreachable-explanation", message)
            taken.add((role, code, driver))


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (check_words, check_drivers, check_order)
