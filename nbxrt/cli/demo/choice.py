"""Which backend the demo uses, and why each better one is not."""

from __future__ import annotations

import attrs

import nbxrt
from nbxrt import detection
from nbxrt import runtime as runtimes
from nbxrt.cli import devices
from nbxrt.errors import NbxrtError


@attrs.frozen
class Choice:
    """The runtime that is used, why, and the backends before it that are not: names with reasons."""

    runtime: nbxrt.Runtime
    why: str
    not_used: tuple[tuple[str, str], ...] = ()


def choose() -> Choice:
    """The forced backend, else the first GPU backend that counts a device, else the first `cpu` backend.

    `nbxrt.open()` goes by what the operating system shows; here the runtime must count a device too.
    Raises: BackendNotFoundError, and what opening the backend raises.
    """
    if detection.forced_name():
        return Choice(nbxrt.open(), f"{detection.FORCE} says so")
    not_used: list[tuple[str, str]] = []
    for report in nbxrt.detect().backends:
        why_not = _why_not(report)
        if not why_not:
            return Choice(nbxrt.open(report.name), _why(report), tuple(not_used))
        not_used.append((report.name, why_not))
    return Choice(nbxrt.open(), "nothing better is here", tuple(not_used))


def _why(report: nbxrt.BackendReport) -> str:
    if report.kind == "cpu":
        return "no GPU can be used"
    return f"the first backend whose library loads and whose device is there: {report.device_reason}"


def _why_not(report: nbxrt.BackendReport) -> str:
    """Why a backend cannot be used; empty when it can."""
    if report.device == "no":
        return report.device_reason
    if report.library != "yes":
        return f"{report.device_reason}, but its library is {report.library_reason.partition(chr(10))[0]}"
    opened = runtimes.opened(report.name)
    try:
        if opened.device_count():
            return ""
    except NbxrtError as error:
        return error.summary
    said = devices.why_none(opened)
    return f"{report.device_reason}, but its runtime counts no device" + (f": {said}" if said else "")
