"""What the doctor's child process does: detect, load, ask, and write each answer down as soon as it is there.

Every line of the output is a JSON object: `{"stage": …}` before each thing that may end the process, `{"detected": …}`
with what was found of all, `{"backend": …}` with more of one, and `{"end": true}`.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from nbxrt import childprocess, detection, management, runtime
from nbxrt.binding.layout import as_tuple
from nbxrt.cli import devices
from nbxrt.cli.doctor import messages
from nbxrt.errors import LibraryNotFoundError, NbxrtError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbxrt.binding.library import Library
    from nbxrt.binding.search import Candidate

    Write = Callable[[dict[str, Any]], None]

#: Library roles beside `runtime` that are looked for. Collectives are large and say nothing about a device.
ROLES = ("driver", "management")


def main() -> None:
    """Probe all backends but those named on the command line, which ended an earlier probe."""
    write = childprocess.answering()
    probe(write, skip=sys.argv[1:])
    write({"end": True})


def probe(write: Write, skip: Sequence[str] = ()) -> None:
    """Write down what can be found out about every backend that is not skipped."""
    write({"stage": "detection"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        found = detection.detect()
    said = list(dict.fromkeys(str(warning.message) for warning in caught if warning.category is RuntimeWarning))
    reports = [_report(report) for report in found.backends]
    write({"detected": reports, "warnings": said, "opens": _what_opens()})
    for report in found.backends:
        if report.library == "yes" and report.name not in skip:
            _ask(write, report)


def _ask(write: Write, report: detection.BackendReport) -> None:
    opened = runtime.opened(report.name)
    write({"stage": "libraries", "backend": report.name})
    write({"backend": report.name, "libraries": _libraries(opened)})
    if opened.description["messages"]:
        write({"stage": "messages", "backend": report.name})
        write({"backend": report.name, "messages": _messages(opened)})
    if report.device == "no":
        return
    write({"stage": "devices", "backend": report.name})
    try:
        count = opened.device_count()
        said = {"count": count, **_none(opened)} if not count else {"count": count}
        write({"backend": report.name, **said, "devices": [devices.described(opened, index) for index in range(count)]})
    except NbxrtError as error:
        write({"backend": report.name, "devices_reason": error.summary, "devices": []})


def _none(opened: runtime.Runtime) -> dict[str, str]:
    """Why there is no device, and what helps."""
    error = opened.why_no_device()
    return {"devices_reason": devices.why_none(opened), "devices_hint": error.hint if error is not None else ""}


def _report(report: detection.BackendReport) -> dict[str, Any]:
    error = report.error
    return {
        "name": report.name,
        "title": report.title,
        "kind": report.kind,
        "library": report.library,
        "library_reason": report.library_reason,
        "device": report.device,
        "device_reason": report.device_reason,
        "count": report.count,
        "is_seen": report.seen,
        "error": None
        if error is None
        else {"reference": error.reference, "message": error.message, "hint": error.hint},
        "candidates": [_candidate(candidate) for candidate in report.candidates],
        "libraries": [],
        "messages": {"compared": 0, "differences": []},
        "devices": [],
        "devices_reason": "",
        "devices_hint": "",
        "crash": "",
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {key: getattr(candidate, key) for key in ("step", "path", "verdict", "reason", "major")}


def _libraries(opened: runtime.Runtime) -> list[dict[str, Any]]:
    roles = ["runtime", *(role for role in ROLES if role in opened.description["libraries"])]
    return [_library(opened, role) for role in roles]


def _library(opened: runtime.Runtime, role: str) -> dict[str, Any]:
    same_as = opened.description["libraries"][role].get("same_as", "")
    facts: dict[str, Any] = {"role": role, "same_as": same_as, "reason": "", "hint": ""}
    facts |= dict.fromkeys(("path", "version", "origin", "driver_version", "trouble"), "")
    candidates: Sequence[Candidate]
    try:
        library = opened.library(role)
    except LibraryNotFoundError as error:
        is_missing = type(error) is LibraryNotFoundError
        facts |= {"reason": "not found" if is_missing else error.summary, "hint": error.hint}
        candidates = getattr(error, "candidates", ())
    else:
        facts |= {
            "path": library.path,
            "version": as_tuple(library.version) if library.version else "",
            "origin": library.choice.step,
            "driver_version": as_tuple(library.driver_version) if library.driver_version else "",
        }
        candidates = [*library.candidates, *(each for each in library.untried() if each.is_file)]
        if role == "management":
            facts |= _trouble(library)
    return {**facts, "candidates": [] if same_as else [_candidate(candidate) for candidate in candidates]}


def _messages(opened: runtime.Runtime) -> dict[str, Any]:
    try:
        return messages.compared(opened)
    except LibraryNotFoundError as error:
        return {"compared": 0, "differences": [error.summary]}


def _trouble(library: Library) -> dict[str, str]:
    """Why the management library cannot be used, and what helps; empty texts where it can."""
    try:
        management.start(library)
    except NbxrtError as error:
        return {"trouble": error.summary, "hint": error.hint}
    return {"trouble": "", "hint": ""}


def _what_opens() -> dict[str, str]:
    """The backend that `nbxrt.open()` would open, or why it would open none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the reports say it already
            return {"name": detection.best(), "reason": ""}
    except NbxrtError as error:
        return {"name": "", "reason": error.summary}
