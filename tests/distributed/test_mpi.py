"""Communicators under Open MPI: on host memory by MPI's own collectives, and on simulated devices."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nbxrt import descriptions

if TYPE_CHECKING:
    from nbxrt.simulation import Simulation

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("mpi", "cc")]

HERE = Path(__file__).parent

#: Runs a scenario under `mpirun`: how that ended, and what each rank has said.
Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def mpirun(engines: Path, environment: dict[str, str], tmp_path: Path) -> Run:
    """What ranks say goes to files: the launcher mixes what they say at once, in the middle of a line."""

    def run(
        scenario: str, ranks: int, settings: dict[str, str], *options: str, check: str = "", by: tuple[str, ...] = ()
    ) -> tuple[int, list[str]]:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--output-filename", f"{folder}:nojobid,nocopy"]
        program = [str(engines / "mpi" / "bin" / "python"), str(HERE / "scenarios.py"), scenario]
        done = subprocess.run(
            [*command, *options, "-n", str(ranks), *by, *program],
            env={**environment, "ENGINE": "mpi", "NBXRT_DIST_CHECK": check, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
            check=False,
        )
        if done.returncode == 0 and not options:
            assert done.stdout == "", "the launcher itself has nothing to say"
        return done.returncode, [_said(folder / f"rank.{rank}") for rank in range(ranks)]

    return run


def _said(folder: Path) -> str:
    return "".join((folder / name).read_text("utf-8") for name in ("stdout", "stderr"))


@pytest.fixture(params=["host", "simulated", "no-collectives"])
def settings(request: pytest.FixtureRequest, simulate: Callable[..., Simulation], tmp_path: Path) -> dict[str, str]:
    """What makes a rank use host memory, one of four simulated devices, or one whose backend has no collectives."""
    if request.param == "host":
        return {"NBX_GPU_BACKEND": "host"}
    devices = {"NBX_GPU_BACKEND": "cuda", **simulate("cuda", "12.9", devices=4).environment()}
    if request.param == "simulated":
        return devices
    operations = descriptions.contract()["operations"]
    without = [name for name, entry in operations.items() if entry["group"] == "collective"]
    without.remove("comm_unique_id")  # a role that nothing uses would be a fault
    file = tmp_path / "lonely.yaml"
    file.write_text("contract: 1\nextends: cuda\noperations:\n" + "".join(f"  {name}: null\n" for name in without))
    return {**devices, "NBXRT_BACKEND_PATH": str(file), "NBXRT_TRUST_FILES": "1"}


def test_four_ranks_receive_what_numpy_says(mpirun: Run, settings: dict[str, str]) -> None:
    assert mpirun("everything", 4, settings) == (0, [""] * 4)


def test_different_calls_are_found_by_the_check(mpirun: Run, settings: dict[str, str]) -> None:
    assert mpirun("different_calls", 3, settings, check="1") == (0, [""] * 3)


def test_a_rank_that_is_killed_is_named_at_once(mpirun: Run, settings: dict[str, str], tmp_path: Path) -> None:
    """The launcher is told to let the others live, who write down that they were right; by itself it ends them, too."""
    told = tmp_path / "told"
    told.mkdir()

    mpirun("a_rank_is_killed", 3, {**settings, "TELL": str(told)}, "--enable-recovery")

    assert sorted(file.name for file in told.glob("told-*")) == ["told-0", "told-1"]


def test_a_rank_that_is_late_is_named_when_time_is_over(mpirun: Run, settings: dict[str, str]) -> None:
    assert mpirun("a_rank_is_late", 3, {**settings, "TIMEOUT": "5"}) == (0, [""] * 3)


def test_a_rank_that_raises_ends_the_others_at_once(mpirun: Run, settings: dict[str, str]) -> None:
    """Outside of a block, so that nothing but the end of its process tells; operations have a minute."""
    code, said = mpirun("one_raises", 2, settings)

    assert code == 1
    assert "RuntimeError: rank 1 gives up" in said[1]
    assert re.search(
        r"CommunicatorError: rank 0 of 2, `all_reduce`: .*rank 1 \(process \d+\) has (left|ended)", said[0]
    )


def test_a_rank_may_exit_in_the_middle(mpirun: Run, settings: dict[str, str], tmp_path: Path) -> None:
    code, said = mpirun("an_exit_in_the_middle", 3, {**settings, "TELL": str(tmp_path)})

    assert code == 4
    assert [text for text in said if "Traceback" in text] == []


def test_a_rank_has_a_context_on_its_own_device_alone(mpirun: Run, simulate: Callable[..., Simulation]) -> None:
    devices = simulate("cuda", "12.9", devices=4).environment()

    assert mpirun("contexts", 4, {"NBX_GPU_BACKEND": "cuda", **devices}) == (0, [""] * 4)


def test_more_ranks_than_devices_are_refused_on_every_rank(mpirun: Run, simulate: Callable[..., Simulation]) -> None:
    devices = simulate("cuda", "12.9", devices=2).environment()

    _code, said = mpirun("contexts", 3, {"NBX_GPU_BACKEND": "cuda", **devices}, "--enable-recovery")

    assert "ArgumentValueError: rank 2 is number 2 of 3 on" in said[2]
    assert ["rank 2 cannot take part: rank 2 is number 2 of 3" in text for text in said] == [True, True, False]


def test_a_rank_that_a_process_manager_started_knows_it(mpirun: Run) -> None:
    """As `srun --mpi=pmix` does: there are PMIx's variables, and none of a launcher's."""
    alone = ("env", "-u", "OMPI_COMM_WORLD_SIZE", "-u", "OMPI_COMM_WORLD_RANK", "-u", "OMPI_COMM_WORLD_LOCAL_RANK")

    assert mpirun("no_elements", 2, {"NBX_GPU_BACKEND": "host"}, by=alone) == (0, [""] * 2)


def test_ranks_whose_launcher_shows_each_its_own_device_take_that(
    mpirun: Run, simulate: Callable[..., Simulation]
) -> None:
    """As `srun --gpus-per-task=1` does."""
    devices = simulate("cuda", "12.9", devices=2).environment(obey_visibility=1)
    own = ("sh", "-c", 'CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK exec "$@"', "sh")

    assert mpirun("no_elements", 2, {"NBX_GPU_BACKEND": "cuda", **devices}, by=own) == (0, [""] * 2)


def test_two_ranks_that_see_one_device_are_refused_on_every_rank(
    mpirun: Run, simulate: Callable[..., Simulation]
) -> None:
    devices = simulate("cuda", "12.9", devices=1).environment()

    _code, said = mpirun("no_elements", 2, {"NBX_GPU_BACKEND": "cuda", **devices}, "--enable-recovery")

    assert ["ArgumentValueError: ranks 0 and 1 are on one device" in text for text in said] == [True, True]


def test_two_ranks_on_one_device_are_refused_on_every_rank(mpirun: Run, simulate: Callable[..., Simulation]) -> None:
    devices = simulate("cuda", "12.9", devices=2).environment()

    _code, said = mpirun("contexts", 2, {"NBX_GPU_BACKEND": "cuda", "DEVICE": "1", **devices}, "--enable-recovery")

    for text in said:
        assert "ArgumentValueError: ranks 0 and 1 are on one device" in text
        assert "give each a device of its own, or say `share_device=True`" in text


def test_a_missing_library_is_named_on_every_rank(mpirun: Run, simulate: Callable[..., Simulation]) -> None:
    devices = simulate("cuda", "12.9", devices=2).environment()
    without = {name: value for name, value in devices.items() if name != "NBXRT_CUDA_COLLECTIVES"}

    _code, said = mpirun("contexts", 2, {"NBX_GPU_BACKEND": "cuda", **without}, "--enable-recovery")

    missing = "LibraryNotFoundError: no NVIDIA CUDA `collectives` library could be loaded"
    assert [missing in text for text in said] == [True, True]
