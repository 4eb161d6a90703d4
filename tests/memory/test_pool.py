"""The pools: what they reuse and give back, memory used on other streams, threads, finalizers."""

from __future__ import annotations

import gc
import sys
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nbxrt
from nbxrt import memory
from nbxrt.memory import hotpath
from nbxrt.memory.pool import Bin
from nbxrt.memory.ranges import FreeRanges

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

MIB = 1 << 20


def test_a_freed_block_is_the_next_of_its_size_without_a_call(
    pool: nbxrt.DeviceAllocator, calls: Callable[[], list[str]]
) -> None:
    pool.runtime.current.index = 0
    ptr = pool.malloc(3 * MIB)
    calls()

    pool.free(ptr)

    assert pool.malloc(3 * MIB) == ptr
    assert calls() == []


def test_sizes_of_the_same_rounding_share_blocks(pool: nbxrt.DeviceAllocator) -> None:
    ptr = pool.malloc(1000)
    pool.free(ptr)

    assert pool.malloc(1024) == ptr


def test_a_use_is_known_until_the_block_is_freed_or_the_stream_is_destroyed(pool: nbxrt.DeviceAllocator) -> None:
    stream, ptr = pool.runtime.stream_create(), pool.malloc(1000)
    assert not pool.is_recorded(ptr, stream)

    pool.record_use(ptr, stream)
    assert pool.is_recorded(ptr, stream)

    pool.runtime.stream_destroy(stream)
    assert not pool.is_recorded(ptr, stream)
    pool.record_use(ptr, 0)
    pool.free(ptr)
    assert not pool.is_recorded(ptr, 0)


def test_neighbours_are_joined_for_a_larger_request(pool: nbxrt.DeviceAllocator) -> None:
    blocks = [pool.malloc(4 * MIB) for _block in range(5)]
    reserved = pool.memory_reserved()
    for ptr in blocks:
        pool.free(ptr)

    pool.malloc(20 * MIB)

    assert pool.memory_reserved() == reserved


def test_small_requests_do_not_empty_the_bins_of_others_while_they_are_a_small_part(
    pool: nbxrt.DeviceAllocator, simulation: Simulation, calls: Callable[[], list[str]]
) -> None:
    simulation.memory = 8 << 30
    pool.malloc(4 << 30, 0)
    small = [pool.malloc(512, 0) for _block in range(4096)]
    for ptr in small:
        pool.free(ptr)

    pool.malloc(1024, 0)
    calls()

    assert {pool.malloc(512, 0) for _block in small} == set(small)
    assert calls() == []


def test_small_blocks_are_joined_before_memory_is_said_to_be_out(
    pool: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    simulation.memory = 8 << 30
    reclaimed: list[int] = []
    pool.register_reclaim_hook(lambda _device, nbytes: reclaimed.append(nbytes))
    pool.limit(0, 4 << 30)
    small = [pool.malloc(512, 0) for _block in range(4096)]
    pool.malloc((4 << 30) - 2 * MIB, 0)
    for ptr in small:
        pool.free(ptr)

    assert pool.malloc(MIB // 16, 0) == min(small)
    assert reclaimed == []


def test_no_block_is_lost_whose_size_was_forgotten_while_it_was_held(
    pool: nbxrt.DeviceAllocator, monkeypatch: pytest.MonkeyPatch, left: Callable[[], list[Any]]
) -> None:
    monkeypatch.setattr("nbxrt.memory.pool.MOST_SIZES", 4)
    first, second = pool.malloc(512), pool.malloc(512)
    for ptr in [pool.malloc(nbytes * 1024) for nbytes in range(1, 8)]:
        pool.free(ptr)

    pool.free(first)
    pool.stats(0)  # joins what waits
    pool.free(second)
    pool.trim()

    assert left() == []


def test_streams_do_not_share_blocks(pool: nbxrt.DeviceAllocator) -> None:
    stream = pool.runtime.stream_create()
    ptr = pool.malloc(MIB)
    pool.free(ptr)

    assert pool.malloc(MIB, stream=stream) != ptr
    assert pool.malloc(MIB) == ptr


def test_the_default_stream_has_one_pool_under_both_its_numbers(pool: nbxrt.DeviceAllocator) -> None:
    ptr = pool.malloc(MIB, stream=1)
    pool.free(ptr)

    assert pool.malloc(MIB, stream=0) == ptr


def test_the_stream_of_each_threads_own_has_a_pool_for_each_thread(pool: nbxrt.DeviceAllocator) -> None:
    ptr = pool.malloc(MIB, stream=2)
    pool.free(ptr)
    others: list[int] = []

    thread = threading.Thread(target=lambda: others.append(pool.malloc(MIB, stream=2)))
    thread.start()
    thread.join()

    assert others[0] != ptr
    assert pool.malloc(MIB, stream=2) == ptr


def test_a_block_used_on_another_stream_returns_when_that_has_done_its_work(
    pool: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    runtime = pool.runtime
    stream = runtime.stream_create()
    ptr = pool.malloc(MIB)
    runtime.memset_async(ptr, 1, MIB, stream)
    pool.record_use(ptr, stream)

    pool.free(ptr)

    assert pool.malloc(MIB) != ptr
    assert pool.memory_allocated() == MIB
    runtime.stream_sync(stream)
    pool.trim(0, keep=1 << 30)  # looks at what has finished
    assert ptr in [pool.malloc(MIB) for _block in range(3)]


def test_a_free_on_another_stream_is_ordered_after_its_work(pool: nbxrt.DeviceAllocator) -> None:
    runtime = pool.runtime
    stream = runtime.stream_create()
    ptr = pool.malloc(MIB)
    runtime.memset_async(ptr, 1, MIB, stream)

    pool.free(ptr, stream)

    assert pool.malloc(MIB) != ptr


def test_memory_whose_stream_is_destroyed_comes_back_all_the_same(pool: nbxrt.DeviceAllocator) -> None:
    runtime = pool.runtime
    stream = runtime.stream_create()
    ptr = pool.malloc(MIB)
    pool.record_use(ptr, stream)
    runtime.stream_destroy(stream)

    pool.free(ptr)

    assert pool.malloc(MIB) == ptr


def test_a_stream_that_is_destroyed_is_never_named_again(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    """Vendors' libraries may end the process for it."""
    runtime = account.runtime
    stream = runtime.stream_create()
    kept, used = account.malloc(MIB, stream=stream), account.malloc(MIB)
    pinned = account.malloc_host(4096)
    for ptr in (used, pinned):
        account.record_use(ptr, stream)
    account.free(account.malloc(300 * MIB, stream=stream))
    runtime.stream_destroy(stream)
    simulation.clear()

    account.free(account.malloc(500 * MIB))
    for ptr in (kept, used):
        account.free(ptr)
    account.free_host(pinned)
    account.trim()

    assert [call for call in simulation.log() if stream in call.arguments.values()] == []
    assert (account.memory_allocated(), account.stats()["reserved"]) == (0, 0)


def test_memory_of_a_stream_that_is_destroyed_is_the_next_streams(pool: nbxrt.DeviceAllocator) -> None:
    runtime = pool.runtime
    first = runtime.stream_create()
    ptr = pool.malloc(MIB, stream=first)
    pool.free(ptr)
    runtime.stream_destroy(first)

    assert pool.malloc(MIB, stream=runtime.stream_create()) == ptr


def test_trimming_keeps_as_much_as_is_asked(pool: nbxrt.DeviceAllocator, left: Callable[[], list[Any]]) -> None:
    blocks = [pool.malloc(30 * MIB) for _block in range(4)]
    for ptr in blocks:
        pool.free(ptr)

    given_back = pool.trim(0, keep=50 * MIB)

    assert 50 * MIB <= pool.memory_reserved() < 120 * MIB
    assert given_back == 120 * MIB - pool.memory_reserved()
    pool.trim()
    assert left() == []


def test_the_device_that_is_trimmed_need_not_be_current_and_the_current_one_stays(
    pool: nbxrt.DeviceAllocator, left: Callable[[], list[Any]]
) -> None:
    pool.free(pool.malloc(MIB, 1))

    pool.trim(1)

    assert left() == []
    assert pool.runtime.get_device() == 0


def test_a_thread_that_never_chose_a_device_gets_no_context_on_another(
    pool: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    pool.malloc(MIB, 1)

    assert simulation.contexts() == {1}


class TestExpandable:
    @pytest.fixture
    def account(self, runtime: nbxrt.Runtime) -> nbxrt.DeviceAllocator:
        return nbxrt.DeviceAllocator(runtime, "expandable")

    def test_pages_that_are_free_in_the_middle_back_a_block_elsewhere(
        self, account: nbxrt.DeviceAllocator, simulation: Simulation
    ) -> None:
        simulation.memory = 200 * MIB
        blocks = [account.malloc(20 * MIB) for _block in range(10)]
        for ptr in blocks[::2]:
            account.free(ptr)

        account.malloc(100 * MIB)

        assert account.memory_reserved() == 200 * MIB
        assert account.peak_memory_reserved() == 200 * MIB

    @pytest.mark.parametrize("is_limited", [True, False])
    def test_pieces_are_no_larger_than_elsewhere_where_there_is_little_memory(
        self, runtime: nbxrt.Runtime, simulation: Simulation, is_limited: bool
    ) -> None:
        """Large ones with a block in each would leave another stream nothing: here little is limited, or was free."""
        simulation.memory = 80 << 30
        others = 0 if is_limited else runtime.malloc((80 << 30) - 512 * MIB)
        account = nbxrt.DeviceAllocator(runtime, "expandable")
        account.limit(0, 512 * MIB if is_limited else None)
        places = [account.malloc(112 * MIB, 0) for _place in range(4)]
        blocks = []
        for ptr in places:
            account.free(ptr)
            blocks += [account.malloc(nbytes * MIB, 0) for nbytes in (3, 109)]
        for ptr in blocks[1::2]:
            account.free(ptr)

        elsewhere = [account.malloc(20 * MIB, 0, runtime.stream_create()) for _block in range(16)]

        assert len(elsewhere) == 16
        runtime.free(others)

    def test_gaps_that_were_given_back_are_used_again(self, account: nbxrt.DeviceAllocator) -> None:
        blocks = [account.malloc(20 * MIB) for _block in range(6)]
        for ptr in blocks[1:3]:
            account.free(ptr)
        account.trim()

        ptr = account.malloc(38 * MIB)

        assert blocks[0] < ptr < blocks[-1]

    def test_the_same_requests_again_meet_the_same_addresses_and_reserve_no_more(
        self, account: nbxrt.DeviceAllocator, simulation: Simulation
    ) -> None:
        """Although pieces were given back in the first pass, and back other addresses since."""
        simulation.memory = 8 << 30
        sizes = [(1 + turn * turn * 7 % 39) * MIB for turn in range(400)]

        def addresses() -> list[int]:
            account.stats(0)  # joins what is free
            held: list[int] = []
            met = []
            for turn, nbytes in enumerate(sizes):
                held.append(account.malloc(nbytes, 0))
                met.append(held[-1])
                if len(held) > 8 + turn // 20:
                    account.free(held.pop(turn % len(held)))
            for ptr in held:
                account.free(ptr)
            return met

        first, peak = addresses(), account.peak_memory_reserved(0)

        assert "mem_unmap" in {call.operation for call in simulation.log()}
        assert [addresses() for _pass in range(3)] == [first] * 3
        assert account.peak_memory_reserved(0) <= peak * 1.005

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(steps=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5), st.booleans()), min_size=4, max_size=60))
    def test_a_block_goes_to_the_smallest_gap_that_holds_it_and_the_lowest_of_these(
        self, account: nbxrt.DeviceAllocator, steps: list[tuple[int, int, bool]]
    ) -> None:
        """What was freed is joined first, by the request itself unless a block of its size waits."""
        low = account.malloc(16 * MIB, 0)
        account.free(low)
        held: dict[int, int] = {}
        for size, turn, is_asked in steps:
            waits = set(held.values())
            for ptr in list(held)[turn::3]:
                account.free(ptr)
                del held[ptr]
            nbytes = next(nbytes for nbytes in count(size * MIB, MIB) if nbytes not in waits)
            if is_asked:
                account.stats(0)
                nbytes = size * MIB

            ptr = account.malloc(nbytes, 0)

            ends = [low, *(each + held[each] for each in sorted(held))]
            gaps = zip(ends, [*sorted(held), low + (1 << 30)], strict=True)
            assert (ptr - low) / MIB == min((high - end, end - low) for end, high in gaps if high - end >= nbytes)[
                1
            ] / MIB
            held[ptr] = nbytes
        for ptr in held:
            account.free(ptr)
        account.stats(0)

    def test_pieces_are_larger_while_little_of_the_device_is_reserved(
        self, account: nbxrt.DeviceAllocator, simulation: Simulation, calls: Callable[[], list[str]]
    ) -> None:
        simulation.memory = 8 << 30
        made = []
        for _turn in range(4):
            account.malloc(100 * MIB, 0)
            made.append(calls().count("mem_create"))

        assert made[1:] == [1, 4, 4]

    def test_a_range_with_memory_serves_where_the_best_one_can_have_none(
        self, account: nbxrt.DeviceAllocator, simulation: Simulation
    ) -> None:
        simulation.memory = 128 * MIB
        whole, best, _last = (account.malloc(nbytes * MIB, 0) for nbytes in (40, 20, 20))
        account.free(whole)
        _low, middle, _high = (account.malloc(nbytes * MIB, 0) for nbytes in (8, 24, 8))
        account.free(best)
        account.trim()
        account.free(middle)
        account.runtime.malloc(60 * MIB)

        assert account.malloc(18 * MIB, 0) == middle

    def test_the_stream_is_waited_for_before_memory_is_taken_away(
        self, account: nbxrt.DeviceAllocator, calls: Callable[[], list[str]]
    ) -> None:
        stream = account.runtime.stream_create()
        ptr = account.malloc(20 * MIB, stream=stream)
        account.runtime.memset_async(ptr, 1, MIB, stream)
        account.free(ptr)
        calls()

        account.trim()

        made = calls()
        assert made.index("stream_sync") < made.index("mem_unmap")

    def test_a_stream_that_records_a_graph_is_not_waited_for(
        self, account: nbxrt.DeviceAllocator, simulation: Simulation
    ) -> None:
        runtime = account.runtime
        stream = runtime.stream_create()
        account.free(account.malloc(40 * MIB, stream=stream))
        runtime.stream_begin_capture(stream)

        account.malloc(60 * MIB)
        account.trim()
        with pytest.raises(nbxrt.OutOfMemoryError):
            account.malloc(1 << 50, stream=stream)

        runtime.graph_destroy(runtime.stream_end_capture(stream))

    def test_the_handle_is_given_up_once_memory_is_mapped(
        self, account: nbxrt.DeviceAllocator, simulation: Simulation
    ) -> None:
        account.malloc(100 * MIB)

        assert [live.kind for live in simulation.ledger() if live.kind == "allocation"] == []

    def test_a_peer_may_use_what_is_there_and_what_comes(self, account: nbxrt.DeviceAllocator) -> None:
        runtime = account.runtime
        first = account.malloc(MIB)

        account.admit_peer(0, 1)
        second = account.malloc(50 * MIB)

        runtime.set_device(1)
        for ptr in (first, second):
            runtime.memset(ptr, 7, 16)

    @pytest.mark.parametrize("operation", ["mem_create", "mem_map", "mem_set_access"])
    def test_a_device_on_which_virtual_memory_fails_falls_back_with_a_sentence(
        self, account: nbxrt.DeviceAllocator, simulation: Simulation, left: Callable[[], list[Any]], operation: str
    ) -> None:
        simulation.fail(operation, 1, "not_supported")

        stats = account.stats(0)

        assert stats["policy"] == "caching"
        assert stats["why"].startswith("`expandable` was asked for and does not work here: ")
        assert left() == []

    @pytest.mark.parametrize("operation", ["mem_create", "mem_map", "mem_set_access"])
    def test_growing_that_fails_half_way_holds_nothing(
        self, account: nbxrt.DeviceAllocator, simulation: Simulation, left: Callable[[], list[Any]], operation: str
    ) -> None:
        account.policy(0)
        simulation.fail(operation, 3, "unknown")

        with pytest.raises(nbxrt.DeviceError):
            account.malloc(300 * MIB)

        assert left() == []
        assert account.memory_reserved() == 0
        account.malloc(300 * MIB)


class TestThreads:
    @pytest.mark.parametrize("policy", ["direct", "caching", "stream_ordered", "expandable"])
    @pytest.mark.parametrize("seconds", [0.15, pytest.param(60, marks=pytest.mark.tier("nightly"))])
    def test_many_threads_share_no_block_and_lose_none(
        self, runtime: nbxrt.Runtime, policy: str, seconds: float, left: Callable[[], list[Any]]
    ) -> None:
        account = nbxrt.DeviceAllocator(runtime, policy)
        owned: dict[int, int] = {}
        faults: list[Any] = []
        end = time.monotonic() + seconds

        def work(number: int) -> None:
            try:
                turn = 0
                while time.monotonic() < end:
                    turn += 1
                    sizes = [512 * (1 + (turn + number + k) % 7) * (1 + 300 * (k % 2)) for k in range(6)]
                    ptrs = [account.malloc(nbytes) for nbytes in sizes]
                    faults.extend(ptr for ptr in ptrs if owned.setdefault(ptr, number) != number)
                    for ptr in ptrs:
                        del owned[ptr]
                        account.free(ptr)
                    if turn % 50 == number:
                        account.trim(0)
            except BaseException as error:  # noqa: BLE001
                faults.append(error)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)

        assert faults == []
        assert account.memory_allocated(0) == 0
        account.trim()
        assert left() == []

    def test_a_request_whose_block_another_thread_took_asks_the_hooks_for_memory_as_any(
        self, pool: nbxrt.DeviceAllocator
    ) -> None:
        class Emptied(Bin):
            """A bin that had a block when it was looked at."""

            __slots__ = ()

            def __bool__(self) -> bool:
                return True

        ptr = pool.malloc(100 * MIB, 0)
        found = pool.live[ptr]
        pool.free(ptr)
        pool.trim()
        found.__class__ = Emptied
        pool.limit(0, 50 * MIB)
        pool.register_reclaim_hook(lambda device, _nbytes: pool.limit(device, None))

        assert pool.malloc(100 * MIB, 0)

    def test_one_lock_guards_both_functions_where_python_has_none(self, runtime: nbxrt.Runtime) -> None:
        account = nbxrt.DeviceAllocator(runtime, "caching")
        malloc, free = hotpath.locked(account.malloc, account.free)

        free(malloc(MIB))

        assert account.memory_allocated() == 0


class TestFinalizers:
    def test_a_finalizer_inside_the_pool_may_free_and_allocate(self, pool: nbxrt.DeviceAllocator) -> None:
        """The collector runs while the pool holds its lock: it is brought there by a source that makes garbage."""
        policy = pool.policy(0)
        grow = policy.source.grow
        seen: list[int] = []

        class Cycle:
            def __init__(self) -> None:
                self.me, self.ptr = self, pool.malloc(4096)

            def __del__(self) -> None:
                pool.free(self.ptr)
                seen.append(pool.malloc(50 * MIB))

        def growing(*arguments: Any) -> None:
            gc.collect()
            grow(*arguments)

        Cycle()
        policy.source.grow = growing

        ptr = pool.malloc(100 * MIB)

        assert len(seen) == 1
        assert pool.memory_allocated() == 150 * MIB
        for each in (ptr, *seen):
            pool.free(each)
        assert pool.memory_allocated() == 0

    @pytest.mark.parametrize("freed", [3, 40])  # joined one by one, or all at once
    @pytest.mark.parametrize("ask", ["stats", "trim", "malloc"])
    def test_what_a_finalizer_gets_anywhere_in_the_pool_is_nobody_elses(
        self, pool: nbxrt.DeviceAllocator, ask: str, freed: int
    ) -> None:
        held: dict[int, int] = {}

        def malloc(nbytes: int) -> None:
            held[pool.malloc(nbytes, 0)] = nbytes

        class Cycle:
            def __init__(self) -> None:
                self.me = self

            def __del__(self) -> None:
                malloc(MIB + len(held) * 512)

        def collect(*_event: Any) -> None:
            if len(held) < 200:
                Cycle()
                gc.collect(0)

        for nbytes in range(freed, 0, -1):
            malloc(nbytes * MIB // 4 + MIB)
            malloc(MIB)
        for ptr in list(held)[::2]:
            pool.free(ptr)
            del held[ptr]
        gc.disable()  # what the collector finds in use at a moment of its own comes later, all at once
        sys.setprofile(collect)  # at each call within
        try:
            {"stats": lambda: pool.stats(0), "trim": lambda: pool.trim(0), "malloc": lambda: malloc(2 * MIB)}[ask]()
        finally:
            sys.setprofile(None)
            gc.enable()
        malloc(7 * MIB)

        assert len(held) > freed + 5
        ends = [0, *(ptr + held[ptr] for ptr in sorted(held))]
        assert all(end <= ptr for end, ptr in zip(ends, sorted(held), strict=False))

    @pytest.mark.parametrize("policy", ["caching", "expandable"])
    def test_a_finalizer_may_be_the_first_on_a_stream_that_is_just_used_first(
        self, runtime: nbxrt.Runtime, policy: str, left: Callable[[], list[Any]]
    ) -> None:
        done, number = True, 0
        while done:
            account, number, done, held = nbxrt.DeviceAllocator(runtime, policy), number + 1, False, [0, 0]
            account.policy(0)
            calls = 0

            def collect(frame: Any, _what: str, _argument: Any) -> None:
                nonlocal calls, done
                calls += frame.f_code.co_filename.endswith("pool.py")
                if calls == number and not done:  # noqa: B023  # called within this turn alone
                    sys.setprofile(None)
                    done, held[0] = True, account.malloc(MIB, 0)  # noqa: B023

            sys.setprofile(collect)
            held[1] = account.malloc(MIB, 0)
            sys.setprofile(None)

            for ptr in held:
                account.free(ptr)
            account.trim()
            assert left() == [], f"call {number}"

    def test_nothing_is_imported_when_memory_is_freed(self, runtime: nbxrt.Runtime) -> None:
        account = memory.account()
        stream = runtime.stream_create()
        device, other, host = account.malloc(MIB), account.malloc(MIB, 1), account.malloc_host(MIB)
        account.record_use(device, stream)
        modules = set(sys.modules)

        for ptr in (device, other):
            account.free(ptr)
        account.free_host(host)

        assert set(sys.modules) == modules


class TestRanges:
    def test_many_at_once_are_the_same_as_one_after_the_other(self) -> None:
        given = [(512 * (7 * index % 1000), 512) for index in range(1, 900)]
        one, many = FreeRanges(), FreeRanges()
        for ranges in (one, many):
            ranges.borders.add(512 * 400)

        for address, nbytes in given:
            one.give(address, nbytes)
        many.give_many(given)

        assert list(one) == list(many)
        taken = [one.take(512 * size) for size in (1, 3, 1, 100)]
        assert taken == [many.take(512 * size) for size in (1, 3, 1, 100)]
        assert list(one) == list(many)
