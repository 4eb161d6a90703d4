"""Communicators in workers of Ray: on host memory through its object store, and on simulated devices.

All jobs run in one start of Ray, which is what takes the time.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import simulations

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.needs("ray", "cc"),
    pytest.mark.xdist_group("ray"),
    pytest.mark.timeout(600),  # the first one waits for all jobs
]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def answers(engines: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What each job answered, and under `files` what its workers wrote down."""
    simulation = simulations.built("cuda", tmp_path_factory.mktemp("simulation"), version="12.9", devices=4)
    written = tmp_path_factory.mktemp("written")
    shared = {**environment, **simulation.environment(obey_visibility=1), "RAY_AUTH_MODE": "disabled"}
    command = [str(engines / "ray" / "bin" / "python"), str(HERE / "ray_driver.py"), str(written)]
    done = subprocess.run(command, env=shared, capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout.splitlines()[-1]), "files": sorted(file.name for file in written.iterdir())}


def test_four_workers_receive_what_numpy_says(answers: Mapping[str, Any]) -> None:
    assert answers["host"] == [[rank, "host", 0] for rank in range(4)]


def test_each_worker_has_the_device_that_ray_gave_it(answers: Mapping[str, Any]) -> None:
    """The one that it sees, which is its first."""
    assert answers["devices"] == [[rank, "cuda", 0] for rank in range(4)]


def test_the_others_tell_of_a_worker_that_is_killed(answers: Mapping[str, Any]) -> None:
    assert answers["killed"].startswith("ActorDiedError: ")
    assert [name for name in answers["files"] if name.startswith("told")] == ["told-0", "told-1"]


def test_a_worker_that_is_late_is_named(answers: Mapping[str, Any]) -> None:
    assert answers["late"] == [[rank, "host", 0] for rank in range(3)]


def test_two_engines_may_not_claim_a_process(answers: Mapping[str, Any]) -> None:
    (said,) = answers["both"]

    assert said.startswith("MPI and Ray both claim this process: OMPI_COMM_WORLD_SIZE is 4, and it is the worker ")
    assert 'hint: say which one is meant: `init(engine="mpi")` or `init(engine="ray")`' in said


def test_more_workers_than_devices_are_refused_at_once(answers: Mapping[str, Any]) -> None:
    assert answers["too many"].startswith(
        "ArgumentValueError: 5 workers want 5 CPU, and Ray's cluster has 4\n\nhint: `gpus_per_worker`"
    )


def test_shares_that_make_no_sense_are_refused_before_ray_waits_for_them(answers: Mapping[str, Any]) -> None:
    assert answers["negative"] == "ArgumentValueError: a worker takes no less than 0 GPU, not -1"
    assert answers["nothing"].startswith("ArgumentValueError: a worker takes something of what Ray counts")
    assert answers["words"] == "ArgumentTypeError: a worker takes a number of GPU, not '1'"


def test_calls_that_differ_break_the_communicator_by_name(answers: Mapping[str, Any]) -> None:
    assert answers["differ"] == [[0, "host", 0], [1, "host", 0]]


def test_the_first_error_is_raised_and_not_that_of_a_worker_that_waited_for_it(answers: Mapping[str, Any]) -> None:
    assert answers["one raises"] == "RuntimeError: rank 1 gives up"


def test_what_a_worker_raises_is_raised_by_the_run(answers: Mapping[str, Any]) -> None:
    assert answers["raises"] == "AttributeError: module 'devices' has no attribute 'no such scenario'"
