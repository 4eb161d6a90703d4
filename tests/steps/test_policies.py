"""Policies of objects on the shelf: streams with work in flight, marks as events, code, budgets; and boxes."""

from __future__ import annotations

import ctypes
import itertools
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import yaml
from hypothesis import strategies

import nbxrt
from nbxrt.binding.addresses import FIRST_MINTED, MOST_UNSORTED, Addresses

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Shelf

pytestmark = pytest.mark.needs("cc")

POLICIES = yaml.safe_load(Path(__file__).with_name("shelf.yaml").read_text("utf-8"))["policies"]
CODE = yaml.safe_load(Path(__file__).with_name("code.yaml").read_text("utf-8"))
DONE, FAILED = 4, 5


class TestStreams:
    def test_a_stream_is_asked_by_the_work_that_was_given_to_it(self, shelf: Callable[..., Shelf]) -> None:
        opened = shelf()
        runtime = opened.runtime
        stream, address = runtime.stream_create(), runtime.malloc(64)
        assert runtime.stream_query(stream) is True

        opened["hold"] = 1
        runtime.memset_async(address, 1, 64, stream)

        assert runtime.stream_query(stream) is False
        runtime.stream_sync(stream)
        assert runtime.stream_query(stream) is True

    def test_work_is_given_up_beyond_the_window_eight_at_once(self, shelf: Callable[..., Shelf]) -> None:
        opened = shelf()
        runtime = opened.runtime
        stream, address = runtime.stream_create(), runtime.malloc(64)
        before = opened["live"]
        kept = []

        for _turn in range(40):
            runtime.memset_async(address, 1, 64, stream)
            kept.append(opened["live"] - before)

        assert (min(kept[10:]), max(kept)) == (2, 10)
        runtime.stream_sync(stream)
        assert opened["live"] == before

    def test_work_that_failed_is_the_error_of_the_next_wait_and_is_told_once(self, shelf: Callable[..., Shelf]) -> None:
        opened = shelf()
        runtime = opened.runtime
        stream, address = runtime.stream_create(), runtime.malloc(64)
        opened["spoilt"] = 1
        runtime.memset_async(address, 1, 64, stream)
        opened["spoilt"] = 0

        with pytest.raises(nbxrt.DeviceError, match="work that was given to the stream before") as caught:
            runtime.stream_sync(stream)

        assert caught.value.code == FAILED
        runtime.stream_sync(stream)
        runtime.memset_async(address, 1, 64, stream)

    def test_a_stream_that_is_released_has_finished_and_leaves_nothing(self, shelf: Callable[..., Shelf]) -> None:
        opened = shelf()
        runtime = opened.runtime
        address = runtime.malloc(64)
        before = opened["live"]
        stream = runtime.stream_create()
        opened["hold"] = 1
        runtime.memset_async(address, 1, 64, stream)

        runtime.stream_destroy(stream)

        assert opened["live"] == before
        for call in (runtime.stream_sync, runtime.stream_query, runtime.stream_destroy):
            with pytest.raises(nbxrt.ArgumentValueError, match="unknown, or destroyed already"):
                call(stream)

    def test_a_stream_of_another_device_is_used_where_it_is(self, shelf: Callable[..., Shelf]) -> None:
        runtime = shelf().runtime
        runtime.set_device(1)
        stream = runtime.stream_create()
        runtime.set_device(0)

        assert runtime._binder.policy("queues").find(stream).state.index == 1
        runtime.stream_sync(stream)

    def test_waiting_for_a_device_waits_for_the_default_stream_and_all_others(
        self, shelf: Callable[..., Shelf]
    ) -> None:
        opened = shelf()
        runtime = opened.runtime
        streams, address = [0, runtime.stream_create(), runtime.stream_create()], runtime.malloc(64)
        opened["hold"] = 1
        for stream in streams:
            runtime.memset_async(address, 1, 64, stream)

        runtime.sync()

        assert [runtime.stream_query(stream) for stream in streams] == [True] * 3


class TestEvents:
    def test_an_event_stands_for_the_mark_that_was_recorded_last(self, shelf: Callable[..., Shelf]) -> None:
        opened = shelf()
        runtime = opened.runtime
        stream, event = runtime.stream_create(), runtime.event_create()
        assert runtime.event_query(event) is True  # never recorded
        before = opened["live"]

        opened["hold"] = 1
        for _turn in range(3):
            runtime.event_record(event, stream)

        assert opened["live"] == before + 1
        assert runtime.event_query(event) is False
        runtime.event_sync(event)
        assert runtime.event_query(event) is True
        runtime.event_destroy(event)
        assert opened["live"] == before

    def test_a_stream_waits_by_the_host_where_the_vendor_has_no_call_for_it(self, shelf: Callable[..., Shelf]) -> None:
        opened = shelf()
        runtime = opened.runtime
        one, other, event = runtime.stream_create(), runtime.stream_create(), runtime.event_create()
        opened["hold"] = 1
        runtime.event_record(event, one)

        runtime.stream_wait_event(other, event)

        assert runtime.event_query(event) is True

    def test_times_are_the_marks_own(self, shelf: Callable[..., Shelf]) -> None:
        runtime = shelf().runtime
        start, end = runtime.event_create(), runtime.event_create()
        for event in (start, end):
            runtime.event_record(event, 0)

        assert runtime.event_elapsed(start, end) == 1.0
        assert runtime.event_elapsed(end, start) == -1.0

    def test_ticks_that_begin_anew_between_two_events_are_no_negative_time(self, shelf: Callable[..., Shelf]) -> None:
        ticks = {"call": "shelfMarkTicks", "args": ["mark", {"out": "time", "type": "uint64"}]}
        clock = {"call": "shelfClock", "args": [{"out": "tick", "type": "uint64"}, {"out": "bits", "type": "uint"}]}
        marks = POLICIES["marks"] | {"time": {"steps": [ticks]}, "clock": {"steps": [clock]}}
        runtime = shelf(policies=POLICIES | {"marks": marks}).runtime
        events = [runtime.event_create() for _each in range(4)]
        for event in events:
            runtime.event_record(event, 0)

        between = [runtime.event_elapsed(*pair) for pair in itertools.pairwise(events)]

        assert between == [1.0, 1.0, 1.0]

    def test_events_whose_locks_were_held_at_a_fork_are_unknown_in_the_child_and_hold_nobody_up(
        self, shelf: Callable[..., Shelf]
    ) -> None:
        rt = shelf().runtime
        event = rt.event_create()
        rt.event_record(event, rt.stream_create())
        record = rt._binder.policy("marks")._events.get(event)

        with record.lock, record.mark._lock:
            rt._binder.renew_locks()  # what a forked child does first

            with pytest.raises(nbxrt.ArgumentValueError, match="no event has the handle"):
                rt.event_query(event)

    def test_an_event_without_timing_or_never_recorded_has_no_time(self, shelf: Callable[..., Shelf]) -> None:
        runtime = shelf().runtime
        recorded, untimed, never = (
            runtime.event_create(), runtime.event_create_flags(timing=False), runtime.event_create(),
        )  # fmt: skip
        for event in (recorded, untimed):
            runtime.event_record(event, 0)

        with pytest.raises(nbxrt.ArgumentValueError, match="`end` was made without timing"):
            runtime.event_elapsed(recorded, untimed)
        with pytest.raises(nbxrt.ArgumentValueError, match="`start` was never recorded"):
            runtime.event_elapsed(never, recorded)


class TestCode:
    @pytest.fixture
    def coded(self, shelf: Callable[..., Shelf]) -> Shelf:
        operations = ("module_load", "module_unload", "module_get_function", "launch_kernel")
        return shelf(operations={name: {"policy": "kernels"} for name in operations}, policies=POLICIES | CODE)

    def test_addresses_become_objects_and_offsets_and_values_stay(self, coded: Shelf) -> None:
        runtime = coded.runtime
        function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
        address = runtime.malloc(1000)

        runtime.launch_kernel(function, (2, 1, 1), (5, 1, 1), 0, 0, (ctypes.c_void_p(address + 100), ctypes.c_uint8(9)))

        assert ctypes.string_at(address, 1000) == bytes(100) + b"\t" * 10 + bytes(890)

    def test_a_kernel_is_told_by_itself_what_its_arguments_are_or_by_the_addresses(self, coded: Shelf) -> None:
        runtime = coded.runtime
        coded.fail("shelfArguments")  # code without that information
        function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
        address = runtime.malloc(64)

        runtime.launch_kernel(function, (1,), (64,), 0, 0, (ctypes.c_uint64(address), ctypes.c_uint8(3)))

        assert ctypes.string_at(address, 64) == b"\3" * 64

    def test_a_module_takes_its_kernels_with_it(self, coded: Shelf) -> None:
        runtime = coded.runtime
        before = coded["live"]
        module = runtime.module_load(b"ok")
        function = runtime.module_get_function(module, "fill")

        runtime.module_unload(module)

        assert coded["live"] == before
        with pytest.raises(nbxrt.ArgumentValueError, match="unloaded already"):
            runtime.launch_kernel(function, (1,), (1,), 0, 0, ())

    def test_a_failed_build_quotes_the_compiler_and_leaves_no_module(self, coded: Shelf) -> None:
        runtime = coded.runtime
        runtime.module_unload(runtime.module_load(b"ok"))
        before = coded["live"]

        with pytest.raises(nbxrt.DeviceError, match="line 1: this is bad") as caught:
            runtime.module_load(b"bad code")

        assert caught.value.symbol == "shelfBuild"
        assert coded["live"] == before

    def test_arguments_that_were_packed_before_are_read_by_the_sizes_that_the_kernel_tells(self, coded: Shelf) -> None:
        runtime = coded.runtime
        function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
        address = runtime.malloc(64)
        values = (ctypes.c_uint64(address + 4), ctypes.c_uint8(7))
        packed = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))

        for given in (packed, ctypes.addressof(packed)):
            runtime.memset(address, 0, 64)
            runtime.launch_kernel(function, (1,), (8,), 0, 0, given)
            assert ctypes.string_at(address, 16) == bytes(4) + b"\7" * 8 + bytes(4)

    def test_packed_arguments_whose_size_nobody_tells_are_refused_by_their_place(
        self, shelf: Callable[..., Shelf]
    ) -> None:
        operations = ("module_load", "module_unload", "module_get_function", "launch_kernel")
        chosen = {name: {"policy": "kernels"} for name in operations}
        sized = CODE["kernels"] | {"sizes": {"word": 4}}
        unnamed = {key: each for key, each in CODE["kernels"].items() if key not in ("type_name", "sizes")}
        refused = []
        for kernels in (sized, unnamed):
            runtime = shelf(operations=chosen, policies=POLICIES | {"kernels": kernels}).runtime
            function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
            with pytest.raises(nbxrt.CapabilityError) as caught:
                runtime.launch_kernel(function, (1,), (1,), 0, 0, 4096)
            refused.append(caught.value.summary)

        assert refused == [
            "`launch_kernel`: argument 1 is a `byte`, whose size arguments that were packed before do not tell",
            "`launch_kernel`: arguments that were packed before cannot be given to Shelf, which takes them one by one",
        ]

    def test_a_launch_that_fails_in_the_middle_is_ended(self, shelf: Callable[..., Shelf]) -> None:
        operations = ("module_load", "module_get_function", "launch_kernel")
        begun = {
            "begin": {
                "steps": [
                    {"call": "shelfEncoder", "args": ["queue", {"out": "work", "type": "pointer"}]},
                    {"call": "shelfEncoder", "args": ["queue", {"out": "encoder", "type": "pointer"}]},
                ]
            },
            "end": {"steps": [{"call": "shelfEnd", "args": ["encoder"]}]},
            "abandon": {
                "steps": [{"call": "shelfEnd", "args": ["encoder"]}, {"call": "shelfEnd", "args": ["work"]}],
            },
        }
        opened = shelf(
            operations={name: {"policy": "kernels"} for name in operations},
            policies=POLICIES | {"kernels": CODE["kernels"] | begun},
        )
        runtime = opened.runtime
        function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
        arguments = (ctypes.c_void_p(runtime.malloc(8)), ctypes.c_uint16(1))  # it takes a byte
        runtime.memset(runtime.malloc(8), 0, 8)  # the default stream is there
        runtime.sync()
        before = opened["live"]

        with pytest.raises(nbxrt.DeviceError, match="`launch_kernel` failed"):
            runtime.launch_kernel(function, (1,), (1,), 0, 0, arguments)

        assert (opened["open_encoders"], opened["live"]) == (0, before)

    def test_wrong_arguments_are_refused_before_the_vendor_is_asked(self, coded: Shelf) -> None:
        runtime = coded.runtime
        function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
        calls = coded["calls"]

        with pytest.raises(nbxrt.ArgumentValueError, match="the kernel takes 2 arguments, not 1"):
            runtime.launch_kernel(function, (1,), (1,), 0, 0, (ctypes.c_uint8(1),))

        assert coded["calls"] == calls


def test_free_memory_is_the_total_less_what_was_allocated(shelf: Callable[..., Shelf]) -> None:
    runtime = shelf().runtime
    assert runtime.mem_get_info() == (1 << 30, 1 << 30)

    address = runtime.malloc(1 << 20)

    assert runtime.mem_get_info() == ((1 << 30) - (1 << 20), 1 << 30)
    runtime.free(address)
    assert runtime.mem_get_info()[0] == 1 << 30


def test_what_an_address_points_to_is_told_by_the_table(shelf: Callable[..., Shelf]) -> None:
    runtime = shelf().runtime
    runtime.set_device(1)
    address = runtime.malloc(100)

    assert runtime.pointer_attributes(address + 99) == ("device", 1, address + 99, 0)
    assert runtime.pointer_attributes(8) == ("unregistered", 0, 0, 8)


def test_a_box_holds_what_is_put_into_it_and_an_empty_one_ends_the_steps(shelf: Callable[..., Shelf]) -> None:
    box = {
        "event_create": {"steps": [{"mint": "event"}]},
        "event_record": {
            "steps": [
                {"call": "shelfMark", "args": ["stream", {"out": "mark", "type": "pointer"}]},
                {"put": "mark", "into": "event"},
            ]
        },
        "event_query": {
            "steps": [
                {"take": "event", "as": "mark", "empty": "done"},
                {"call": "shelfStatus", "args": ["mark", {"out": "status", "type": "int"}]},
            ],
            "result": {"done": {"of": "status", "equals": DONE}},
        },
        "event_destroy": {
            "steps": [
                {"retire": "event", "as": "mark", "empty": "done"},
                {"call": "shelfMarkRelease", "args": ["mark"]},
            ]
        },
    }
    opened = shelf(operations=box)
    runtime = opened.runtime
    runtime.stream_query(0)
    event, before = runtime.event_create(), opened["live"]

    assert runtime.event_query(event) is True
    opened["hold"] = 1
    runtime.event_record(event, 0)
    assert runtime.event_query(event) is False
    runtime.event_destroy(event)

    assert opened["live"] == before
    with pytest.raises(nbxrt.ArgumentValueError, match="nothing has the handle"):
        runtime.event_query(event)


SIZES = strategies.lists(strategies.integers(1, 5000), min_size=1, max_size=20)


@hypothesis.given(SIZES, strategies.data())
def test_every_address_of_the_table_lies_in_the_memory_that_it_was_minted_for(sizes: list[int], data: Any) -> None:
    table = Addresses()
    memory = {table.mint(nbytes, number, None, "device"): (number, nbytes) for number, nbytes in enumerate(sizes)}
    gone = data.draw(strategies.sets(strategies.sampled_from(sorted(memory))))
    for address in gone:
        table.remove(address, "free")

    for address, (number, nbytes) in memory.items():
        for at in (address, address + nbytes - 1):
            block = table.look(at)
            assert (block is None) == (address in gone)
            assert block is None or (block.target, block.address) == (number, address)
        assert table.look(address + nbytes) is None
        assert address >= FIRST_MINTED
    assert len(table) == len(memory) - len(gone)


def test_the_table_answers_right_while_other_threads_change_it_and_does_not_grow_with_their_turns() -> None:
    table, wrong = Addresses(), []
    kept = [table.mint(1000, number, None, "device") for number in range(200)]

    def change(number: int) -> None:
        for turn in range(3000):
            address = (number + 1) << 40 | turn << 12
            table.add(address, 100, turn, None, "device")
            if turn % 50 == 0 and (table.look(address + 99) is None or table.look(kept[turn % 200] + 999) is None):
                wrong.append((number, turn))
            table.remove(address, "free")

    threads = [threading.Thread(target=change, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert len(table) == 200
    assert [table.find(address + 500, "memset").target for address in kept] == list(range(200))
    assert len(table.new) <= MOST_UNSORTED


def test_a_part_that_fails_is_an_error_of_the_operation_that_was_called(shelf: Callable[..., Shelf]) -> None:
    opened = shelf()
    opened.runtime.stream_create()
    opened.fail("shelfQueue")

    with pytest.raises(nbxrt.DeviceError, match="`stream_create` failed") as caught:
        opened.runtime.stream_create()

    assert (caught.value.operation, caught.value.symbol) == ("stream_create", "shelfQueue")
