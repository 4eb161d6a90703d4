"""What tests on simulated vendor libraries share: what building one needs, and processes that use one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbxrt.simulation import build

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

#: Above the numbers of all processes of Linux: this one and others that there are have none of these.
STRANGER = 1 << 23

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


def others_run_while(simulation: Simulation, operation: str, call: Callable[[], object]) -> bool:
    """Whether other threads run while a call waits in that operation: it comes back when one of them lets it."""
    simulation.sleep(operation, 30_000_000)
    waiting = threading.Thread(target=call)
    waiting.start()
    for _turn in range(20):  # there would be none were the interpreter's lock kept, and the call would be over
        time.sleep(0.002)
    waits = waiting.is_alive()
    simulation.mend()
    waiting.join()
    return waits


def run(program: str, environment: dict[str, str], seconds: float = 100) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has nbxrt as this one has, and none of the user's settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NBX")}
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
    return subprocess.run(
        command, env=inherited | paths | environment, capture_output=True, text=True, timeout=seconds, check=False
    )
