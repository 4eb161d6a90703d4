"""Asking an installed Python package, one that knows a vendor's layouts, where a library is."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.binding.machine import Machine


def ask(machine: "Machine", module: str, function: str, about: str, attribute: str) -> "tuple[str, str]":
    """(path, "") or ("", why not): what `module.function(about)` answers, a path, a list of them, or an object.

    Never raises: what the package raises is the reason.
    """
    if machine.root or machine.paths is not sys.path:
        return "", "not asked about another machine"
    if not _is_installed(machine, module):
        return "", f"{module} is not installed"
    from importlib import import_module

    try:
        with _NothingStarted():
            answer = getattr(import_module(module), function)(about)
        path = _path_in(getattr(answer, attribute) if attribute else answer)
    except Exception as error:  # noqa: BLE001  # another package's code: whatever it raises is its answer
        return "", f"it says: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"
    return (path, "") if path else ("", "it answers with no path")


class _NothingStarted:
    """While this is in force Python's own `find_library` finds nothing: it would start ldconfig or a compiler.

    cuda-pathfinder 1.9 calls it when it is imported, and goes on by the library's name.
    """

    def __enter__(self) -> None:
        import ctypes.util

        self._own = ctypes.util.find_library
        ctypes.util.find_library = lambda name: None  # noqa: ARG005  # the signature of Python's own

    def __exit__(self, *_how: object) -> None:
        import ctypes.util

        ctypes.util.find_library = self._own


def _is_installed(machine: "Machine", module: str) -> bool:
    """Whether the first entry that has the name has the package: a user's file of that name is not run."""
    inside = module.split(".")
    for entry in machine.entries():
        if os.path.isfile(os.path.join(entry or os.curdir, inside[0] + ".py")):
            return False
        if entry and os.path.isdir(os.path.join(entry, *inside)):
            return True
    return False


def _path_in(answer: "Any") -> str:
    if isinstance(answer, (list, tuple)):
        return _path_in(answer[0]) if answer else ""
    return os.fspath(answer) if answer else ""
