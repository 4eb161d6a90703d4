"""The `metal` backend by its file alone, on the stand-in: conformance, order, failures, threads, nothing left over."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import objective_c
from nbxrt import conformance
from nbxrt.cli.doctor.messages import compared

if TYPE_CHECKING:
    from collections.abc import Callable

    from objective_c import Stub

pytestmark = [
    pytest.mark.skipif(not objective_c.IS_FOR_THIS_MACHINE, reason=objective_c.FOR_WHICH),
    pytest.mark.needs("gobjc"),
]

#: Microseconds that a command buffer rests where a test needs work that is not done at once.
SLOW = 20_000
SOURCE = (Path(__file__).parents[2] / "scripts" / "images" / "metal.msl").read_bytes()


def _read(address: int, nbytes: int) -> bytes:
    return ctypes.string_at(address, nbytes)


def _host(content: bytes) -> Any:
    return ctypes.create_string_buffer(content, len(content))


@pytest.mark.parametrize(
    ("devices", "delay"),
    [(1, 0), *(pytest.param(*each, marks=pytest.mark.tier("all")) for each in ((2, 0), (1, 500), (2, 500)))],
)
def test_the_conformance_suite_passes_and_leaves_no_object(stub: Stub, metal: Any, devices: int, delay: int) -> None:
    stub.devices(devices)
    stub.delay(delay)

    report = conformance.run(metal, module_image=conformance.ModuleImage(SOURCE))

    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.counts["works"] > 40


def test_every_message_of_the_file_is_answered_with_its_types(metal: Any) -> None:
    found = compared(metal)

    assert found["differences"] == []
    assert found["compared"] == sum(map(len, metal.description["messages"].values()))


@pytest.mark.parametrize(
    ("devices", "default", "listed", "names"),
    [
        (1, True, True, ["Stub M1"]),
        (3, True, True, ["Stub M1", "Stub External", "Stub Discrete"]),  # the default one is the last in the list
        (1, True, False, ["Stub M1"]),  # a sandbox
        (2, False, True, ["Stub Discrete", "Stub M1"]),  # no window session
        (1, False, False, []),
    ],
)
def test_the_default_device_comes_first_whether_it_is_listed_or_not(
    stub: Stub, metal: Any, devices: int, default: bool, listed: bool, names: list[str]
) -> None:
    stub.devices(devices, default=default, listed=listed)

    assert [metal.device_name(index) for index in range(metal.device_count())] == names


def test_without_a_device_every_use_says_so(stub: Stub, metal: Any) -> None:
    stub.devices(0)

    with pytest.raises(nbxrt.NoDeviceError, match="Apple Metal has no device here"):
        metal.malloc(16)


def test_an_event_is_recorded_after_the_work_before_it(stub: Stub, metal: Any) -> None:
    address, stream, event = metal.malloc(4096), metal.stream_create(), metal.event_create()
    with stub.held():
        metal.memset_async(address, 7, 4096, stream)
        metal.event_record(event, stream)
        assert metal.event_query(event) is False

    metal.event_sync(event)

    assert _read(address, 4096) == b"\7" * 4096
    metal.free(address)
    metal.event_destroy(event)
    metal.stream_destroy(stream)


def test_work_goes_to_the_stream_that_it_was_given(stub: Stub, metal: Any) -> None:
    one, other = metal.malloc(4096), metal.malloc(4096)
    slow, quick = metal.stream_create(), metal.stream_create()
    metal.memset_async(one, 1, 4096, quick)
    metal.stream_sync(quick)
    with stub.held():
        metal.memset_async(one, 2, 4096, slow)
        metal.memcpy_async(other, one, 4096, "device_to_device", slow)

        assert metal.stream_query(quick) is True
        metal.stream_sync(quick)

        assert metal.stream_query(slow) is False
    metal.sync()
    assert _read(other, 4096) == b"\2" * 4096
    for address in (one, other):
        metal.free(address)
    for stream in (slow, quick):
        metal.stream_destroy(stream)


def test_destroying_a_stream_waits_for_its_work(stub: Stub, metal: Any) -> None:
    stub.delay(SLOW)
    address, stream = metal.malloc(64), metal.stream_create()
    metal.memset_async(address, 9, 64, stream)

    metal.stream_destroy(stream)

    assert _read(address, 64) == b"\11" * 64
    metal.free(address)


def test_a_stream_waits_for_an_event_of_another(stub: Stub, metal: Any) -> None:
    address, copy = metal.malloc(4096), metal.malloc(4096)
    first, second, event = metal.stream_create(), metal.stream_create(), metal.event_create()
    stub.delay(SLOW)
    metal.memset_async(address, 5, 4096, first)
    metal.event_record(event, first)
    stub.delay(0)

    metal.stream_wait_event(second, event)
    metal.memcpy_async(copy, address, 4096, "device_to_device", second)
    metal.stream_sync(second)

    assert _read(copy, 4096) == b"\5" * 4096
    metal.event_destroy(event)
    for stream in (first, second):
        metal.stream_destroy(stream)
    for each in (address, copy):
        metal.free(each)


def test_more_work_than_a_queue_holds_is_taken(metal: Any) -> None:
    address, stream = metal.malloc(64), metal.stream_create()
    for number in range(200):
        metal.memset_async(address, number, 64, stream)
    metal.stream_sync(stream)

    assert _read(address, 64) == bytes([199]) * 64
    metal.free(address)
    metal.stream_destroy(stream)


def test_a_finalizer_may_record_an_event_where_another_thread_waits_that_records_one(stub: Stub, metal: Any) -> None:
    stream, mine, theirs = metal.stream_create(), metal.event_create(), metal.event_create()
    queue = metal._binder.policy("queues").find(stream)
    other = threading.Thread(target=lambda: [metal.event_record(theirs, stream) for _each in range(40)])

    with queue.draining:  # a finalizer runs here
        other.start()
        while len(queue.in_flight) <= 32:  # then the other thread waits for room
            time.sleep(0.001)
        metal.event_record(mine, stream)
    other.join()

    metal.stream_sync(stream)
    assert [metal.event_query(each) for each in (mine, theirs)] == [True, True]
    metal.event_destroy(mine)
    metal.event_destroy(theirs)
    metal.stream_destroy(stream)


@pytest.mark.parametrize(("offset", "size"), [(0, 64), (4, 60), (1, 63), (0, 63), (3, 1)])
def test_the_device_fills_what_its_rules_allow_and_the_host_the_rest(
    stub: Stub, metal: Any, offset: int, size: int
) -> None:
    address = metal.malloc(64)
    before = stub.committed

    metal.memset(address + offset, 0xAB, size)
    metal.sync()

    assert stub.committed - before == (offset % 4 == 0 and size % 4 == 0)
    assert _read(address, 64) == bytes(offset) + b"\xab" * size + bytes(64 - offset - size)
    metal.free(address)


def test_copies_keep_their_order_when_the_host_does_them(stub: Stub, metal: Any) -> None:
    stub.delay(SLOW)
    address, stream, source = metal.malloc(64), metal.stream_create(), _host(b"\3" * 64)
    metal.memset_async(address, 1, 64, stream)
    metal.memcpy_async(address + 1, ctypes.addressof(source), 3, "host_to_device", stream)
    metal.memset_async(address + 8, 2, 8, stream)
    metal.stream_sync(stream)

    assert _read(address, 20) == b"\1" + b"\3" * 3 + b"\1" * 4 + b"\2" * 8 + b"\1" * 4
    metal.free(address)
    metal.stream_destroy(stream)


def test_ranges_that_leave_their_memory_are_refused_before_any_message(stub: Stub, metal: Any) -> None:
    address = metal.malloc(64)
    host = _host(bytes(128))
    before = (stub.committed, stub.encoders)

    for call, given in (
        (metal.memset, (address + 60, 0, 8)),
        (metal.memcpy, (address, ctypes.addressof(host), 65, "host_to_device")),
        (metal.memcpy, (ctypes.addressof(host), address + 64, 1, "device_to_host")),
        (metal.memcpy_async, (address, address + 32, 33, "device_to_device", 0)),
        (metal.memset, (0x1000, 0, 4)),
    ):
        with pytest.raises(nbxrt.ArgumentValueError):
            call(*given)

    assert (stub.committed, stub.encoders) == before
    metal.free(address)


def test_memory_of_another_device_is_waited_for_there(stub: Stub, metal: Any) -> None:
    stub.devices(2)
    metal.set_device(1)
    address = metal.malloc(64)
    stub.delay(SLOW)
    host = _host(bytes(64))
    for copy in (
        lambda: metal.memcpy(ctypes.addressof(host), address, 64, "device_to_host"),
        lambda: metal.memcpy_async(ctypes.addressof(host), address, 64, "device_to_host", 0),
    ):
        ctypes.memset(host, 0, 64)
        metal.set_device(1)
        metal.memset(address, 0, 64)
        metal.memset(address, 4, 64)
        metal.set_device(0)
        copy()
        assert host.raw == b"\4" * 64

    metal.memset(address, 0, 64)
    assert _read(address, 64) == bytes(64)
    metal.free(address)


def test_a_process_that_ends_with_work_in_flight_says_nothing(compiled_stub: Stub) -> None:
    program = (
        "import nbxrt; metal = nbxrt.open('metal'); stream = metal.stream_create(); event = metal.event_create()\n"
        "address = metal.malloc(1 << 20)\n"
        "for turn in range(20): metal.memset_async(address, turn, 1 << 20, stream)\n"
        "metal.event_record(event, stream)\n"
    )
    environment = {**os.environ, **compiled_stub.environment()}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_registered_memory_keeps_its_offset_in_the_pages_around_it(stub: Stub, metal: Any) -> None:
    buffer = _host(bytes(9000))
    host = ctypes.addressof(buffer) + 4  # not at a page
    address = metal.malloc(4096)
    metal.memset(address, 6, 4096)
    metal.host_register(host, 8000)
    before = stub.committed
    metal.memcpy_async(host + 4, address, 4096, "device_to_host", 0)
    assert stub.committed == before + 1  # the device copied it
    metal.host_unregister(host)

    assert buffer.raw[8 : 8 + 4096] == b"\6" * 4096
    with pytest.raises(nbxrt.DeviceError) as caught:
        metal.host_unregister(host)
    assert caught.value.kind == "not_registered"
    metal.free(address)


@pytest.mark.parametrize(("code", "kind"), [(8, "out_of_memory"), (9, "invalid_value"), (2, "")])
def test_work_that_failed_is_the_error_of_the_next_call_on_its_stream(
    stub: Stub, metal: Any, code: int, kind: str
) -> None:
    address, stream, other = metal.malloc(64), metal.stream_create(), metal.stream_create()
    stub.fail_next(code)
    metal.memset_async(address, 1, 64, stream)

    metal.stream_sync(other)
    with pytest.raises(nbxrt.DeviceError, match="work that was given to the stream before") as caught:
        metal.stream_sync(stream)
    metal.stream_sync(stream)

    assert (caught.value.code, caught.value.kind) == (code, kind)
    metal.free(address)
    for each in (stream, other):
        metal.stream_destroy(each)


def test_six_threads_on_streams_of_their_own(metal: Any) -> None:
    faults: list[Any] = []

    def work(number: int) -> None:
        try:
            stream, event, address = metal.stream_create(), metal.event_create(), metal.malloc(256)
            for turn in range(100):
                metal.memset_async(address, number + turn, 256, stream)
                metal.event_record(event, stream)
                metal.event_sync(event)
                if _read(address, 256) != bytes([number + turn]) * 256:
                    faults.append((number, turn))
            metal.free(address)
            metal.event_destroy(event)
            metal.stream_destroy(stream)
        except Exception as error:  # noqa: BLE001  # it must reach the thread that checks
            faults.append(error)

    _together(work)

    assert faults == []


def test_six_threads_on_one_stream(metal: Any) -> None:
    stream, addresses = metal.stream_create(), [metal.malloc(256) for _number in range(6)]
    faults: list[Any] = []

    def work(number: int) -> None:
        try:
            for turn in range(100):
                metal.memset_async(addresses[number], turn, 256, stream)
                if turn % 10 == number:
                    metal.stream_sync(stream)
                metal.stream_query(stream)
        except Exception as error:  # noqa: BLE001
            faults.append(error)

    _together(work)
    metal.stream_sync(stream)

    assert faults == []
    assert [_read(address, 256) for address in addresses] == [bytes([99]) * 256] * 6
    for address in addresses:
        metal.free(address)
    metal.stream_destroy(stream)


def _together(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _added(metal: Any, module: int, stream: int = 0, shared_memory: int = 0) -> list[int]:
    """What the kernel `add` makes of two vectors."""
    kernel = metal.module_get_function(module, "add")
    places = [metal.malloc(4 * 8) for _vector in range(3)]
    for place, values in zip(places, (range(8), range(100, 108)), strict=False):
        vector = (ctypes.c_uint32 * 8)(*values)
        metal.memcpy(place, ctypes.addressof(vector), 32, "host_to_device")
    arguments = (*map(ctypes.c_void_p, places), ctypes.c_uint32(8))
    metal.launch_kernel(kernel, (2,), (4,), shared_memory, stream, arguments)
    metal.stream_sync(stream)
    sums = list((ctypes.c_uint32 * 8).from_address(places[2]))
    for place in places:
        metal.free(place)
    return sums


@pytest.mark.parametrize("image", [SOURCE, b"MTLB" + SOURCE], ids=["source", "library"])
def test_code_is_loaded_from_source_or_from_a_compiled_library(metal: Any, image: bytes) -> None:
    module = metal.module_load(image)

    assert _added(metal, module, shared_memory=20) == [100 + 2 * index for index in range(8)]
    metal.module_unload(module)


def test_what_the_compiler_said_is_in_the_error(metal: Any) -> None:
    with pytest.raises(nbxrt.DeviceError, match="unknown type name") as caught:
        metal.module_load(b"kernal void add()")

    assert caught.value.kind == "no_binary"
    with pytest.raises(nbxrt.DeviceError, match="Invalid library file"):
        metal.module_load(b"MTLB")


def test_a_launch_with_an_address_of_no_memory_is_refused_before_it_takes_a_place_in_the_queue(
    stub: Stub, metal: Any
) -> None:
    module = metal.module_load(SOURCE)
    kernel = metal.module_get_function(module, "add")
    committed = stub.committed

    for _turn in range(100):  # more than a queue holds
        with pytest.raises(nbxrt.ArgumentValueError, match="lies in no memory"):
            metal.launch_kernel(kernel, (1,), (1,), 0, 0, (ctypes.c_void_p(0x1234),))

    assert stub.committed == committed
    metal.sync()
    metal.module_unload(module)


def test_a_device_tells_its_facts(stub: Stub, metal: Any) -> None:
    stub.devices(2)

    assert metal.device_attribute("max_threads_per_block", 0) == 1024
    assert metal.device_attribute("max_shared_memory_per_block", 0) == 32768
    assert [metal.device_attribute("integrated", device) for device in (0, 1)] == [1, 0]
    with pytest.raises(nbxrt.CapabilityError, match="does not tell clock_rate"):
        metal.device_attribute("clock_rate", 0)
