"""Buffers: bytes of devices and hosts, what copies keep alive, fills, parts, and how memory is given back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
from nbxrt import memory
from nbxrt.objects.state import state_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


class TestCopies:
    @pytest.mark.parametrize("kind", ["device", "pinned", "managed"])
    def test_bytes_come_back_unchanged(self, runtime: Runtime, kind: str) -> None:
        buffer = nbxrt.Buffer(5, kind=kind)

        buffer.copy_from(b"hello")

        assert (buffer.tobytes(), len(buffer), buffer.kind, buffer.owns) == (b"hello", 5, kind, True)

    @pytest.mark.parametrize(
        "source",
        [
            b"12345678",
            bytearray(b"12345678"),
            memoryview(b"12345678"),
            np.frombuffer(b"12345678", "f8"),
            np.frombuffer(b"12345678", "f2"),
        ],
        ids=["bytes", "bytearray", "memoryview", "float64", "float16"],
    )
    def test_everything_with_the_buffer_protocol_is_a_source(self, runtime: Runtime, source: Any) -> None:
        buffer = nbxrt.Buffer(8)

        buffer.copy_from(source)

        assert buffer.tobytes() == b"12345678"

    def test_copies_between_buffers_of_every_kind(self, runtime: Runtime) -> None:
        kinds = ("device", "pinned", "managed")
        for one in kinds:
            for other in kinds:
                source, target = nbxrt.Buffer(3, kind=one), nbxrt.Buffer(3, kind=other)
                source.copy_from(b"abc")

                source.copy_to(target)

                assert target.tobytes() == b"abc", (one, other)

    def test_the_direction_is_what_is_known_of_both_sides(self, cuda: Simulation) -> None:
        device, pinned, out = nbxrt.Buffer(3), nbxrt.Buffer(3, kind="pinned"), bytearray(3)
        cuda.clear()

        device.copy_from(b"abc")
        device.copy_from(nbxrt.Buffer(3))
        device.copy_to(pinned)
        pinned.copy_to(out)

        kinds = [call.arguments["kind"] for call in cuda.log() if call.operation == "memcpy_async"]
        assert tuple(kinds) == ("host_to_device", "device_to_device", "device_to_host", "host_to_host")

    def test_a_source_that_nobody_else_has_lives_until_the_stream_has_passed_it(self, simulation: Simulation) -> None:
        stream, target = nbxrt.Stream(), nbxrt.Buffer(1024)

        target.copy_from(bytearray(b"A" * 1024), stream=stream)
        garbage = [bytearray(b"z" * 1024) for _each in range(100)]
        stream.sync()

        assert target.tobytes() == b"A" * 1024
        assert len(state_of(stream.runtime).keeper) == 0
        del garbage

    def test_a_source_cannot_be_resized_until_the_stream_has_passed_it(self, simulation: Simulation) -> None:
        stream, target, source = nbxrt.Stream(), nbxrt.Buffer(4), bytearray(b"AAAA")

        target.copy_from(source, stream=stream)
        with pytest.raises(BufferError):
            source.extend(b"more")
        stream.sync()
        source.extend(b"more")

        assert target.tobytes() == b"AAAA"

    def test_a_target_that_nobody_else_has_lives_until_then_too(self, simulation: Simulation) -> None:
        stream, source = nbxrt.Stream(), nbxrt.Buffer(4)
        source.copy_from(b"data")
        target = bytearray(4)

        source.copy_to(target, stream=stream)
        source.close()
        del source
        stream.sync()

        assert bytes(target) == b"data"

    def test_a_stream_that_is_closed_still_keeps_what_its_work_uses(self, simulation: Simulation) -> None:
        stream, target = nbxrt.Stream(), nbxrt.Buffer(4)
        handle = stream.handle
        target.copy_from(bytearray(b"AAAA"), stream=stream)
        keeper = state_of(stream.runtime).keeper

        stream.close()
        keeper.waited_for(nbxrt.Stream.from_handle(handle))  # as if a new stream had got the same handle
        kept = len(keeper)
        nbxrt.Device(0).sync()

        assert (kept, len(keeper), target.tobytes()) == (1, 0, b"AAAA")

    def test_what_is_kept_does_not_grow_for_ever(self, simulation: Simulation) -> None:
        stream, target = nbxrt.Stream(), nbxrt.Buffer(16)
        event = nbxrt.Event()

        for _each in range(200):
            target.copy_from(bytearray(16), stream=stream)
            event.record(stream)
            event.sync()

        assert len(state_of(stream.runtime).keeper) <= 1
        assert sum(each.kind == "event" for each in simulation.ledger()) <= 3

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            (b"123", "not 3 bytes of plain memory of the host and 4 bytes of device memory"),
            (np.arange(8, dtype="u1")[::2], "not contiguous"),
        ],
    )
    def test_a_source_that_does_not_fit_is_refused(self, cuda: Simulation, source: Any, said: str) -> None:
        buffer = nbxrt.Buffer(4)
        cuda.clear()

        with pytest.raises(nbxrt.ArgumentValueError, match=said):
            buffer.copy_from(source)
        assert cuda.log() == []

    def test_a_target_that_may_only_be_read_is_refused(self, runtime: Runtime) -> None:
        source = nbxrt.Buffer(4)
        readonly = nbxrt.Buffer.from_handle(source.ptr, 4, owner=source, readonly=True)

        with pytest.raises(nbxrt.ArgumentValueError, match="bytes is read-only"):
            source.copy_to(b"1234")
        with pytest.raises(nbxrt.ArgumentValueError, match="may only be read"):
            readonly.copy_from(b"1234")
        with pytest.raises(nbxrt.ArgumentValueError, match="may only be read"):
            readonly.fill(0)

    @pytest.mark.parametrize("source", [3, None, "text", [1, 2, 3, 4]])
    def test_what_has_no_memory_is_refused(self, host: Runtime, source: Any) -> None:
        with pytest.raises(nbxrt.ArgumentTypeError, match="`copy_from` takes memory"):
            nbxrt.Buffer(4).copy_from(source)


class TestFills:
    @pytest.mark.parametrize("nbytes", [4, 12, 1 << 16, (1 << 17) + 4, 300_000])
    @pytest.mark.parametrize("pattern", [0, 255, b"\7", b"ab", b"abcd", b"\0\0\0\0"])
    def test_a_pattern_fills_it_whole(self, host: Runtime, nbytes: int, pattern: Any) -> None:
        buffer = nbxrt.Buffer(nbytes)

        buffer.fill(pattern)

        written = bytes([pattern]) if isinstance(pattern, int) else pattern
        assert buffer.tobytes() == written * (nbytes // len(written))

    def test_a_fill_is_ordered_on_its_stream(self, simulation: Simulation) -> None:
        stream, buffer = nbxrt.Stream(non_blocking=True), nbxrt.Buffer(200_000)

        buffer.fill(1, stream=stream)
        buffer.fill(b"abcd", stream=stream)
        stream.sync()

        assert buffer.tobytes() == b"abcd" * 50_000

    @pytest.mark.parametrize(
        ("pattern", "kind"),
        [
            (256, ValueError), (-1, ValueError), (b"", ValueError), (b"abc", ValueError), (b"12345678", ValueError),
            (1.0, TypeError), ("a", TypeError), (True, TypeError), (None, TypeError),
        ],
    )  # fmt: skip
    def test_another_pattern_is_refused(self, host: Runtime, pattern: Any, kind: type[Exception]) -> None:
        with pytest.raises(kind):
            nbxrt.Buffer(8).fill(pattern)

    def test_a_pattern_that_does_not_go_into_it_is_refused(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match="goes into 6 bytes without rest; this one has 4"):
            nbxrt.Buffer(6).fill(b"abcd")


class TestParts:
    def test_a_part_shares_the_memory_and_keeps_it(self, simulation: Simulation, held: Callable[[], int]) -> None:
        part = nbxrt.Buffer(8)[2:6]
        part.fill(3)

        assert (part[1:3].tobytes(), part[-1:].nbytes, held()) == (b"\3\3", 1, 1)
        del part
        assert held() == 0

    @pytest.mark.parametrize(
        "part", [slice(0, 9), slice(9, 9), slice(-9, 2), slice(5, 3), slice(0, 8, 2), slice(0, 8, -1)]
    )
    def test_a_part_outside_is_refused(self, host: Runtime, part: slice) -> None:
        with pytest.raises(nbxrt.ArgumentValueError):
            nbxrt.Buffer(8)[part]

    @pytest.mark.parametrize("part", [0, "a", None, slice(0, 1.0), slice(True, 2)])
    def test_what_is_no_part_is_refused(self, host: Runtime, part: Any) -> None:
        with pytest.raises(nbxrt.ArgumentTypeError):
            nbxrt.Buffer(8)[part]


class TestLifetime:
    def test_memory_is_given_back_once(self, simulation: Simulation, held: Callable[[], int]) -> None:
        buffer = nbxrt.Buffer(64)
        with nbxrt.Buffer(64, kind="pinned") as pinned:
            assert (held(), memory.account().holds(pinned.ptr)) == (1, True)

        buffer.close()
        buffer.close()
        pinned.close()
        del buffer

        assert (held(), memory.account().holds(pinned.ptr)) == (0, False)

    def test_memory_is_given_back_from_any_thread_on_its_own_device(
        self, simulation: Simulation, held: Callable[[], int]
    ) -> None:
        buffers = [nbxrt.Buffer(64, device=index) for index in (0, 1) for _each in range(8)]

        def drop() -> None:
            while buffers:
                try:
                    buffers.pop()
                except IndexError:
                    return

        threads = [threading.Thread(target=drop) for _each in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert held() == 0

    def test_a_closed_buffer_reaches_no_vendor(self, simulation: Simulation) -> None:
        buffer = nbxrt.Buffer(8)
        part = buffer[2:]
        buffer.close()
        simulation.clear()

        uses: list[Callable[[], Any]] = [
            lambda: part.fill(0),
            part.tobytes,
            lambda: part.copy_from(bytes(6)),
            lambda: nbxrt.Buffer(0).copy_from(buffer[0:0]),
            part.data_ptr,
            buffer.__enter__,
            buffer.__dlpack__,
        ]
        for use in uses:
            with pytest.raises(nbxrt.ArgumentValueError, match="is closed"):
                use()
        assert [call for call in simulation.log() if call.operation.startswith("mem")] == []
        assert "closed" in repr(part)

    def test_borrowed_memory_is_never_given_back_and_its_owner_lives(
        self, simulation: Simulation, held: Callable[[], int]
    ) -> None:
        class Owner:
            pass

        owned = nbxrt.Buffer(16)
        owner = Owner()
        borrowed = nbxrt.Buffer.from_handle(owned.ptr, 16, owner=owner)

        borrowed.fill(4)
        assert (borrowed.owns, owned.tobytes()) == (False, b"\4" * 16)
        borrowed.close()

        assert held() == 1

    def test_sides_of_a_copy_that_overlap_are_refused(self, runtime: Runtime) -> None:
        buffer = nbxrt.Buffer(16)
        buffer.fill(1)

        for first, second in ((slice(0, 8), slice(4, 12)), (slice(4, 12), slice(0, 8)), (slice(0, 8), slice(7, 15))):
            with pytest.raises(nbxrt.ArgumentValueError, match="the two sides of a copy overlap"):
                buffer[first].copy_from(buffer[second])
        buffer[:8].copy_from(buffer[8:])
        buffer.copy_from(buffer)

        assert buffer.tobytes() == b"\1" * 16

    @pytest.mark.parametrize(
        ("ptr", "nbytes", "kind"),
        [
            (-1, 8, ValueError),
            (0, -8, ValueError),
            (0, 8, ValueError),
            (1 << 64, 1, ValueError),
            (1.0, 8, TypeError),
            (8, True, TypeError),
        ],
    )
    def test_what_cannot_be_memory_is_refused(
        self, host: Runtime, ptr: Any, nbytes: Any, kind: type[Exception]
    ) -> None:
        with pytest.raises(kind):
            nbxrt.Buffer.from_handle(ptr, nbytes)

    @pytest.mark.parametrize(
        ("nbytes", "kind"),
        [(-1, ValueError), (1 << 70, ValueError), (1.5, TypeError), (True, TypeError), ("8", TypeError)],
    )
    def test_a_size_that_cannot_be_is_refused(self, cuda: Simulation, nbytes: Any, kind: type[Exception]) -> None:
        _ = nbxrt.current_stream()
        cuda.clear()

        with pytest.raises(kind):
            nbxrt.Buffer(nbytes)
        assert [call for call in cuda.log() if "malloc" in call.operation] == []

    def test_an_unknown_kind_is_refused(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match="did you mean `pinned`"):
            nbxrt.Buffer(8, kind="pined")

    def test_no_bytes_are_no_memory(self, runtime: Runtime) -> None:
        empty = nbxrt.Buffer(0)

        empty.fill(1)
        empty.copy_from(b"")

        assert (empty.ptr, empty.tobytes(), empty[0:0].ptr) == (0, b"", 0)

    def test_a_lost_context_is_told_once_and_dropping_everything_is_quiet(
        self, cuda: Simulation, capfd: pytest.CaptureFixture[str]
    ) -> None:
        buffers = [nbxrt.Buffer(64) for _each in range(200)]
        cuda.fail("*", kind="illegal_address", onward=True)

        with pytest.raises(nbxrt.DeviceError, match="700") as caught:
            nbxrt.Device(0).sync()
        assert caught.value.sticky
        del caught  # it has this frame, and the frame it: what is kept so would be released in some later test
        buffers.clear()

        assert capfd.readouterr().err == ""
