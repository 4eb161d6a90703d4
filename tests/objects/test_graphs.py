"""Graphs: work captured once and launched many times, and what lives as long as they do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt.memory.allocator import account_of
from nbxrt.objects.state import state_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


def live(simulation: Simulation, *kinds: str) -> int:
    return sum(each.kind in kinds for each in simulation.ledger())


def test_captured_work_runs_when_the_graph_is_launched_and_not_before(simulation: Simulation) -> None:
    stream, buffer = nbxrt.Stream(), nbxrt.Buffer(4)
    buffer.fill(0)
    with stream.capture() as graph:
        buffer.fill(5, stream=stream)
    nbxrt.Device(0).sync()
    before = buffer.tobytes()

    graph.launch(stream)
    stream.sync()

    assert (before, buffer.tobytes()) == (bytes(4), b"\5" * 4)


def test_a_graph_is_launched_again_and_again_also_in_another_stream(simulation: Simulation) -> None:
    stream, one, other = nbxrt.Stream(), nbxrt.Buffer(4), nbxrt.Buffer(4)
    with stream.capture() as graph:
        other.copy_from(one, stream=stream)
    graph.instantiate()

    seen = []
    for value in (1, 2, 3):
        one.fill(value)
        graph.launch()
        seen.append(other.tobytes())

    assert seen == [bytes([value]) * 4 for value in (1, 2, 3)]


def test_what_was_copied_lives_as_long_as_the_graph(simulation: Simulation) -> None:
    stream, target = nbxrt.Stream(), nbxrt.Buffer(8)
    source = nbxrt.Buffer(8)
    source.fill(3)
    with stream.capture() as graph:
        target.copy_from(source, stream=stream)
        target[:4].copy_from(bytearray(b"abcd"), stream=stream)
    del source
    filler = [nbxrt.Buffer(8) for _each in range(4)]
    for each in filler:
        each.fill(9)

    graph.launch(stream)
    stream.sync()

    assert target.tobytes() == b"abcd\3\3\3\3"
    assert len(state_of(stream.runtime).keeper) == 0


def test_memory_that_is_given_back_during_the_capture_lives_as_long_as_the_graph(
    simulation: Simulation, held: Callable[[], int]
) -> None:
    stream, target = nbxrt.Stream(), nbxrt.Buffer(8)
    with stream.capture("relaxed") as graph:
        between = nbxrt.Buffer(8)
        between.fill(6, stream=stream)
        target.copy_from(between, stream=stream)
        between.close()
        del between
    during = held()

    graph.launch(stream)
    stream.sync()

    assert (target.tobytes(), during) == (b"\6" * 8, 2)
    graph.close()
    assert held() == 1


def test_memory_that_is_given_back_during_two_captures_lives_as_long_as_both_graphs(
    simulation: Simulation, held: Callable[[], int]
) -> None:
    streams, target = [nbxrt.Stream(), nbxrt.Stream()], nbxrt.Buffer(8)
    with streams[0].capture("relaxed") as first, streams[1].capture("relaxed") as second:
        between = nbxrt.Buffer(8)
        between.fill(6, stream=streams[0])
        target.copy_from(between, stream=streams[0])
        between.close()
        del between
    second.close()
    after_one = held()

    first.launch(streams[0])
    streams[0].sync()

    assert (target.tobytes(), after_one) == (b"\6" * 8, 2)
    first.close()
    assert held() == 1


@pytest.mark.parametrize("way", ["dropped", "closed", "closed after its stream", "dropped in a thread"])
def test_what_a_graph_uses_outlasts_its_launches(
    simulation: Simulation, held: Callable[[], int], in_thread: Callable[[Callable[[], Any]], Any], way: str
) -> None:
    stream, target, source = nbxrt.Stream(), nbxrt.Buffer(4), bytearray(b"abcd")
    nbxrt.Device(0).sync()
    with stream.capture("relaxed") as graph:
        between = nbxrt.Buffer(4)
        between.copy_from(source, stream=stream)
        target.copy_from(between, stream=stream)
        between.close()
    graphs = [graph]
    del graph, between

    graphs[0].launch(stream)
    if way == "closed after its stream":
        stream.close()
    if "closed" in way:
        graphs[0].close()
    in_thread(graphs.clear) if "thread" in way else graphs.clear()
    if way != "closed after its stream":
        with pytest.raises(BufferError):  # it is locked, as the copy may still read it
            source.clear()
        assert held() == 2
        stream.sync()
    source.clear()

    assert (target.tobytes(), held()) == (b"abcd", 1)
    assert live(simulation, "graph", "graph_exec") == 0


def test_what_a_graph_uses_outlasts_launches_on_many_streams(simulation: Simulation) -> None:
    first, source, target = nbxrt.Stream(), bytearray(b"abcd"), nbxrt.Buffer(4)
    with first.capture() as graph:
        target.copy_from(source, stream=first)
    streams = [nbxrt.Stream(non_blocking=True) for _each in range(20)]

    for stream in streams:
        graph.launch(stream)
    del graph
    source.clear()

    assert target.tobytes() == b"abcd"


def test_a_graph_that_is_launched_into_another_is_kept_by_it(simulation: Simulation) -> None:
    stream, target, source = nbxrt.Stream(), nbxrt.Buffer(4), bytearray(b"abcd")
    with stream.capture() as inner:
        target.copy_from(source, stream=stream)
    inner.instantiate()
    with stream.capture() as outer:
        inner.launch(stream)
    del inner

    outer.launch(stream)
    with pytest.raises(BufferError):
        source.clear()
    stream.sync()
    outer.close()
    source.clear()

    assert target.tobytes() == b"abcd"


def test_a_graph_keeps_what_it_is_told_to(simulation: Simulation, held: Callable[[], int]) -> None:
    with nbxrt.Stream().capture() as graph:
        pass
    graph.keep(nbxrt.Buffer(8))

    assert held() == 1
    del graph
    assert (held(), live(simulation, "graph", "graph_exec")) == (0, 0)


def test_a_graph_keeps_what_a_launch_on_the_captured_stream_uses(
    simulation: Simulation, held: Callable[[], int]
) -> None:
    stream, before = nbxrt.Stream(), nbxrt.empty(8)
    with stream.capture("relaxed") as graph:
        inside = nbxrt.empty(8, stream=stream)
        for array in (before, inside):  # what a launcher does for memory whose home is another stream
            assert array.memory.home != stream.handle
            array.memory.used_on(stream)
    del array, before, inside

    assert held() == 2
    graph.close()
    assert held() == 0


def test_an_executable_graph_takes_the_parameters_of_another(simulation: Simulation) -> None:
    stream, buffer = nbxrt.Stream(), nbxrt.Buffer(4)
    graphs = []
    for value in (1, 2):
        with stream.capture() as graph:
            buffer.fill(value, stream=stream)
        graphs.append(graph)
    with stream.capture() as longer:
        buffer.fill(3, stream=stream)
        buffer.fill(4, stream=stream)
    first = graphs[0]
    first.launch(stream)

    updated = first.update(graphs[1]), first.update(longer)
    first.launch(stream)
    stream.sync()

    assert (updated, buffer.tobytes()) == ((True, False), b"\2" * 4)
    assert stream.runtime.get_last_error() == 0


def test_an_error_inside_ends_the_capture_and_is_raised(simulation: Simulation) -> None:
    stream, buffer = nbxrt.Stream(), nbxrt.Buffer(4)

    def fail() -> None:
        with stream.capture():
            buffer.fill(1, stream=stream)
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert (stream.query(), live(simulation, "graph")) == (True, 0)
    assert state_of(stream.runtime).captures == []


def test_waiting_inside_a_capture_is_the_vendors_error(simulation: Simulation) -> None:
    stream = nbxrt.Stream()

    def wait() -> None:
        with stream.capture():
            stream.sync()

    with pytest.raises(nbxrt.DeviceError, match="stream_sync"):
        wait()
    assert stream.query()


def test_an_empty_or_closed_graph_is_refused(simulation: Simulation) -> None:
    stream = nbxrt.Stream()
    with stream.capture() as graph, pytest.raises(nbxrt.ArgumentValueError, match="nothing is captured in it"):
        graph.launch(stream)

    graph.launch(stream)
    stream.sync()
    graph.close()
    graph.close()

    for use in (graph.launch, graph.instantiate, lambda: graph.update(graph)):
        with pytest.raises(nbxrt.ArgumentValueError, match="or it is closed"):
            use()
    with pytest.raises(nbxrt.ArgumentTypeError, match="`update` takes a Graph"):
        graph.update(3)  # type: ignore[arg-type]


def test_a_block_of_a_capture_ends_once(simulation: Simulation) -> None:
    capture = nbxrt.Stream().capture()
    with capture:
        pass

    with pytest.raises(nbxrt.ArgumentValueError, match="is not captured by this block"):
        capture.__exit__(None, None, None)
    with pytest.raises(
        nbxrt.ArgumentTypeError, match="`capture` takes `global`, `thread_local` or `relaxed` for `mode`"
    ):
        nbxrt.Stream().capture(5)  # type: ignore[arg-type]


def test_the_default_stream_cannot_be_captured(simulation: Simulation) -> None:
    with pytest.raises(nbxrt.ArgumentValueError, match=r"hint: `device.create_stream\(\)`"):
        nbxrt.current_stream().capture()


def test_a_backend_without_graphs_says_so(host: Runtime) -> None:
    with pytest.raises(nbxrt.CapabilityError, match="there is nothing to capture"):
        nbxrt.Stream().capture().__enter__()


def test_a_graph_of_another_device_is_launched_there(simulation: Simulation) -> None:
    stream, buffer = nbxrt.Stream(device=1), nbxrt.Buffer(4, device=1)
    with stream.capture() as graph:
        buffer.fill(8, stream=stream)

    graph.launch(stream)
    stream.sync()

    assert buffer.tobytes() == b"\x08" * 4


def test_graphs_are_dropped_from_any_thread(
    simulation: Simulation, in_thread: Callable[[Callable[[], Any]], Any]
) -> None:
    with nbxrt.Stream().capture() as graph:
        pass
    graphs = [graph.instantiate()]
    del graph

    in_thread(graphs.clear)

    assert live(simulation, "graph", "graph_exec") == 0


def test_many_threads_make_a_graph_executable_once(simulation: Simulation) -> None:
    simulation.sleep("graph_instantiate", 20_000)
    with nbxrt.Stream().capture() as graph:
        pass

    with ThreadPoolExecutor(4) as pool:
        assert len({each.instantiate().executable for each in pool.map(lambda _n: graph.instantiate(), range(4))}) == 1

    assert live(simulation, "graph_exec") == 1


def test_the_first_memory_of_a_process_may_be_had_in_a_capture(simulation: Simulation) -> None:
    stream = nbxrt.Stream()

    with stream.capture() as graph, stream:
        nbxrt.Buffer(64).fill(1, stream=stream)
    graph.launch(stream)
    stream.sync()

    assert account_of(stream.runtime).stats(0)["policy"] == "expandable"


def test_a_stream_that_is_closed_while_it_is_captured_is_named(simulation: Simulation) -> None:
    stream = nbxrt.Stream()

    with pytest.raises(nbxrt.ArgumentValueError, match=r"the stream of .*:0 is closed"), stream.capture():
        stream.close()

    assert state_of(stream.runtime).captures == []


def test_an_error_in_a_capture_is_raised_though_its_stream_is_closed(simulation: Simulation) -> None:
    def fail(stream: nbxrt.Stream) -> None:
        with stream.capture():
            stream.close()
            raise KeyError

    with pytest.raises(KeyError):
        fail(nbxrt.Stream())
