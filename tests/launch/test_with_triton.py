"""Triton's kernels on nbxrt, beside each version of Triton: the tests of `inside`, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

INSIDE = Path(__file__).parent / "inside"
TIERS = {"3.6": "all", "3.9": "all", "3.5": "nightly", "3.7": "nightly", "3.8": "nightly"}


@pytest.mark.tier("all")
@pytest.mark.needs("triton-3.9")
def test_six_kernels_are_right_when_they_are_interpreted(tritons: Path, root: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NBX", "TRITON"))}
    command = [tritons / "3.9" / "bin" / "python", root / "scripts" / "gpu_triton.py", "host", "--small"]

    done = subprocess.run(
        command, env=environment | {"PYTHONPATH": str(root)}, cwd=root, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.tier("all")
@pytest.mark.needs("triton-3.9")
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["examples/gpt2.py", "host"], "torch in the process: no"),
        (["-m", "nbxrt", "demo"], "50000 numbers added by a kernel of Triton 3.9.0, interpreted: every one right"),
    ],
)
def test_what_people_start_runs_kernels_where_there_is_no_gpu(
    command: list[str], says: str, tritons: Path, root: Path
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NBX", "TRITON"))}
    environment |= {"PYTHONPATH": str(root), "NBX_GPU_BACKEND": "host", "NO_COLOR": "1", "COLUMNS": "200"}

    done = subprocess.run(
        [tritons / "3.9" / "bin" / "python", *command],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert says in done.stdout


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("version", "part"),
    [
        pytest.param(version, part, marks=[pytest.mark.tier(tier), pytest.mark.needs(f"triton-{version}", "cc")])
        for version, tier in TIERS.items()
        for part in sorted(file.name for file in INSIDE.glob("triton_*.py"))
    ],
)
def test_beside_triton(version: str, part: str, tritons: Path, root: Path) -> None:
    """Torch is in none of the environments, so nothing here can need it."""
    python = tritons / version / "bin" / "python"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("NBX", "PYTEST", "TRITON"))
    }
    environment |= {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-m", "pytest", "-q", "-c", INSIDE / "pytest.ini", f"--rootdir={root}", INSIDE / part]

    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
