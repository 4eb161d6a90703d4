"""Memory of the host exchanged with other libraries, and snapshots read by PyTorch, in environments of their own."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt
from copies import run
from nbxrt.memory import layers

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.checkout,
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("peers"),
]

PACKAGES = {"torch": ["torch==2.13.0", "numpy"], "jax": ["jax[cpu]", "numpy"]}
_BIN = "Scripts" if sys.platform == "win32" else "bin"


@pytest.fixture(scope="module")
def python_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The interpreter of an environment that has a peer, made at the first request."""
    made: dict[str, Path] = {}

    def find(peer: str) -> Path:
        if peer not in made:
            folder = tmp_path_factory.mktemp("peers") / peer
            venv.create(folder, with_pip=True)
            python = folder / _BIN / "python"
            run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[peer], cwd=folder)
            made[peer] = python
        return made[peer]

    return find


@pytest.mark.parametrize("peer", PACKAGES)
def test_memory_goes_there_and_back(peer: str, python_with: Callable[[str], Path], tmp_path: Path, root: Path) -> None:
    program = Path(__file__).parent / "peer_exchange.py"

    said = run(
        python_with(peer), "-W", "error::ResourceWarning", program, peer, cwd=tmp_path, PYTHONPATH=os.fspath(root)
    )

    assert int(said.split()[-1]) > 60


#: The reader is a program of its own: torch itself is not imported.
READ = """
import importlib.util, os, pickle, runpy, sys
folder = os.path.dirname(importlib.util.find_spec("torch").origin)
reader = runpy.run_path(os.path.join(folder, "cuda", "_memory_viz.py"), run_name="reader")
with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
print(f"segments: {len(snapshot['segments'])}" in reader["segsum"](snapshot))
print("Device 0" in reader["trace"](snapshot))
print("active_allocated" in reader["memory"](snapshot, format_flamegraph=str))
print("snapshot.pickle" in reader["trace_plot"](snapshot))
"""


@pytest.mark.needs("cc")
def test_pytorchs_own_reader_reads_a_snapshot(
    python_with: Callable[[str], Path], simulate: Callable[..., Simulation], tmp_path: Path
) -> None:
    runtime = simulate("cuda", "12.9").open()
    account = nbxrt.DeviceAllocator(runtime, "caching")
    account.add_layer(layers.History)
    held = [account.malloc(1 << size) for size in range(10, 24)]
    for ptr in held[::2]:
        account.free(ptr)
    account.snapshot(tmp_path / "memory.pickle")

    said = run(python_with("torch"), "-c", READ, tmp_path / "memory.pickle", cwd=tmp_path)

    assert said.split() == ["True"] * 4
