"""Modules and kernel launches of the simulated devices."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

IMAGE = b"""nbxrt simulated module
kernel store 8 4 = store
kernel idle
global table 64
"""


def kernel(runtime: Runtime, name: str = "store") -> int:
    return int(runtime.module_get_function(runtime.module_load(IMAGE), name))


def arguments(address: int, value: int) -> tuple[Any, ...]:
    return (ctypes.c_uint64(address), ctypes.c_int32(value))


def integers(runtime: Runtime, address: int, count: int) -> list[int]:
    received = (ctypes.c_int32 * count)()
    runtime.memcpy(ctypes.addressof(received), address, 4 * count, "device_to_host")
    return list(received)


def test_a_launch_is_recorded_when_the_stream_comes_to_it(simulation: Simulation) -> None:
    runtime = simulation.open()
    function, address, stream = kernel(runtime), runtime.malloc(24), runtime.stream_create()

    runtime.launch_kernel(function, (2,), (3, 1, 1), 16, stream, arguments(address, 7))
    before = simulation.launches()
    runtime.stream_sync(stream)

    values = (address.to_bytes(8, "little"), (7).to_bytes(4, "little"))
    assert before == []
    assert simulation.launches() == [("store", 0, stream, (2, 1, 1), (3, 1, 1), 16, values, ())]


def test_a_kernel_writes_to_device_memory(runtime: Runtime) -> None:
    function, address = kernel(runtime), runtime.malloc(24)
    runtime.memset(address, 0, 24)

    runtime.launch_kernel(function, (2, 1, 1), (2, 1, 1), 0, 0, arguments(address, -5))

    assert integers(runtime, address, 6) == [-5, -5, -5, -5, 0, 0]


def test_arguments_are_taken_when_the_kernel_is_launched(runtime: Runtime) -> None:
    function, address = kernel(runtime), runtime.malloc(4)
    given = arguments(address, 1)
    runtime.launch_kernel(function, (1,), (1,), 0, 0, given)

    given[1].value = 2

    assert integers(runtime, address, 1) == [1]


def test_a_kernel_that_writes_past_its_memory_loses_the_context(runtime: Runtime) -> None:
    function, address = kernel(runtime), runtime.malloc(4)

    runtime.launch_kernel(function, (1,), (2,), 0, 0, arguments(address, 1))

    with pytest.raises(nbxrt.DeviceError, match="ILLEGAL_ADDRESS"):
        runtime.sync()
    with pytest.raises(nbxrt.DeviceError, match="ILLEGAL_ADDRESS"):
        runtime.malloc(4)


def test_a_graph_launches_its_kernels_again(simulation: Simulation) -> None:
    runtime = simulation.open()
    function, stream = kernel(runtime, "idle"), runtime.stream_create()
    runtime.stream_begin_capture(stream)
    runtime.launch_kernel(function, (1,), (1,), 0, stream, ())
    graph_exec = runtime.graph_instantiate(runtime.stream_end_capture(stream))

    for _launch in range(3):
        runtime.graph_launch(graph_exec, stream)
    runtime.stream_sync(stream)

    assert [launch.kernel for launch in simulation.launches()] == ["idle"] * 3


def test_bytes_that_are_no_module_hold_no_code(runtime: Runtime) -> None:
    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.module_load(b"\x7fELF and so on")

    assert caught.value.kind == "no_binary"


def test_a_module_has_the_kernels_and_variables_that_it_names(runtime: Runtime) -> None:
    module = runtime.module_load(IMAGE)

    address, nbytes = runtime.module_get_global(module, "table")

    assert nbytes == 64
    runtime.memset(address, 1, 64)
    for missing in (runtime.module_get_function, runtime.module_get_global):
        with pytest.raises(nbxrt.DeviceError, match="NOT_FOUND"):
            missing(module, "nothing")


def test_a_function_ends_with_its_module(simulation: Simulation) -> None:
    runtime = simulation.open()
    module = runtime.module_load(IMAGE)
    function = runtime.module_get_function(module, "idle")

    runtime.module_unload(module)

    assert simulation.ledger() == []
    with pytest.raises(nbxrt.DeviceError, match="INVALID_HANDLE"):
        runtime.launch_kernel(function, (1,), (1,), 0, 0, ())


@pytest.mark.parametrize(
    ("grid", "block", "shared"), [((1,), (1025,), 0), ((1, 65536), (1,), 0), ((1,), (1, 1, 65), 0), ((1,), (1,), 49153)]
)
def test_a_launch_beyond_the_limits_is_refused(
    runtime: Runtime, grid: tuple[int, ...], block: tuple[int, ...], shared: int
) -> None:
    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.launch_kernel(kernel(runtime, "idle"), grid, block, shared, 0, ())


def test_more_shared_memory_has_to_be_asked_for(cuda: Simulation) -> None:
    runtime = cuda.open()
    function = kernel(runtime, "idle")

    runtime.function_set_attribute(function, "max_dynamic_shared_memory", 65536)

    assert runtime.function_get_attribute("max_dynamic_shared_memory", function) == 65536
    runtime.launch_kernel(function, (1,), (1,), 65536, 0, ())


def test_a_kernel_runs_on_the_device_of_its_module(runtime: Runtime) -> None:
    function = kernel(runtime, "idle")
    runtime.set_device(1)
    runtime.malloc(1)

    with pytest.raises(nbxrt.DeviceError, match="INVALID_HANDLE"):
        runtime.launch_kernel(function, (1,), (1,), 0, 0, ())


def test_a_test_can_stand_in_for_a_kernel(cuda: Simulation) -> None:
    runtime = cuda.open()
    function, address = kernel(runtime), runtime.malloc(4)
    seen: list[Any] = []

    def run(name: str, grid: tuple[int, ...], block: tuple[int, ...], given: Any) -> None:
        seen.append((name, grid, block, ctypes.c_int32.from_address(given[1]).value))

    cuda.on_launch(run)
    runtime.launch_kernel(function, (1,), (1,), 0, 0, arguments(address, 3))
    runtime.sync()

    assert seen == [("store", (1, 1, 1), (1, 1, 1), 3)]


def test_a_kernel_that_needs_the_interpreter_does_not_stop_a_waiting_thread(cuda: Simulation) -> None:
    cuda.set_latency(1000)
    runtime, ran = cuda.open(), threading.Event()
    cuda.on_launch(lambda *_launch: ran.set())

    runtime.launch_kernel(kernel(runtime, "idle"), (1,), (1,), 0, 0, ())
    runtime.sync()

    assert ran.is_set()
