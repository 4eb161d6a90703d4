"""Which backends there are, and their descriptions as the binder reads them.

A built-in backend comes from its compiled module; YAML is read only where a user's file is in play.
"""

import os

from nbxrt import errors
from nbxrt.binding.machine import absolute
from nbxrt.compiled import INDEX, NEEDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nbxrt.catalogue.sources import Found, Source

    Description = Mapping[str, Any]
    #: Names of backends, and what loads the description of each; that raises DescriptionError for an unusable file.
    Loaders = Mapping[str, Callable[[], Description]]

#: Files and folders of backend files, separated as PATH is.
PATH_VARIABLE = "NBXRT_BACKEND_PATH"

#: As much of a name that nobody has as an error quotes.
LONGEST_NAME = 60


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
    users = _users_files()
    if not users:
        return INDEX
    rows, unusable = dict(INDEX), []
    for name, load in users.items():
        try:
            rows[name] = _row(load())
        except errors.DescriptionError:
            unusable.append(name)
    rows = dict(sorted(rows.items(), key=lambda row: (row[1][1] == "cpu", row[1][0])))
    return rows | dict.fromkeys(unusable, (None, "unknown", (), None))


def _row(description: "Description") -> "tuple[Any, ...]":
    return tuple(description[key] for key in ("priority", "kind", "platforms", "triton"))


def is_path(name: "str | os.PathLike[str]") -> bool:
    """Whether a backend is given by its file's path instead of its name.

    Raises: ArgumentTypeError for what is neither.
    """
    if not isinstance(name, (str, os.PathLike)):
        raise errors.ArgumentTypeError(
            f"a backend is given by its name or the path of its file, not by {type(name).__name__} {name!r}"
        )
    return not isinstance(name, str) or os.sep in name or name.endswith((".yaml", ".yml"))


def find(name: "str | os.PathLike[str]") -> "tuple[Any, Callable[[], Description]]":
    """A key that tells descriptions apart, and what loads this one.

    Raises: BackendNotFoundError, with the known names and the nearest; DescriptionError for an unusable user's file.
    """
    if is_path(name):
        description = _from_file(absolute(os.fspath(name)))
        return _key(description), lambda: description
    users = _users_files()
    if name not in users and name in INDEX:
        return ("built in", name), lambda: built_in(str(name))
    load = users.get(str(name)) or _packages_files().get(str(name))
    if load is None:
        raise unknown(str(name))
    return _key(load()), load


def _key(description: "Description") -> "tuple[Any, ...]":
    """An edited file is read anew, and so is one whose base was edited."""
    layers = description["layers"] or (description["file"],)
    return ("file", description["file"], tuple(map(_stamp, layers)))


def _stamp(path: str) -> "tuple[int, int]":
    """What changes when a file does."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def needing_a_device(name: str) -> "Description | None":
    """What a built-in backend's presence is told by, where it counts only with a device; None for all others."""
    return None if name in _users_files() else NEEDING.get(name)


def load(name: "str | os.PathLike[str]") -> "Description":
    """The description of a backend.

    Raises: BackendNotFoundError, DescriptionError.
    """
    return find(name)[1]()


def maturity(description: "Description") -> str:
    """How well a backend's operations are known, computed from the evidence that its file gives for each.

    `from headers` (all were read in the vendor's headers), `partly from headers`, `from call sites` (none was read in
    a header or found in a library), `inferred`, or `unstated`.
    """
    counts = description["evidence"]
    if set(counts) == {"header"}:
        return "from headers"
    if counts.get("header") or counts.get("binary"):
        return "partly from headers"
    return "from call sites" if counts.get("call_site") else "inferred" if counts.get("inferred") else "unstated"


def demand_trust(description: "Description") -> None:
    """Refuse a description that somebody else may change: the files that the user named for it, bases included.

    What nbxrt and installed packages bring is as trusted as their code. Raises: DescriptionError.
    """
    layers = description.get("layers", ())
    if layers:
        from nbxrt.catalogue import trust

        trust.demand(layers)


def triton(name: str) -> "tuple[tuple[str, ...], str | None] | None":
    """Triton's registry keys of a backend and its target name; None when Triton or nbxrt does not know it by name.

    Metadata of packages is not read for it: what a package offers has been asked for already when it is in force.
    """
    load = _users_files().get(name) or (None if name in INDEX else (_offered or {}).get(name))
    if load is None:
        return INDEX[name][3] if name in INDEX else None
    try:
        return load()["triton"]  # type: ignore[no-any-return]
    except errors.DescriptionError:
        return None


def is_known(name: str) -> bool:
    """Whether `find` knows the name; what packages offer is asked last."""
    return name in INDEX or name in _users_files() or name in _packages_files()


def with_packages() -> "list[str]":
    """Every name, those that only an installed package offers last; reads the metadata of all packages."""
    return list(dict.fromkeys((*names(), *_packages_files())))


def source(name: "str | os.PathLike[str]") -> "tuple[Source, Found]":
    """The file of a backend, and all files among which names are looked up.

    Raises: BackendNotFoundError, DescriptionError for an unusable file.
    """
    from nbxrt.catalogue import loading, packages, sources

    if is_path(name):
        return loading.selected(absolute(os.fspath(name)))
    found = sources.find()
    chosen = found.sources.get(str(name)) or packages.sources().get(str(name))
    if chosen is None:
        raise unknown(str(name))
    return chosen.usable(), found


def built_in(name: str) -> "Description":
    """A built-in backend's description, from its compiled module."""
    module = __import__(f"nbxrt.compiled.{name}", fromlist=["DESCRIPTION"])
    description: Description = module.DESCRIPTION
    return description


def unknown(name: str, said: str = "") -> errors.BackendNotFoundError:
    """The error for a name that no backend has; `said` is how the user gave it."""
    known = with_packages()
    close = errors.nearest(name, known)
    lost = "".join(f"; {each}" for each in missing())
    cut = name[:LONGEST_NAME]
    shown = (cut if cut.isprintable() else ascii(cut)[1:-1]) + "…" * (len(name) > LONGEST_NAME)
    return errors.BackendNotFoundError(
        f"{said or f'`{shown}`'} is not a known backend: {', '.join(known)}{lost}",
        hint=f"did you mean `{close}`?" if close else "",
        name=name,
    )


#: What was read of NBXRT_BACKEND_PATH: its value with the files' stamps, what it offers, and what it names that is not
#: there.
_read: "tuple[Any, Loaders, tuple[str, ...]]" = (None, {}, ())

#: What was read of files given by path: the stamps of all that decided, and the description.
_given: "dict[str, tuple[Any, Description]]" = {}

#: What installed packages offer; the installed packages of a process are those it started with.
_offered: "Loaders | None" = None


def _path_stamp() -> "tuple[Any, ...]":
    """The value of NBXRT_BACKEND_PATH and what changes when a file named in it does; () when it is not set."""
    value = os.environ.get(PATH_VARIABLE, "").strip()
    if not value:
        return ()
    from nbxrt.catalogue import loading

    return (value, loading.stamp(value))


def _users_files() -> "Loaders":
    """What NBXRT_BACKEND_PATH offers; looked for anew when a file has changed. Only what is loaded is validated."""
    global _read  # noqa: PLW0603  # replaced whole
    stamp = _path_stamp()
    if not stamp:
        return {}
    if _read[0] != stamp:
        from nbxrt.catalogue import loading

        _read = (stamp, *loading.on_path(contract()))
    return _read[1]


def missing() -> "tuple[str, ...]":
    """What NBXRT_BACKEND_PATH names and nbxrt cannot read as a file or folder of backends, each with its reason."""
    _users_files()
    return _read[2] if _path_stamp() else ()


def _from_file(path: str) -> "Description":
    """The description in a user's file, validated and compiled; read anew when it or what it extends has changed.

    Raises: DescriptionError with every fault.
    """
    known = _given.get(path)
    if known is not None and known[0] == (_path_stamp(), tuple(map(_stamp, known[1]["layers"]))):
        return known[1]
    from nbxrt.catalogue import loading

    description = loading.given(path, contract())
    _given[path] = ((_path_stamp(), tuple(map(_stamp, description["layers"]))), description)
    return description


def _packages_files() -> "Loaders":
    """What only installed packages offer."""
    global _offered  # noqa: PLW0603  # replaced whole
    if _offered is None and not _packages_offer():
        _offered = {}
    if _offered is None:
        from nbxrt.catalogue import loading

        _offered = loading.of_packages(contract())
    return _offered


def passed_over() -> "tuple[str, ...]":
    """What installed packages offer under a name that something else has, each with what has it."""
    if not _packages_offer():
        return ()
    from nbxrt.catalogue import packages, sources

    taken = sources.find().sources
    return tuple(
        f"`{name}` of the {each.origin} is not used: the name is that of {taken[name].shown} ({taken[name].origin})"
        for name, each in packages.sources().items()
        if name in taken
    )


def _packages_offer() -> bool:
    """Whether an installed package may offer a backend. What reads YAML is not imported to see that none does."""
    from importlib import metadata

    try:
        return any(
            "[nbxrt.backends]" in (each.read_text("entry_points.txt") or "") for each in metadata.distributions()
        )
    except Exception:  # noqa: BLE001  # a damaged installation, which packages.py passes over
        return True


def forget() -> None:
    """Forget what installed packages offer, so that it is asked anew."""
    global _offered  # noqa: PLW0603
    _offered = None
