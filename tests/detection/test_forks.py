"""B07: what may be done before a fork, and what a child is told of that may not (a driver does not survive a fork)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from nbxrt.simulation import read_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.simulation import Simulation

pytestmark = [
    pytest.mark.needs("cc"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here"),
]

FORK = """
    import os
    pid = os.fork()
    if not pid:
        try:
            print(nbxrt.open("cuda").malloc(64) > 0, flush=True)
        except nbxrt.DeviceError as error:
            print(error.kind, error, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""


def run(simulation: Simulation, program: str, **settings: object) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NBX")}
    environment |= simulation.environment(**settings) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", textwrap.dedent(program) + textwrap.dedent(FORK)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "before",
    ["", "nbxrt.validate('cuda')", "nbxrt.open('cuda')", "nbxrt.detect(usable=True)"],
    ids=["import", "validate", "open", "a device used in a child process"],
)
def test_a_child_works_after_what_calls_no_driver(
    simulate: Callable[..., Simulation], tmp_path: Path, before: str
) -> None:
    simulation = simulate("cuda", "12.9")

    said = run(simulation, f"import nbxrt\n{before}\n", log=tmp_path / "calls.log")

    assert said == "True\n"
    assert "malloc" in [call.operation for call in read_log(tmp_path / "calls.log")]


@pytest.mark.parametrize("before", ["", "nbxrt.validate('cuda')", "nbxrt.open('cuda')"])
def test_importing_validating_and_opening_call_no_function_of_the_vendor(
    simulate: Callable[..., Simulation], tmp_path: Path, before: str
) -> None:
    simulation = simulate("cuda", "12.9")

    run(simulation, f"import nbxrt\n{before}\nraise SystemExit\n", log=tmp_path / "calls.log")

    assert read_log(tmp_path / "calls.log") == []


def test_a_child_of_a_process_that_used_the_driver_is_told_what_to_do(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cuda", "12.9")

    said = run(simulation, "import nbxrt\nnbxrt.open('cuda').device_count()\n")

    assert said.startswith("not_initialized `malloc` failed: NOT_INITIALIZED (3)")
    assert "forked after the driver was initialised" in said
    assert "hint: start it with `spawn`" in said


def test_a_child_that_resets_is_told_so_too(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cuda", "12.9")
    before = "import nbxrt, os\nnbxrt.open('cuda').device_count()\nos.register_at_fork(after_in_child=nbxrt.reset)\n"

    said = run(simulation, before)

    assert "forked after the driver was initialised" in said


def test_the_table_of_hip_asks_its_runtime_nothing(simulate: Callable[..., Simulation], tmp_path: Path) -> None:
    """HIP's runtime is initialised by any question, that for its version too, and no symbol depends on the answer."""
    simulation = simulate("hip", "7.1")
    program = "import nbxrt\nnbxrt.open('hip')\ntable = nbxrt.backend_table()\nprint(table['malloc'], table['free'])\n"

    said = run(simulation, program, log=tmp_path / "calls.log").splitlines()[0]

    assert said == "hipMalloc hipFree"
    assert [call.symbol for call in read_log(tmp_path / "calls.log") if call.symbol.startswith("hip")] == []


def test_such_a_child_releases_nothing_of_its_parents_at_its_end(
    simulate: Callable[..., Simulation], tmp_path: Path
) -> None:
    simulation = simulate("cuda", "12.9")
    program = """
        import nbxrt, os
        runtime = nbxrt.open("cuda")
        runtime.malloc(64), nbxrt.process_memory(0)
        print(os.getpid(), flush=True)
    """

    parent = int(run(simulation, program, log=tmp_path / "calls.log").split()[0])

    calls = read_log(tmp_path / "calls.log")
    assert [call.operation for call in calls if call.process != parent and call.operation in ENDS] == []


ENDS = ("free", "management.close", "stream_destroy", "module_unload")
