"""Capture and replay on the simulated devices."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

import pytest

import nbxrt

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


def bytes_at(runtime: Runtime, address: int, nbytes: int) -> bytes:
    received = ctypes.create_string_buffer(nbytes)
    runtime.memcpy(ctypes.addressof(received), address, nbytes, "device_to_host")
    return received.raw


def capture(runtime: Runtime, address: int, value: int) -> int:
    """A graph that fills four bytes."""
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream)
    runtime.memset_async(address, value, 4, stream)
    return int(runtime.stream_end_capture(stream))


def test_captured_work_is_done_when_the_graph_is_launched(runtime: Runtime) -> None:
    address = runtime.malloc(4)
    runtime.memset(address, 1, 4)

    graph_exec = runtime.graph_instantiate(capture(runtime, address, 7))

    assert bytes_at(runtime, address, 4) == b"\x01" * 4
    runtime.graph_launch(graph_exec, 0)
    assert bytes_at(runtime, address, 4) == b"\x07" * 4


def test_a_graph_is_launched_as_often_as_wanted(runtime: Runtime) -> None:
    address, source = runtime.malloc(4), runtime.malloc(4)
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream)
    runtime.memcpy_async(address, source, 4, "device_to_device", stream)
    graph_exec = runtime.graph_instantiate(runtime.stream_end_capture(stream))

    for value in (1, 2):
        runtime.memset(source, value, 4)
        runtime.graph_launch(graph_exec, 0)
        assert bytes_at(runtime, address, 4) == bytes([value]) * 4


def test_a_stream_says_whether_it_is_capturing(runtime: Runtime) -> None:
    stream = runtime.stream_create()
    before = runtime.stream_is_capturing(stream)

    runtime.stream_begin_capture(stream)

    assert (before, runtime.stream_is_capturing(stream)) == (False, True)


@pytest.mark.parametrize("forbidden", ["malloc", "sync", "stream_sync", "stream_query"])
def test_a_call_that_cannot_be_captured_ends_the_capture(runtime: Runtime, forbidden: str) -> None:
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream)
    arguments = {"malloc": (16,), "sync": ()}.get(forbidden, (stream,))

    with pytest.raises(nbxrt.DeviceError, match="CAPTURE_UNSUPPORTED"):
        getattr(runtime, forbidden)(*arguments)
    with pytest.raises(nbxrt.DeviceError, match="CAPTURE_UNSUPPORTED"):
        runtime.stream_end_capture(stream)
    assert not runtime.stream_is_capturing(stream)


def test_a_relaxed_capture_forbids_nothing(runtime: Runtime) -> None:
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream, "relaxed")

    runtime.malloc(16)

    assert runtime.stream_end_capture(stream)


def test_a_thread_local_capture_leaves_other_threads_alone(runtime: Runtime) -> None:
    stream, addresses = runtime.stream_create(), []
    runtime.stream_begin_capture(stream, "thread_local")

    thread = threading.Thread(target=lambda: addresses.append(runtime.malloc(16)))
    thread.start()
    thread.join()

    assert addresses
    assert runtime.stream_end_capture(stream)


def test_work_of_the_default_stream_breaks_the_capture_of_a_blocking_stream(runtime: Runtime) -> None:
    address, stream = runtime.malloc(4), runtime.stream_create()
    runtime.stream_begin_capture(stream)

    with pytest.raises(nbxrt.DeviceError, match="CAPTURE_UNSUPPORTED"):
        runtime.memset_async(address, 0, 4, 0)


def test_a_capture_is_ended_by_the_thread_that_began_it(runtime: Runtime) -> None:
    stream, kinds = runtime.stream_create(), []
    runtime.stream_begin_capture(stream)

    def end() -> None:
        with pytest.raises(nbxrt.DeviceError) as caught:
            runtime.stream_end_capture(stream)
        kinds.append(caught.value.kind)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()

    assert kinds == ["not_permitted"]


def test_a_stream_joins_a_capture_through_an_event(runtime: Runtime) -> None:
    address, event, back = runtime.malloc(8), runtime.event_create(), runtime.event_create()
    first, second = runtime.stream_create(), runtime.stream_create()
    runtime.memset(address, 0, 8)
    runtime.sync()
    runtime.stream_begin_capture(first)
    runtime.event_record(event, first)
    runtime.stream_wait_event(second, event)
    runtime.memset_async(address, 1, 4, first)
    runtime.memset_async(address + 4, 2, 4, second)
    runtime.event_record(back, second)
    runtime.stream_wait_event(first, back)

    runtime.graph_launch(runtime.graph_instantiate(runtime.stream_end_capture(first)), 0)

    assert bytes_at(runtime, address, 8) == b"\1\1\1\1\2\2\2\2"
    assert not runtime.stream_is_capturing(second)


def test_a_stream_that_does_not_come_back_spoils_the_capture(runtime: Runtime) -> None:
    address, event = runtime.malloc(4), runtime.event_create()
    first, second = runtime.stream_create(), runtime.stream_create()
    runtime.stream_begin_capture(first)
    runtime.event_record(event, first)
    runtime.stream_wait_event(second, event)
    runtime.memset_async(address, 1, 4, second)

    with pytest.raises(nbxrt.DeviceError, match="CAPTURE_UNSUPPORTED"):
        runtime.stream_end_capture(first)


def test_an_executable_graph_takes_the_parameters_of_another_of_its_shape(runtime: Runtime) -> None:
    address = runtime.malloc(4)
    graph_exec = runtime.graph_instantiate(capture(runtime, address, 1))

    updated = runtime.graph_exec_update(graph_exec, capture(runtime, address, 9))
    runtime.graph_launch(graph_exec, 0)

    assert updated
    assert bytes_at(runtime, address, 4) == b"\x09" * 4


def test_an_executable_graph_does_not_take_another_shape(runtime: Runtime) -> None:
    address, stream = runtime.malloc(4), runtime.stream_create()
    graph_exec = runtime.graph_instantiate(capture(runtime, address, 1))
    runtime.stream_begin_capture(stream)
    other = runtime.stream_end_capture(stream)

    assert not runtime.graph_exec_update(graph_exec, other)
    assert runtime.get_last_error() == 0


def test_memory_of_a_graph_lives_as_long_as_the_graph(simulation: Simulation) -> None:
    runtime = simulation.open()
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream)
    address = runtime.malloc_async(64, stream)
    runtime.memset_async(address, 1, 64, stream)
    runtime.free_async(address, stream)
    graph = runtime.stream_end_capture(stream)
    graph_exec = runtime.graph_instantiate(graph)

    for _launch in range(2):
        runtime.graph_launch(graph_exec, stream)
    runtime.stream_sync(stream)
    runtime.graph_destroy(graph)
    runtime.graph_exec_destroy(graph_exec)
    runtime.stream_destroy(stream)

    assert simulation.ledger() == []


def test_a_destroyed_graph_is_refused(runtime: Runtime) -> None:
    graph = capture(runtime, runtime.malloc(4), 1)
    runtime.graph_destroy(graph)

    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.graph_instantiate(graph)
