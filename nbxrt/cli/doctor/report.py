"""Everything that the doctor knows, gathered into one mapping of plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import descriptions, presence
from nbxrt.binding.machine import Machine
from nbxrt.cli.doctor import advice, child, environment, machine, triton
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    from collections.abc import Mapping


def gather() -> dict[str, Any]:
    """The report. What cannot be found out is said in it; nothing is raised."""
    here = Machine()
    names = descriptions.with_packages()
    known, unusable = _read(names)
    probed = child.probed()
    found: dict[str, Any] = {
        "machine": machine.described(here),
        "python": machine.python(),
        "names": names,
        "backends": [{**_blank(name, known, here), **probed["backends"].get(name, {})} for name in names],
        "unusable": unusable,
        "opens": probed["opens"],
        "crash": probed["crash"],
        "warnings": probed["warnings"],
        "triton": triton.described(known, here.paths),
        "environment": environment.described(known, here),
    }
    for backend in found["backends"]:
        backend["usable"], backend["usable_reason"] = _usable(backend)
    found["conflicts"] = environment.conflicts(known, here, found)
    found["problems"] = advice.problems(found, known)
    found["advice"] = advice.sentences(found)
    return found


def _read(names: list[str]) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
    """The descriptions that can be read, and the first fault of those that cannot, by name."""
    known: dict[str, Mapping[str, Any]] = {}
    unusable: dict[str, str] = {}
    for name in names:
        try:
            known[name] = descriptions.load(name)
        except DescriptionError as error:
            unusable[name] = error.diagnostics[0].one_line()
    return known, unusable


def _usable(backend: Mapping[str, Any]) -> tuple[str, str]:
    """The third level, from what the child process did: whether a device could be used, and why."""
    usable = [str(device["index"]) for device in backend["devices"] if device["is_usable"]]
    if usable:
        return "yes", f"devices {', '.join(usable)} were used" if len(usable) > 1 else f"device {usable[0]} was used"
    if backend["crash"] or backend["library"] == "unknown":
        return ("no" if backend["crash"] else "unknown"), backend["crash"] or backend["library_reason"]
    if backend["devices"]:
        return "no", backend["devices"][0]["reason"]
    if backend["library"] != "yes":
        return "no", "there is no library" if backend["library"] == "no" else "its library is broken"
    return "no", backend["devices_reason"] or "there is no device"


def _blank(name: str, known: Mapping[str, Mapping[str, Any]], here: Machine) -> dict[str, Any]:
    """A backend as far as its file and the operating system tell: what is left when no child process answered."""
    description = known.get(name)
    there, why = presence.device_there(description, here) if description is not None else (None, "")
    return {
        "name": name,
        "title": description["title"] if description is not None else name,
        "kind": description["kind"] if description is not None else "unknown",
        "file": description["file"] if description is not None else "",
        "library": "unknown",
        "library_reason": "the child process did not answer",
        "device": {True: "yes", False: "no", None: "unknown"}[there],
        "device_reason": why,
        "count": None,
        "is_seen": bool(there),
        "error": None,
        "candidates": [],
        "libraries": [],
        "messages": {"compared": 0, "differences": []},
        "devices": [],
        "devices_reason": "",
        "devices_hint": "",
        "crash": "",
    }
