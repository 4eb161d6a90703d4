"""Which copy of a library is in use when a call fails because of it, and which other copies this machine has.

A runtime opens its driver by name, so the copy in use may be one that nbxrt has not chosen. Only read when a call has
failed already.
"""

from nbxrt.binding import search, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nbxrt.binding.machine import Machine


def explain(description: "Mapping[str, Any]", machine: "Machine") -> "tuple[list[str], str]":
    """(notes, hint) on copies that lie in a telling folder, a stub's or another driver's, and what else there is."""
    notes, hint = [], ""
    for role, data in description["libraries"].items():
        for used, says in _told(description["name"], role, data, machine):
            notes.append(f"{used} is in use, {says}")
            others = _usable(description["name"], role, data, machine, used)
            variable = f"NBXRT_{description['name']}_{role}".upper()
            if others:
                notes += [f"{other} is another copy" for other in others]
                hint = f"set {variable}={others[0]} and restart, or take the folder of {used} out of LD_LIBRARY_PATH"
            else:
                hint = f"there is no other copy: {data['hint']}"
    return notes, hint


def _told(backend: str, role: str, data: "Mapping[str, Any]", machine: "Machine") -> "list[tuple[str, str]]":
    """The copies of a role's library in this process that lie in a telling folder, with what it says."""
    if not data.get("telling"):
        return []
    wanted = search.Wanted(backend, role, data, machine)
    found = ((path, search.told_by_folder(data, path)) for path in sorted(steps.mapped_copies(wanted)))
    return [(path, told[1]) for path, told in found if told is not None]


def _usable(backend: str, role: str, data: "Mapping[str, Any]", machine: "Machine", used: str) -> "list[str]":
    known = [search.Candidate("loaded", used, is_file=True)]
    rest = search.untried(backend, role, data, machine, known)
    return [each.path for each in rest if each.verdict == "untried" and search.told_by_folder(data, each.path) is None]
