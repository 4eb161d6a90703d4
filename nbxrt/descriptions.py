"""Which backends there are, and their descriptions as the binder reads them.

A built-in backend comes from its compiled module; YAML is read only where a user's file is in play.
"""

import os

from nbxrt import errors
from nbxrt.compiled import INDEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Description = Mapping[str, Any]

#: Files and folders of backend files, separated as PATH is.
PATH_VARIABLE = "NBXRT_BACKEND_PATH"


def contract() -> "Description":
    """The contract, compiled."""
    from nbxrt.compiled.contract import CONTRACT

    return CONTRACT


def names() -> "list[str]":
    """Every backend that can be named without a path, in order of detection."""
    return list(overview())


def overview() -> "dict[str, tuple[Any, ...]]":
    """Backend to (priority, kind, platforms, Triton), in order of detection: `cpu` ones last, then by priority.

    A file of NBXRT_BACKEND_PATH that cannot be used is last, with nothing known of it: selecting it says why.
    """
    users, unusable = _users_files()
    if not users and not unusable:
        return INDEX
    rows = dict(INDEX)
    for name, description in users.items():
        rows[name] = tuple(description[key] for key in ("priority", "kind", "platforms", "triton"))
    rows = dict(sorted(rows.items(), key=lambda row: (row[1][1] == "cpu", row[1][0])))
    return rows | dict.fromkeys(unusable, (None, "unknown", (), None))


def is_path(name: "str | os.PathLike[str]") -> bool:
    """Whether a backend is given by its file's path instead of its name."""
    return not isinstance(name, str) or os.sep in name or name.endswith((".yaml", ".yml"))


def find(name: "str | os.PathLike[str]") -> "tuple[Any, Callable[[], Description]]":
    """A key that tells descriptions apart, and what loads this one.

    Raises: BackendNotFoundError, with the known names and the nearest; DescriptionError for an unusable user's file.
    """
    if is_path(name):
        path = os.path.abspath(os.fspath(name))
        return ("file", path, _stamp(path)), lambda: from_file(path)
    users, unusable = _users_files()
    if name in unusable:
        raise unusable[name]
    if name in users:
        path = users[name]["file"]
        return ("file", path, _stamp(path)), lambda: users[name]
    if name in INDEX:
        return ("built in", name), lambda: built_in(str(name))
    raise unknown(str(name))


def _stamp(path: str) -> "tuple[int, int]":
    """What changes when a file does: an edited file is read anew."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def load(name: "str | os.PathLike[str]") -> "Description":
    """The description of a backend.

    Raises: BackendNotFoundError, DescriptionError.
    """
    return find(name)[1]()


def built_in(name: str) -> "Description":
    """A built-in backend's description, from its compiled module."""
    module = __import__(f"nbxrt.compiled.{name}", fromlist=["DESCRIPTION"])
    description: Description = module.DESCRIPTION
    return description


def from_file(path: str) -> "Description":
    """A user's file, validated and compiled.

    Raises: DescriptionError with every fault; FileNotFoundError.
    """
    from nbxrt.catalogue import loading

    return loading.compiled(path, contract())


def unknown(name: str, said: str = "") -> errors.BackendNotFoundError:
    """The error for a name that no backend has; `said` is how the user gave it."""
    known = names()
    close = errors.nearest(name, known)
    return errors.BackendNotFoundError(
        f"{said or f'`{name}`'} is not a known backend: {', '.join(known)}",
        hint=f"did you mean `{close}`?" if close else "",
        name=name,
    )


#: What was read of NBXRT_BACKEND_PATH: its value with the files' stamps, descriptions and errors by name.
_read: "tuple[Any, dict[str, Description], dict[str, errors.DescriptionError]]" = (None, {}, {})


def _users_files() -> "tuple[dict[str, Description], dict[str, errors.DescriptionError]]":
    """Descriptions in NBXRT_BACKEND_PATH, and errors of unusable ones, by name; read anew when a file has changed."""
    global _read  # noqa: PLW0603  # replaced whole
    value = os.environ.get(PATH_VARIABLE, "").strip()
    if not value:
        return {}, {}
    from nbxrt.catalogue import loading

    stamp = (value, loading.stamp(value))
    if _read[0] != stamp:
        _read = (stamp, *loading.on_path(contract()))
    return _read[1], _read[2]
