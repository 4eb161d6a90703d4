"""Checks of the group `event`: points in a stream that are waited for, by the host and by other streams, and timed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.conformance.bench import host_read, host_write
from nbxrt.conformance.checking import check, expect, expect_bytes, expect_error, expect_that, pattern
from nbxrt.conformance.stream import COPIES, SIZE, STREAM, Work
from nbxrt.locks import in_another_thread

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

EVENT = ("event_create", "event_destroy", "event_record", "event_sync")
#: Milliseconds that a time may be off, and the part of it.
SLACK_MS, SLACK = 1.0, 0.05


@check("event", EVENT)
def events_are_made_recorded_waited_for_and_released(bench: Bench) -> None:
    """Each has a handle of its own; the default stream can be recorded."""
    events = [bench.event() for _number in range(16)]
    expect_that(all(events) and len(set(events)) == 16, f"handles of 16 events: {events}")
    for event in events:
        bench.runtime.event_record(event, 0)
        bench.runtime.event_sync(event)


@check("event", (*EVENT, *STREAM, *COPIES))
def an_event_that_was_waited_for_has_the_work_before_it(bench: Bench) -> None:
    """What came after it in the stream does not matter."""
    stream, event = bench.stream(), bench.event()
    before, after = Work(bench), Work(bench)
    before.give(stream)
    bench.runtime.event_record(event, stream)
    after.give(stream)
    bench.runtime.event_sync(event)
    before.look("before an event that was waited for")


@check("event", (*EVENT, *STREAM, *COPIES, "event_query"))
def an_event_that_says_it_has_passed_has_passed(bench: Bench) -> str:
    """The bytes are there as soon as the answer is True; an event never recorded says True."""
    runtime, stream, event = bench.runtime, bench.stream(), bench.event()
    expect(runtime.event_query(event), True, "event_query of an event never recorded")
    work = Work(bench)
    work.give(stream)
    runtime.event_record(event, stream)
    unfinished = runtime.event_query(event) is False
    expect(bench.stored_error(), 0, "the thread's stored error after event_query")
    bench.until(lambda: runtime.event_query(event), "event_query")
    work.look("before an event of which event_query had said True")
    return "seen pending, then passed" if unfinished else "never seen pending"


@check("event", (*EVENT, *STREAM, *COPIES, "stream_wait_event"))
def a_stream_that_waits_for_an_event_sees_the_work_before_it(bench: Bench) -> None:
    """Two streams take turns, round after round."""
    runtime, size = bench.runtime, SIZE
    one, other = bench.stream(), bench.stream()
    source, target, address = bench.pinned(size), bench.pinned(size), bench.memory(size)
    for turn in range(4):
        written, taken = bench.event(), bench.event()
        host_write(source, pattern(size, 50 * turn))
        runtime.memcpy_async(address, source, size, "host_to_device", one)
        runtime.event_record(written, one)
        runtime.stream_wait_event(other, written)
        runtime.memcpy_async(target, address, size, "device_to_host", other)
        runtime.event_record(taken, other)
        runtime.stream_wait_event(one, taken)
        runtime.memset_async(address, 0, size, one)
        runtime.stream_sync(other)
        expect_bytes(host_read(target, size), pattern(size, 50 * turn), f"bytes of the other stream, turn {turn}")
        runtime.stream_sync(one)


@check("event", (*EVENT, *STREAM, "stream_wait_event"))
def waiting_for_an_event_never_recorded_waits_for_nothing(bench: Bench) -> None:
    """Neither the stream nor the host waits."""
    stream, event = bench.stream(), bench.event()
    bench.runtime.stream_wait_event(stream, event)
    bench.runtime.stream_sync(stream)
    bench.runtime.event_sync(event)


@check("event", (*EVENT, *STREAM, *COPIES, "event_elapsed"))
def times_are_in_order_and_add_up(bench: Bench) -> str:
    """Three events with work between them are compared."""
    runtime, stream = bench.runtime, bench.stream()
    events, works = [bench.event() for _number in range(3)], [Work(bench), Work(bench)]
    runtime.event_record(events[0], stream)
    for event, work in zip(events[1:], works, strict=True):
        work.give(stream)
        runtime.event_record(event, stream)
    runtime.event_sync(events[2])
    first, second = runtime.event_elapsed(*events[:2]), runtime.event_elapsed(*events[1:])
    whole = runtime.event_elapsed(events[0], events[2])
    expect_that(all(type(one) is float for one in (first, second, whole)), f"times: {first!r}, {second!r}, {whole!r}")
    expect_that(first >= 0 and second >= 0, f"times between events in order: {first} and {second} ms")
    expect_that(abs(first + second - whole) <= 0.01 + 0.01 * whole, f"{first} and {second} do not make {whole} ms")
    expect(runtime.event_elapsed(events[0], events[0]), 0.0, "the time from an event to itself")
    return f"{first:.3f} + {second:.3f} ms"


@check("event", (*EVENT, *STREAM, "event_elapsed"))
def times_agree_with_the_clock_of_the_host(bench: Bench) -> str:
    """The host waits 50 ms between two events: they are as far apart, and no farther than the host can have seen."""
    runtime, stream = bench.runtime, bench.stream()
    start, end = bench.event(), bench.event()
    runtime.event_record(end, stream)
    runtime.event_sync(end)
    outer = time.perf_counter()
    runtime.event_record(start, stream)
    runtime.event_sync(start)
    inner = time.perf_counter()
    time.sleep(0.05)
    between = (time.perf_counter() - inner) * 1000
    runtime.event_record(end, stream)
    runtime.event_sync(end)
    around = (time.perf_counter() - outer) * 1000
    elapsed = runtime.event_elapsed(start, end)
    low, high = between * (1 - SLACK) - SLACK_MS, around * (1 + SLACK) + SLACK_MS
    expect_that(
        low <= elapsed <= high, f"expected {low:.3f} to {high:.3f} ms by the host's clock, came {elapsed:.3f} ms"
    )
    return f"{elapsed:.3f} ms, {between:.3f} to {around:.3f} ms by the host's clock"


@check("event", (*EVENT, *STREAM, "event_elapsed"))
def an_event_that_is_recorded_again_stands_for_the_later_point(bench: Bench) -> None:
    """Its time is the later one."""
    runtime, stream = bench.runtime, bench.stream()
    start, end = bench.event(), bench.event()
    for event in (start, end):
        runtime.event_record(event, stream)
        runtime.event_sync(event)
    before = runtime.event_elapsed(start, end)
    time.sleep(0.02)
    runtime.event_record(end, stream)
    runtime.event_sync(end)
    after = runtime.event_elapsed(start, end)
    expect_that(after >= before + 10, f"{before} ms, and {after} ms when recorded again 20 ms later")


@check("event", ("event_create_flags", "event_destroy", "event_record", "event_sync", "event_elapsed", "event_create"))
def an_event_has_its_time_only_where_the_flags_say_so(bench: Bench) -> None:
    """Asking for the time of another is an error."""
    runtime, start = bench.runtime, bench.event()
    runtime.event_record(start, 0)
    for blocking in (False, True):
        timed, untimed = (runtime.event_create_flags(timing=timing, blocking=blocking) for timing in (True, False))
        for event in (timed, untimed):
            bench.later(runtime.event_destroy, event)
            runtime.event_record(event, 0)
            runtime.event_sync(event)
        expect_that(runtime.event_elapsed(start, timed) >= 0, "the time of an event made with timing")
        refused = (errors.DeviceError, errors.ArgumentValueError)
        expect_error(refused, "the time of an event made without timing", runtime.event_elapsed, start, untimed)
        expect(bench.stored_error(), 0, "the thread's stored error after a failure")


@check("event", (*EVENT, "event_elapsed"))
def an_event_never_recorded_has_no_time(bench: Bench) -> None:
    """Asking for it is an error."""
    recorded, never = bench.event(), bench.event()
    bench.runtime.event_record(recorded, 0)
    bench.runtime.event_sync(recorded)
    refused = (errors.DeviceError, errors.ArgumentValueError)
    for pair in ((recorded, never), (never, recorded)):
        expect_error(refused, "the time of an event never recorded", bench.runtime.event_elapsed, *pair)


@check("event", (*EVENT, *STREAM))
def a_thread_that_called_nothing_before_can_record_an_event(bench: Bench) -> None:
    """Where a library wants a context for the thread, it gets one; only a device other than 0 must be set before."""
    stream, event = bench.stream(), bench.event()

    def record() -> None:
        if bench.device:
            bench.runtime.set_device(bench.device)
        bench.runtime.event_record(event, stream)

    in_another_thread(record)
    bench.runtime.event_sync(event)
