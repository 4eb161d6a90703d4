"""Where a library is: the steps that a backend file may list, and the search that goes through them in order.

A step is a function in STEPS that yields what it finds: files to try, bare names for the system's loader, and notes on
why it has nothing. It loads nothing. `find` tries each in turn, and keeps every candidate with its reason.
"""

import os

from nbxrt.binding import examine, loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator, Mapping
    from typing import Any

    from nbxrt.binding.machine import Machine


class Candidate:
    """One place where a library was looked for: the step, the path or name, the verdict and the reason in words.

    Verdicts: `chosen`, `broken` (it exists and cannot be used), `refused` (another major), `missing`, `skipped` (the
    step does not apply).
    """

    __slots__ = ("major", "path", "reason", "step", "verdict")

    def __init__(self, step: str, path: str, verdict: str, reason: str, major: "int | None" = None) -> None:
        self.step = step
        self.path = path
        self.verdict = verdict
        self.reason = reason
        self.major = major

    def __repr__(self) -> str:
        return f"{self.step:<12} {self.path:<40} {self.verdict}: {self.reason}"


class Wanted:
    """The library that is looked for: its role, file names on this system best first, and the majors they stand for."""

    __slots__ = ("backend", "machine", "majors", "names", "role", "untested")

    def __init__(self, backend: str, role: str, names: "tuple[Any, ...]", machine: "Machine") -> None:
        self.backend = backend
        self.role = role
        self.machine = machine
        #: (file name, major or None)
        self.names = tuple((files[machine.system].strip(), major) for major, files in names if machine.system in files)
        self.majors = tuple(major for _file, major in self.names if major is not None)
        self.untested = machine.variable("NBXRT_ALLOW_UNTESTED") == "1"

    @property
    def variable(self) -> str:
        """The variable that names an exact file for this role."""
        return f"NBXRT_{self.backend}_{self.role}".upper()

    def expand(self, folder: str) -> str:
        return folder.replace("{machine}", self.machine.processor)

    def major_of(self, path: str) -> "int | None":
        """The major that a file's name, or the name of the file that it links to, stands for."""
        for name in (os.path.basename(path), os.path.basename(os.path.realpath(path))):
            for file, major in self.names:
                if name == file and major is not None:
                    return int(major)
            number = _numbers(name.partition(".so.")[2] or (name.endswith(".dll") and name) or "")
            if number:
                return number[0 if ".so." in name else -1]
        return None

    def has_name(self, name: str) -> bool:
        """Whether a file's name is one of the library's, in whatever version."""
        return any(_same_library(name, file) for file, _major in self.names)

    def accepts(self, path: str) -> "tuple[bool, int | None]":
        """Whether the file's major is one that the backend file lists, and the major."""
        major = self.major_of(path)
        return major is None or not self.majors or major in self.majors, major


def _same_library(name: str, file: str) -> bool:
    """Whether two file names differ in version alone: `libx.so.12` and `libx.so.11.0`.

    Packaging tools add a hash, as in `libx-0a1b2c3d.so.12`; it does not count.
    """
    stem, dot, _version = os.path.basename(file).partition(".so")
    if not dot:
        return _without_digits(name) == _without_digits(os.path.basename(file))
    other, dot, version = name.partition(".so")
    stem_agrees = other == stem or (other.startswith(stem + "-") and _is_hash(other[len(stem) + 1 :]))
    return bool(dot) and stem_agrees and not version.strip("0123456789.")


def _is_hash(text: str) -> bool:
    return len(text) >= 6 and not text.strip("0123456789abcdef")


def _without_digits(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def _numbers(name: str) -> "list[int]":
    """The numbers in a name: `libx.so.12.4` has 12 and 4."""
    return [int(part) for part in "".join(each if each.isdigit() else " " for each in name).split()]


def _try(step: str, path: str) -> "tuple[str, str, str]":
    return ("try", step, path)


def _note(step: str, path: str, verdict: str, reason: str) -> "tuple[str, Candidate]":
    return ("note", Candidate(step, path, verdict, reason))


def find(
    backend: str,
    role: str,
    data: "Mapping[str, Any]",
    machine: "Machine",
) -> "tuple[ctypes.CDLL | None, str, list[Candidate]]":
    """Load the library of a role: (library or None, its path, every candidate with its reason).

    Nothing is raised for what is missing or broken: the candidates say it.
    """
    wanted = Wanted(backend, role, data["names"], machine)
    candidates: list[Candidate] = []
    for found in _found(wanted, data):
        if found[0] == "note":
            candidates.append(found[1])
            continue
        if found[0] == "stop":
            return None, "", candidates
        library, path = _attempt(wanted, found, data["mode"], candidates)
        if library is not None:
            return library, path, candidates
    return None, "", candidates


def _found(wanted: Wanted, data: "Mapping[str, Any]") -> "Iterator[Any]":
    override = wanted.machine.variable(wanted.variable)
    if override:
        yield from _override(wanted, override)
        yield ("stop",)
        return
    if not wanted.names and not any(kind == "process" for kind, _w, _f in data["search"]):
        yield _note("names", "", "skipped", f"the file gives no name on {wanted.machine.system}")
        return
    for kind, where, folders in data["search"]:
        here = tuple(map(wanted.expand, folders.get(wanted.machine.system, ())))
        if here or not folders:
            yield from STEPS[kind](wanted, where, here)


def _attempt(
    wanted: Wanted, found: "tuple[Any, ...]", mode: str, candidates: "list[Candidate]"
) -> "tuple[ctypes.CDLL | None, str]":
    kind, step, path = found[:3]
    is_file = kind == "try"
    taken = "loaded"
    if is_file and step != "process":
        accepted, major = wanted.accepts(path)
        why = examine.fault(path, wanted.machine)
        if why:
            candidates.append(Candidate(step, path, "broken", why, major))
            return None, ""
        if not accepted:
            refusal = _refusal(wanted, step, path, major)
            taken = f"{refusal.reason}; taken because NBXRT_ALLOW_UNTESTED=1"
            if not wanted.untested:
                candidates.append(refusal)
                return None, ""
    library, why = loader.load(path if step != "process" else None, mode, wanted.machine)
    if library is None:
        verdict = "broken" if is_file or why.startswith("needs ") else "missing"
        candidates.append(Candidate(step, path, verdict, why))
        return None, ""
    real = path if is_file else loader.path_of(library) or path
    candidates.append(Candidate(step, real, "chosen", taken, wanted.major_of(real)))
    return library, real


def _refusal(wanted: Wanted, step: str, path: str, major: "int | None") -> Candidate:
    majors = ", ".join(map(str, wanted.majors))
    return Candidate(step, path, "refused", f"major {major} is not among {majors}", major)


# Steps, in the order in which the shipped files use them. Each takes what is wanted, the step's places and its folders.


def _override(wanted: Wanted, value: str) -> "Iterator[Any]":
    """An exact file, or a folder to look in, by NBXRT_<BACKEND>_<ROLE>; nothing else is tried when it is set."""
    step = wanted.variable
    if os.path.isdir(value):
        yield from _in_folders(wanted, step, (os.path.abspath(value),))
    elif os.path.dirname(value) or os.path.exists(value):
        path = os.path.abspath(value)
        yield _try(step, path) if os.path.lexists(path) else _note(step, path, "missing", "does not exist")
    else:
        yield ("name", step, value)


def _loaded(wanted: Wanted, _where: "tuple[str, ...]", _folders: "tuple[str, ...]") -> "Iterator[Any]":
    """A copy that this process has mapped: one process, one runtime."""
    mapped = [path for path in loader.mapped(wanted.machine) if wanted.has_name(os.path.basename(path))]
    ranks = {major: rank for rank, (_file, major) in enumerate(wanted.names)}
    ordered = sorted(mapped, key=lambda path: (ranks.get(wanted.major_of(path), len(ranks)), path))
    if not ordered:
        yield _note("loaded", _names(wanted), "missing", "not mapped in this process")
        return
    for path in ordered:
        accepted, major = wanted.accepts(path)
        if accepted or wanted.untested:
            yield _try("loaded", path)
        else:
            refusal = _refusal(wanted, "loaded", path, major)
            refusal.reason = f"mapped in this process already, and {refusal.reason}"
            yield ("note", refusal)
    if not any(wanted.accepts(path)[0] for path in ordered) and not wanted.untested:
        yield ("stop",)


def _package(wanted: Wanted, where: "tuple[str, ...]", folders: "tuple[str, ...]") -> "Iterator[Any]":
    """The folders of an installed Python package, in every part of a namespace; nothing is imported."""
    (package,) = where
    inside = package.split(".")
    homes: list[str] = []
    for entry in dict.fromkeys(wanted.machine.paths):
        shadow = os.path.join(entry or os.curdir, inside[0] + ".py")
        if os.path.isfile(shadow):
            yield _note("package", shadow, "skipped", f"a file of the name of the package `{inside[0]}`; it is not run")
        if entry:
            homes.extend(os.path.join(entry, *inside, folder) for folder in folders)
    there = [home for home in homes if os.path.isdir(home)]
    if not there:
        yield _note("package", package, "missing", "not installed")
    yield from _in_folders(wanted, "package", there)


def _conda(wanted: Wanted, _where: "tuple[str, ...]", _folders: "tuple[str, ...]") -> "Iterator[Any]":
    """The active conda environment, or the one that Python itself runs in."""
    machine = wanted.machine
    prefix = machine.variable("CONDA_PREFIX")
    if not prefix and os.path.isdir(os.path.join(machine.prefix, "conda-meta")):
        prefix = machine.prefix
    if not prefix:
        yield _note("conda", "$CONDA_PREFIX", "skipped", "not set")
        return
    folders = ("Library/bin", "bin") if machine.system == "windows" else ("lib", "lib64")
    yield from _in_folders(wanted, "conda", [os.path.join(prefix, folder) for folder in folders], prefix)


def _environment(wanted: Wanted, where: "tuple[str, ...]", folders: "tuple[str, ...]") -> "Iterator[Any]":
    """The folders below the first variable that is set."""
    values = {name: wanted.machine.variable(name) for name in where}
    given = {name: value for name, value in values.items() if value}
    if not given:
        yield _note("environment", " ".join("$" + name for name in where), "skipped", "not set")
        return
    if len(set(map(os.path.normpath, given.values()))) > 1:
        _warn_of_conflict(given)
    name, value = next(iter(given.items()))
    step = f"${name}"
    homes = [os.path.normpath(os.path.join(value, folder)) for folder in folders]
    yield from _in_folders(wanted, step, homes, value)


def _warn_of_conflict(given: "dict[str, str]") -> None:
    import warnings  # only when something is odd already

    said = " and ".join(f"{name}={value}" for name, value in given.items())
    first = next(iter(given))
    warnings.warn(f"{said} name different places; `{first}` is taken", RuntimeWarning, stacklevel=2)


def _root(wanted: Wanted, where: "tuple[str, ...]", folders: "tuple[str, ...]") -> "Iterator[Any]":
    """The folders below a path where installers put the library."""
    base = wanted.machine.under(where[0])
    yield from _in_folders(wanted, "root", [os.path.normpath(os.path.join(base, folder)) for folder in folders], base)


def _process(wanted: Wanted, _where: "tuple[str, ...]", _folders: "tuple[str, ...]") -> "Iterator[Any]":
    """The symbols of the process itself."""
    if wanted.machine.system == "windows":
        yield _note("process", "this process", "skipped", "a process of Windows does not offer its libraries' symbols")
        return
    yield _try("process", "this process")


def _system(wanted: Wanted, _where: "tuple[str, ...]", _folders: "tuple[str, ...]") -> "Iterator[Any]":
    """What the system's loader would find, file by file so that each can be examined, then the loader itself."""
    machine = wanted.machine
    absolute = [name for name, _major in wanted.names if os.path.isabs(name)]
    for name in absolute:  # framework paths of macOS: not files since macOS 11, so never tested for existence
        yield ("name", "system", name)
    if machine.system == "linux":
        yield from _loader_path_changes(wanted)
        places = [*loader.start_path(machine), *loader.default_folders(machine)]
        cached = loader.cached(machine, [name for name, _major in wanted.names])
        for name, _major in wanted.names:
            files = [os.path.join(place, name) for place in places[: len(loader.start_path(machine))]]
            files += cached.get(name, [])
            files += [os.path.join(place, name) for place in places[len(loader.start_path(machine)) :]]
            for path in dict.fromkeys(files):
                if os.path.lexists(path):
                    yield _try("system", path)
    if not machine.root:
        for name, _major in wanted.names:
            if name and name not in absolute and not _shadowed_by_working_folder(name, machine):
                yield ("name", "system", name)


def _loader_path_changes(wanted: Wanted) -> "Iterator[Any]":
    now, start = wanted.machine.variable("LD_LIBRARY_PATH"), wanted.machine.started_with("LD_LIBRARY_PATH").strip()
    if now != start:
        reason = (
            "changed after the process started, which the loader does not see; "
            f"set {wanted.variable} to the folder or the file instead"
        )
        yield _note("system", "LD_LIBRARY_PATH", "skipped", reason)


def _shadowed_by_working_folder(name: str, machine: "Machine") -> bool:
    """An empty part of LD_LIBRARY_PATH means the working folder to the loader: a library is never taken from there."""
    value = machine.started_with("LD_LIBRARY_PATH")
    return machine.system == "linux" and bool(value) and "" in value.split(":") and os.path.lexists(name)


def _in_folders(wanted: Wanted, step: str, folders: "Any", shown: str = "") -> "Iterator[Any]":
    """Accepted names, best first, in the folders; then what else of the library is there and why it is not taken."""
    seen: set[str] = set()
    for name, _major in wanted.names:
        for folder in folders:
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            if os.path.lexists(path) and real not in seen:
                seen.add(real)
                yield _try(step, path)
    others = [path for folder in folders for path in _others(wanted, folder) if os.path.realpath(path) not in seen]
    for path in others:
        if wanted.untested:
            yield _try(step, path)
        else:
            yield ("note", _refusal(wanted, step, path, wanted.major_of(path)))
    if not seen and not others and (shown or folders):
        yield _note(step, shown or folders[0], "missing", f"has none of {_names(wanted)}")


def _others(wanted: Wanted, folder: str) -> "list[str]":
    """Files of the library in versions that the backend file does not list, newest first."""
    try:
        entries = os.listdir(folder)
    except OSError:
        return []
    known = {name for name, _major in wanted.names}
    matching = [os.path.join(folder, entry) for entry in entries if wanted.has_name(entry) and entry not in known]
    refused = [path for path in matching if not wanted.accepts(path)[0]]
    return sorted(refused, key=lambda path: [-number for number in _numbers(os.path.basename(path))])


def _names(wanted: Wanted) -> str:
    return ", ".join(name for name, _major in wanted.names)


STEPS = {
    "loaded": _loaded,
    "package": _package,
    "conda": _conda,
    "environment": _environment,
    "system": _system,
    "root": _root,
    "process": _process,
}
