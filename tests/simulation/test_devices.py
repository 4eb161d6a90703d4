"""Devices, peers, management, errors and faults of a simulation, and how a process is told to use it."""

from __future__ import annotations

import ctypes
import threading
import uuid
from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt.simulation import read_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


def test_there_are_as_many_devices_as_wanted(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cuda", devices=5)

    assert simulation.open().device_count() == 5
    simulation.devices = 3
    assert simulation.open().device_count() == 3


def test_each_device_is_another(runtime: Runtime) -> None:
    facts = [(runtime.pci_bus_id(device), runtime.device_uuid(device)) for device in range(2)]

    assert facts[0][0] == "0000:10:00.0"
    assert facts[1][0] == "0000:11:00.0"
    assert facts[0][1] != facts[1][1]
    assert runtime.device_name(1) == "Simulated device 1"


def test_facts_of_a_device_can_be_set(simulation: Simulation) -> None:
    simulation.set_attribute("warp_size", 64)
    simulation.set_attribute("multiprocessor_count", 7, device=1)
    runtime = simulation.open()

    assert runtime.device_attribute("warp_size", 0) == 64
    assert [runtime.device_attribute("multiprocessor_count", device) for device in range(2)] == [16, 7]


def test_the_runtime_shows_devices_in_the_order_that_is_set(cuda: Simulation) -> None:
    cuda.set_visible([1, 0])
    cuda.set_memory(1, 1 << 20)
    runtime = cuda.open()

    assert runtime.pci_bus_id(0) == "0000:11:00.0"
    assert runtime.mem_get_info()[1] == 1 << 20
    assert runtime.pointer_attributes(runtime.malloc(8))[1] == 0


def test_the_management_library_knows_devices_that_the_runtime_does_not_show(cuda: Simulation) -> None:
    hidden = cuda.open().pci_bus_id(0)
    cuda.set_visible([1])
    runtime = cuda.open()

    assert runtime.device_count() == 1
    assert runtime.monitor_memory_total(runtime.monitor_by_pci_bus_id(hidden)) == cuda.memory


def test_the_management_library_finds_a_device_by_uuid(cuda: Simulation) -> None:
    runtime = cuda.open()
    runtime.set_device(1)
    runtime.malloc(1000)
    spelt = f"GPU-{uuid.UUID(bytes=runtime.device_uuid(1))}"

    monitor = runtime.monitor_by_uuid(spelt)

    assert monitor == runtime.monitor_by_pci_bus_id(runtime.pci_bus_id(1))
    assert runtime.monitor_memory_used(monitor) == 1000
    with pytest.raises(nbxrt.DeviceError, match="The name is not there"):
        runtime.monitor_by_uuid("GPU-00000000-0000-0000-0000-000000000000")


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_processes_of_a_device_are_listed_whole(cuda: Simulation, count: int) -> None:
    processes = [(pid, pid * 1000) for pid in range(1, count + 1)]
    cuda.set_processes(0, processes)
    runtime = cuda.open()

    assert runtime.monitor_processes(runtime.monitor_by_pci_bus_id("0000:10:00.0")) == processes


def test_memory_of_a_device_is_asked_of_the_management_library_by_pci(simulation: Simulation) -> None:
    runtime = simulation.open()
    runtime.malloc(4096)

    monitor = runtime.monitor_by_pci_bus_id("0000:10:00.0")

    assert runtime.monitor_memory_used(monitor) == 4096
    assert runtime.monitor_memory_total(monitor) == simulation.memory


def test_the_nth_call_fails_as_wanted(simulation: Simulation) -> None:
    runtime = simulation.open()
    simulation.fail("malloc", 2, "out_of_memory")

    runtime.malloc(1)
    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.malloc(1)
    assert runtime.malloc(1)


def test_every_call_from_the_nth_fails_as_wanted(simulation: Simulation) -> None:
    runtime = simulation.open()
    simulation.fail("stream_create", 2, "out_of_memory", onward=True)

    runtime.stream_create()
    for _again in range(3):
        with pytest.raises(nbxrt.OutOfMemoryError):
            runtime.stream_create()
    simulation.mend()
    assert runtime.stream_create()


def test_a_fault_can_be_of_one_device(cuda: Simulation) -> None:
    cuda.fail("malloc", 1, "out_of_memory", onward=True, device=0)
    runtime = cuda.open()

    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.malloc(1)
    runtime.set_device(1)
    assert runtime.malloc(1)


def test_a_fault_can_be_of_a_symbol(cuda: Simulation) -> None:
    cuda.fail("cudaMalloc", 1, "not_supported")

    with pytest.raises(nbxrt.DeviceError, match="NOT_SUPPORTED"):
        cuda.open().malloc(1)


@pytest.mark.parametrize(
    ("operation", "kind", "said"),
    [("maloc", "unknown", "did you mean `malloc`"), ("malloc", "out_of_memori", "did you mean `out_of_memory`")],
)
def test_a_fault_that_nothing_can_have_is_refused(cuda: Simulation, operation: str, kind: str, said: str) -> None:
    with pytest.raises(nbxrt.ArgumentValueError, match=said):
        cuda.fail(operation, 1, kind)


def test_work_can_fail_when_a_stream_comes_to_it(cuda: Simulation) -> None:
    cuda.fail("work", 1, "launch_failure")
    runtime = cuda.open()
    runtime.memset(runtime.malloc(8), 0, 8)

    with pytest.raises(nbxrt.DeviceError, match="LAUNCH_FAILURE") as caught:
        runtime.sync()

    assert caught.value.sticky


def test_the_last_error_is_the_threads_own(runtime: Runtime) -> None:
    codes = []
    assert runtime.cudaFree(12345) if runtime.name == "cuda" else runtime.hipFree(12345)

    thread = threading.Thread(target=lambda: codes.append(runtime.peek_last_error()))
    thread.start()
    thread.join()

    assert codes == [0]
    assert [runtime.peek_last_error(), runtime.get_last_error(), runtime.get_last_error()] == [1, 1, 0]


def test_without_a_driver_every_call_says_so(simulation: Simulation) -> None:
    simulation.set_no_driver()
    runtime = simulation.open()

    assert runtime.device_count() == 0
    with pytest.raises(nbxrt.NoDeviceError) as caught:
        runtime.malloc(1)
    assert caught.value.kind == "no_driver"


def test_result_cells_are_not_written_on_failure(simulation: Simulation) -> None:
    simulation.set_no_driver()
    runtime, count = simulation.open(), ctypes.c_int(77)

    runtime.cudaGetDeviceCount(ctypes.byref(count)) if runtime.name == "cuda" else runtime.hipGetDeviceCount(
        ctypes.byref(count)
    )

    assert count.value == 77


def test_a_null_pointer_for_a_result_is_refused(simulation: Simulation) -> None:
    runtime = simulation.open()

    assert (runtime.cudaMalloc if runtime.name == "cuda" else runtime.hipMalloc)(None, 16) == 1


def test_settings_come_from_the_environment(cuda: Simulation, run: Callable[..., str]) -> None:
    program = """
        import nbxrt
        runtime = nbxrt.open("cuda")
        print(runtime.device_count(), runtime.mem_get_info()[1], runtime.device_attribute("warp_size", 0))
        runtime.malloc(8)
        try:
            runtime.malloc(8)
        except nbxrt.OutOfMemoryError as error:
            print(error.kind)
    """

    said = run(program, cuda, devices=3, memory="2M", attributes="warp_size=64", fail="malloc:2:out_of_memory")

    assert said == f"3 {2 << 20} 64\nout_of_memory\n"


@pytest.mark.parametrize(
    ("fault", "why"), [("malloc:0:oom", "not understood"), ("mallocc:1:unknown", "nothing here fails by that name")]
)
def test_a_wrong_setting_is_named_on_the_error_output(
    cuda: Simulation, run: Callable[..., str], fault: str, why: str
) -> None:
    with pytest.raises(AssertionError, match=f"NBXRT_SIM_FAIL: {fault}: {why}"):
        run("import nbxrt; nbxrt.open('cuda').device_count()", cuda, fail=fault)


def test_every_call_of_a_process_is_in_the_log_file(cuda: Simulation, run: Callable[..., str], tmp_path: Path) -> None:
    run("import nbxrt; runtime = nbxrt.open('cuda'); runtime.free(runtime.malloc(64))", cuda, log=tmp_path / "log")

    calls = read_log(tmp_path / "log")

    assert [call.operation for call in calls if "." not in call.operation] == ["malloc", "free"]
    assert calls[-2].arguments == {"nbytes": 64}
    assert (calls[-2].kind, calls[-2].status) == ("success", 0)


def test_two_builds_have_each_their_own_state(simulate: Callable[..., Simulation]) -> None:
    one, other = simulate("cuda", "12.9"), simulate("cuda", "12.9")

    one.open().malloc(64)

    assert [live.kind for live in one.ledger()] == ["device"]
    assert other.ledger() == []


def test_two_versions_of_one_backend_work_side_by_side(simulate: Callable[..., Simulation]) -> None:
    runtimes = [simulate("cuda", version).open() for version in ("11.8", "12.9", "13.5")]

    assert [runtime.version() for runtime in runtimes] == [(11, 8), (12, 9), (13, 5)]


def test_a_reset_simulation_is_as_new(cuda: Simulation) -> None:
    runtime = cuda.open()
    runtime.malloc(64)
    cuda.fail("malloc", 1, "out_of_memory")
    cuda.memory = 1

    cuda.reset()

    assert (cuda.ledger(), cuda.log(), cuda.memory) == ([], [], 16 << 30)
    assert runtime.malloc(64)
