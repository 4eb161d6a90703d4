"""Simulations of an API of objects: what each function does is read off the steps that call it."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt import descriptions
from nbxrt.simulation.plan import make_plan
from nbxrt.simulation.stepping import stepped

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation


@pytest.fixture
def level_zero(simulate: Callable[..., Simulation]) -> Simulation:
    return simulate("level_zero")


def test_what_each_function_does_is_told_by_its_steps() -> None:
    found = {
        (each.symbols[0], each.operation) for each in stepped(descriptions.load("level_zero"), descriptions.contract())
    }

    assert {
        ("zeEventPoolCreate", "object_create"),
        ("zeEventCreate", "mark_create"),
        ("zeCommandListAppendBarrier", "mark_record"),
        ("zeCommandListAppendBarrier", "stream_wait_event"),
        ("zeCommandListAppendMemoryCopy", "memcpy_async"),
        ("zeKernelSetGroupSize", "function_set_block"),
        ("zeMemFree", "memory_release"),
    } <= found
    assert [operation for symbol, operation in found if symbol == "zeDeviceGetProperties"] == ["device_facts"]


def test_every_function_has_the_signature_that_the_vendors_header_declares(level_zero: Simulation) -> None:
    assert set(level_zero.symbols) - level_zero.from_headers == set()


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
