"""Streams and events as objects, and the streams of other libraries."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt.runtime import opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


def live(simulation: Simulation, kind: str) -> int:
    return sum(each.kind == kind for each in simulation.ledger())


class TestStreams:
    def test_work_of_a_stream_is_done_when_it_was_waited_for(self, runtime: Runtime) -> None:
        stream = nbxrt.Stream()
        source, target = nbxrt.Buffer(4), bytearray(4)

        source.fill(7, stream=stream)
        source.copy_to(target, stream=stream)
        stream.sync()

        assert (bytes(target), stream.query()) == (b"\7\7\7\7", True)

    def test_a_stream_that_is_busy_says_so(self, simulation: Simulation) -> None:
        stream = nbxrt.Stream()
        buffer = nbxrt.Buffer(4)

        buffer.fill(7, stream=stream)

        assert not stream.query()

    @pytest.mark.parametrize(
        "options", [{}, {"non_blocking": True}, {"priority": -1}, {"priority": 0, "non_blocking": True}]
    )
    def test_streams_of_every_kind_do_their_work(self, runtime: Runtime, options: dict[str, Any]) -> None:
        if "priority" in options and not runtime.supports("stream_create_priority"):
            with pytest.raises(nbxrt.CapabilityError, match="priorities"):
                nbxrt.Device(0).create_stream(**options)
            return
        stream = nbxrt.Device(0).create_stream(**options)
        buffer = nbxrt.Buffer(2)

        buffer.fill(9, stream=stream)
        stream.sync()

        assert buffer.tobytes() == b"\x09\x09"

    def test_a_stream_waits_for_an_event_and_for_another_stream(self, simulation: Simulation) -> None:
        first, second, third = nbxrt.Stream(non_blocking=True), nbxrt.Stream(non_blocking=True), nbxrt.Stream()
        buffer, other, seen = nbxrt.Buffer(4), nbxrt.Buffer(4), bytearray(4)

        buffer.fill(5, stream=first)
        second.wait(first.record())
        other.copy_from(buffer, stream=second)
        third.wait(second)
        other.copy_to(seen, stream=third)
        third.sync()

        assert bytes(seen) == b"\5\5\5\5"
        assert live(simulation, "event") <= 4

    def test_inside_the_block_work_goes_to_the_stream(self, simulation: Simulation) -> None:
        nbxrt.Device(0).set_current()
        stream = nbxrt.Stream(nbxrt.Device(1))

        with stream as current:
            assert (nbxrt.current_stream(), nbxrt.current_device().index) == (current, 1)
            with nbxrt.Stream(nbxrt.Device(1)) as inner:
                assert nbxrt.current_stream() is inner
            assert nbxrt.current_stream() is stream
            buffer = nbxrt.Buffer(4)
            simulation.clear()
            buffer.fill(1)

        assert [call.arguments["stream"] for call in simulation.log() if call.operation == "memset_async"] == [
            stream.handle
        ]
        assert nbxrt.current_stream().handle == 0
        assert nbxrt.current_device().index == 0
        assert nbxrt.current_stream(1).device.index == 1

    def test_the_current_stream_is_each_threads_own(
        self, runtime: Runtime, in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        with nbxrt.Stream():
            assert in_thread(lambda: nbxrt.current_stream().handle) == 0

    def test_a_stream_is_destroyed_once_with_its_object(self, simulation: Simulation) -> None:
        streams = [nbxrt.Stream(), nbxrt.Stream(device=1)]

        streams[0].close()
        streams[0].close()
        assert live(simulation, "stream") == 1
        streams.clear()

        assert live(simulation, "stream") == 0

    def test_a_closed_stream_is_refused_and_nothing_reaches_the_vendor(self, simulation: Simulation) -> None:
        stream, buffer, event = nbxrt.Stream(), nbxrt.Buffer(8), nbxrt.Event()
        stream.close()
        simulation.clear()

        uses: list[Callable[[], Any]] = [
            stream.sync,
            stream.query,
            stream.record,
            lambda: stream.wait(event),
            lambda: event.record(stream),
            lambda: buffer.fill(1, stream=stream),
            lambda: buffer.copy_from(bytes(8), stream=stream),
            lambda: nbxrt.empty(3, stream=stream),
            stream.__enter__,
        ]
        for use in uses:
            with pytest.raises(nbxrt.ArgumentValueError, match=r"the stream of .*:0 is closed"):
                use()

        assert {call.operation for call in simulation.log()} <= {"get_device"}
        assert "closed" in repr(stream)

    def test_a_stream_of_another_backend_is_refused(self, cuda: Simulation) -> None:
        stranger = nbxrt.Stream(nbxrt.Device(0, runtime=opened("host")))

        with pytest.raises(nbxrt.ArgumentValueError, match=r"host.* and .*cuda.* is at work"):
            nbxrt.Buffer(4).fill(0, stream=stranger)

    @pytest.mark.parametrize("stream", [0, 17, "s", object(), nbxrt.Event])
    def test_what_is_no_stream_is_refused_and_handles_are_pointed_to_their_place(
        self, cuda: Simulation, stream: Any
    ) -> None:
        with pytest.raises(nbxrt.ArgumentTypeError, match=r"`__cuda_stream__`[^$]*`Stream.from_handle`"):
            nbxrt.empty(3, stream=stream)


class TestForeignStreams:
    class Foreign:
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        def __cuda_stream__(self) -> Any:
            return self.answer

    def test_a_stream_by_its_handle_is_used_and_never_destroyed(self, simulation: Simulation) -> None:
        runtime = nbxrt.current_device().runtime
        handle = runtime.stream_create()
        owner = object()

        borrowed = nbxrt.Stream.from_handle(handle, owner=owner)
        nbxrt.Buffer(4).fill(1, stream=borrowed)
        borrowed.sync()
        borrowed.close()
        del borrowed

        assert live(simulation, "stream") == 1

    @pytest.mark.parametrize("handle", [-1, 2**64])
    def test_what_is_no_handle_is_refused(self, simulation: Simulation, handle: int) -> None:
        assert simulation
        with pytest.raises(nbxrt.ArgumentValueError, match="is no handle"):
            nbxrt.Stream.from_handle(handle)

    def test_the_owner_of_a_stream_lives_on_once_memory_was_used_on_it(self, simulation: Simulation) -> None:
        runtime = nbxrt.current_device().runtime
        gone: list[int] = []

        class Owner:
            def __init__(self) -> None:
                self.handle = runtime.stream_create()

            def __del__(self) -> None:
                gone.append(self.handle)

        for owner in (Owner(), Owner()):
            stream = nbxrt.Stream.from_handle(owner.handle, owner=owner)
            buffer, other = nbxrt.Buffer(4), nbxrt.Buffer(4, stream=stream)
            buffer.fill(1, stream=stream)
            buffer.close(), other.close()
        del owner, stream

        assert gone == []

    def test_a_stream_by_the_protocol_is_used_wherever_a_stream_is_taken(self, cuda: Simulation) -> None:
        handle = nbxrt.current_device().runtime.stream_create()
        foreign = self.Foreign((0, handle))
        buffer = nbxrt.Buffer(4)
        cuda.clear()

        buffer.fill(1, stream=foreign)

        assert [call.arguments["stream"] for call in cuda.log() if call.operation == "memset_async"] == [handle]

    def test_ours_has_the_protocol_where_the_backend_says_so(self, cuda: Simulation) -> None:
        stream = nbxrt.Stream()

        assert stream.__cuda_stream__() == (0, stream.handle)
        assert nbxrt.Stream.wrap(stream) is stream

    def test_no_other_backend_has_it(self, simulated: Callable[..., Simulation], in_force: Any, host: Runtime) -> None:
        in_force(simulated("hip").open())

        assert not hasattr(nbxrt.Stream(), "__cuda_stream__")
        assert not hasattr(nbxrt.Device(0, runtime=host).create_stream(), "__cuda_stream__")
        with pytest.raises(nbxrt.ArgumentTypeError):
            nbxrt.empty(3, stream=self.Foreign((0, 64)))

    @pytest.mark.parametrize(
        ("answer", "kind", "said"),
        [
            ((1, 5), nbxrt.ArgumentValueError, "is of version 1, and this nbxrt knows version 0"),
            (5, nbxrt.ArgumentTypeError, "a pair of version and handle"),
            ((0, "x"), nbxrt.ArgumentTypeError, "a handle, an integer"),
            ((0, True), nbxrt.ArgumentTypeError, "a handle, an integer"),
        ],
    )
    def test_an_answer_that_is_none_is_refused(
        self, cuda: Simulation, answer: Any, kind: type[Exception], said: str
    ) -> None:
        with pytest.raises(kind, match=said):
            nbxrt.Stream.wrap(self.Foreign(answer))


class TestEvents:
    def test_the_time_between_two_events_is_in_milliseconds(self, runtime: Runtime) -> None:
        stream = nbxrt.Stream()

        start = stream.record()
        end = stream.record()
        end.sync()

        assert end.query()
        assert 0 <= end - start < 10_000

    def test_an_event_is_recorded_again_in_the_current_stream(self, runtime: Runtime) -> None:
        event = nbxrt.Event()
        assert not event.is_recorded

        with nbxrt.Stream():
            event.record()
        event.record()
        event.sync()

        assert event.is_recorded

    def test_each_misuse_of_a_time_is_named(self, simulation: Simulation) -> None:
        stream = nbxrt.Stream()
        recorded, untimed = stream.record(), stream.record(nbxrt.Event(timing=False))
        stream.sync()
        nbxrt.Buffer(4).fill(1, stream=stream)
        pending = stream.record()
        closed = stream.record()
        closed.close()
        simulation.clear()

        for start, end, said in [
            (recorded, nbxrt.Event(), "the end was never recorded"),
            (nbxrt.Event(), recorded, "the start was never recorded"),
            (recorded, untimed, "the end was made without timing"),
            (untimed, recorded, "the start was made without timing"),
            (recorded, pending, "the work before it has not finished"),
            (closed, recorded, "is closed"),
            (recorded, nbxrt.Stream(device=1).record(), r"and the start is of .*:0"),
        ]:
            with pytest.raises(nbxrt.ArgumentValueError, match=said):
                _ = end - start
        with pytest.raises(nbxrt.ArgumentTypeError, match="the time between events takes two events"):
            _ = recorded - 3  # type: ignore[operator]
        assert recorded.runtime.get_last_error() == 0

    def test_an_event_is_recorded_in_a_stream_of_its_device(self, simulation: Simulation) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match=r"the event is of .*:0, and .*:1> is of another"):
            nbxrt.Event().record(nbxrt.Stream(device=1))

    def test_an_event_is_recorded_in_one_stream_after_another(self, simulation: Simulation) -> None:
        nbxrt.Device(0).set_current()
        event, first, second = nbxrt.Event(), nbxrt.Stream(), nbxrt.Stream()
        simulation.clear()

        for stream in (first, first, second, None, first, first.device.default_stream, second):
            event.record(stream)

        recorded = [call.arguments["stream"] for call in simulation.log() if call.operation == "event_record"]
        assert recorded == [first.handle, first.handle, second.handle, 0, first.handle, 0, second.handle]
        simulation.clear()
        second.close()
        with pytest.raises(nbxrt.ArgumentValueError, match=r"the stream of .*:0 is closed"):
            event.record(second)
        event.close()
        for stream in (first, second, None):
            with pytest.raises(nbxrt.ArgumentValueError, match=r"the (event|stream) of .*:0 is closed"):
                event.record(stream)
        assert {call.operation for call in simulation.log()} == {"stream_destroy", "event_destroy"}

    def test_an_event_for_other_processes_has_no_time(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match="cannot record its time"):
            nbxrt.Event(interprocess=True)

    def test_an_event_is_destroyed_once_with_its_object(self, simulation: Simulation) -> None:
        event = nbxrt.Event(device=1)
        with nbxrt.Event() as other:
            other.record()
        event.close()
        event.close()
        del event

        assert live(simulation, "event") == 0
        with pytest.raises(nbxrt.ArgumentValueError, match="is closed"):
            other.sync()

    def test_events_of_every_device_are_recorded_from_any_thread(
        self, simulation: Simulation, in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        event = nbxrt.Event(device=1)

        in_thread(lambda: event.record(nbxrt.Device(1).default_stream))
        event.sync()

        assert simulation.contexts() == {1}

    def test_an_error_of_the_vendor_in_recording_is_told_once_with_its_facts(self, simulation: Simulation) -> None:
        nbxrt.Device(0).set_current()
        event, stream = nbxrt.Event(), nbxrt.Stream()
        event.record(stream)
        simulation.fail("event_record", kind="invalid_handle")

        with pytest.raises(
            nbxrt.DeviceError, match=rf"`event_record` failed: INVALID_HANDLE[^$]*stream={stream.handle}"
        ):
            event.record(stream)
        event.record(stream)

        assert event.runtime.get_last_error() == 0

    def test_events_and_graphs_that_are_there_are_followed_by_a_trace(self, simulation: Simulation) -> None:
        nbxrt.Device(0).set_current()
        event, stream, text = nbxrt.Event(), nbxrt.Stream(), io.StringIO()
        with stream.capture() as graph:
            nbxrt.Buffer(4).fill(1, stream=stream)
        event.record(stream)
        graph.launch(stream)

        with nbxrt.trace(text):
            event.record(stream)
            graph.launch(stream)
        event.record(stream)
        graph.launch(stream)

        assert [text.getvalue().count(f".{name}(") for name in ("event_record", "graph_launch")] == [1, 1]
