"""The steps that a backend file may list: each yields candidates of one kind of place, and loads nothing.

A step is a function in STEPS of what is wanted, the step's places and its folders. It yields files and names to try
(their verdict is still `untried`) and notes on why it has nothing. None ends the search. search.py decides.
"""

import os

from nbxrt.binding import loader
from nbxrt.binding.candidates import Candidate, newest_first
from nbxrt.binding.machine import absolute, realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nbxrt.binding.candidates import Wanted

    Found = Iterator[Candidate | None]
    Texts = tuple[str, ...]


def override(wanted: "Wanted", value: str) -> "Found":
    """An exact file, or a folder to look in, by NBXRT_<BACKEND>_<ROLE>; nothing else is tried when it is set."""
    step, path = wanted.variable, absolute(value)
    if not os.path.dirname(value) and value not in (os.curdir, os.pardir):
        if wanted.machine.system == "linux":
            yield from _files_of_the_loader(wanted, step, value)
        if _shadowed_by_working_folder(wanted, value):
            yield Candidate(step, value, "skipped", "the loader would take it from the working folder")
        else:
            yield Candidate(step, value)
    elif os.path.isdir(value):
        yield from _in_folders(wanted, step, (path,), base=path, shown=value)
    elif there := _is_there(path):
        yield Candidate(step, path, base=os.path.dirname(path), is_file=True)
    elif there is None:
        yield Candidate(step, path, "broken", "permission denied")
    else:
        shells = "; only a shell puts a home folder in place of `~`" if value.startswith("~") else ""
        yield Candidate(step, path, "missing", f"does not exist{shells}")


def loaded(wanted: "Wanted", _where: "Texts", _folders: "Texts") -> "Found":
    """A copy that this process has mapped: one process, one runtime."""
    mapped = mapped_copies(wanted)
    ranks = {major: rank for rank, (_file, major) in enumerate(wanted.names)}
    ordered = sorted(mapped, key=lambda path: (ranks.get(wanted.major_of(path), len(ranks)), path))
    if not ordered:
        yield Candidate("loaded", wanted.said_names, "missing", "not mapped in this process")
        return
    own = [path for path in ordered if not _is_foreign(wanted, path)]
    for path in ordered:
        accepted, major = wanted.accepts(path)
        if accepted or wanted.untested or path not in own:
            wanted.is_new(path)
            base, kept_as = _entry_of(wanted, path), loader.kept_name(path)
            yield Candidate("loaded", path, major=major, base=base, is_file=True, kept_as=kept_as)
        else:
            said = f"mapped in this process already, and {wanted.refusal(major)}"
            yield Candidate("loaded", path, "refused", said, major)
    if own and not any(wanted.accepts(path)[0] for path in own) and not wanted.untested:
        yield None


def mapped_copies(wanted: "Wanted") -> "list[str]":
    """The files of the library that this process has mapped, in whatever version."""
    return [path for path in loader.mapped(wanted.machine) if wanted.has_name(os.path.basename(path))]


def _is_foreign(wanted: "Wanted", path: str) -> bool:
    if not wanted.data.get("identity") or loader.kept_name(path):
        return False
    from nbxrt.binding import identity

    return bool(identity.reason_by_file(wanted, path, None))


def _entry_of(wanted: "Wanted", path: str) -> str:
    """The entry of Python's path that a file lies below, or its folder."""
    entries = [entry for entry in wanted.machine.entries() if entry and path.startswith(os.path.join(entry, ""))]
    return max(entries, key=len, default=os.path.dirname(path))


def package(wanted: "Wanted", where: "Texts", folders: "Texts") -> "Found":
    """The folders of an installed Python package, in every part of a namespace; nothing is imported.

    A second place is the name of the distribution that fits, told by its record beside the package.
    """
    inside = where[0].split(".")
    there: list[tuple[str, str]] = []
    for entry in wanted.machine.entries():
        shadow = os.path.join(entry or os.curdir, inside[0] + ".py")
        if os.path.isfile(shadow):
            said = f"a file of the name of the package `{inside[0]}`; it is not run"
            yield Candidate("package", shadow, "skipped", said)
        base = entry if os.path.isabs(entry) else absolute(entry)
        homes = [os.path.join(base, *inside, folder) for folder in folders] if entry else []
        there += [(entry, home) for home in homes if _is_there(home) is not False]
    if not there:
        yield Candidate("package", where[0], "missing", "not installed")
    bases = {home: entry for entry, home in there}
    for candidate in _in_folders(wanted, "package", [home for _entry, home in there], base=bases):
        if candidate is not None and candidate.is_file and len(where) > 1:
            _compare_distribution(wanted, candidate, where[1])
        yield candidate


def _compare_distribution(wanted: "Wanted", candidate: Candidate, named: str) -> None:
    """Say so when a package comes from another distribution than the one that fits the library beside it."""
    fitting = wanted.expand(named)
    if "{major}" in fitting:
        return
    record = fitting.replace("-", "_") + "-"
    try:
        names = os.listdir(candidate.base)
    except OSError:
        return
    if not any(name.lower().startswith(record) and name.endswith(".dist-info") for name in names):
        beside = wanted.data["beside"]
        candidate.reason = f"not of the distribution {fitting}, which fits the {beside} library"


def conda(wanted: "Wanted", _where: "Texts", _folders: "Texts") -> "Found":
    """The conda environment that Python itself runs in, then the active one: a notebook's kernel has another."""
    machine = wanted.machine
    active = machine.variable("CONDA_PREFIX")
    prefixes = [machine.prefix] if os.path.isdir(os.path.join(machine.prefix, "conda-meta")) else []
    if active and realpath(active) not in map(realpath, prefixes):
        prefixes.append(absolute(active))
    if not prefixes:
        yield Candidate("conda", "$CONDA_PREFIX", "skipped", "not set")
    folders = ("Library/bin", "Library/bin/x64", "bin") if machine.system == "windows" else ("lib", "lib64")
    for prefix in prefixes:
        yield from _in_folders(wanted, "conda", _below(prefix, folders), base=prefix, shown=prefix)


def environment(wanted: "Wanted", where: "Texts", folders: "Texts") -> "Found":
    """The folders below the first variable that is set."""
    given = {name: value for name in where if (value := wanted.machine.variable(name))}
    if not given:
        yield Candidate("environment", " ".join("$" + name for name in where), "skipped", "not set")
        return
    if said := contradiction(given):
        wanted.oddities.append(said)
    name, value = next(iter(given.items()))
    yield from _in_folders(wanted, f"${name}", _below(value, folders), base=absolute(value), shown=value)


def contradiction(given: "Mapping[str, str]") -> str:
    """What is odd about the variables of one step that are set, the one that is taken first; empty when they agree."""
    if len({realpath(value) for value in given.values()}) < 2:
        return ""
    said = " and ".join(f"{name}={value}" for name, value in given.items())
    return f"{said} name different places; `{next(iter(given))}` is taken"


def root(wanted: "Wanted", where: "Texts", folders: "Texts") -> "Found":
    """The folders below a path where installers put the library; with a `*` at its end, every version of it."""
    place = wanted.machine.under(where[0])
    bases = _versions_of(place[:-1]) if place.endswith("*") else [place]
    if not bases:
        yield Candidate("root", place, "missing", "does not exist")
        return
    homes = {home: base for base in bases for home in _below(base, folders)}
    yield from _in_folders(wanted, "root", list(homes), base=homes, shown=place)


def _versions_of(stem: str) -> "list[str]":
    """Folders whose path starts with `stem`, the newest version first."""
    folder, start = os.path.split(stem)
    try:
        names = [name for name in os.listdir(folder) if name.startswith(start)]
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names, key=newest_first)]


def process(wanted: "Wanted", _where: "Texts", _folders: "Texts") -> "Found":
    """The symbols of the process itself."""
    if wanted.machine.system == "windows":
        said = "a process of Windows does not offer its libraries' symbols"
        yield Candidate("process", "this process", "skipped", said)
        return
    yield Candidate("process", "this process", is_file=True)


def system(wanted: "Wanted", _where: "Texts", _folders: "Texts") -> "Found":
    """What the system's loader would find, file by file so that each can be examined, then the loader itself."""
    machine = wanted.machine
    by_path = [name for name, _major in wanted.names if os.path.isabs(name)]
    for name in by_path:
        if machine.system == "macos":  # frameworks are no files since macOS 11, so never tested for existence
            yield Candidate("system", name)
            continue
        path = machine.under(name)
        yield from _file(wanted, "system", path, os.path.dirname(path))
        if _is_there(path) is False:
            yield Candidate("system", path, "missing", "does not exist")
    if machine.system == "linux" and len(by_path) < len(wanted.names):
        yield from _where_the_loader_looks(wanted)
    if not machine.root:
        for name, _major in wanted.names:
            if name and name not in by_path and not _shadowed_by_working_folder(wanted, name):
                yield Candidate("system", name)


def _where_the_loader_looks(wanted: "Wanted") -> "Found":
    yield from _loader_path_changes(wanted)
    cached = loader.cached(wanted.machine, [name for name, _major in wanted.names])
    if cached is None:
        said = "there is no loader cache here; the default folders are searched"
        yield Candidate("system", loader.CACHE, "skipped", said)
    for name, _major in wanted.names:
        yield from _files_of_the_loader(wanted, "system", name, cached or {})


def _files_of_the_loader(
    wanted: "Wanted", step: str, name: str, cached: "Mapping[str, Sequence[str]] | None" = None
) -> "Found":
    """The files that the loader would try for a name, in its order."""
    for path in loader.places_of(wanted.machine, name, cached):
        yield from _file(wanted, step, path if os.path.isabs(path) else absolute(path), os.path.dirname(path))


def _loader_path_changes(wanted: "Wanted") -> "Found":
    now, start = wanted.machine.variable("LD_LIBRARY_PATH"), wanted.machine.started_with("LD_LIBRARY_PATH").strip()
    if now != start:
        reason = (
            "changed after the process started, which the loader does not see; "
            f"set {wanted.variable} to the folder or the file instead"
        )
        yield Candidate("system", "LD_LIBRARY_PATH", "skipped", reason)


def _shadowed_by_working_folder(wanted: "Wanted", name: str) -> bool:
    """An empty part of LD_LIBRARY_PATH means the working folder to the loader: a library is never taken from there."""
    value = wanted.machine.started_with("LD_LIBRARY_PATH")
    return wanted.machine.system == "linux" and bool(value) and "" in value.split(":") and os.path.lexists(name)


def finder(wanted: "Wanted", where: "Texts", _folders: "Texts") -> "Found":
    """What an installed Python package that knows this vendor's layouts answers; asked only when all else has nothing.

    It imports the package, and the package loads what it finds before nbxrt can examine it.
    """
    module, asked = where[0], f"{where[0]}.{where[1]}"
    if wanted.met:
        yield Candidate("finder", asked, "skipped", "not asked, since there are files already")
        return
    from nbxrt.binding import finders  # only where our own steps have nothing at all

    path, why = finders.ask(wanted.machine, module, where[1], where[2], where[3])
    if path:
        yield Candidate("finder", path, base=os.path.dirname(path), is_file=True)
    else:
        yield Candidate("finder", asked, "missing", why)


def _below(base: str, folders: "Texts") -> "list[str]":
    return [absolute(os.path.join(base, folder)) for folder in folders]


def _in_folders(
    wanted: "Wanted", step: str, folders: "Sequence[str]", *, base: "str | dict[str, str]", shown: str = ""
) -> "Found":
    """The library in the folders: best name first, then newest version; then the versions that are not accepted."""
    listings: dict[str, list[str]] = {}
    found = False
    for candidate in _candidates_in(wanted, step, folders, listings, base):
        found = True
        yield candidate
    if not found and not _has_any(wanted, folders) and (shown or folders):
        place = shown or folders[0]
        yield Candidate(step, place, "missing", _why_nothing(wanted, place))


def _why_nothing(wanted: "Wanted", place: str) -> str:
    """Why there is nothing in the folders of a place, with the commonest mistakes of those who name one."""
    if not _is_there(place):
        return "does not exist" + ("; one folder is meant, and not a list" if os.pathsep in place else "")
    said = f"has none of {wanted.said_names}"
    own = next(filter(wanted.has_name, _listed(place)), "")
    return f"{said} in its folders; {own} lies in it itself, and what is above is meant" if own else said


def _has_any(wanted: "Wanted", folders: "Sequence[str]") -> bool:
    """Whether the library is in the folders under some name, be it a file that was met before."""
    return any(map(wanted.has_name, (name for folder in folders for name in _listed(folder))))


def _candidates_in(
    wanted: "Wanted",
    step: str,
    folders: "Sequence[str]",
    listings: "dict[str, list[str]]",
    base: "str | dict[str, str]",
) -> "Found":
    bases = base if isinstance(base, dict) else dict.fromkeys(folders, base)
    for name, major in wanted.names:
        for folder in folders:
            yield from _file(wanted, step, os.path.join(folder, name), bases[folder])
        if major is not None:
            for folder, path in _longer_names(wanted, folders, listings):
                if wanted.major_of(path) == major:
                    yield from _file(wanted, step, path, bases[folder])
    for folder, path in _longer_names(wanted, folders, listings):
        if not wanted.accepts(path)[0]:
            yield from _file(wanted, step, path, bases[folder])


def _file(wanted: "Wanted", step: str, path: str, base: str) -> "Found":
    """The file as a candidate, if it is there and was not met before."""
    there = _is_there(path)
    if there is None:
        folder = os.path.dirname(path)
        if folder not in wanted.met:
            wanted.met.add(folder)
            yield Candidate(step, folder, "broken", "permission denied")
    elif there and wanted.is_new(path):
        yield Candidate(step, path, base=base, is_file=True)


def _is_there(path: str) -> "bool | None":
    """Whether there is something at the path, be it a dangling link; None when that may not be known."""
    try:
        os.lstat(path)
    except PermissionError:
        return None
    except (OSError, ValueError):  # ValueError: no path can be so
        return False
    return True


def _longer_names(
    wanted: "Wanted", folders: "Sequence[str]", listings: "dict[str, list[str]]"
) -> "list[tuple[str, str]]":
    """Files of the library under other names than those of the backend file, newest first: (folder, path)."""
    known = {name for name, _major in wanted.names}
    found = []
    for folder in folders:
        if folder not in listings:
            listings[folder] = _listed(folder)
        matching = (name for name in listings[folder] if name not in known and wanted.has_name(name))
        found += [(folder, os.path.join(folder, name)) for name in matching]
    return sorted(found, key=lambda each: newest_first(os.path.basename(each[1])))


def _listed(folder: str) -> "list[str]":
    try:
        return os.listdir(folder)
    except OSError:
        return []


STEPS = {
    "loaded": loaded,
    "package": package,
    "conda": conda,
    "environment": environment,
    "system": system,
    "root": root,
    "process": process,
    "finder": finder,
}
