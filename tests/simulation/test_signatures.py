"""What differs between vendors and versions behind one operation, seen by a library that checks its arguments."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


def calls(simulation: Simulation, operation: str) -> list[dict[str, Any]]:
    """The arguments of every call of an operation that succeeded."""
    return [call.arguments for call in simulation.log() if call.operation == operation and call.kind == "success"]


def test_every_library_tells_its_version(simulation: Simulation) -> None:
    runtime = simulation.open()

    assert runtime.version()[:2] == simulation.versions["runtime"]


def test_pinned_allocation_passes_the_flags_that_its_c_function_takes(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("hip", "6.2")
    runtime = simulation.open()

    runtime.malloc_host(64)

    assert calls(simulation, "malloc_host") == [{"nbytes": 64, "argument2": 0}]
    assert runtime.hipHostMalloc(ctypes.byref(ctypes.c_void_p()), 64, 1 << 20) != 0


@pytest.mark.parametrize(("version", "true_size"), [("11.8", 24), ("12.9", 24), ("13.5", 88)])
def test_pointer_attributes_are_written_to_their_true_size_and_no_further(
    simulate: Callable[..., Simulation], version: str, true_size: int
) -> None:
    runtime = simulate("cuda", version).open()
    buffer = ctypes.create_string_buffer(b"\xee" * 128, 128)

    runtime.cudaPointerGetAttributes(buffer, runtime.malloc(8))

    assert b"\xee" not in buffer.raw[true_size - 8 : true_size]
    assert buffer.raw[true_size:] == b"\xee" * (128 - true_size)


@pytest.mark.parametrize("version", ["11.8", "12.9", "13.5"])
def test_the_binder_gives_pointer_attributes_the_room_of_their_largest_layout(
    simulate: Callable[..., Simulation], version: str
) -> None:
    runtime = simulate("cuda", version).open()

    kind, _template = runtime._binder.variants.structure("cudaPointerAttributes", "pointer_attributes", is_out=True)

    assert ctypes.sizeof(kind) == 88


def test_an_unknown_address_is_no_error_where_the_vendor_has_a_word_for_it(runtime: Runtime) -> None:
    buffer = ctypes.create_string_buffer(8)

    if runtime.name == "hip" and runtime.version() < (6,):
        with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
            runtime.pointer_attributes(ctypes.addressof(buffer))
    else:
        assert runtime.pointer_attributes(ctypes.addressof(buffer))[0] == "unregistered"


@pytest.mark.parametrize(
    ("version", "constants"), [("11.8", {}), ("12.9", {}), ("13.5", {"argument3": 0})], ids=["11.8", "12.9", "13.5"]
)
def test_prefetch_names_the_device_as_its_version_wants(
    simulate: Callable[..., Simulation], version: str, constants: dict[str, int]
) -> None:
    simulation = simulate("cuda", version)
    runtime = simulation.open()
    address = runtime.malloc_managed(64)

    runtime.mem_prefetch(address, 64, 1, 0)
    runtime.mem_advise(address, 64, "set_preferred_location", 1)

    prefetch = {"address": address, "nbytes": 64, "device": 1, "stream": 0}
    advise = {"address": address, "nbytes": 64, "advice": "set_preferred_location", "device": 1}
    assert calls(simulation, "mem_prefetch") == [{**prefetch, **constants}]
    assert calls(simulation, "mem_advise") == [advise]


@pytest.mark.parametrize(
    ("version", "symbol"), [("11.2", "cudaGraphInstantiate"), ("11.8", "cudaGraphInstantiateWithFlags")]
)
def test_graphs_are_instantiated_by_the_function_of_the_version(
    simulate: Callable[..., Simulation], version: str, symbol: str
) -> None:
    simulation = simulate("cuda", version)
    runtime = simulation.open()
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream)

    runtime.graph_instantiate(runtime.stream_end_capture(stream))

    assert [call.symbol for call in simulation.log() if call.operation == "graph_instantiate"] == [symbol]


@pytest.mark.parametrize("version", ["5.2", "6.2"])
def test_physical_memory_is_described_in_the_order_of_its_version(
    simulate: Callable[..., Simulation], version: str
) -> None:
    simulation = simulate("hip", version)

    simulation.open().mem_create(2 << 20, 1)

    assert calls(simulation, "mem_create") == [{"nbytes": 2 << 20, "device": 1, "sharing": "none", "argument3": 0}]


def test_a_driver_call_works_on_a_thread_without_a_context(
    simulate: Callable[..., Simulation], run_in_thread: Callable[..., Any]
) -> None:
    simulation = simulate("cuda", "12.9")
    runtime = simulation.open()
    event = runtime.event_create()
    runtime.event_record(event, 0)
    simulation.clear()

    run_in_thread(lambda: runtime.event_record(event, 0))

    said = [(call.symbol, call.kind) for call in simulation.log()]
    assert said == [("cuEventRecord", "invalid_context"), ("cudaFree", "success"), ("cuEventRecord", "success")]


def test_a_driver_call_enters_the_context_of_the_threads_own_device(
    simulate: Callable[..., Simulation], run_in_thread: Callable[..., Any]
) -> None:
    runtime = simulate("cuda", "12.9").open()
    image = b"nbxrt simulated module\nkernel idle\n"

    def load() -> tuple[int, int]:
        runtime.set_device(1)
        module = runtime.module_load(image)
        return runtime.get_device(), module

    assert run_in_thread(load)[0] == 1


def test_the_drivers_first_call_is_made_once(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cuda", "12.9")
    runtime = simulation.open()

    for _again in range(3):
        runtime.event_record(runtime.event_create(), 0)
        runtime.device_name(0)

    assert [call.symbol for call in simulation.log()].count("cuInit") == 1


def test_opening_touches_no_driver(simulation: Simulation) -> None:
    simulation.open()

    assert [call.operation for call in simulation.log() if not call.operation.endswith(".version")] == []
    assert simulation.contexts() == set()


def test_names_and_texts_of_errors_come_from_the_library(simulation: Simulation) -> None:
    runtime = simulation.open()

    assert runtime.error_name(2) == "OUT_OF_MEMORY"
    assert runtime.error_text(2) == "There is not enough memory."
    assert runtime.error_name(54321) == "unrecognized error code"


#: Operations that the vendor has since a later version, by backend and major.
LATER = {("cuda", 11): {"tensor_map_encode"}}


def _offered(simulation: Simulation) -> list[str]:
    """The operations that the file offers in the simulated version."""
    later = LATER.get((simulation.name, simulation.versions["runtime"][0]), set())
    return [
        name for name in simulation.contract["operations"] if name not in {*simulation.description["absent"], *later}
    ]


def test_every_operation_that_is_bound_is_exported(simulation: Simulation) -> None:
    runtime = simulation.open()

    assert [name for name in _offered(simulation) if not runtime.supports(name)] == []


def test_no_function_is_left_with_the_types_that_ctypes_assumes(simulation: Simulation) -> None:
    runtime = simulation.open()
    runtime.device_count()
    for role in simulation.description["libraries"]:  # a function waits behind the first call that its library needs
        runtime.library(role).start()

    untyped = [
        name for name in _offered(simulation) if runtime._binder.function(name).__globals__["_call"].argtypes is None
    ]

    assert untyped == []
