"""Opening a backend on a library that the caller names, in place of what the search would find."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nbxrt import descriptions
from nbxrt import runtime as runtimes
from nbxrt.binding.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def opened(name: str | os.PathLike[str] | None, library: str | os.PathLike[str] | None = None) -> runtimes.Runtime:
    """The runtime of a backend, by name or file; without a name, of the best one that is here.

    `library` is the file of the runtime library, or a folder that holds the libraries of all roles, as
    `nbxrt simulate` writes one. Nothing is put in force when it is given.
    Raises: as `nbxrt.open`.
    """
    if name is None or library is None:
        return runtimes.open(name)
    description = descriptions.load(name)
    descriptions.demand_trust(description)
    machine = Machine(environ={**os.environ, **_variables(description, os.path.abspath(library))})
    runtime = runtimes.Runtime(description, descriptions.contract(), machine)
    runtime._open()  # noqa: SLF001  # as `nbxrt.open` does
    return runtime


def _variables(description: Mapping[str, Any], library: str) -> dict[str, str]:
    """The variables that name the library: a folder is for every role that has a library of its own there."""
    roles = [role for role, data in description["libraries"].items() if "same_as" not in data]
    if not os.path.isdir(library):
        roles = ["runtime"]
    else:
        roles = [role for role in roles if _holds(library, description["libraries"][role])]
    return {f"NBXRT_{description['name']}_{role}".upper(): library for role in roles}


def _holds(folder: str, role: Mapping[str, Any]) -> bool:
    """Whether one of the role's files is in the folder; the search goes on for a role that has none there."""
    files = {file for _major, files in role["names"] for file in files.values()}
    return any(os.path.lexists(os.path.join(folder, file)) for file in files)
