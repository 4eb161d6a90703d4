"""Checks of the group `graph`: work captured once and run many times."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.conformance.checking import check, expect, expect_bytes, expect_error
from nbxrt.conformance.stream import STREAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.conformance.bench import Bench

CAPTURE = (*STREAM, "stream_begin_capture", "stream_end_capture", "graph_destroy")
GRAPH = (*CAPTURE, "graph_instantiate", "graph_launch", "graph_exec_destroy", "malloc", "free", "memcpy", "memset",
         "memset_async", "memcpy_async")  # fmt: skip
SIZE = 4096


def captured(bench: Bench, stream: int, work: Callable[[], None], mode: str = "thread_local") -> int:
    """The graph of some work; a capture that fails is ended before the error goes on."""
    bench.runtime.stream_begin_capture(stream, mode)
    try:
        work()
    except BaseException:
        with contextlib.suppress(errors.NbxrtError):
            bench.runtime.graph_destroy(bench.runtime.stream_end_capture(stream))
        raise
    graph: int = bench.runtime.stream_end_capture(stream)
    bench.later(bench.runtime.graph_destroy, graph)
    return graph


def executable(bench: Bench, graph: int) -> int:
    """An executable graph, released when the check ends."""
    made: int = bench.runtime.graph_instantiate(graph)
    bench.later(bench.runtime.graph_exec_destroy, made)
    return made


@check("graph", GRAPH)
def captured_work_runs_when_the_graph_is_launched_and_not_before(bench: Bench) -> None:
    """It runs each time anew, with what is in memory then."""
    runtime, stream = bench.runtime, bench.stream()
    source, target = bench.memory(SIZE), bench.memory(SIZE)
    runtime.memset(source, 1, SIZE)
    runtime.memset(target, 0, SIZE)
    runtime.sync()
    graph = captured(bench, stream, lambda: runtime.memcpy_async(target, source, SIZE, "device_to_device", stream))
    runtime.stream_sync(stream)
    expect_bytes(bench.read(target, SIZE), bytes(SIZE), "the target after the capture")
    replay = executable(bench, graph)
    for value in (1, 2, 3):
        runtime.memset(source, value, SIZE)
        runtime.sync()
        runtime.graph_launch(replay, stream)
        runtime.stream_sync(stream)
        expect_bytes(bench.read(target, SIZE), bytes([value]) * SIZE, f"the target after launch {value}")


@check("graph", GRAPH)
def a_graph_is_ordered_on_the_stream_that_it_is_launched_on(bench: Bench) -> None:
    """It runs between the work before and the work after."""
    runtime, stream, other = bench.runtime, bench.stream(), bench.stream()
    source, target, after = bench.memory(SIZE), bench.memory(SIZE), bench.memory(SIZE)
    graph = captured(bench, stream, lambda: runtime.memcpy_async(target, source, SIZE, "device_to_device", stream))
    replay = executable(bench, graph)
    for value in range(20):
        runtime.memset_async(source, value, SIZE, other)
        runtime.graph_launch(replay, other)
        runtime.memcpy_async(after, target, SIZE, "device_to_device", other)
        runtime.stream_sync(other)
        expect_bytes(bench.read(after, SIZE), bytes([value]) * SIZE, f"what came after launch {value}")


@check("graph", (*CAPTURE, "stream_is_capturing", "malloc", "free", "memset_async"))
def a_stream_says_whether_it_is_capturing(bench: Bench) -> None:
    """Every mode of capture is tried."""
    runtime, stream, address = bench.runtime, bench.stream(), bench.memory(SIZE)
    for mode in bench.runtime.contract["enums"]["capture_mode"][1]:
        expect(runtime.stream_is_capturing(stream), False, f"stream_is_capturing before a capture in mode {mode}")
        seen: list[bool] = []

        def work(seen: list[bool] = seen) -> None:
            runtime.memset_async(address, 0, SIZE, stream)
            seen.append(runtime.stream_is_capturing(stream))

        captured(bench, stream, work, mode)
        expect(seen, [True], f"stream_is_capturing inside a capture in mode {mode}")
    expect(runtime.stream_is_capturing(stream), False, "stream_is_capturing after the captures")


@check("graph", (*GRAPH, "graph_exec_update"))
def an_executable_graph_takes_the_parameters_of_another_of_its_shape(bench: Bench) -> None:
    """One of another shape is answered False, and then the graph does what it did before."""
    runtime, stream, address = bench.runtime, bench.stream(), bench.memory(2 * SIZE)

    def fills(*values: int) -> int:
        def work() -> None:
            for number, value in enumerate(values):
                runtime.memset_async(address + number * SIZE, value, SIZE, stream)

        return captured(bench, stream, work)

    replay = executable(bench, fills(1))
    expect(runtime.graph_exec_update(replay, fills(2)), True, "graph_exec_update by a graph of the same shape")
    for other in ((), (3, 4)):
        if other:
            expect(runtime.graph_exec_update(replay, fills(*other)), False, "graph_exec_update by another shape")
            expect(bench.stored_error(), 0, "the thread's stored error after graph_exec_update")
        runtime.memset(address, 0, 2 * SIZE)
        runtime.sync()
        runtime.graph_launch(replay, stream)
        runtime.stream_sync(stream)
        expect_bytes(bench.read(address, 2 * SIZE), b"\2" * SIZE + bytes(SIZE), "memory after the launch")


@check("graph", (*CAPTURE, "malloc", "free", "memset_async"))
def waiting_inside_a_capture_is_refused(bench: Bench) -> str:
    """The stream serves as before when the capture has ended."""
    runtime, stream, address = bench.runtime, bench.stream(), bench.memory(SIZE)
    runtime.stream_begin_capture(stream, "thread_local")
    try:
        runtime.memset_async(address, 0, SIZE, stream)
        error = expect_error(errors.DeviceError, "stream_sync inside a capture", runtime.stream_sync, stream)
    finally:
        with contextlib.suppress(errors.DeviceError):
            runtime.graph_destroy(runtime.stream_end_capture(stream))
    bench.expect_kind(error, "capture_unsupported")
    runtime.memset_async(address, 9, SIZE, stream)
    runtime.stream_sync(stream)
    expect_bytes(bench.read(address, SIZE), b"\x09" * SIZE, "memory filled after the capture")
    return f"{error.name or 'status'} ({error.code})"
