"""Ranks as processes: each runs a scenario of scenarios.py, on devices of a simulated vendor or on host memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.skipif(sys.platform != "linux", reason="ranks are processes of Linux here"))


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment of a rank: nbxrt and the scenarios as this process has them, and no settings of the user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NBX", "OMPI_", "PMI"))}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)]), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def ranks(simulate: Callable[..., Simulation], tmp_path: Path, environment: dict[str, str]) -> Callable[..., list[int]]:
    """Runs a scenario in so many processes of their own, each on a simulated device; how each ended."""

    def run(scenario: str, size: int, vendor: str = "cuda", **settings: Any) -> list[int]:
        simulation = simulate(vendor, devices=size)
        meeting = tempfile.mkdtemp(dir=tmp_path)
        shared = {**environment, **simulation.environment(), "SIZE": str(size), "MEET": meeting}
        shared |= {"BACKEND": vendor, **settings}
        command = [sys.executable, "-W", "error", str(HERE / "scenarios.py"), scenario]
        processes = [
            subprocess.Popen(
                command, env={**shared, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for rank in range(size)
        ]
        said = [process.communicate(timeout=110)[0] for process in processes]
        assert said == [""] * size, "\n".join(said)
        return [process.returncode for process in processes]

    return run
