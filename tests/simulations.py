"""What tests on simulated vendor libraries share: what building one needs, and processes that use one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbxrt.simulation import build

if TYPE_CHECKING:
    from nbxrt.simulation import Simulation

#: Marks of a test that builds a simulation.
NEEDED = (
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform == "win32", reason="simulations are built on Linux and macOS"),
)


def mark(items: list[pytest.Item], folder: str) -> None:
    """Mark every test of a folder as one that builds simulations."""
    for item in items:
        if item.path.parent.name == folder:
            for each in NEEDED:
                item.add_marker(each)


def cache() -> Path:
    """Where what tests compile is kept, once a machine."""
    return Path(tempfile.gettempdir()) / f"nbxrt-test-simulations-{os.getuid()}"


def built(backend: Any, folder: Path, **options: Any) -> Simulation:
    """A simulated vendor library in that folder; what is compiled for it is compiled once a machine."""
    return build(backend, folder, cache=cache(), **options)


def run(program: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has nbxrt as this one has, and none of the user's settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NBX")}
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
    return subprocess.run(
        command, env=inherited | paths | environment, capture_output=True, text=True, timeout=60, check=False
    )
