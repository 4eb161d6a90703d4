"""What the account does while a stream records a graph: nothing that would spoil it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

MIB = 1 << 20
#: What waits, asks or gives back, and so may spoil a capture.
SPOILING = {
    "sync", "stream_sync", "event_query", "event_sync", "event_record", "mem_unmap", "mem_address_free", "free",
    "free_host", "malloc", "malloc_host", "mempool_trim", "free_async",
}  # fmt: skip


def used(account: nbxrt.DeviceAllocator, stream: int, other: int) -> None:
    """Everything that the account offers, with memory that is there already."""
    for nbytes in (4 * MIB, 3000):
        ptr = account.malloc(nbytes, 0, stream)
        account.record_use(ptr, other)
        account.free(ptr)
    account.free(account.malloc(4 * MIB, 0, stream), other)
    account.free_host(account.malloc_host(5000))
    account.trim()
    account.trim(0, keep=MIB)
    account.stats(0)
    account.snapshot()


@pytest.fixture
def streams(account: nbxrt.DeviceAllocator) -> tuple[int, int]:
    """Two streams, with blocks that wait on the first one, in use by the second and free."""
    account.runtime.set_device(0)
    first, second = account.runtime.stream_create(), account.runtime.stream_create()
    sizes = (4 * MIB, 4 * MIB, 4 * MIB, 3000, 3000)
    blocks = [account.malloc(nbytes, 0, stream) for nbytes in sizes for stream in (first, second)]
    for ptr in blocks:
        account.free(ptr)
    shared = account.malloc(7 * MIB, 0, first)
    account.record_use(shared, second)
    account.free(shared)
    for ptr in [account.malloc_host(5000) for _block in range(2)]:
        account.free_host(ptr)
    account.runtime.sync()
    account.trim(keep=1 << 40)  # what has finished comes back
    return first, second


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("which", ["of the captured stream", "of another stream"])
def test_whatever_is_asked_of_the_account_a_capture_is_whole(
    account: nbxrt.DeviceAllocator, streams: tuple[int, int], calls: Callable[[], list[str]], mode: str, which: str
) -> None:
    runtime, (stream, other) = account.runtime, streams
    policy = account.stats(0)["policy"]
    runtime.stream_begin_capture(stream, mode)
    calls()

    if policy in ("caching", "expandable"):
        used(account, *((stream, other) if which == "of the captured stream" else (other, stream)))
        assert SPOILING & set(calls()) == set()
    else:  # they have nothing in hand: what they cannot do is refused before any call
        held = [ptr for ptr in (tried(account, stream), tried(account, other)) if ptr]
        for ptr in held:
            account.free(ptr)
        account.trim()

    graph = runtime.stream_end_capture(stream)
    runtime.graph_destroy(graph)
    runtime.sync()
    account.trim()
    assert account.memory_allocated(0) == 0


def tried(account: nbxrt.DeviceAllocator, stream: int) -> int:
    try:
        return account.malloc(MIB, 0, stream)
    except nbxrt.DeviceError as error:
        assert error.kind == "capture_unsupported"  # noqa: PT017  # either answer is right here
        return 0


@pytest.mark.parametrize("policy", ["direct", "caching", "stream_ordered"])
def test_growing_by_the_vendors_malloc_is_refused_with_a_way_out(
    runtime: nbxrt.Runtime, calls: Callable[[], list[str]], policy: str
) -> None:
    account = nbxrt.DeviceAllocator(runtime, policy)
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream)
    calls()

    with pytest.raises(nbxrt.DeviceError, match="would spoil the graph") as caught:
        account.malloc(100 * MIB, 0)

    assert caught.value.kind == "capture_unsupported"
    assert "expandable" in str(caught.value)
    assert {"malloc", "malloc_async"}.isdisjoint(calls())
    runtime.graph_destroy(runtime.stream_end_capture(stream))
    account.free(account.malloc(100 * MIB, 0))


def test_a_capture_of_another_thread_or_a_relaxed_one_forbids_nothing(runtime: nbxrt.Runtime) -> None:
    account = nbxrt.DeviceAllocator(runtime, "caching")
    stream = runtime.stream_create()
    taken: list[Any] = []
    for mode, elsewhere in (("relaxed", False), ("thread_local", True)):
        runtime.stream_begin_capture(stream, mode)

        def take() -> None:
            taken.append(account.malloc(100 * MIB, 0))

        if elsewhere:
            thread = threading.Thread(target=take)
            thread.start()
            thread.join()
        else:
            take()

        runtime.graph_destroy(runtime.stream_end_capture(stream))
    assert len(taken) == 2


def test_expandable_memory_grows_during_a_capture(runtime: nbxrt.Runtime) -> None:
    account = nbxrt.DeviceAllocator(runtime, "expandable")
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream)

    ptr = account.malloc(100 * MIB, 0, stream)

    runtime.memset_async(ptr, 7, 100 * MIB, stream)
    runtime.graph_destroy(runtime.stream_end_capture(stream))
    account.free(ptr)


def test_memory_of_the_drivers_pool_is_not_the_graphs(runtime: nbxrt.Runtime) -> None:
    account = nbxrt.DeviceAllocator(runtime, "stream_ordered")
    stream = runtime.stream_create()
    runtime.stream_begin_capture(stream, "relaxed")

    ptr = account.malloc(MIB, 0, stream)
    runtime.memset_async(ptr, 7, MIB, stream)
    graph = runtime.stream_end_capture(stream)
    launched = runtime.graph_instantiate(graph)
    for _turn in range(2):
        runtime.graph_launch(launched, stream)
    runtime.stream_sync(stream)

    runtime.graph_exec_destroy(launched)
    runtime.graph_destroy(graph)
    account.free(ptr)
    runtime.stream_sync(stream)
    assert account.memory_allocated(0) == 0


def test_what_a_finalizer_frees_as_a_capture_begins_is_put_off(
    runtime: nbxrt.Runtime, calls: Callable[[], list[str]]
) -> None:
    account = nbxrt.DeviceAllocator(runtime, "caching")
    stream, host = runtime.stream_create(), account.malloc_host(100)

    def collect(frame: Any, what: str, _argument: Any) -> None:
        code = frame.f_code
        if (what, code.co_name, code.co_filename[:6]) == ("return", "stream_begin_capture", "<nbxrt"):
            sys.setprofile(None)
            account.free_host(host)

    calls()
    sys.setprofile(collect)
    runtime.stream_begin_capture(stream)
    sys.setprofile(None)

    assert host not in account._pinned.live
    assert SPOILING & set(calls()) == set()
    runtime.graph_destroy(runtime.stream_end_capture(stream))


@pytest.mark.parametrize("mode", ["global", "thread_local"])
def test_a_stream_with_memory_that_ends_during_a_capture_is_waited_for_and_destroyed_after_it(
    pool: nbxrt.DeviceAllocator, calls: Callable[[], list[str]], mode: Any
) -> None:
    runtime = pool.runtime
    stream, other = runtime.stream_create(), runtime.stream_create()
    pool.free(pool.malloc(MIB, 0, other))
    runtime.stream_begin_capture(stream, mode)
    calls()

    runtime.stream_destroy(other)

    assert calls() == []
    runtime.graph_destroy(runtime.stream_end_capture(stream))
    assert [call for call in calls() if call.startswith("stream_")][-2:] == ["stream_sync", "stream_destroy"]
    pool.trim()
    assert pool.memory_reserved(0) == 0


def test_a_capture_that_does_not_begin_leaves_the_one_that_is_under_way(
    runtime: nbxrt.Runtime, calls: Callable[[], list[str]]
) -> None:
    account = nbxrt.DeviceAllocator(runtime, "caching")
    stream, host = runtime.stream_create(), account.malloc_host(100)
    runtime.stream_begin_capture(stream)
    calls()

    with pytest.raises(nbxrt.DeviceError):
        runtime.stream_begin_capture(stream)
    account.free_host(host)

    assert SPOILING & set(calls()) == set()
    runtime.graph_destroy(runtime.stream_end_capture(stream))
    with pytest.raises(nbxrt.ArgumentValueError):
        runtime.stream_begin_capture(0)
    assert not account.captures


def test_what_was_put_off_is_done_when_the_capture_ends(
    account: nbxrt.DeviceAllocator, simulation: Simulation, left: Callable[[], list[Any]]
) -> None:
    runtime = account.runtime
    runtime.set_device(0)
    stream, other = runtime.stream_create(), runtime.stream_create()
    ptrs = [account.malloc(MIB, 0, other) for _block in range(3)]
    pinned = account.malloc_host(5000)
    account.record_use(ptrs[0], stream)
    runtime.stream_begin_capture(stream)
    for ptr in ptrs:
        account.free(ptr)
    account.free_host(pinned)
    assert account.trim() == 0

    runtime.graph_destroy(runtime.stream_end_capture(stream))

    runtime.sync()
    account.trim()
    assert left() == []


def test_a_capture_that_the_account_was_not_told_of_is_asked_for(
    pool: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    runtime = pool.runtime
    runtime.set_device(0)
    stream, other = runtime.stream_create(), runtime.stream_create()
    ptr = pool.malloc(MIB, 0, other)
    pool.record_use(ptr, stream)
    simulation.open().stream_begin_capture(stream)  # by a second runtime, as another library would

    pool.free(ptr)
    pool.free(pool.malloc(300 * MIB, 0, other)) if pool.stats(0)["policy"] == "expandable" else None

    runtime.graph_destroy(runtime.stream_end_capture(stream))
    runtime.sync()
    pool.trim()
    assert pool.memory_reserved(0) == 0


@pytest.mark.parametrize("which", ["that made it", "that uses it"])
def test_the_drivers_own_pool_takes_no_part_in_a_capture_that_the_account_was_not_told_of(
    runtime: nbxrt.Runtime, simulation: Simulation, calls: Callable[[], list[str]], which: str
) -> None:
    """A free would be a part of the graph, and waiting for the captured stream would draw another one into it."""
    account = nbxrt.DeviceAllocator(runtime, "stream_ordered")
    runtime.set_device(0)
    stream, other = runtime.stream_create(), runtime.stream_create()
    ptr = account.malloc(MIB, 0, stream if which == "that made it" else other)
    account.record_use(ptr, stream)
    simulation.open().stream_begin_capture(stream)  # by a second runtime, as another library would
    calls()

    account.free(ptr)
    account.trim()

    assert {"free_async", "event_record", "stream_wait_event"}.isdisjoint(calls())
    assert not runtime.stream_is_capturing(other)
    runtime.graph_destroy(runtime.stream_end_capture(stream))
    account.trim()
    assert "free_async" in calls()
    assert account.memory_allocated(0) == 0
