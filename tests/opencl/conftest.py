"""A program that runs with one OpenCL driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[[str, str], dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program with one driver alone; what it says last."""
    from opencl import drivers

    return lambda driver, program: drivers.run(driver, tmp_path, program)
