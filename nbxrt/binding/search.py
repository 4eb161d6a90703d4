"""The library search: the steps of a backend file in their order, the first usable copy, and every reason.

What a step looks at is in steps.py, what a file is in examine.py, whose it is in identity.py.
"""

import os

from nbxrt import errors
from nbxrt.binding import examine, loader, steps
from nbxrt.binding.candidates import Candidate, Wanted
from nbxrt.binding.machine import realpath
from nbxrt.binding.steps import STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from nbxrt.binding.machine import Machine

__all__ = ["STEPS", "Candidate", "Wanted", "find", "told_by_folder", "untried"]


def find(
    backend: str,
    role: str,
    data: "Mapping[str, Any]",
    machine: "Machine",
    beside: "Candidate | None" = None,
) -> "tuple[ctypes.CDLL | None, str, list[Candidate]]":
    """Load the library of a role: (library or None, its path, every candidate up to it with its reason).

    `beside` is the chosen candidate of the role that this one belongs with. Nothing is raised for what is missing or
    broken: the candidates say it. Two variables that contradict each other are a warning.
    """
    wanted = Wanted(backend, role, data, machine, beside)
    candidates: list[Candidate] = []
    last: list[Candidate] = []
    try:
        for candidate in _found(wanted):
            if candidate is None:
                break
            candidates.append(candidate)
            if candidate.verdict != "untried" or _waits(wanted, candidate, last):
                continue
            if library := _attempt(wanted, candidate):
                return library, candidate.path, candidates
        for candidate in last:
            if library := _attempt(wanted, candidate):
                candidate.warning = f"{candidate.path}: {candidate.reason}"
                return library, candidate.path, candidates
        return None, "", candidates
    finally:
        for said in wanted.oddities:
            errors.warn(said)


def _found(wanted: Wanted) -> "Iterator[Candidate | None]":
    value = wanted.machine.variable(wanted.variable)
    if value:
        yield from steps.override(wanted, value)
        yield None
        return
    yield from _by_steps(wanted)


def _by_steps(wanted: Wanted, without: "tuple[str, ...]" = ()) -> "Iterator[Candidate | None]":
    data = wanted.data
    if not wanted.names and not any(kind == "process" for kind, _w, _f in data["search"]):
        yield Candidate("names", "", "skipped", f"the file gives no name on {wanted.machine.system}")
        return
    if wanted.beside is None:
        for step in data["search"]:
            yield from _by_step(wanted, step, without)
        return
    from nbxrt.binding import origins  # only for a library that belongs with another

    first = [step for step in data["search"] if step[0] == "loaded"]
    rest = [step for step in data["search"] if step[0] != "loaded"]
    for step in first:
        yield from _by_step(wanted, step, without)
    yield from origins.nearest_first(
        wanted.beside, [candidate for step in rest for candidate in _by_step(wanted, step, without)]
    )


def _by_step(wanted: Wanted, step: "tuple[Any, ...]", without: "tuple[str, ...]") -> "Iterator[Candidate | None]":
    kind, where, folders = step
    here = tuple(map(wanted.expand, folders.get(wanted.machine.system, ())))
    if kind not in without and (here or not folders):
        yield from STEPS[kind](wanted, where, here)


def is_below_a_root(data: "Mapping[str, Any]", machine: "Machine") -> bool:
    """Whether a library lies in a folder that its own search names, under one of its names."""
    if "same_as" in data:
        return False
    names = [files[machine.system] for _major, files in data["names"] if machine.system in files]
    return any(
        os.path.lexists(os.path.join(machine.under(where[0]), folder, name))
        for kind, where, folders in data["search"]
        if kind == "root"
        for folder in folders.get(machine.system, ())
        for name in names
    )


def is_in_sight(backend: str, role: str, data: "Mapping[str, Any]", machine: "Machine") -> bool:
    """Whether a copy that would be taken is there, by looking alone; True where only the loader can tell."""
    if machine.system != "linux":
        return True
    wanted = Wanted(backend, role, data, machine)
    value = machine.variable(wanted.variable)
    found = steps.override(wanted, value) if value else _by_steps(wanted, ("loaded", "finder", "process"))
    return any(
        each is not None and each.is_file and not _waits(wanted, each, []) and not examine.fault(each.path, machine)
        for each in found
    )


# One candidate


def _waits(wanted: Wanted, candidate: Candidate, last: "list[Candidate]") -> bool:
    """Whether the candidate is taken only when nothing else can be: its folder says so, and nobody asked for it."""
    if candidate.step == wanted.variable or not candidate.is_file or candidate.step == "process":
        return False
    told = told_by_folder(wanted.data, candidate.path)
    if told is None or not told[2]:
        return False
    candidate.verdict, candidate.reason = "refused", told[1]
    last.append(candidate)
    return True


def told_by_folder(data: "Mapping[str, Any]", path: str) -> "tuple[str, str, bool] | None":
    """(folder, what its name says of a library in it, whether it comes last), or None."""
    telling = data.get("telling", ())
    if not telling:
        return None
    parts = {*path.split(os.sep), *realpath(path).split(os.sep)}
    return next((each for each in telling if each[0] in parts), None)


def _attempt(wanted: Wanted, candidate: Candidate) -> "ctypes.CDLL | None":
    """Load a candidate, or say why not."""
    if candidate.step == "process":
        library, why = loader.load(None, wanted.data["mode"], wanted.machine)
        _judge(candidate, *(("broken", why) if library is None else ("chosen", "loaded")))
        return library
    if candidate.is_file:
        if not candidate.kept_as and _refused_by_looking(wanted, candidate):
            return None
    elif candidate.path in wanted.unsafe:
        _judge(candidate, "skipped", "the loader would take the unusable copy above")
        return None
    taken = candidate.reason
    library, why = loader.load(candidate.kept_as or candidate.path, wanted.data["mode"], wanted.machine)
    if library is None:
        missing = not candidate.is_file and loader.is_unknown(why, wanted.machine)
        _judge(candidate, "missing" if missing else "broken", _with_chain(wanted, candidate, why))
        _keep_from_loader(wanted, candidate)
        return None
    if not candidate.is_file:
        candidate.path = loader.path_of(library) or candidate.path
        candidate.base = os.path.dirname(candidate.path)
        if os.path.isabs(candidate.path) and _refused_by_looking(wanted, candidate, examined=True):
            return None
    if foreign := _foreign(wanted, candidate, library):
        _judge(candidate, "refused", foreign)
        return None
    candidate.major = wanted.major_of(candidate.path)
    _judge(candidate, "chosen", taken or ("loaded; its file is gone since" if candidate.kept_as else "loaded"))
    _remark(wanted, candidate)
    return library


def _judge(candidate: Candidate, verdict: str, reason: str) -> None:
    candidate.verdict, candidate.reason = verdict, reason


def _refused_by_looking(wanted: Wanted, candidate: Candidate, *, examined: bool = False) -> bool:
    """Judge a file by what can be read of it; False when nothing speaks against it."""
    path = candidate.path
    why = "" if examined else examine.fault(path, wanted.machine)
    if why:
        _judge(candidate, "broken", why)
    else:
        accepted, candidate.major = wanted.accepts(path)
        if foreign := _foreign(wanted, candidate, None):
            _judge(candidate, "refused", foreign)
        elif not accepted and not wanted.untested:
            _judge(candidate, "refused", wanted.refusal(candidate.major))
        elif needs := "" if examined else _fault_of_needed(wanted, candidate):
            _judge(candidate, "broken", needs)
        else:
            return False
    _keep_from_loader(wanted, candidate)
    return True


def _fault_of_needed(wanted: Wanted, candidate: Candidate) -> str:
    """What is wrong with the libraries that the file needs, where they can be found and read."""
    if wanted.machine.system != "linux":
        return ""
    from nbxrt.binding import dependencies  # its files are those of Linux

    return dependencies.fault(candidate.path, wanted.machine)


def _keep_from_loader(wanted: Wanted, candidate: Candidate) -> None:
    """A file that the loader itself would find under its name must not be opened by that name."""
    if candidate.step in ("system", wanted.variable):
        wanted.unsafe.add(os.path.basename(candidate.path))


def _foreign(wanted: Wanted, candidate: Candidate, library: "ctypes.CDLL | None") -> str:
    """Why the file is another vendor's library, by reading it or, once it is loaded, by asking it; else empty."""
    if not wanted.data.get("identity"):
        return ""
    from nbxrt.binding import identity  # only where the backend file tells vendors apart

    if library is None:
        why = identity.reason_by_file(wanted, candidate.path, candidate.major)
    else:
        why = identity.reason_by_asking(wanted, library)
    candidate.is_foreign = bool(why)
    return why


def _with_chain(wanted: Wanted, candidate: Candidate, why: str) -> str:
    """The reason, with the libraries between the candidate and the one that is missing."""
    missing = why.removeprefix("needs ").removesuffix(loader.NOT_FOUND) if why.startswith("needs ") else ""
    if not missing or not candidate.is_file:
        return why
    from nbxrt.binding import dependencies

    between = dependencies.chain(candidate.path, missing, wanted.machine)
    return "".join(f"needs {name}, which " for name in between) + why


def _remark(wanted: Wanted, candidate: Candidate) -> None:
    """Say what is odd about the choice: an untested version, a second copy, a telling folder, another origin."""
    accepted, major = wanted.accepts(candidate.path)
    if not accepted:
        candidate.reason = candidate.warning = f"{wanted.refusal(major)}; taken because NBXRT_ALLOW_UNTESTED=1"
    told = told_by_folder(wanted.data, candidate.path)
    if told is not None:
        candidate.reason = told[1]
    if candidate.step == wanted.variable:
        real = realpath(candidate.path)
        others = [
            path
            for path in steps.mapped_copies(wanted)
            if realpath(path) != real or loader.kept_name(path) not in ("", candidate.path)
        ]
        if others:
            candidate.reason = candidate.warning = (
                f"taken because {wanted.variable} names it, though {' and '.join(sorted(others))} is mapped in this "
                "process already: two copies in one process do not share what they hold"
            )
    if wanted.beside is not None:
        from nbxrt.binding import origins

        if not origins.is_same(wanted.beside, candidate):
            role = wanted.data["beside"]
            candidate.reason += f"; not from where the {role} library is, {wanted.beside.path}"
    if candidate.warning and not candidate.warning.startswith(candidate.path):
        candidate.warning = f"{candidate.path}: {candidate.warning}"


# What was not looked at


def untried(
    backend: str,
    role: str,
    data: "Mapping[str, Any]",
    machine: "Machine",
    candidates: "Sequence[Candidate]",
    beside: "Candidate | None" = None,
) -> "list[Candidate]":
    """The candidates that a search did not get to, judged by looking: nothing is loaded and no package is asked.

    `candidates` are those of the search. What is usable is `untried`; what is broken or refused says why.
    """
    wanted = Wanted(backend, role, data, machine, beside)
    known = {(each.step, each.path) for each in candidates}
    for each in candidates:
        if os.path.isabs(each.path):
            wanted.is_new(each.path)
    chosen = next((each.path for each in candidates if each.verdict == "chosen"), "")
    rest = []
    for candidate in _by_steps(wanted, without=("loaded", "finder", "process")):
        if candidate is None or (candidate.step, candidate.path) in known:
            continue
        if candidate.verdict == "untried":
            if not candidate.is_file:
                continue
            _look(wanted, candidate, chosen)
        rest.append(candidate)
    return rest


def _look(wanted: Wanted, candidate: Candidate, chosen: str) -> None:
    if _refused_by_looking(wanted, candidate):
        return
    told = told_by_folder(wanted.data, candidate.path)
    if told is not None and told[2]:
        _judge(candidate, "refused", told[1])
    else:
        said = told[1] if told is not None else candidate.reason
        _judge(candidate, "untried", "; ".join(filter(None, (said, f"{chosen} comes first" if chosen else "usable"))))
