"""Policies of memory that host and device share, of events by counters and of facts, on a shelf that has them."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Shelf

pytestmark = pytest.mark.needs("cc")


@pytest.fixture
def shared(shelf: Callable[..., Shelf]) -> Shelf:
    more: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("shared.yaml").read_text("utf-8"))
    budget = {
        "total": {"steps": [{"call": "shelfMemory", "args": ["state.handle", {"out": "total", "type": "uint64"}]}]}
    }
    return shelf(operations=more["operations"], policies=more["policies"] | {"budget": budget})


def _read(address: int, nbytes: int) -> bytes:
    return ctypes.string_at(address, nbytes)


@pytest.mark.parametrize(
    ("there", "here", "nbytes", "by_device"),
    [(0, 0, 64, True), (8, 16, 40, True), (1, 0, 8, False), (0, 4, 8, False), (0, 0, 7, False)],
)
def test_the_device_copies_what_its_rules_allow_and_the_host_the_rest(
    shared: Shelf, there: int, here: int, nbytes: int, by_device: bool
) -> None:
    runtime = shared.runtime
    source, target = runtime.malloc(64), runtime.malloc(64)
    ctypes.memmove(source, bytes(range(64)), 64)

    runtime.memcpy_async(target + there, source + here, nbytes, "device_to_device", 0)

    assert shared["copies"] == by_device
    runtime.stream_sync(0)
    assert _read(target + there, nbytes) == bytes(range(here, here + nbytes))


def test_copies_that_overlap_or_have_a_side_of_the_host_are_the_hosts(shared: Shelf) -> None:
    runtime = shared.runtime
    address, host = runtime.malloc(64), ctypes.create_string_buffer(bytes(range(64)), 64)

    runtime.memcpy_async(address, ctypes.addressof(host), 64, "host_to_device", 0)
    runtime.memcpy_async(address + 8, address, 32, "device_to_device", 0)

    assert shared["copies"] == 0
    assert _read(address, 40) == bytes([*range(8), *range(32)])


def test_the_host_waits_for_the_stream_before_it_copies(shared: Shelf) -> None:
    runtime, stream = shared.runtime, shared.runtime.stream_create()
    address = runtime.malloc(64)
    shared["hold"] = 1
    runtime.memset_async(address, 1, 64, stream)
    assert runtime.stream_query(stream) is False

    runtime.memset_async(address, 2, 3, stream)

    assert runtime.stream_query(stream) is True
    assert _read(address, 8) == b"\2\2\2\1\1\1\1\1"


def test_an_ordinary_copy_waits_for_every_stream_of_the_device(shared: Shelf) -> None:
    runtime, streams = shared.runtime, [shared.runtime.stream_create() for _number in range(2)]
    address, host = runtime.malloc(64), ctypes.create_string_buffer(64)
    shared["hold"] = 1
    for stream in streams:
        runtime.memset_async(address, 3, 64, stream)

    runtime.memcpy(ctypes.addressof(host), address, 64, "device_to_host")

    assert [runtime.stream_query(stream) for stream in streams] == [True, True]
    assert host.raw == b"\3" * 64


def test_device_memory_has_to_be_there_in_its_whole_length(shared: Shelf) -> None:
    runtime, host = shared.runtime, ctypes.create_string_buffer(128)
    address, here = runtime.malloc(64), ctypes.addressof(host)

    for call, given in (
        (runtime.memset, (here, 1, 8)),
        (runtime.memcpy, (here, here + 64, 8, "device_to_host")),
        (runtime.memcpy, (here, here + 64, 8, "host_to_device")),
        (runtime.memcpy, (address, here, 65, "default")),
        (runtime.memset_async, (address + 60, 1, 8, 0)),
    ):
        with pytest.raises(nbxrt.ArgumentValueError):
            call(*given)


def test_more_work_than_the_window_is_waited_for_and_given_up(shared: Shelf) -> None:
    runtime = shared.runtime
    address = runtime.malloc(64)
    runtime.sync()
    before = shared["live"]
    shared["hold"] = 1

    for number in range(100):
        runtime.memset(address, number, 64)

    assert shared["live"] - before == 4 + 1  # the window, and the default stream's queue
    runtime.sync()
    assert shared["live"] - before == 1


def test_pages_around_the_callers_memory_are_reached_by_the_device(shared: Shelf) -> None:
    runtime = shared.runtime
    buffer = ctypes.create_string_buffer(bytes(3 * mmap.PAGESIZE))
    host, size = ctypes.addressof(buffer) + 24 - ctypes.addressof(buffer) % 8, mmap.PAGESIZE
    address = runtime.malloc(64)
    runtime.memset(address, 5, 64)
    copies = shared["copies"]

    runtime.host_register(host, size)
    runtime.memcpy_async(host + 8, address, 64, "device_to_host", 0)

    assert shared["copies"] == copies + 1
    assert _read(host, 80) == bytes(8) + b"\5" * 64 + bytes(8)
    with pytest.raises(nbxrt.DeviceError) as twice:
        runtime.host_register(host, 16)
    runtime.host_unregister(host)
    with pytest.raises(nbxrt.DeviceError) as gone:
        runtime.host_unregister(host)
    with pytest.raises(nbxrt.DeviceError):
        runtime.host_unregister(address)  # it is the device's
    assert (twice.value.kind, gone.value.kind) == ("already_registered", "not_registered")


def test_events_are_values_of_their_streams_counter_that_only_rise(shared: Shelf) -> None:
    runtime = shared.runtime
    one, other, event = runtime.stream_create(), runtime.stream_create(), runtime.event_create()
    shared["hold"] = 1
    for _turn in range(3):
        runtime.event_record(event, one)
    assert runtime.event_query(event) is False

    runtime.stream_wait_event(other, event)
    assert shared["waits"] == 1
    runtime.event_sync(event)
    runtime.stream_wait_event(other, event)

    assert runtime.event_query(event) is True
    assert shared["waits"] == 1  # what has passed is not waited for


def test_an_event_outlives_its_stream_and_the_counter_goes_with_the_last_of_them(shared: Shelf) -> None:
    runtime = shared.runtime
    runtime.stream_destroy(runtime.stream_create())  # the device's context is there
    event = runtime.event_create()
    before = shared["live"]
    stream = runtime.stream_create()
    runtime.event_record(event, stream)
    runtime.stream_destroy(stream)

    assert runtime.event_query(event) is True
    assert shared["live"] > before  # the counter, and the work that raised it
    runtime.event_destroy(event)
    assert shared["live"] == before


def test_times_between_events_come_from_their_work(shared: Shelf) -> None:
    runtime = shared.runtime
    start, end, untimed = runtime.event_create(), runtime.event_create(), runtime.event_create_flags(timing=False)
    for event in (start, end, untimed):
        runtime.event_record(event, 0)

    assert runtime.event_elapsed(start, end) == 1.0
    with pytest.raises(nbxrt.ArgumentValueError, match="without timing"):
        runtime.event_elapsed(start, untimed)


def test_facts_are_told_one_by_one(shared: Shelf) -> None:
    runtime = shared.runtime

    assert sorted(runtime.device_attribute("max_threads_per_block", device) for device in (0, 1)) == [64, 65]
    with pytest.raises(nbxrt.CapabilityError, match="Shelf does not tell warp_size"):
        runtime.device_attribute("warp_size", 0)
    with pytest.raises(nbxrt.CapabilityError, match="does not tell number 4711"):
        runtime.device_attribute(4711, 0)
