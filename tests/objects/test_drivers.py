"""The tests of objects that are for any backend, on APIs of objects: real OpenCL drivers, and Metal's stand-in.

A loader of OpenCL reads its list of drivers once a process, so each driver has a run of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import objective_c
import simulations

if TYPE_CHECKING:
    from collections.abc import Mapping


def _on(backend: str, environment: Mapping[str, str], without: str) -> int:
    """How many tests of this folder that are for any backend pass on that one; all have to, but those named."""
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-k",
        f"{backend} and not ({without})", str(Path(__file__).parent),
    ]  # fmt: skip
    chosen = {**environment, "NBXRT_TEST_OBJECTS_ON": backend, "NBXRT_TEST_TIER": "fast"}
    done = subprocess.run(command, env=chosen, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout
    assert "skipped" not in done.stdout
    return int(passed[1])


@pytest.mark.tier("all")
@pytest.mark.needs("opencl")
@pytest.mark.parametrize("driver", ["pocl", "intel"])
def test_objects_behave_on_real_drivers_of_opencl(driver: str, tmp_path: Path) -> None:
    """DLPack's number for OpenCL means buffer objects, which memory with an address is not: nothing is exchanged."""
    from opencl import drivers

    assert _on("opencl", drivers.environment(driver, tmp_path), "test_dlpack or test_drivers") >= 50


@pytest.mark.tier("all")
@pytest.mark.needs("opencl")
@pytest.mark.parametrize("driver", ["pocl-buffers", "intel-buffers"])
def test_objects_behave_where_memory_is_buffer_objects(driver: str, tmp_path: Path) -> None:
    """Such devices have neither pinned nor managed memory, which the tests of the contract and these others use."""
    from opencl import drivers

    without = "test_dlpack or test_drivers or test_contract or pinned or managed or every_kind"
    assert _on("opencl", drivers.environment(driver, tmp_path), without) >= 40


@pytest.mark.tier("all")
@simulations.NEEDED[0]
@simulations.NEEDED[1]
@pytest.mark.parametrize(("backend", "model"), [("opencl", "usm"), ("opencl", "svm")])
def test_objects_behave_on_the_simulation_of_an_api_of_objects(backend: str, model: str, tmp_path: Path) -> None:
    simulation = simulations.built(backend, tmp_path, devices=1)
    environment = {**os.environ, **simulation.environment(models=model)}

    assert _on(backend, environment, "test_dlpack or test_drivers") >= 50


@pytest.mark.tier("all")
@pytest.mark.needs("gobjc")
def test_objects_behave_on_the_stand_in_for_metal() -> None:
    """DLPack has a number for Metal's device memory alone."""
    environment = {**os.environ, **objective_c.Stub(objective_c.compiled()).environment()}

    assert _on("metal", environment, "test_codes_are_those or test_metal_has or test_drivers") >= 60
