"""What the tests about writing backend files share: the contract, one that has grown, and the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.catalogue.contract import Contract

HOME = str(Path(nbxrt.__file__).parents[1])

LATER = """
  warp_drive:
    group: device
    says: Faster than light.
    takes: {}
    gives: {}
    c: []
    since: 2
  memcpy_2d:
    group: memory
    says: Copies rows.
    takes: {dst: address, src: address, nbytes: nbytes}
    gives: {}
    c: [dst, src, nbytes]
    since: 2
"""


@pytest.fixture(scope="session")
def contract() -> Contract:
    return contracts.load()


@pytest.fixture(scope="session")
def grown() -> Contract:
    """A copy of the contract with two operations more, of contract 2."""
    text = (data_folder("schema") / "operations.yaml").read_bytes().decode()
    return contracts.read((re.sub(r"(?m)^contract: 1$", "contract: 2", text).rstrip() + LATER).encode())


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python in the test's folder with the nbxrt under test, and nothing of this process's variables."""

    def run(*arguments: Any, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
        environment = {**kept, "PYTHONPATH": HOME, **variables}
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run
