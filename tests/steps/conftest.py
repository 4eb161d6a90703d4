"""The shelf: an API of objects in C, and its backend file, which every test may change."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt
from libraries import make_library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent


class Shelf:
    """The open shelf: its runtime, and the knobs and counters of its library."""

    def __init__(self, runtime: nbxrt.Runtime, library: Path) -> None:
        self.runtime: Any = runtime
        self._library = ctypes.CDLL(str(library))

    def __getitem__(self, name: str) -> int:
        return int(ctypes.c_int.in_dll(self._library, f"shelf_{name}").value)

    def __setitem__(self, name: str, value: int) -> None:
        ctypes.c_int.in_dll(self._library, f"shelf_{name}").value = value

    def fail(self, function: str) -> None:
        """Let the next call of a function fail."""
        ctypes.memset(ctypes.addressof(self._fails()), 0, 64)
        self._fails().value = function.encode()

    def _fails(self) -> Any:
        return (ctypes.c_char * 64).in_dll(self._library, "shelf_fail")


def described() -> dict[str, Any]:
    """The shelf's backend file as data, which a test may change."""
    data: dict[str, Any] = yaml.safe_load((HERE / "shelf.yaml").read_text("utf-8"))
    return data


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Shelf]]:
    """Opens the shelf, whose operations and other parts a test may change; an operation that is None is left out."""
    library = make_library(tmp_path / "libshelf.so.1", (HERE / "shelf.c").read_text("utf-8"))
    monkeypatch.setenv("NBXRT_SHELF_RUNTIME", str(library))

    def opened(**changes: Any) -> Shelf:
        data = described()
        operations = data["operations"] | changes.pop("operations", {})
        data["operations"] = {name: each for name, each in operations.items() if each is not None}
        file = tmp_path / "shelf.yaml"
        file.write_text(yaml.safe_dump(data | changes, sort_keys=False), "utf-8")
        return Shelf(nbxrt.open(file), library)

    yield opened
    nbxrt.reset()
