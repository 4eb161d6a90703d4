"""The installed Triton, as its files tell: its version and its backends. It is never imported."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def described(known: Mapping[str, Mapping[str, Any]], paths: Sequence[str]) -> dict[str, Any]:
    """Where Triton is and what it is, and which of its keys each backend goes with."""
    home = _home()
    return {
        "path": home,
        "version": version(paths) if home else "",
        "installed": _backends(home) if home else [],
        "keys": {name: list(each["triton"][0]) for name, each in known.items() if each["triton"]},
    }


def version(paths: Sequence[str]) -> str:
    """The version in the metadata of the distribution that holds the package; `unknown` where there is none."""
    for metadata in _metadata(paths):
        fields = dict(_fields(metadata))
        if fields.get("Name", "").lower() == "triton" or _holds_package(metadata.parent):
            return fields.get("Version", "unknown")
    return "unknown"


def _home() -> str:
    """The package's folder; finding a top-level package imports nothing."""
    try:
        spec = find_spec("triton")
    except (ImportError, ValueError):
        return ""
    return os.path.dirname(spec.origin) if spec is not None and spec.origin else ""


def _backends(home: str) -> list[str]:
    """The keys of its own tree, and those that other packages offer."""
    from importlib.metadata import entry_points  # 20 ms: only where there is a Triton

    own = {driver.parent.name for driver in Path(home, "backends").glob("*/driver.py")}
    return sorted({*own, *(point.name for point in entry_points(group="triton.backends"))})


def _metadata(paths: Sequence[str]) -> Iterator[Path]:
    """METADATA of every distribution with Triton's name in its own: it has several, by who built it."""
    for path in dict.fromkeys(paths):
        if path and os.path.isdir(path):
            yield from sorted(Path(path).glob("*triton*.dist-info/METADATA"))


def _holds_package(folder: Path) -> bool:
    try:
        return "triton/__init__.py," in (folder / "RECORD").read_text("utf-8")
    except OSError:
        return False


def _fields(metadata: Path) -> Iterator[tuple[str, str]]:
    """The header fields of a METADATA file, which end at its first empty line."""
    for line in metadata.read_text("utf-8", "replace").split("\n\n", 1)[0].splitlines():
        name, colon, value = line.partition(": ")
        if colon:
            yield name, value.strip()
