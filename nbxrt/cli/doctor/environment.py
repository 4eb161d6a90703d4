"""The environment variables that matter to nbxrt, and those that contradict each other or the machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nbxrt import descriptions, detection
from nbxrt.binding import steps
from nbxrt.catalogue.diagnostics import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nbxrt.binding.machine import Machine

    Descriptions = Mapping[str, Mapping[str, Any]]

#: Variables that matter whatever the backends are, and beginnings of names that all do.
ALWAYS = (detection.FORCE, descriptions.PATH_VARIABLE, "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
PREFIXES = ("NBX_", "NBXRT_", "TRITON_")

#: nbxrt's own variables, and the words that those take which do nothing with any other value; "0" is no mistake.
OWN = {
    detection.FORCE: (),
    descriptions.PATH_VARIABLE: (),
    "NBXRT_TRUST_FILES": ("1",),
    "NBXRT_ALLOW_UNTESTED": ("1",),
    "NBXRT_CHECK_DEVICE": ("1",),
    "NBXRT_ALLOCATOR": (),
    "NBXRT_LOG": ("calls",),
    "NBX_LAUNCHER": ("triton",),
    "NBXRT_TRITON_UNCHECKED": ("1",),
    "NBXRT_DIST_CHECK": ("1",),
    "NBXRT_SYSROOT": (),
}

#: Beginnings of what simulated libraries read, and nbxrt's own tests.
OTHERS = ("NBXRT_SIM_", "NBXRT_TEST_", "NBXRT_UPDATE_")


def described(known: Descriptions, machine: Machine) -> dict[str, Any]:
    """The variables that are set, with their values, and the names of those that are not."""
    named = (name for description in known.values() for name in named_in(description, machine.system))
    names = dict.fromkeys([*ALWAYS, *named])
    ours = [name for name in sorted(machine.environ) if name.startswith(PREFIXES)]
    names |= dict.fromkeys(ours)
    return {
        "set": {name: machine.environ[name] for name in names if name in machine.environ},
        "unset": [name for name in names if name not in machine.environ],
    }


def named_in(description: Mapping[str, Any], system: str) -> Iterator[str]:
    """The variables that a description names: what hides devices, and where its libraries or another vendor's are."""
    yield from description["visibility"]
    for where in _roots(description, system):
        yield from where
    for data in description["libraries"].values():
        rules = data.get("identity")
        if rules:
            yield from (place[1:] for place in rules["not_under"] if place.startswith("$"))


def _roots(description: Mapping[str, Any], system: str) -> Iterator[tuple[str, ...]]:
    """The variables of each search step that goes by them on this system."""
    for data in description["libraries"].values():
        for kind, where, folders in data.get("search", ()):
            if kind == "environment" and system in folders:
                yield where


def conflicts(known: Descriptions, machine: Machine, found: Mapping[str, Any]) -> list[str]:
    """Every contradiction, as a sentence."""
    return list(dict.fromkeys(said for check in _CHECKS for said in check(known, machine, found)))


def _forced(_known: Descriptions, machine: Machine, found: Mapping[str, Any]) -> Iterator[str]:
    name = machine.variable(detection.FORCE)
    if not name:
        return
    if name not in found["names"]:
        yield f"{detection.FORCE}={name} names no backend: there are {', '.join(found['names'])}"
        return
    gpus = {each["name"]: each["devices"] for each in found["backends"] if each["kind"] == "gpu"}
    others = [other for other, there in gpus.items() if there]
    if others and name in gpus and name not in others:
        yield f"{detection.FORCE}={name} is forced, and the devices that were found are of {', '.join(others)}"


def _two_roots(known: Descriptions, machine: Machine, _found: Mapping[str, Any]) -> Iterator[str]:
    """Variables of one search step that name different places."""
    for where in (where for description in known.values() for where in _roots(description, machine.system)):
        given = {name: machine.variable(name) for name in where if machine.variable(name)}
        if said := steps.contradiction(given):
            yield said


def _of_libraries(known: Descriptions) -> list[str]:
    return [f"NBXRT_{name}_{role}".upper() for name, each in known.items() for role in each["libraries"]]


def _without_effect(known: Descriptions, machine: Machine, _found: Mapping[str, Any]) -> Iterator[str]:
    """Variables with a name of nbxrt's that it does not read, and values that do nothing."""
    names = [*OWN, *_of_libraries(known)]
    for name in sorted(machine.environ):
        if name.startswith(("NBX_", "NBXRT_")) and not name.startswith(OTHERS) and name not in names:
            meant = nearest(name, names)
            yield f"{name} is not read by nbxrt" + (f", and {meant} is" if meant else "")
    for name, words in OWN.items():
        value = machine.variable(name)
        if value not in ("", "0") and words and not {*words} & {*map(str.strip, value.split(","))}:
            yield f"{name}={value} does nothing: it takes {' or '.join(words)}"


def _missing_paths(known: Descriptions, machine: Machine, _found: Mapping[str, Any]) -> Iterator[str]:
    """Paths that were named for nbxrt and are not there."""
    for variable in (descriptions.PATH_VARIABLE, *_of_libraries(known)):
        for path in machine.variable(variable).split(os.pathsep):
            is_path = variable == descriptions.PATH_VARIABLE or os.path.dirname(path.strip())  # or a library's name
            if path.strip() and is_path and not os.path.lexists(path.strip()):
                yield f"{variable} names {path.strip()}, which is not there"


def _without_library(_known: Descriptions, machine: Machine, found: Mapping[str, Any]) -> Iterator[str]:
    """Places that were named for a library, that are there, and that do not have it."""
    for backend in found["backends"]:
        for candidate in backend["candidates"]:
            value = machine.variable(candidate["step"]) if candidate["step"].startswith("NBXRT_") else ""
            if candidate["verdict"] == "missing" and os.path.lexists(value):
                yield f"{candidate['step']}={value} {candidate['reason']}"


def _working_folder(_known: Descriptions, machine: Machine, _found: Mapping[str, Any]) -> Iterator[str]:
    value = machine.environ.get("LD_LIBRARY_PATH", "")
    if value and "" in value.split(":"):
        yield "LD_LIBRARY_PATH has an empty part, which means the working folder to the system's loader"


def _triton(_known: Descriptions, machine: Machine, found: Mapping[str, Any]) -> Iterator[str]:
    key, triton = machine.variable("TRITON_DEFAULT_BACKEND"), found["triton"]
    if not key or not triton["version"]:
        return
    if key not in triton["installed"]:
        yield f"TRITON_DEFAULT_BACKEND={key} is no backend of the installed Triton: {', '.join(triton['installed'])}"
        return
    wanted = triton["keys"].get(found["opens"]["name"], [])
    if wanted and key not in wanted:
        yield f"TRITON_DEFAULT_BACKEND={key}, and `{found['opens']['name']}` goes with {' or '.join(wanted)}"


_CHECKS: tuple[Callable[[Descriptions, Machine, Mapping[str, Any]], Iterator[str]], ...] = (
    _forced,
    _without_effect,
    _two_roots,
    _missing_paths,
    _without_library,
    _working_folder,
    _triton,
)
