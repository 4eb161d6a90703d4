"""A user's backend file, from its path to the plain values that the binder reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import inheritance, sources
from nbxrt.catalogue.compiling import compile_backend
from nbxrt.catalogue.model import Backend, structure
from nbxrt.errors import DescriptionError, again

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Document
    from nbxrt.catalogue.inheritance import Whole


def backend(source: sources.Source, found: sources.Found | None = None) -> Backend:
    """The model of a file with what it extends, validated. Raises: DescriptionError with every fault."""
    return _structured(whole(source, found).document, source.shown)


def whole(source: sources.Source, found: sources.Found | None = None) -> Whole:
    """A file with all that it extends, looked up among `found`. Raises: DescriptionError with every fault."""
    answer = inheritance.whole(source.usable(), found or sources.find(), contracts.load())
    if answer.faults:
        raise DescriptionError([_with_origin(fault, source) for fault in answer.faults])
    return answer


def _with_origin(fault: Diagnostic, source: sources.Source) -> Diagnostic:
    """A fault of a file that the user never named says who did."""
    is_theirs = source.origin != sources.BUILT_IN and not source.is_users
    return attrs.evolve(fault, notes=(*fault.notes, f"offered by the {source.origin}")) if is_theirs else fault


def _structured(document: Document | None, shown: str) -> Backend:
    assert document is not None  # noqa: S101  # there was no fault
    return structure(document.data, file=shown, line=inheritance.lines(document, shown))


def compiled(source: sources.Source, found: sources.Found, contract: Mapping[str, Any]) -> dict[str, Any]:
    """A file's description; beside what every description has, `layers`: the files that a user named for it.

    Raises: DescriptionError with every fault.
    """
    answer = whole(source, found)
    plain = compile_backend(_structured(answer.document, source.shown), dict(contract))
    return {**plain, "layers": tuple(each.shown for each in answer.sources if each.is_users)}


def given(path: str, contract: Mapping[str, Any]) -> dict[str, Any]:
    """The description in the file at a path. Raises: DescriptionError with every fault."""
    return compiled(*selected(path), contract)


def selected(path: str) -> tuple[sources.Source, sources.Found]:
    """The file at a path, which may describe a backend of any name, among all others."""
    found = sources.find(Path(path))
    return found.given(Path(path)), found


def explicit(path: str) -> sources.Source:
    """The file at a path, which may describe a backend of any name."""
    return selected(path)[0]


@attrs.define(eq=False)
class Load:
    """Gives the description in a file, made when it is first asked for. An error is kept as well, and raised anew."""

    source: sources.Source
    found: sources.Found
    contract: Mapping[str, Any]
    _made: dict[str, Any] | DescriptionError | None = attrs.field(default=None, init=False)

    def __call__(self) -> dict[str, Any]:
        """The description. Raises: DescriptionError with every fault."""
        if self._made is None:
            try:
                self._made = compiled(self.source, self.found, self.contract)
            except DescriptionError as error:
                self._made = error
        if isinstance(self._made, DescriptionError):
            raise again(self._made)
        return self._made


def on_path(contract: Mapping[str, Any]) -> tuple[dict[str, Load], tuple[str, ...]]:
    """What loads each description in NBXRT_BACKEND_PATH, by name, and what is named there and is not there."""
    found = sources.find()
    named = {name: each for name, each in found.sources.items() if each.origin == sources.PATH_VARIABLE}
    return {name: Load(each, found, contract) for name, each in named.items()}, tuple(map(str, found.missing))


def of_packages(contract: Mapping[str, Any]) -> dict[str, Load]:
    """What loads each description that installed packages offer; a name that another source has is not theirs."""
    from nbxrt.catalogue import packages  # reads all metadata of the environment

    found = sources.find()
    offered = packages.sources().items()
    return {name: Load(each, found, contract) for name, each in offered if name not in found.sources}


def stamp(value: str) -> tuple[Any, ...]:
    """What changes when a file named in the value of NBXRT_BACKEND_PATH does."""
    stamps = []
    for part in filter(None, map(str.strip, value.split(os.pathsep))):
        path = Path(part)
        for file in sorted(path.glob("*.yaml")) if os.path.isdir(part) else [path]:
            try:
                status = file.stat()
            except OSError:
                continue
            stamps.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(stamps)
