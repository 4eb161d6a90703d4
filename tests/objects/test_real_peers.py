"""Memory of the host exchanged with other libraries, each in an environment of its own."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from copies import run

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.checkout,
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("peers"),
]

_BIN = "Scripts" if sys.platform == "win32" else "bin"


@pytest.mark.parametrize(("peer", "packages"), [("torch", ["torch==2.13.0", "numpy"]), ("jax", ["jax[cpu]", "numpy"])])
def test_memory_goes_there_and_back(peer: str, packages: list[str], tmp_path: Path, root: Path) -> None:
    venv.create(tmp_path / peer, with_pip=True)
    python = tmp_path / peer / _BIN / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, cwd=tmp_path)

    program = Path(__file__).parent / "peer_exchange.py"
    said = run(python, "-W", "error::ResourceWarning", program, peer, cwd=tmp_path, PYTHONPATH=os.fspath(root))

    assert int(said.split()[-1]) > 60
