"""Backends that installed packages offer by entry points of the group `nbxrt.backends`.

    [project.entry-points."nbxrt.backends"]
    acme = "acme_gpu.backends"             # a folder of the package, with YAML files in it

The folder is found and the package is never imported: what its code does cannot harm us. All metadata of the
environment is read for it, which takes tens of milliseconds, so it is asked only for names that nothing else has.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from nbxrt.catalogue.diagnostics import Diagnostic, quoted
from nbxrt.catalogue.sources import Missing, Source, files_at

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "nbxrt.backends"

_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@attrs.frozen
class Offer:
    """An entry point: its name, the folder that it names, and the distribution that has it."""

    name: str
    value: str
    distribution: str

    @property
    def said(self) -> str:
        """The entry point as messages name it."""
        return f"entry point `{self.name} = {self.value}` of {self.distribution}"


def sources() -> dict[str, Source]:
    """The backends that packages offer, by name. One that cannot be used is there with its reason, and harms no other.

    A backend that two packages offer is unusable, and names both.
    """
    found: dict[str, dict[str, Source]] = {}
    for offer in _offers():
        for source in _offered(offer):
            found.setdefault(source.name, {}).setdefault(os.path.realpath(str(source.file)), source)
    return {name: _the_one([*offered.values()]) for name, offered in found.items()}


def _the_one(offered: list[Source]) -> Source:
    """What is in force of the sources of one name: the only one that can be used; a broken one takes no place."""
    usable = [source for source in offered if not source.diagnostics]
    return _offered_twice(*usable[:2]) if len(usable) > 1 else (usable or offered)[0]


def _offered_twice(one: Source, other: Source) -> Source:
    message = f"two packages offer `{one.name}`: {one.origin}, and {other.origin}"
    hint = "uninstall one of them, or name the file that you mean by its path"
    note = f"the files are {one.shown} and {other.shown}"
    fault = Diagnostic(one.shown, 1, 1, 1, "offered-twice", message, notes=(note,), hint=hint)
    return attrs.evolve(one, diagnostics=(fault,), document=None)


def _offers() -> Iterator[Offer]:
    """Every entry point of the group; of a distribution that is installed twice the first counts, as for imports."""
    seen: set[str] = set()
    for distribution in metadata.distributions(path=_path()):
        try:
            name = str(distribution.metadata["Name"])
            said = f"{name} {distribution.version}"
            points = [point for point in distribution.entry_points if point.group == GROUP]
        except Exception:  # noqa: BLE001, S112  # whatever a damaged installation raises, it offers us nothing
            continue
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in seen:
            seen.add(key)
            yield from (Offer(point.name, point.value, said) for point in points)


def _offered(offer: Offer) -> Iterator[Source]:
    """The files in the folder of an entry point; the entry point itself, unusable, where there are none."""
    try:
        folder = _folder(offer.value)
    except Exception as error:  # noqa: BLE001  # a finder of somebody else's may raise anything
        yield _broken(offer, str(error) or type(error).__name__, error)
        return
    for found in files_at(folder, offer.said):
        if isinstance(found, Missing):
            yield _broken(offer, f"{found.reason}: {found.path}", FileNotFoundError(found.path))
        else:
            yield attrs.evolve(found, diagnostics=tuple(_offered_by(offer, each) for each in found.diagnostics))


def _offered_by(offer: Offer, fault: Diagnostic) -> Diagnostic:
    return attrs.evolve(fault, notes=(*fault.notes, f"offered by the {offer.said}"))


def _broken(offer: Offer, reason: str, cause: Exception) -> Source:
    message = f"the {offer.said} cannot be used: {reason}"
    hint = f"install {offer.distribution.split()[0]} again, or uninstall it"
    fault = Diagnostic(offer.said, 1, 1, 1, "broken-entry-point", message, hint=hint)
    return Source(offer.name, Path(offer.value), offer.said, offer.said, diagnostics=(fault,), cause=cause)


def _folder(value: str) -> Path:
    """The folder that a dotted name means, below a package that is found and not imported.

    Raises: ModuleNotFoundError, NotADirectoryError, ValueError, or what a finder raises.
    """
    if not _MODULE.fullmatch(value):
        message = f"{quoted(value)} is not the dotted name of a package's folder"
        raise ValueError(message)
    top, *below = value.split(".")
    places = _places(top)
    if places is None:
        message = f"no package {quoted(top)} is installed"
        raise ModuleNotFoundError(message, name=top)
    folders = [Path(place, *below) for place in places]
    found = next((folder for folder in folders if folder.is_dir()), None)
    if found is None and (not folders or any(Path(f"{folder}.py").is_file() for folder in folders)):
        message = f"{quoted(value)} is a module, and no folder that could hold YAML files"
        raise NotADirectoryError(message)
    return found or folders[0]


def _places(top: str) -> list[str] | None:
    """The folders of a top-level package, as the import system would find them; none of a module, None of nothing."""
    module = sys.modules.get(top)
    if module is not None:
        return list(getattr(module, "__path__", ()))
    for finder in sys.meta_path:
        path = _path() if finder is PathFinder else None
        spec = finder.find_spec(top, path)
        if spec is not None:
            return list(spec.submodule_search_locations or ())
    return None


def _path() -> list[str]:
    """`sys.path` without the current directory, which Python puts first for its own `-c` and `-m`."""
    first = sys.path[:1]
    is_here = bool(first) and Path(first[0] or os.curdir).resolve() == Path.cwd()
    return [entry for entry in sys.path[is_here:] if entry]
