"""What the three tests of a backend file ask: is its form right, is every operation answered, does it hold together."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbxrt.catalogue.diagnostics import Diagnostic

#: The tests of a file, and the stages of references.py whose faults fail them; `meaning` has all others.
TESTS: dict[str, tuple[str, ...]] = {"schema": ("file", "form"), "parity": ("parity",), "meaning": ()}


def files(path: Path) -> Iterator[Path]:
    """The backend files that a path stands for: of a folder its `*.yaml`, else the file itself."""
    if path.is_dir():
        yield from sorted(path.glob("*.yaml"))
    else:
        yield path


def faults(file: Path, test: str) -> list[Diagnostic]:
    """The faults that one of the tests finds in a file."""
    from nbxrt.catalogue.references import stage

    known = {each: name for name, stages in TESTS.items() for each in stages}
    return [fault for fault in _all_faults(file, _stamp(file)) if known.get(stage(fault.reference), "meaning") == test]


def is_readable(file: Path) -> bool:
    """Whether the file could be read at all: of one that could not nothing else is known."""
    from nbxrt.catalogue import reading

    return reading.scan(file, str(file)).document is not None


@functools.lru_cache(maxsize=64)
def _all_faults(file: Path, _changed: int) -> tuple[Diagnostic, ...]:
    """Every fault; the three tests of a file ask one after the other."""
    from nbxrt.catalogue import inheritance

    return inheritance.validate_file(file)


def _stamp(file: Path) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0
