"""A user's backend file, from its path to the plain values that the binder reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import reading, sources, validation
from nbxrt.catalogue.compiling import compile_backend
from nbxrt.catalogue.model import Backend, structure
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbxrt.catalogue.document import Document


def backend(source: sources.Source) -> Backend:
    """The model of a file, validated. Raises: DescriptionError with every fault."""
    document = reading.read(source.file, source.shown)
    faults = validation.check(document, contracts.load())
    if faults:
        raise DescriptionError(faults)
    return _structured(document, source.shown)


def _structured(document: Document, shown: str) -> Backend:
    return structure(document.data, file=shown, line=lambda path: document.place(path).line)


def compiled(path: str, contract: Mapping[str, Any]) -> dict[str, Any]:
    """A file's description. Raises: DescriptionError with every fault."""
    return compile_backend(backend(explicit(path)), dict(contract))


def explicit(path: str) -> sources.Source:
    """The file at a path, which may describe a backend of any name."""
    return sources.Source(Path(path).stem, Path(path), path, "given by path")


def on_path(contract: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, DescriptionError]]:
    """Descriptions in NBXRT_BACKEND_PATH by name, and the errors of those that cannot be used, by name too."""
    descriptions: dict[str, Any] = {}
    unusable: dict[str, DescriptionError] = {}
    found = sources.find()
    for name, source in found.sources.items():
        if source.origin != sources.PATH_VARIABLE:
            continue
        try:
            descriptions[name] = compile_backend(backend(found.select(name)), dict(contract))
        except DescriptionError as error:
            unusable[name] = error
    return descriptions, unusable


def stamp(value: str) -> tuple[Any, ...]:
    """What changes when a file named in the value of NBXRT_BACKEND_PATH does."""
    stamps = []
    for part in filter(None, map(str.strip, value.split(os.pathsep))):
        path = Path(part)
        for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
            try:
                status = file.stat()
            except OSError:
                continue
            stamps.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(stamps)
