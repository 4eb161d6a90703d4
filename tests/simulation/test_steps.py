"""Simulations of an API of objects: what each function does is read off the steps that call it."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt import descriptions
from nbxrt.simulation import read_log
from nbxrt.simulation.plan import make_plan
from nbxrt.simulation.stepping import stepped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.simulation import Simulation


TOLD = {
    "level_zero": {
        ("zeEventPoolCreate", "object_create"),
        ("zeEventCreate", "mark_create"),
        ("zeCommandListAppendBarrier", "mark_record"),
        ("zeCommandListAppendBarrier", "stream_wait_event"),
        ("zeCommandListAppendMemoryCopy", "memcpy_async"),
        ("zeKernelSetGroupSize", "function_set_block"),
        ("zeMemFree", "memory_release"),
    },
    "opencl": {
        ("clCreateContext", "object_create"),
        ("clEnqueueMarkerWithWaitList", "mark_make"),
        ("clFlush", "stream_flush"),
        ("clEnqueueSVMMemcpy", "memcpy_async"),
        ("clEnqueueSVMMemcpy", "memcpy_and_wait"),
        ("clSVMAlloc", "malloc"),
        ("clSVMAlloc", "malloc_managed"),
        ("clSVMFree", "memory_release"),  # its steps wait before
        ("clMemBlockingFreeINTEL", "memory_free"),
        ("clSetKernelArg", "function_set_argument"),
        ("clSetKernelArg", "function_set_local"),
        ("clSetKernelArg", "function_set_buffer"),
        ("clCreateBuffer", "buffer_create"),
        ("clCreateSubBuffer", "buffer_slice"),
        ("clEnqueueReadBuffer", "buffer_read"),
        ("clGetDeviceInfo", "device_attribute"),
        ("clGetDeviceInfo", "mem_get_info"),
    },
}


@pytest.fixture
def level_zero(simulate: Callable[..., Simulation]) -> Simulation:
    return simulate("level_zero")


@pytest.fixture
def opencl(simulate: Callable[..., Simulation]) -> Simulation:
    return simulate("opencl")


@pytest.mark.parametrize("name", TOLD)
def test_what_each_function_does_is_told_by_its_steps(name: str) -> None:
    found = {(each.symbols[0], each.operation) for each in stepped(descriptions.load(name), descriptions.contract())}

    assert TOLD[name] <= found
    assert [operation for symbol, operation in found if symbol == "zeDeviceGetProperties"] in ([], ["device_facts"])


@pytest.mark.parametrize("name", TOLD)
def test_every_function_has_the_signature_that_the_vendors_header_declares(
    simulate: Callable[..., Simulation], name: str
) -> None:
    made = simulate(name)

    assert set(made.symbols) - made.from_headers == set()


def test_a_backend_of_which_that_cannot_be_told_is_refused() -> None:
    description = {**descriptions.load("level_zero")}
    description["operations"] = dict(description["operations"])
    line, (variant,) = description["operations"]["mem_prefetch"]
    steps = variant[4][2]
    strange = ("call", (("zeStrange",), "runtime", (("const", "uint", 1),), ("status",)), (), ())
    changed = (*variant[:4], (*variant[4][:2], (*steps, strange), *variant[4][3:]), *variant[5:])
    description["operations"]["mem_prefetch"] = (line, (changed,))

    with pytest.raises(nbxrt.CapabilityError, match="what `zeStrange` does by itself is not told by its steps"):
        stepped(description, descriptions.contract())


def test_a_call_in_steps_that_nothing_tells_of_is_refused_and_not_left_out() -> None:
    description = {**descriptions.load("cuda")}
    line, (variant, *_older) = description["operations"]["sync"]
    untold = ("call", (("cudaStrange",), "runtime", (("const", "uint", 1),), ("status",)), (), ())
    steps = ("steps", *variant[1:4], ("runtime", (), (untold,)), variant[5])
    description["operations"] = {**description["operations"], "sync": (line, (steps,))}

    with pytest.raises(nbxrt.CapabilityError, match="what `cudaStrange` does, which `sync` calls, is not told"):
        make_plan(description, descriptions.contract(), "linux")


def test_work_is_done_later_and_everything_is_given_up(level_zero: Simulation) -> None:
    runtime = level_zero.open()
    runtime.set_device(1)
    stream, address, host = runtime.stream_create(), runtime.malloc(64), ctypes.create_string_buffer(64)
    runtime.memset_async(address, 7, 64, stream)
    runtime.memcpy_async(ctypes.addressof(host), address, 64, "device_to_host", stream)
    before = host.raw

    runtime.stream_sync(stream)
    runtime.stream_destroy(stream)
    runtime.free(address)
    runtime._binder.release()

    assert (before, host.raw) == (bytes(64), b"\7" * 64)
    assert level_zero.ledger() == []
    assert {call.device for call in level_zero.log() if call.operation == "memset_async"} == {1}


def test_an_operation_can_be_made_to_fail_and_what_it_made_is_undone(level_zero: Simulation) -> None:
    runtime = level_zero.open()
    address = runtime.malloc(64)
    alive = level_zero.ledger()
    level_zero.fail("zeCommandListAppendBarrier", 1, "out_of_memory")

    with pytest.raises(nbxrt.OutOfMemoryError, match="zeCommandListAppendBarrier"):
        runtime.event_record(runtime.event_create(), 0)

    assert {each.kind for each in level_zero.ledger()} - {each.kind for each in alive} == {"stream"}  # the default one
    runtime.free(address)


@pytest.mark.tier("all")
def test_memory_that_is_released_under_its_work_is_found_out(level_zero: Simulation) -> None:
    runtime = level_zero.open()
    stream, address = runtime.stream_create(), runtime.malloc(64)
    runtime.memset_async(address, 1, 64, stream)
    library = ctypes.CDLL(str(level_zero.paths["runtime"]))
    context = ctypes.c_void_p(runtime._binder.state().context)

    assert library.zeMemFree(context, ctypes.c_void_p(address)) == 0  # without waiting, as steps must not
    with pytest.raises(nbxrt.DeviceError):
        runtime.stream_sync(stream)


def test_a_handle_of_another_sort_is_refused(level_zero: Simulation) -> None:
    runtime = level_zero.open()
    state = runtime._binder.state()
    library = ctypes.CDLL(str(level_zero.paths["runtime"]))
    stream = runtime.stream_create()

    refused = [
        library.zeContextDestroy(ctypes.c_void_p(stream)),
        library.zeEventPoolDestroy(ctypes.c_void_p(state.context)),
        library.zeCommandListDestroy(ctypes.c_void_p(state.context)),
        library.zeEventHostSynchronize(ctypes.c_void_p(stream), ctypes.c_uint64(2**64 - 1)),
    ]

    assert refused == [0x78000005] * 4
    assert {each.kind for each in level_zero.ledger()} == {"stream", "object"}


@pytest.mark.tier("all")
def test_six_threads_on_two_devices(level_zero: Simulation) -> None:
    runtime, wrong = level_zero.open(), []
    level_zero.set_latency(50)

    def work(number: int) -> None:
        try:
            runtime.set_device(number % 2)
            stream, event, address = runtime.stream_create(), runtime.event_create(), runtime.malloc(64)
            for turn in range(20):
                runtime.memset_async(address, number + turn, 64, stream)
                runtime.event_record(event, stream)
                runtime.event_sync(event)
                if ctypes.string_at(address, 64) != bytes([number + turn]) * 64:
                    wrong.append((number, turn))
            runtime.free(address)
            runtime.event_destroy(event)
            runtime.stream_destroy(stream)
        except Exception as error:  # noqa: BLE001  # it must reach the thread that checks
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runtime._binder.release()

    assert wrong == []
    assert level_zero.ledger() == []


def test_without_a_driver_the_answer_is_one_sentence(level_zero: Simulation) -> None:
    level_zero.set_no_driver()
    runtime: Any = level_zero.open()

    with pytest.raises(nbxrt.NoDeviceError) as caught:
        runtime.malloc(64)

    assert runtime.device_count() == 0
    assert caught.value.explanation == "there is no Intel GPU with its driver here"


def test_devices_are_of_the_models_that_are_asked_for(opencl: Simulation) -> None:
    opencl.devices = 5
    opencl.set_models("usm", "svm", "coarse_svm", "buffers")
    runtime = opencl.open()

    models = [state.model for state in runtime._binder.listed().all()]
    assert models == ["usm", "svm", "coarse_svm", "buffers", "usm"]
    with pytest.raises(nbxrt.ArgumentError, match="`best` is no model of OpenCL: usm, svm, coarse_svm, buffers"):
        opencl.set_models("best")


def test_functions_of_an_extension_are_asked_for_by_name(opencl: Simulation) -> None:
    library = ctypes.CDLL(str(opencl.paths["runtime"]))
    runtime = opencl.open()

    runtime.free(runtime.malloc(64))

    assert not hasattr(library, "clDeviceMemAllocINTEL")
    assert "clDeviceMemAllocINTEL" in {call.arguments.get("symbol") for call in opencl.log()}
    assert "clDeviceMemAllocINTEL" in {call.symbol for call in opencl.log()}


def test_a_function_of_another_model_of_device_is_refused(opencl: Simulation) -> None:
    runtime = opencl.open()
    library = ctypes.CDLL(str(opencl.paths["runtime"]))
    library.clSVMAlloc.restype = ctypes.c_void_p
    context = ctypes.c_void_p(runtime._binder.state().context)

    assert library.clSVMAlloc(context, ctypes.c_uint64(1), ctypes.c_size_t(64), 0) is None
    assert opencl.log()[-1].kind == "not_supported"


def test_handles_of_two_devices_in_one_call_are_refused(opencl: Simulation) -> None:
    runtime = opencl.open()
    library = ctypes.CDLL(str(opencl.paths["runtime"]))
    first, second = runtime._binder.listed().all()[:2]
    properties, error = (ctypes.c_uint64 * 3)(0x1093, 2, 0), ctypes.c_int()

    made = library.clCreateCommandQueueWithProperties(
        ctypes.c_void_p(first.context), ctypes.c_void_p(second.handle), properties, ctypes.byref(error)
    )

    assert (made, error.value) == (0, -33)


def test_an_operation_fails_by_its_name_on_the_device_that_its_handles_are_of(opencl: Simulation) -> None:
    runtime = opencl.open()
    opencl.fail("malloc", 2, "out_of_memory", onward=True, device=1)
    opencl.fail("memset", 1, "invalid_value")
    runtime.free(runtime.malloc(64))
    runtime.set_device(1)
    address = runtime.malloc(64)

    with pytest.raises(nbxrt.OutOfMemoryError, match="clDeviceMemAllocINTEL"):
        runtime.malloc(64)
    with pytest.raises(nbxrt.DeviceError, match="clEnqueueMemFillINTEL"):
        runtime.memset(address, 0, 64)
    runtime.memset(address, 0, 64)
    with pytest.raises(nbxrt.ArgumentError, match="`event_create` is no call of its own in OpenCL"):
        opencl.fail("event_create")


def test_work_that_fails_says_so_by_its_own_number(opencl: Simulation) -> None:
    runtime = opencl.open()
    stream, address = runtime.stream_create(), runtime.malloc(64)
    opencl.fail("work", 1, "out_of_memory")
    runtime.memset_async(address, 1, 64, stream)
    opencl.advance()

    with pytest.raises(nbxrt.OutOfMemoryError, match="`stream_query` failed"):
        runtime.stream_query(stream)

    asked = [call for call in opencl.log() if call.symbol == "clGetEventInfo"]
    assert {call.kind for call in asked} == {"success"}


def test_code_that_is_none_is_refused_where_it_is_built_and_the_log_is_quoted(opencl: Simulation) -> None:
    runtime = opencl.open()

    with pytest.raises(nbxrt.DeviceError, match="this is no simulated module") as caught:
        runtime.module_load(b"kernel void add() {}")

    assert (caught.value.symbol, caught.value.kind) == ("clBuildProgram", "no_binary")
    assert not [each for each in opencl.ledger() if each.kind == "module"]


def test_arguments_of_a_kernel_are_given_one_by_one(opencl: Simulation) -> None:
    runtime = opencl.open()
    module = runtime.module_load(b"nbxrt simulated module\nkernel scale pointer 4 8 local\nkernel plain pointer 4 8\n")
    scale, plain = (runtime.module_get_function(module, name) for name in ("scale", "plain"))
    address = runtime.malloc(64)
    arguments = (ctypes.c_uint64(address), ctypes.c_float(2), ctypes.c_double(3), ctypes.c_size_t(256))
    packed = (ctypes.c_void_p * 3)(*(ctypes.addressof(argument) for argument in arguments[:3]))

    runtime.launch_kernel(scale, (2, 1, 1), (8, 1, 1), 0, 0, arguments)
    runtime.launch_kernel(plain, (2, 1, 1), (8, 1, 1), 0, 0, packed)
    runtime.sync()

    first, second = opencl.launches()
    assert (first.grid, first.block, first.shared_memory) == ((2, 1, 1), (8, 1, 1), 256)
    assert first.arguments[:3] == (bytes(ctypes.c_uint64(address)), bytes(arguments[1]), bytes(arguments[2]))
    assert second.arguments == first.arguments[:3]


@pytest.mark.tier("all")
def test_a_process_takes_models_faults_and_a_log_from_its_environment(
    opencl: Simulation, run: Callable[..., str], tmp_path: Path
) -> None:
    program = """
        import nbxrt
        rt = nbxrt.open("opencl")
        print(rt._binder.listed().all()[0].model)
        try: rt.malloc(64)
        except nbxrt.OutOfMemoryError as error: print(error.symbol)
    """

    said = run(program, opencl, models="svm", fail="malloc@0:1:out_of_memory", log=tmp_path / "log")

    assert said.split() == ["svm", "clSVMAlloc"]
    assert ("malloc", "out_of_memory") in {(call.operation, call.kind) for call in read_log(tmp_path / "log")}


def test_memory_that_is_buffer_objects_has_handles_that_are_no_addresses(opencl: Simulation) -> None:
    opencl.set_models("buffers")
    runtime = opencl.open()
    address, host = runtime.malloc(256), ctypes.create_string_buffer(b"x" * 64, 64)
    copied = ctypes.create_string_buffer(64)

    runtime.memcpy(address + 128, ctypes.addressof(host), 64, "host_to_device")
    runtime.memset(address + 160, 7, 8)
    runtime.memcpy(ctypes.addressof(copied), address + 128, 64, "device_to_host")

    assert copied.raw == b"x" * 32 + b"\7" * 8 + b"x" * 24
    (buffer,) = [each for each in opencl.ledger() if each.kind == "buffer"]
    assert buffer.handle not in {each.handle for each in opencl.ledger() if each.kind == "device"}
    runtime.free(address)
    assert not [each for each in opencl.ledger() if each.kind in ("buffer", "device")]
