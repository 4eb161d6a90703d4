"""Opening a backend on a library that the caller names, in place of what the search would find."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nbxrt import descriptions, errors
from nbxrt import runtime as runtimes
from nbxrt.binding.machine import Machine
from nbxrt.simulation.standing_in import file_name as stand_in_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def opened(name: str | os.PathLike[str] | None, library: str | os.PathLike[str] | None = None) -> runtimes.Runtime:
    """The runtime of a backend, by name or file; without a name, of the best one that is here.

    `library` is the file of the runtime library, or a folder that holds the libraries of all roles, as
    `nbxrt simulate` writes one. Nothing is put in force when it is given.
    Raises: as `nbxrt.open`; ArgumentValueError for a folder that has none of the libraries, and for a backend whose
    functions are the process's own.
    """
    if name is None or library is None:
        return runtimes.open(name)
    description = descriptions.load(name)
    descriptions.demand_trust(description)
    if any(step == "process" for step, *_rest in description["libraries"]["runtime"]["search"]):
        raise errors.ArgumentValueError(
            f"{description['title']} takes no library: its functions are the process's own", backend=description["name"]
        )
    machine = Machine(environ={**os.environ, **_variables(description, os.path.abspath(library))})
    runtime = runtimes.Runtime(description, descriptions.contract(), machine)
    runtime.load()  # as `nbxrt.open` does
    return runtime


def _variables(description: Mapping[str, Any], library: str) -> dict[str, str]:
    """The variables that name the library: a folder is for every role that has a library of its own there.

    Raises: ArgumentValueError for a folder without any of them: the search would find another library in silence.
    """
    found = {"runtime": library} if not os.path.isdir(library) else dict(_in_folder(description, library))
    if not found:
        named = dict.fromkeys(file for role in _own(description) for file in _files(description, role))
        files = ", ".join(file for file in named if not os.path.isabs(file)) or stand_in_file(description, "runtime")
        raise errors.ArgumentValueError(
            f"the folder {library} has no library of {description['title']}: it would have one of {files}",
            backend=description["name"],
            hint="name the library's own file, or a folder that `nbxrt simulate` has written",
        )
    return {f"NBXRT_{description['name']}_{role}".upper(): path for role, path in found.items()}


def _in_folder(description: Mapping[str, Any], folder: str) -> Iterator[tuple[str, str]]:
    """The roles that have a library in the folder, with what names it; the search goes on for the others."""
    for role in _own(description):
        stand_in = os.path.join(folder, stand_in_file(description, role))
        if any(os.path.lexists(os.path.join(folder, file)) for file in _files(description, role)):
            yield role, folder
        elif os.path.lexists(stand_in):  # of a role that has no file on this system
            yield role, stand_in


def _own(description: Mapping[str, Any]) -> Iterator[str]:
    return (role for role, data in description["libraries"].items() if "same_as" not in data)


def _files(description: Mapping[str, Any], role: str) -> Iterator[str]:
    return (file for _major, files in description["libraries"][role]["names"] for file in files.values())
