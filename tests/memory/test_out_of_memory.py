"""Out of memory, and errors after which the context is lost."""

from __future__ import annotations

import gc
import os
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

import pytest

import nbxrt
from simulations import STRANGER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.simulation import Simulation

MIB = 1 << 20


def test_blocks_that_wait_are_given_back_for_a_request_that_does_not_fit(
    runtime: nbxrt.Runtime, simulation: Simulation, calls: Callable[[], list[str]]
) -> None:
    simulation.memory = 100 * MIB
    account = nbxrt.DeviceAllocator(runtime, "caching")
    for ptr in [account.malloc(10 * MIB) for _block in range(10)]:
        account.free(ptr)
    calls()

    account.malloc(60 * MIB)

    made = [call for call in calls() if call in ("malloc", "free")]
    assert made == ["malloc", *["free"] * 10, "malloc"]


def test_the_error_says_who_holds_what_and_the_pool_is_usable_afterwards(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    simulation.memory = 100 * MIB
    simulation.set_processes(0, [(os.getpid(), 60 * MIB), (STRANGER, 30 * MIB)])
    held = account.malloc(40 * MIB)

    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        account.malloc(200 * MIB)

    error = caught.value
    assert isinstance(error, MemoryError)
    assert (error.requested, error.total, error.allocated, error.device) == (200 * MIB, 100 * MIB, 40 * MIB, 0)
    assert error.free == 100 * MIB - error.reserved
    assert error.process_other == 60 * MIB - error.reserved
    assert [(each.pid, each.nbytes) for each in error.processes] == [(STRANGER, 30 * MIB)]
    assert "200.0 MiB were requested" in error.message
    assert f"process {STRANGER} has 30.0 MiB" in error.message
    assert error.hint == "the request is larger than the device: split it"
    assert account.runtime.get_last_error() == 0
    account.free(held)
    account.free(account.malloc(90 * MIB))


def test_the_whole_message_names_every_number(runtime: nbxrt.Runtime, simulation: Simulation) -> None:
    simulation.memory = 100 * MIB
    simulation.set_processes(0, [(os.getpid(), 96 * MIB), (STRANGER, 3 * MIB), (STRANGER + 1, 2**64 - 1)])
    account = nbxrt.DeviceAllocator(runtime, "caching")
    blocks = [account.malloc(9 * MIB) for _block in range(8)]
    for ptr in blocks[::2]:
        account.free(ptr)

    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        account.malloc(30 * MIB)

    assert str(caught.value).splitlines() == [
        "30.0 MiB were requested and could not be had on device 0",
        "  the device has 20.0 MiB free of 100.0 MiB",
        "  this account holds 36.0 MiB of 80.0 MiB reserved; the largest free block is 9.0 MiB, "
        "and 80% of what is free is in smaller ones",
        "  this process has 16.0 MiB more there: context, code, other allocators",
        f"  process {STRANGER} has 3.0 MiB",
        f"  process {STRANGER + 1} has an unknown amount",
        "  after `malloc` failed: OUT_OF_MEMORY (2): There is not enough memory.",
        "",
        "hint: enough is free but in pieces: `NBXRT_ALLOCATOR=expandable` moves memory to where it is needed",
    ]


def test_the_next_step_is_the_one_that_helps(runtime: nbxrt.Runtime, simulation: Simulation) -> None:
    simulation.memory = 100 * MIB
    account = nbxrt.DeviceAllocator(runtime, "caching")
    blocks = [account.malloc(9 * MIB) for _block in range(10)]
    for ptr in blocks[::2]:
        account.free(ptr)

    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        account.malloc(40 * MIB)

    assert "NBXRT_ALLOCATOR=expandable" in caught.value.hint
    assert 0 < caught.value.fragmentation < 1
    expandable = nbxrt.DeviceAllocator(runtime, "expandable")
    for ptr in blocks[1::2]:
        account.free(ptr)
    account.trim()
    blocks = [expandable.malloc(10 * MIB) for _block in range(10)]
    for ptr in blocks[::2]:
        expandable.free(ptr)
    expandable.malloc(50 * MIB)


def test_hooks_are_asked_before_the_one_retry(account: nbxrt.DeviceAllocator, simulation: Simulation) -> None:
    simulation.memory = 64 * MIB
    cache = [account.malloc(20 * MIB) for _block in range(3)]
    asked: list[tuple[int, int]] = []

    def reclaim(device: int, nbytes: int) -> None:
        asked.append((device, nbytes))
        while cache:
            account.free(cache.pop())
        simulation.advance()

    unregister = account.register_reclaim_hook(reclaim)

    ptr = account.malloc(50 * MIB)

    assert asked == [(0, 50 * MIB)]
    unregister()
    with pytest.raises(nbxrt.OutOfMemoryError):
        account.malloc(50 * MIB)
    assert len(asked) == 1
    account.free(ptr)


def test_a_hook_that_raises_stops_neither_the_others_nor_the_retry(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    simulation.memory = 64 * MIB
    cache = [account.malloc(40 * MIB)]

    def broken(_device: int, _nbytes: int) -> None:
        raise ValueError("no cache here")

    def reclaim(_device: int, _nbytes: int) -> None:
        while cache:
            account.free(cache.pop())
        simulation.advance()

    account.register_reclaim_hook(broken)
    account.register_reclaim_hook(reclaim)

    with pytest.warns(RuntimeWarning, match="a reclaim hook raised ValueError: no cache here"):
        account.malloc(50 * MIB)
    with pytest.raises(nbxrt.OutOfMemoryError, match="a reclaim hook raised ValueError: no cache here") as caught:
        account.malloc(50 * MIB)

    assert isinstance(caught.value.__cause__, ValueError)


def test_a_hook_may_allocate_and_is_not_asked_again_for_that(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    simulation.memory = 64 * MIB
    asked: list[int] = []

    def greedy(_device: int, nbytes: int) -> None:
        asked.append(nbytes)
        account.free(account.malloc(MIB))
        account.malloc(60 * MIB)

    account.register_reclaim_hook(greedy)
    account.malloc(40 * MIB)

    with pytest.raises(nbxrt.OutOfMemoryError, match="a reclaim hook raised OutOfMemoryError"):
        account.malloc(50 * MIB)

    assert asked == [50 * MIB]
    assert account.memory_allocated(0) == 40 * MIB


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> Iterator[None]:
    """Garbage is collected whenever a function of that name begins, and for want of memory; at no other time."""

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name == request.param:
            gc.collect()

    gc.disable()
    sys.setprofile(look)
    yield
    sys.setprofile(None)
    gc.enable()


@pytest.mark.parametrize("collected", ["refill", "run", "retry"], indirect=True)  # inside of a pool it is `run`
def test_a_finalizer_that_runs_out_of_memory_harms_nothing(
    account: nbxrt.DeviceAllocator, simulation: Simulation, collected: None
) -> None:
    simulation.memory = 64 * MIB
    failed: list[str] = []

    class Cycle:
        def __init__(self) -> None:
            self.me, self.ptr = self, account.malloc(20 * MIB)

        def __del__(self) -> None:
            try:
                account.malloc(1 << 40)
            except nbxrt.OutOfMemoryError as error:
                failed.append(f"{error.requested / MIB} MiB: {error.message.splitlines()[0]}")
            account.free(self.ptr)
            simulation.advance()

    Cycle()

    ptr = account.malloc(50 * MIB)

    assert failed == ["1048576.0 MiB: 1048576.0 MiB were requested and could not be had on device 0"]
    assert account.memory_allocated(0) == 50 * MIB
    account.free(ptr)


def test_a_limit_that_is_reached_by_what_is_reserved_is_the_next_step_and_no_other_process(
    pool: nbxrt.DeviceAllocator,
) -> None:
    pool.malloc(1024, 0)
    pool.limit(0, pool.memory_reserved(0) + 2 * MIB)

    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        pool.malloc(pool.memory_reserved(0) + MIB, 0)

    assert caught.value.hint == "free memory, or raise the limit: `limit(0, NBYTES)`"


def test_what_others_in_this_process_hold_is_the_next_step_where_that_is_what_is_missing(
    pool: nbxrt.DeviceAllocator, runtime: nbxrt.Runtime, simulation: Simulation
) -> None:
    simulation.memory = 100 * MIB
    simulation.set_processes(0, [(os.getpid(), 90 * MIB), (STRANGER, 3 * MIB)])
    runtime.malloc(90 * MIB)

    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        pool.malloc(40 * MIB, 0)

    assert caught.value.hint.startswith("this process holds what is missing outside of the account")


def test_addresses_that_are_used_up_are_told_as_what_is_missing(runtime: nbxrt.Runtime, simulation: Simulation) -> None:
    account = nbxrt.DeviceAllocator(runtime, "expandable")
    account.policy(0)
    simulation.fail("mem_address_reserve", 1, "out_of_memory", onward=True)

    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        account.malloc(MIB, 0)

    assert caught.value.hint == "no addresses are left: raise `ulimit -v`, or take `NBXRT_ALLOCATOR=caching`"


def test_memory_that_another_thread_frees_meanwhile_is_found(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    simulation.memory = 64 * MIB
    held = account.malloc(40 * MIB)
    begin, done = threading.Event(), threading.Event()

    def work() -> None:
        begin.wait()
        account.free(held)
        simulation.advance()
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    account.register_reclaim_hook(lambda _device, _nbytes: (begin.set(), done.wait()))

    account.malloc(50 * MIB)

    thread.join()
    assert account.memory_allocated(0) == 50 * MIB


def test_memory_that_is_in_use_elsewhere_is_waited_for(pool: nbxrt.DeviceAllocator, simulation: Simulation) -> None:
    simulation.memory = 64 * MIB
    stream = pool.runtime.stream_create()
    ptr = pool.malloc(40 * MIB)
    pool.runtime.memset_async(ptr, 0, 40 * MIB, stream)
    pool.record_use(ptr, stream)
    pool.free(ptr)

    pool.malloc(40 * MIB)

    assert simulation.pending() == 0


def test_a_lost_context_is_told_once_and_frees_are_silent(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    blocks = [account.malloc(5000) for _block in range(200)]
    simulation.fail("*", 1, "illegal_address", onward=True)

    with pytest.raises(nbxrt.DeviceError) as caught:
        account.malloc(300 * MIB)
    assert caught.value.sticky
    assert "the context is lost: restart the process" in str(caught.value)
    simulation.clear()
    with pytest.raises(nbxrt.DeviceError) as again:
        account.malloc(300 * MIB)
    assert again.value.name == caught.value.name
    for ptr in blocks:
        account.free(ptr)

    assert account.memory_allocated(0) == 0


def test_an_error_that_loses_nothing_does_not_stop_the_account(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    account.policy(0)
    for operation in ("malloc", "malloc_async", "mem_create"):
        simulation.fail(operation, 1, "unknown")
    with pytest.raises(nbxrt.DeviceError):
        account.malloc(MIB)

    simulation.mend()

    assert account.malloc(MIB)
