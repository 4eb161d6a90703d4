"""The vendors beside NVIDIA and AMD: what their files state, on libraries that are simulated after them."""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from copies import run
from machines import add_node, empty_bus
from nbxrt import conformance, descriptions, presence
from nbxrt.binding.machine import Machine
from nbxrt.conformance import Outcome
from nbxrt.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

#: The folder, or the zip, that the nbxrt under test is imported from.
HOME = str(Path(nbxrt.__file__).parents[1])

VENDORS = ("musa", "maca", "ascend", "cambricon", "enflame", "kunlun", "iluvatar", "hygon")

pytestmark = [
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform != "linux", reason="these vendors have runtimes for Linux only"),
]


def _calls(simulation: Simulation, operation: str) -> list[dict[str, Any]]:
    return [call.arguments for call in simulation.log() if call.operation == operation and call.kind == "success"]


@pytest.mark.tier("all")
@pytest.mark.parametrize("vendor", VENDORS)
def test_nothing_is_wrong_on_its_simulation_and_only_what_the_file_leaves_out_is_absent(
    simulate: Callable[..., Simulation], vendor: str
) -> None:
    simulation = simulate(vendor)

    report = conformance.run(simulation.open())

    assert [(row.check, row.detail) for row in report.wrong] == []
    absent = set(simulation.description["absent"])
    lacking = [row for row in report.rows if row.outcome is Outcome.ABSENT and "has no flag for" not in row.detail]
    assert all(absent & set(row.needs) for row in lacking)
    # where a capture is what is launched, one that is never made executable is released by nothing
    kept = {"graph"} if vendor == "ascend" else set()
    assert {live.kind for live in simulation.ledger()} - kept == set()


@pytest.mark.parametrize("vendor", ["ascend", "iluvatar"])
def test_memory_and_errors_are_as_the_contract_says(simulate: Callable[..., Simulation], vendor: str) -> None:
    report = conformance.run(simulate(vendor).open(), ["memory", "error"])

    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.counts["works"] > 15


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_operation_says_what_it_rests_on_and_none_is_called_verified_that_is_not(vendor: str) -> None:
    described = nbxrt.describe(vendor)
    counts = descriptions.built_in(vendor)["evidence"]

    assert all(entry.source for entry in described.evidence)
    assert "unstated" not in counts
    assert (descriptions.maturity(descriptions.built_in(vendor)) == "from headers") == (set(counts) == {"header"})


def test_nvidia_amd_and_apple_come_before_them_and_the_processor_after() -> None:
    order = list(descriptions.INDEX)

    first, last = order.index("metal"), order.index("host")
    assert [name for name in order[first + 1 : last] if name in VENDORS] == sorted(VENDORS, key=order.index)
    assert set(order[: first + 1]) == {"cuda", "hip", "metal"}


# What differs between them, as data


def test_directions_of_a_copy_have_numbers_of_their_own(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cambricon")
    runtime = simulation.open()
    buffer = ctypes.create_string_buffer(b"all of it", 16)

    address = runtime.malloc(16)
    runtime.memcpy(address, ctypes.addressof(buffer), 16, "host_to_device")
    copied = runtime.cnrtMemcpy(ctypes.addressof(buffer), address, 16, 2)  # its device-to-host is 2, and 1 within

    assert copied == 0
    assert [each["kind"] for each in _calls(simulation, "memcpy")] == ["host_to_device", "device_to_host"]


def test_a_size_may_be_passed_twice_and_places_may_change(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("ascend")
    runtime = simulation.open()
    address = runtime.malloc(64)

    runtime.memset(address, 7, 64)
    runtime.device_attribute("warp_size", 1)

    assert _calls(simulation, "memset") == [{"address": address, "nbytes": 64, "value": 7}]
    assert _calls(simulation, "device_attribute") == [{"device": 1, "attribute": "warp_size"}]
    assert runtime.aclrtMemset(address, 65, 7, 64) == 100000  # two sizes that differ


def test_a_status_may_come_out_and_mean_the_opposite_for_streams_and_events(
    simulate: Callable[..., Simulation],
) -> None:
    simulation = simulate("ascend")
    runtime = simulation.open()
    stream, event, address = runtime.stream_create(), runtime.event_create(), runtime.malloc(64)
    simulation.set_latency(0)
    runtime.memset_async(address, 1, 64, stream)
    runtime.event_record(event, stream)
    simulation.clear()

    pending = (runtime.stream_query(stream), runtime.event_query(event))
    runtime.stream_sync(stream)
    state = ctypes.c_int(-1)

    assert pending == (False, False)
    assert (runtime.stream_query(stream), runtime.event_query(event)) == (True, True)
    assert (runtime.aclrtStreamQuery(stream, ctypes.byref(state)), state.value) == (0, 0)
    assert (runtime.aclrtQueryEventStatus(event, ctypes.byref(state)), state.value) == (0, 1)


def test_a_thread_without_a_device_is_given_one_at_its_first_call(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("ascend")
    runtime = simulation.open()
    made: list[int] = []

    thread = threading.Thread(target=lambda: made.append(runtime.malloc(64)))
    thread.start()
    thread.join()

    said = [(call.symbol, call.kind) for call in simulation.log() if call.symbol != "aclrtGetDeviceCount"]
    assert said[-3:] == [("aclrtMalloc", "invalid_context"), ("aclrtSetDevice", "success"), ("aclrtMalloc", "success")]
    assert said[0] == ("aclInit", "success")
    assert len(made) == 1


def test_one_meaning_may_have_several_codes(simulate: Callable[..., Simulation]) -> None:
    library = simulate("ascend").open().library()

    assert {library.kind(code) for code in (200000, 207001, 207018)} == {"out_of_memory"}
    assert set(library.codes("invalid_device")) == {107001, 200002}


def test_a_handle_for_other_processes_may_be_a_text_that_it_is_closed_by(simulate: Callable[..., Simulation]) -> None:
    report = conformance.run(simulate("ascend").open(), ["ipc"])

    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.counts["works"] == 1


def test_a_flag_may_have_a_bit_for_yes_and_one_for_no(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("ascend")
    runtime = simulation.open()

    runtime.event_create_flags(timing=True)
    runtime.event_create_flags(timing=False)

    made = [each for each in simulation.log() if each.symbol == "aclrtCreateEventWithFlag" and each.kind == "success"]
    assert [list(each.arguments.values()) for each in made] == [[9], [1]]  # with 9 it is `event_create`'s call as well
    with pytest.raises(nbxrt.CapabilityError, match="has no flag for `interprocess`"):
        runtime.event_create_flags(interprocess=True)


def test_a_capture_may_end_in_what_is_launched(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("ascend")
    runtime = simulation.open()
    stream, address = runtime.stream_create(), runtime.malloc(64)

    runtime.stream_begin_capture(stream)
    runtime.memset_async(address, 5, 64, stream)
    graph = runtime.stream_end_capture(stream)
    executable = runtime.graph_instantiate(graph)
    runtime.graph_launch(executable, stream)
    runtime.graph_destroy(graph)
    runtime.graph_exec_destroy(executable)

    assert executable == graph
    assert [live.kind for live in simulation.ledger()] == ["device", "stream"]


# Which of them is here


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_device_node_shows_a_device(vendor: str, tmp_path: Path) -> None:
    empty_bus(tmp_path)
    description, machine = descriptions.built_in(vendor), Machine("linux", root=str(tmp_path))
    _pci, nodes, _ask, hint = description["presence"]["linux"]

    before = presence.device_there(description, machine)[0]
    add_node(tmp_path, nodes[0].replace("[0-9]*", "0").replace("*", ".0"))
    after = presence.device_there(description, machine)[0]

    assert (before, after) == (False, True)
    assert hint


def test_a_machine_without_their_devices_reads_none_of_their_files(tmp_path: Path) -> None:
    root = tmp_path / "root"
    empty_bus(root)
    ask = "import sys, nbxrt; nbxrt.open(); print(*[m for m in sys.modules if m.startswith('nbxrt.compiled.')])"

    said = run(sys.executable, "-c", ask, cwd=tmp_path, NBXRT_SYSROOT=str(root), PYTHONPATH=HOME)

    assert {name.rpartition(".")[2] for name in said.split()} & set(VENDORS) == set()


@pytest.mark.parametrize(("vendor", "home"), [("iluvatar", "COREX_HOME"), ("kunlun", "XRE_DIR"), ("hygon", "DTK_ROOT")])
def test_a_library_of_anothers_file_name_is_taken_from_its_own_folder_alone(
    simulate: Callable[..., Simulation], vendor: str, home: str, tmp_path: Path
) -> None:
    own = {"iluvatar": "lib64", "kunlun": "so", "hygon": "lib"}[vendor]
    simulate(vendor, folder=tmp_path / "own" / own)
    simulate("hip" if vendor == "hygon" else "cuda", folder=tmp_path / "others")
    ask = f"import nbxrt; print(nbxrt.open({vendor!r}).library().path)"
    environment = {"LD_LIBRARY_PATH": str(tmp_path / "others"), "PYTHONPATH": HOME}

    found = run(sys.executable, "-c", ask, cwd=tmp_path, **environment, **{home: str(tmp_path / "own")})

    assert found.startswith(str(tmp_path / "own"))
