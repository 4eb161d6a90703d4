"""Streams and events of the simulated devices: order, what waits for what, and times."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import simulations

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


class Board:
    """Host memory that asynchronous copies write single letters to."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.letters = ctypes.create_string_buffer(b"." * 8, 8)
        self.kept: list[Any] = []

    def write(self, letter: bytes, stream: int, at: int = 0) -> None:
        """Give a stream the work of writing a letter."""
        address = self.runtime.malloc(1)
        self.runtime.memset_async(address, letter[0], 1, stream)
        self.runtime.memcpy_async(ctypes.addressof(self.letters) + at, address, 1, "device_to_host", stream)

    @property
    def text(self) -> bytes:
        return self.letters.raw.strip(b".")


@pytest.fixture
def board(runtime: Runtime) -> Board:
    return Board(runtime)


def test_work_of_one_stream_is_done_in_order(runtime: Runtime, board: Board) -> None:
    stream = runtime.stream_create()
    for letter in (b"a", b"b", b"c"):
        board.write(letter, stream)

    runtime.stream_sync(stream)

    assert board.text == b"c"


def test_waiting_for_one_stream_leaves_the_work_of_others(runtime: Runtime, board: Board) -> None:
    one, other = runtime.stream_create(), runtime.stream_create()
    board.write(b"a", one, at=0)
    board.write(b"b", other, at=1)

    runtime.stream_sync(one)

    assert board.text == b"a"


def test_waiting_for_the_device_waits_for_every_stream(runtime: Runtime, board: Board) -> None:
    for at, stream in enumerate([0, runtime.stream_create(), runtime.stream_create_flags(non_blocking=True)]):
        board.write(b"abc"[at : at + 1], stream, at)

    runtime.sync()

    assert board.text == b"abc"


def test_waiting_for_one_device_leaves_the_work_of_the_other(runtime: Runtime, board: Board) -> None:
    board.write(b"a", 0)
    runtime.set_device(1)

    runtime.sync()

    assert board.text == b""


def test_each_query_moves_a_stream_by_one_piece_of_work(runtime: Runtime, board: Board) -> None:
    stream = runtime.stream_create()
    board.write(b"a", stream)

    assert [runtime.stream_query(stream) for _query in range(3)] == [False, False, True]


def test_a_stream_that_is_not_ready_leaves_no_error(runtime: Runtime, board: Board) -> None:
    board.write(b"a", 0)

    runtime.stream_query(0)

    assert runtime.get_last_error() == 0


def test_the_default_stream_waits_for_blocking_streams(runtime: Runtime, board: Board) -> None:
    board.write(b"a", runtime.stream_create(), at=0)
    board.write(b"b", 0, at=1)

    runtime.stream_sync(0)

    assert board.text == b"ab"


def test_blocking_streams_wait_for_the_default_stream(runtime: Runtime, board: Board) -> None:
    stream = runtime.stream_create()
    board.write(b"a", 0, at=0)
    board.write(b"b", stream, at=1)

    runtime.stream_sync(stream)

    assert board.text == b"ab"


def test_non_blocking_streams_and_the_default_stream_ignore_each_other(runtime: Runtime, board: Board) -> None:
    stream = runtime.stream_create_flags(non_blocking=True)
    board.write(b"a", stream, at=0)
    board.write(b"b", 0, at=1)

    runtime.stream_sync(0)

    assert board.letters.raw[:2] == b".b"


def test_a_stream_waits_for_an_event_of_another(runtime: Runtime, board: Board) -> None:
    one, other, event = runtime.stream_create(), runtime.stream_create(), runtime.event_create()
    board.write(b"a", one, at=0)
    runtime.event_record(event, one)
    board.write(b"b", one, at=1)

    runtime.stream_wait_event(other, event)
    board.write(b"c", other, at=2)
    runtime.stream_sync(other)

    assert board.letters.raw[:3] == b"a.c"


def test_a_stream_waits_for_the_record_that_was_there_when_it_was_told_to(runtime: Runtime, board: Board) -> None:
    one, other, event = runtime.stream_create(), runtime.stream_create(), runtime.event_create()
    runtime.event_record(event, one)
    runtime.stream_wait_event(other, event)
    board.write(b"a", one)
    runtime.event_record(event, one)

    runtime.stream_sync(other)

    assert board.text == b""


def test_a_destroyed_stream_still_does_its_work(simulation: Simulation) -> None:
    runtime = simulation.open()
    board, stream = Board(runtime), runtime.stream_create()
    board.write(b"a", stream)

    runtime.stream_destroy(stream)
    runtime.sync()

    assert board.text == b"a"


def test_a_destroyed_stream_is_refused(runtime: Runtime) -> None:
    stream = runtime.stream_create()
    runtime.stream_destroy(stream)

    for use in (runtime.stream_sync, runtime.stream_query, runtime.stream_destroy):
        with pytest.raises(nbxrt.DeviceError, match="INVALID_HANDLE"):
            use(stream)


def test_an_event_that_was_never_recorded_counts_as_finished(runtime: Runtime) -> None:
    event = runtime.event_create()

    assert runtime.event_query(event)
    runtime.event_sync(event)


def test_an_event_is_finished_when_the_work_before_it_is(runtime: Runtime, board: Board) -> None:
    stream, event = runtime.stream_create(), runtime.event_create()
    board.write(b"a", stream, at=0)
    runtime.event_record(event, stream)
    board.write(b"b", stream, at=1)

    unfinished = runtime.event_query(event)
    runtime.event_sync(event)

    assert not unfinished
    assert runtime.event_query(event)
    assert board.text == b"a"


def test_time_between_events_is_at_least_what_the_work_between_them_takes(runtime: Runtime) -> None:
    start, middle, end = (runtime.event_create() for _event in range(3))
    address = runtime.malloc(64 << 20)
    runtime.event_record(start, 0)
    runtime.memset_async(address, 0, 1 << 20, 0)
    runtime.event_record(middle, 0)
    runtime.memset_async(address, 0, 64 << 20, 0)
    runtime.event_record(end, 0)

    runtime.event_sync(end)

    assert runtime.event_elapsed(start, middle) > (1 << 20) / 64e6
    assert runtime.event_elapsed(middle, end) > (64 << 20) / 64e6


def test_time_is_not_ready_before_the_events_are(runtime: Runtime) -> None:
    start, end = runtime.event_create(), runtime.event_create()
    runtime.event_record(start, 0)
    runtime.event_record(end, 0)

    with pytest.raises(nbxrt.DeviceError, match="NOT_READY"):
        runtime.event_elapsed(start, end)


def test_events_without_times_have_none_between_them(runtime: Runtime) -> None:
    start, end = runtime.event_create_flags(timing=False), runtime.event_create()
    for event in (start, end):
        runtime.event_record(event, 0)
    runtime.sync()

    with pytest.raises(nbxrt.DeviceError, match="INVALID_HANDLE"):
        runtime.event_elapsed(start, end)


def test_an_event_is_recorded_in_streams_of_its_device_only(runtime: Runtime) -> None:
    event = runtime.event_create()
    runtime.set_device(1)
    stream = runtime.stream_create()

    with pytest.raises(nbxrt.DeviceError, match="INVALID_HANDLE"):
        runtime.event_record(event, stream)


def test_flags_arrive_as_the_vendors_bits(simulation: Simulation) -> None:
    runtime = simulation.open()

    runtime.stream_create_flags(non_blocking=True)
    runtime.event_create_flags(timing=False, blocking=True)

    flags = {
        name: value for call in simulation.log() for name, value in call.arguments.items() if name.endswith("_flags")
    }
    assert flags == {"stream_flags": 1, "event_flags": 3}


def test_a_thread_can_do_the_work_some_time_after_it_was_given(simulation: Simulation) -> None:
    simulation.set_latency(60_000_000)
    runtime = simulation.open()
    board, stream = Board(runtime), runtime.stream_create()
    board.write(b"a", stream)

    at_once = board.text
    simulation.set_latency(1000)
    end = time.monotonic() + 60
    while not board.text and time.monotonic() < end:
        time.sleep(0.001)

    assert (at_once, board.text) == (b"", b"a")


def test_waiting_takes_as_long_as_the_work_where_a_thread_does_it(cuda: Simulation) -> None:
    cuda.set_latency(50_000)
    runtime = cuda.open()
    board = Board(runtime)

    start = time.monotonic()
    board.write(b"a", 0)
    runtime.sync()

    assert time.monotonic() - start > 0.04
    assert board.text == b"a"


def test_other_threads_run_while_one_waits(cuda: Simulation) -> None:
    assert simulations.others_run_while(cuda, "sync", cuda.open().sync)


def test_a_call_that_sleeps_goes_on_when_its_delay_is_forgotten(cuda: Simulation) -> None:
    cuda.sleep("sync", 60_000_000)
    waiting = threading.Thread(target=cuda.open().sync)
    waiting.start()
    while waiting.is_alive():
        cuda.mend()
        waiting.join(0.01)


def test_work_can_be_done_piece_by_piece(cuda: Simulation) -> None:
    runtime = cuda.open()
    board, stream = Board(runtime), runtime.stream_create()
    board.write(b"a", stream)

    assert cuda.pending() == 2
    assert cuda.advance(1) == 1
    assert board.text == b""
    assert cuda.advance() == 1
    assert board.text == b"a"
    assert cuda.advance() == 0


def test_stream_two_is_another_stream_in_every_thread(cuda: Simulation) -> None:
    runtime = cuda.open()
    board = Board(runtime)
    board.write(b"a", 2, at=0)

    def other() -> None:
        board.write(b"b", 2, at=1)
        runtime.stream_sync(2)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()

    assert board.letters.raw[:2] == b".b"


def test_work_on_memory_that_went_away_loses_the_context(cuda: Simulation) -> None:
    runtime = cuda.open()
    address = runtime.mem_address_reserve(2 << 20)
    allocation = runtime.mem_create(2 << 20, 0)
    runtime.mem_map(address, 2 << 20, 0, allocation)
    runtime.mem_set_access(address, 2 << 20, 0)
    runtime.memset_async(address, 0, 16, 0)

    runtime.mem_unmap(address, 2 << 20)

    with pytest.raises(nbxrt.DeviceError, match="ILLEGAL_ADDRESS") as caught:
        runtime.sync()
    assert caught.value.sticky


def test_many_threads_give_work_at_once(cuda: Simulation) -> None:
    cuda.set_latency(10)
    runtime = cuda.open()
    failures: list[BaseException] = []

    def work(letter: int) -> None:
        try:
            stream, received = runtime.stream_create(), ctypes.create_string_buffer(64)
            for _round in range(30):
                address = runtime.malloc(64)
                runtime.memset_async(address, letter, 64, stream)
                runtime.memcpy_async(ctypes.addressof(received), address, 64, "device_to_host", stream)
                runtime.stream_sync(stream)
                assert received.raw == bytes([letter]) * 64
                runtime.free(address)
            runtime.stream_destroy(stream)
        except BaseException as failure:  # noqa: BLE001  # handed to the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in range(1, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert cuda.ledger() == []
