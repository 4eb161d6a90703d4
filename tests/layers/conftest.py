"""What the tests of layers share: a base that stands alone, files that extend it, and what comes of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt
from toys import description

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbxrt.catalogue.diagnostics import Diagnostic


@dataclass
class Layered:
    """Files in a folder that NBXRT_BACKEND_PATH names."""

    folder: Path

    def base(self, **changes: Any) -> Path:
        """The toy as a file that stands alone."""
        return self.put("toy", description(**changes))

    def put(self, stem: str, content: str | Mapping[str, Any]) -> Path:
        """A file of the folder, as text or as data."""
        file = self.folder / f"{stem}.yaml"
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False), "utf-8")
        return file

    def extend(self, said: str = "", stem: str = "site", base: str = "toy", name: str = "site") -> Path:
        """A file that extends another and says some more."""
        return self.put(stem, f"contract: 1\nname: {name}\nextends: {base}\n{said}")

    def faults(self, said: str, **where: str) -> tuple[Diagnostic, ...]:
        """The faults of a file that extends another and says some more."""
        return nbxrt.validate(self.extend(said, **where))

    def fault(self, said: str, **where: str) -> Diagnostic:
        """The only fault of such a file."""
        (fault,) = self.faults(said, **where)
        return fault


@pytest.fixture
def layered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Layered]:
    folder = tmp_path / "backends"
    folder.mkdir()
    monkeypatch.setenv("NBXRT_BACKEND_PATH", os.fspath(folder))
    made = Layered(folder)
    made.base()
    yield made
    nbxrt.reset()
