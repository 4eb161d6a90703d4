"""The examples train as one process does, whoever has started their ranks. Kernels are interpreted on host memory."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tier("all"), pytest.mark.checkout, pytest.mark.timeout(600)]


def losses(command: list[str], environment: dict[str, str]) -> list[float]:
    """The loss of every step that an example prints."""
    settings = {**environment, "NBX_GPU_BACKEND": "host", "RAY_AUTH_MODE": "disabled"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    return [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]


@pytest.fixture(scope="module")
def alone(root: Path, engines: Path, environment: dict[str, str]) -> list[float]:
    """The losses of one process."""
    python = str(engines / "mpi" / "bin" / "python")
    found = losses([python, str(root / "examples" / "data_parallel.py"), "--alone"], environment)
    assert len(found) == 3
    assert found[2] < found[0]
    return found


@pytest.mark.needs("mpi")
def test_four_ranks_of_mpi_train_as_one_process_does(
    alone: list[float], root: Path, engines: Path, environment: dict[str, str]
) -> None:
    program = [str(engines / "mpi" / "bin" / "python"), str(root / "examples" / "data_parallel.py")]

    found = losses(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", *program], environment)

    assert found == pytest.approx(alone, rel=1e-5)


@pytest.mark.needs("mpi", "ray")
@pytest.mark.xdist_group("ray")
def test_two_workers_of_ray_train_as_one_process_does(
    alone: list[float], root: Path, engines: Path, environment: dict[str, str]
) -> None:
    program = [str(engines / "ray" / "bin" / "python"), str(root / "examples" / "data_parallel.py")]

    assert losses([*program, "--ray", "2"], environment) == pytest.approx(alone, rel=1e-5)
