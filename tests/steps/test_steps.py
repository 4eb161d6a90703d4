"""Operations that are several calls: what undoes them, what always follows, and what is kept of a device."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt
from nbxrt.binding.source import source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Shelf

pytestmark = pytest.mark.needs("cc")

HERE = Path(__file__).parent


def test_an_operation_of_two_calls_gives_what_the_second_one_gave(shelf: Callable[..., Shelf]) -> None:
    runtime = shelf().runtime

    address = runtime.malloc(1000)

    assert address % 256 == 0
    assert ctypes.string_at(address, 1000) == bytes(1000)


def test_a_later_failure_undoes_the_steps_before_it_and_is_the_error_that_is_seen(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    opened.runtime.free(opened.runtime.malloc(8))
    live = opened["live"]
    opened.fail("shelfContents")

    with pytest.raises(nbxrt.DeviceError) as caught:
        opened.runtime.malloc(1000)

    assert (caught.value.operation, caught.value.symbol, caught.value.kind) == (
        "malloc", "shelfContents", "invalid_value",
    )  # fmt: skip
    assert opened["live"] == live


def test_an_encoder_is_closed_whether_the_steps_after_it_fail_or_not(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    address = opened.runtime.malloc(64)
    for function in ("", "shelfFill", "shelfCommit"):
        opened.fail(function)
        if function:
            with pytest.raises(nbxrt.DeviceError):
                opened.runtime.memset(address, 1, 64)
        else:
            opened.runtime.memset(address, 1, 64)

        assert opened["open_encoders"] == 0, function


def test_a_null_pointer_is_out_of_memory(shelf: Callable[..., Shelf]) -> None:
    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        shelf().runtime.malloc(1 << 40)

    assert (caught.value.symbol, caught.value.code) == ("shelfBuffer", -4)


def test_an_address_inside_an_allocation_finds_the_object_and_the_offset(shelf: Callable[..., Shelf]) -> None:
    runtime = shelf().runtime
    address = runtime.malloc(1000)

    runtime.memset(address + 900, 7, 100)

    assert ctypes.string_at(address, 1000) == bytes(900) + b"\7" * 100


def test_one_past_the_end_is_outside_and_an_unknown_address_is_refused_by_name(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    address = opened.runtime.malloc(1000)
    calls = opened["calls"]

    for outside in (address + 1000, 8, address - 1):
        with pytest.raises(nbxrt.ArgumentValueError, match=f"`memset`: the address {outside:#x} lies in no memory"):
            opened.runtime.memset(outside, 7, 1)

    assert opened["calls"] == calls


def test_what_was_released_or_does_not_begin_an_allocation_cannot_be_released(shelf: Callable[..., Shelf]) -> None:
    runtime = shelf().runtime
    address = runtime.malloc(1000)
    with pytest.raises(nbxrt.ArgumentValueError, match="lies inside the allocation at"):
        runtime.free(address + 8)

    runtime.free(address)

    with pytest.raises(nbxrt.ArgumentValueError, match="released already"):
        runtime.free(address)


def test_what_is_kept_of_a_device_is_made_at_its_first_use_and_once(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    assert opened["live"] == 0  # opening asks nothing of the vendor
    start = threading.Barrier(6)

    def allocate() -> None:
        start.wait()
        opened.runtime.malloc(8)

    threads = [threading.Thread(target=allocate) for _number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert opened["live"] == 6 + 1  # six buffers, one context


def test_what_is_kept_is_released_when_the_runtimes_are_forgotten(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    opened.runtime.free(opened.runtime.malloc(8))
    assert opened["live"] == 1

    nbxrt.reset()

    assert opened["live"] == 0


def test_a_failure_to_make_what_is_kept_is_told_and_the_next_use_tries_again(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    opened.fail("shelfContext")
    with pytest.raises(nbxrt.DeviceError) as caught:
        opened.runtime.malloc(8)

    assert caught.value.symbol == "shelfContext"
    assert opened.runtime.malloc(8)


def test_each_device_keeps_its_own(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    for device in (0, 1):
        opened.runtime.set_device(device)
        opened.runtime.malloc(8)

    assert opened["live"] == 2 + 2


def test_gpus_come_first_in_the_list_of_devices(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()

    assert opened.runtime.device_count() == 2
    assert opened.runtime._binder.listed().gpus() == 1
    assert [state.index for state in opened.runtime._binder.listed().all()] == [0, 1]


def test_no_device_counts_as_0_and_every_use_says_why(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    opened["devices"] = 0

    assert opened.runtime.device_count() == 0
    with pytest.raises(nbxrt.NoDeviceError, match=r"shelfDevices\(\)") as caught:
        opened.runtime.malloc(8)
    assert caught.value.code == -7


def test_devices_that_come_later_are_seen(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    opened["devices"] = 0
    assert opened.runtime.device_count() == 0

    opened["devices"] = 2

    assert opened.runtime.malloc(8)


def test_steps_are_straight_python(shelf: Callable[..., Shelf]) -> None:
    source = source_of(shelf().runtime.malloc)

    assert "except BaseException:" in source
    assert source.count("_call") == 3  # two calls, and the one that undoes the first


@pytest.mark.parametrize("threads", [6])
def test_threads_do_not_see_each_others_results(shelf: Callable[..., Shelf], threads: int) -> None:
    runtime: Any = shelf().runtime
    faults: list[int] = []

    def work(number: int) -> None:
        for _turn in range(200):
            address = runtime.malloc(64)
            runtime.memset(address, number, 64)
            if ctypes.string_at(address, 64) != bytes([number]) * 64:
                faults.append(number)
            runtime.free(address)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()

    assert faults == []


def test_memory_that_the_account_keeps_for_later_goes_with_what_is_kept_of_the_devices(
    shelf: Callable[..., Shelf],
) -> None:
    opened = shelf()
    nbxrt.zeros(64, "uint8").tobytes()
    gc.collect()
    assert opened["live"] > 0

    nbxrt.reset()

    assert opened["live"] == 0


def test_what_another_thread_works_with_is_not_released_under_it(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    runtime = opened.runtime
    runtime.free(runtime.malloc(64))
    stream = runtime._binder.policy("queues").of_current()
    kept = opened["live"]
    other = threading.Thread(target=runtime.sync)

    with stream.draining:  # which the other thread waits for
        other.start()
        while not nbxrt.locks.others_are_inside(runtime.name):
            pass
        nbxrt.reset()
        assert opened["live"] == kept
    other.join()
    runtime._binder.release()

    assert opened["live"] == 0


def test_work_that_a_finalizer_gives_to_a_stream_that_its_thread_waits_for_is_not_left(
    shelf: Callable[..., Shelf],
) -> None:
    opened = shelf()
    runtime = opened.runtime
    address = runtime.malloc(64)
    live = opened["live"]
    stream = runtime.stream_create()

    with runtime._binder.policy("queues").find(stream).draining:
        runtime.memset_async(address, 1, 64, stream)
        runtime.stream_destroy(stream)

    assert opened["live"] == live
    runtime.free(address)


def test_a_stream_that_a_finalizer_ends_goes_once_nobody_walks_to_it_and_the_walker_is_not_waited_for(
    shelf: Callable[..., Shelf],
) -> None:
    opened = shelf()
    runtime = opened.runtime
    waited_for, dropped = runtime.stream_create(), runtime.stream_create()
    queues = runtime._binder.policy("queues")
    live = opened["live"]
    other = threading.Thread(target=runtime.sync)

    with queues.find(waited_for).draining:  # a finalizer runs here, and the other thread waits for it
        other.start()
        while not queues.walks.threads:
            pass
        runtime.stream_destroy(dropped)
        assert opened["live"] == live
    other.join()

    assert opened["live"] == live - 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_that_was_forked_is_told_so_and_touches_nothing_of_its_parent(shelf: Callable[..., Shelf]) -> None:
    base, code = (yaml.safe_load((HERE / f"{name}.yaml").read_text("utf-8")) for name in ("shelf", "code"))
    operations = ("module_load", "module_unload", "module_get_function", "launch_kernel")
    opened = shelf(operations={name: {"policy": "kernels"} for name in operations}, policies=base["policies"] | code)
    runtime: Any = opened.runtime
    address, stream, event = runtime.malloc(64), runtime.stream_create(), runtime.event_create()
    runtime.event_record(event, stream)
    module = runtime.module_load(b"ok")
    function = runtime.module_get_function(module, "fill")
    calls, live = opened["calls"], opened["live"]

    child = os.fork()
    if not child:
        told = []
        for call in (
            lambda: runtime.malloc(64), runtime.device_count, runtime.sync,
            lambda: runtime.memset_async(address, 1, 64, stream), lambda: runtime.free(address),
            lambda: runtime.event_sync(event), lambda: runtime.event_destroy(event),
            lambda: runtime.module_get_function(module, "fill"), lambda: runtime.module_unload(module),
            lambda: runtime.launch_kernel(function, (1,), (1,), 0, 0, (ctypes.c_void_p(address), ctypes.c_uint8(1))),
            lambda: runtime.stream_sync(stream), lambda: runtime.stream_destroy(stream),
        ):  # fmt: skip
            try:
                call()
            except nbxrt.NbxrtError as error:
                told.append("forked after the driver was initialised" in error.message and "`spawn`" in error.hint)
        os._exit(0 if told == [True] * 12 and (opened["calls"], opened["live"]) == (calls, live) else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert runtime.malloc(64)


def test_a_backend_that_lacks_what_every_one_needs_says_what_to_bind(shelf: Callable[..., Shelf]) -> None:
    with pytest.raises(nbxrt.DescriptionError, match="`device` is absent, and of it `sync` is required") as caught:
        shelf(operations={"sync": None})

    assert "bind what is required under `operations`" in caught.value.diagnostics[0].hint
