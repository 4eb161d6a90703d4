"""The conformance suite on the simulations of the shipped backends, in every major version that their files know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import simulations
from nbxrt import conformance
from nbxrt.conformance import ModuleImage, Outcome
from nbxrt.simulation import Simulation, build

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    *simulations.NEEDED,
]

OLDER = [pytest.mark.tier("all")]
NEWEST = ("cuda", "13")
#: Backend and version of its runtime; the newest runs in every tier.
VERSIONS = [
    pytest.param(backend, version, id=f"{backend} {version}", marks=() if (backend, version) == NEWEST else OLDER)
    for backend, versions in {"cuda": ("11", "12", "13"), "hip": ("5", "6", "7")}.items()
    for version in versions
]

IMAGE = ModuleImage(b"nbxrt simulated module\nkernel add 8 8 8 4 = add\nglobal number 4\n", variable="number")
#: The same where the vendor tells addresses from numbers, and has no variables.
ADDITION = ModuleImage(b"nbxrt simulated module\nkernel add pointer pointer pointer 4 = add\n")


def _simulated(folder: Path, backend: str = "cuda", version: str | None = None, **settings: Any) -> Simulation:
    return build(backend, folder, version=version, **settings)


@pytest.mark.parametrize(("backend", "version"), VERSIONS)
def test_nothing_is_wrong_and_only_what_the_file_leaves_out_is_absent(
    tmp_path: Path, backend: str, version: str
) -> None:
    simulation = _simulated(tmp_path, backend, version)

    report = conformance.run(simulation.open(), module_image=IMAGE)

    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.counts["skipped"] == 0
    absent = set(simulation.description["absent"])
    lacking = [row for row in report.rows if row.outcome is Outcome.ABSENT and not absent & set(row.needs)]
    assert {row.detail.partition(":")[0] for row in lacking} <= {"`tensor_map_encode`"}  # which CUDA has since 12
    assert not lacking or (backend, version) == ("cuda", "11")


#: Backends whose operations are several calls, models of their devices, how late work is in microseconds, and how many
#: checks work there at least.
SEVERAL_CALLS = [
    ("level_zero", (), 0, 80),
    ("level_zero", (), 200, 80),
    ("opencl", ("usm",), 0, 70),
    ("opencl", ("svm",), 200, 70),
    ("opencl", ("coarse_svm",), 0, 50),
    ("opencl", ("buffers",), 200, 50),
    ("opencl", ("usm", "svm", "coarse_svm", "buffers"), 0, 70),
]


@pytest.mark.tier("all")
@pytest.mark.parametrize(("backend", "models", "latency", "most"), SEVERAL_CALLS)
def test_nothing_is_wrong_where_operations_are_several_calls(
    tmp_path: Path, backend: str, models: tuple[str, ...], latency: int, most: int
) -> None:
    simulation = _simulated(tmp_path, backend, devices=4)
    simulation.set_latency(latency)
    if models:
        simulation.set_models(*models)
    runtime = simulation.open()
    image = IMAGE if backend == "level_zero" else ADDITION

    report = conformance.run(runtime, module_image=image)
    runtime._binder.release()

    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.counts["skipped"] == 0
    assert report.counts["works"] > most
    assert simulation.ledger() == []
    assert {call.kind for call in simulation.log()} & {"invalid_handle"} == set()


@pytest.mark.tier("all")
def test_a_run_leaves_nothing_behind(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)

    conformance.run(simulation.open(), module_image=IMAGE)

    assert simulation.ledger() == []


@pytest.mark.tier("all")
def test_nothing_is_wrong_where_work_is_done_later_by_another_thread(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    simulation.set_latency(300)

    groups = set(conformance.groups()) - {"collective", "surface"}  # ranks have their tests with the simulation
    report = conformance.run(simulation.open(), groups, module_image=IMAGE)

    assert [(row.check, row.detail) for row in report.wrong] == []


@pytest.mark.tier("all")
def test_the_second_device_is_as_good_as_the_first(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    runtime = simulation.open()

    report = conformance.run(runtime, device=1, module_image=IMAGE)

    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.device == 1
    assert runtime.get_device() == 0


def test_arguments_that_are_refused_reach_no_vendor_function(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    runtime = simulation.open()
    conformance.run(runtime, ["surface"])
    simulation.clear()

    report = conformance.run(runtime, ["surface"])

    refused = [row.detail for row in report.rows if row.detail.endswith("calls refused")]
    called = {call.operation for call in simulation.log() if "." not in call.operation}
    assert len(refused) == 3
    assert called <= {
        "device_count", "set_device", "get_device", "sync", "peek_last_error", "device_name",  # the run itself
        "malloc", "memset", "memcpy", "free",  # index-like arguments
        "device_attribute",  # whether the device has what an operation needs
    }  # fmt: skip


def test_what_the_device_does_not_have_is_absent_with_the_attribute(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    simulation.set_attribute("memory_pools_supported", 0)

    report = conformance.run(simulation.open(), ["pool"])

    assert {row.outcome for row in report.rows} == {Outcome.ABSENT}
    assert report.rows[0].detail.endswith("the device's `memory_pools_supported` is 0")


def test_a_function_that_the_library_lacks_is_absent_by_its_symbol(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path, without=["cudaMemsetAsync"])

    report = conformance.run(simulation.open(), ["memory"])

    absent = {row.detail for row in report.rows if row.outcome is Outcome.ABSENT}
    assert len(absent) == 1
    assert "`cudaMemsetAsync` is not exported by" in absent.pop()


def test_devices_that_cannot_reach_each_other_are_no_fault(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    simulation.set_peer(0, 1, reachable=False)

    report = conformance.run(simulation.open(), ["peer"])

    skipped = {row.check: row.detail for row in report.rows if row.outcome is Outcome.SKIPPED}
    assert skipped == {
        "access is gained and lost and asking twice is no error": "device 0 cannot access device 1",
    }
    assert report.ok


def test_a_failure_is_wrong_and_the_rest_of_the_run_goes_on(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    simulation.fail("event_record", kind="unknown")

    report = conformance.run(simulation.open(), ["event"])

    assert len(report.wrong) == 1
    assert "`event_record` failed" in report.wrong[0].detail
    assert report.counts["skipped"] == 0


def test_after_the_context_is_lost_the_rest_is_skipped(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    simulation.fail("work", kind="illegal_address")

    report = conformance.run(simulation.open(), ["memory", "event"])

    first = next(number for number, row in enumerate(report.rows) if row.outcome is Outcome.WRONG)
    rest = {row.detail for row in report.rows[first + 1 :]}
    assert rest == {f"the context was lost in `{report.rows[first].check}`"}
    assert not report.ok


def test_without_a_driver_nothing_works(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    simulation.set_no_driver()

    report = conformance.run(simulation.open(), ["device", "memory"])

    assert report.counts["works"] == 0
    assert report.device_name == "no device"
    assert not report.ok


@pytest.mark.tier("all")
def test_two_runs_say_the_same(tmp_path: Path) -> None:
    simulation = _simulated(tmp_path)
    runtime = simulation.open()

    first, second = (conformance.run(runtime, module_image=IMAGE) for _run in range(2))

    assert [(row.check, row.outcome) for row in first.rows] == [(row.check, row.outcome) for row in second.rows]
