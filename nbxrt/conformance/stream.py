"""Checks of the group `stream`: work runs in order, and what a stream says of itself is true."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from nbxrt.conformance.bench import host_read, host_write
from nbxrt.conformance.checking import check, expect, expect_bytes, expect_that, pattern

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

STREAM = ("stream_create", "stream_destroy", "stream_sync")
COPIES = ("malloc", "free", "memcpy", "memcpy_async", "memset_async", "malloc_host", "free_host")
SIZE = 16 << 20


@check("stream", STREAM)
def streams_are_made_waited_for_and_released(bench: Bench) -> None:
    """Each has a handle of its own; the default stream is 0 and always there."""
    streams = [bench.stream() for _number in range(16)]
    expect_that(all(streams) and len(set(streams)) == 16, f"handles of 16 streams: {streams}")
    for stream in (0, *streams):
        bench.runtime.stream_sync(stream)


@check("stream", (*STREAM, *COPIES))
def work_of_a_stream_runs_in_the_order_in_which_it_was_given(bench: Bench) -> None:
    """A long chain of copies and fills comes out right, each of which needs the one before."""
    runtime, stream = bench.runtime, bench.stream()
    first, second = bench.memory(SIZE), bench.memory(SIZE)
    source, target = bench.pinned(SIZE), bench.pinned(SIZE)
    host_write(source, pattern(SIZE))
    host_write(target, bytes(SIZE))
    runtime.memset_async(first, 0xEE, SIZE, stream)
    runtime.memcpy_async(first, source, SIZE, "host_to_device", stream)
    for number in range(8):
        runtime.memcpy_async(second, first, SIZE, "device_to_device", stream)
        runtime.memset_async(second, number, 4096, stream)
        first, second = second, first
    runtime.memcpy_async(target, first, SIZE, "device_to_host", stream)
    runtime.stream_sync(stream)
    expect_bytes(host_read(target, SIZE), bytes([7]) * 4096 + pattern(SIZE)[4096:], "the end of the chain")


@check("stream", (*STREAM, *COPIES))
def copies_of_many_streams_do_not_mix(bench: Bench) -> None:
    """Each of eight streams has its own memory."""
    size = 1 << 20
    streams = [bench.stream() for _number in range(8)]
    places = [(bench.pinned(size), bench.memory(size), bench.pinned(size)) for _stream in streams]
    for number, (stream, (source, address, target)) in enumerate(zip(streams, places, strict=True)):
        host_write(source, pattern(size, number * 29))
        bench.runtime.memcpy_async(address, source, size, "host_to_device", stream)
        bench.runtime.memcpy_async(target, address, size, "device_to_host", stream)
    for number, (stream, (_source, _address, target)) in enumerate(zip(streams, places, strict=True)):
        bench.runtime.stream_sync(stream)
        expect_bytes(host_read(target, size), pattern(size, number * 29), f"bytes of stream {number}")


@check("stream", (*STREAM, *COPIES, "stream_query"))
def a_stream_that_says_it_has_finished_has_finished(bench: Bench) -> str:
    """The bytes are there as soon as the answer is True; False leaves no stored error; an idle stream says True."""
    runtime, stream = bench.runtime, bench.stream()
    expect(runtime.stream_query(stream), True, "stream_query of a stream without work")
    work = Work(bench)
    work.give(stream)
    unfinished = runtime.stream_query(stream) is False
    expect(bench.stored_error(), 0, "the thread's stored error after stream_query")
    bench.until(lambda: runtime.stream_query(stream), "stream_query")
    work.look("when stream_query had said True")
    runtime.stream_sync(stream)
    expect(runtime.stream_query(stream), True, "stream_query after stream_sync")
    return "seen busy, then finished" if unfinished else "never seen busy"


class Work:
    """Copies that keep a stream busy for some milliseconds; their memory is made before they are given."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._source, self._target, self._address = bench.pinned(SIZE), bench.pinned(SIZE), bench.memory(SIZE)
        self._expected = pattern(SIZE, 99)
        host_write(self._source, self._expected)
        host_write(self._target, bytes(SIZE))

    def give(self, stream: int) -> None:
        """Put the copies into the stream; the last one goes to the host."""
        copy = self._bench.runtime.memcpy_async
        for _turn in range(8):
            copy(self._address, self._source, SIZE, "host_to_device", stream)
        copy(self._target, self._address, SIZE, "device_to_host", stream)

    def look(self, when: str) -> None:
        """See that the last copy is done."""
        expect_bytes(host_read(self._target, SIZE), self._expected, f"the last of many copies, {when}")


@check("stream", (*STREAM, *COPIES, "sync"))
def work_in_a_stream_that_is_released_still_runs(bench: Bench) -> None:
    """It has finished when the device has."""
    work, stream = Work(bench), bench.runtime.stream_create()
    try:
        work.give(stream)
    finally:
        bench.runtime.stream_destroy(stream)
    bench.runtime.sync()
    work.look("when its stream was released and the device waited for")


@check("stream", (*STREAM, *COPIES, "sync"))
def waiting_for_the_device_waits_for_every_stream(bench: Bench) -> None:
    """Those that other threads gave work to are waited for too."""
    works, streams = [Work(bench) for _number in range(3)], [bench.stream() for _number in range(3)]
    given: list[int] = []

    def other() -> None:
        bench.runtime.set_device(bench.device)
        works[2].give(streams[2])
        given.append(2)

    works[0].give(streams[0])
    thread = threading.Thread(target=other)
    thread.start()
    works[1].give(streams[1])
    thread.join()
    bench.runtime.sync()

    expect(given, [2], "streams that the other thread gave work to")
    for work in works:
        work.look("when the device was waited for")


@check("stream", ("memset", "memcpy", "malloc", "free"))
def a_fill_is_seen_by_the_copy_after_it(bench: Bench) -> None:
    """Both are on the default stream."""
    address = bench.memory(SIZE)
    for value in range(1, 9):
        bench.runtime.memset(address, value, SIZE)
        expect_bytes(bench.read(address, SIZE), bytes([value]) * SIZE, f"memory filled with {value}, copied at once")


@check("stream", ("stream_create_flags", *STREAM, *COPIES))
def a_stream_may_ignore_the_default_stream_or_not(bench: Bench) -> None:
    """Both kinds do their work."""
    for non_blocking in (False, True):
        stream = bench.runtime.stream_create_flags(non_blocking=non_blocking)
        bench.later(bench.runtime.stream_destroy, stream)
        work = Work(bench)
        work.give(stream)
        bench.runtime.stream_sync(stream)
        work.look(f"in a stream with non_blocking {non_blocking}")


@check("stream", ("stream_create_priority", *STREAM, *COPIES))
def streams_of_every_priority_do_their_work(bench: Bench) -> str:
    """Priorities go from the least to the greatest, or are 0 where there is no range."""
    least, greatest = 0, 0
    if bench.runtime.supports("stream_priority_range"):
        least, greatest = bench.runtime.stream_priority_range()
    expect_that(greatest <= least, f"lower numbers go first, yet the least is {least} and the greatest {greatest}")
    for priority in sorted({least, greatest}):
        for non_blocking in (False, True):
            stream = bench.runtime.stream_create_priority(priority, non_blocking)
            bench.later(bench.runtime.stream_destroy, stream)
            work = Work(bench)
            work.give(stream)
            bench.runtime.stream_sync(stream)
            work.look(f"in a stream of priority {priority}")
    return f"least {least}, greatest {greatest}"


@check("stream", ("stream_priority_range",))
def the_range_of_priorities_is_a_pair_of_numbers(bench: Bench) -> None:
    """It is the same each time."""
    least, greatest = bench.runtime.stream_priority_range()
    expect_that(type(least) is int and type(greatest) is int, f"stream_priority_range: came {least!r}, {greatest!r}")
    expect(bench.runtime.stream_priority_range(), (least, greatest), "stream_priority_range, again")
