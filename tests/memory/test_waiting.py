"""Finalizers that allocate, in two threads at once: none waits for a thread that may be waiting for it.

The collector runs a finalizer inside whatever a thread is at. Here a profile function stands for the collector.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt.memory.exclusive import Exclusive

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

MIB = 1 << 20
OWN = (str(Path(nbxrt.__file__).parent), "<nbxrt ")
#: Each so many calls.
STRIDE = {"fast": 397, "all": 31, "nightly": 3}[os.environ.get("NBXRT_TEST_TIER", "fast")]
#: What is freed at every call for ever never ends: there is always something to give back.
MOST = 400


class Collector:
    """Runs a finalizer at one call within nbxrt, counted from 1, or at the first MOST; never inside of itself."""

    def __init__(self, finalizer: Callable[[], object], number: int = 0) -> None:
        self.finalizer, self.number, self.calls = finalizer, number, 0

    def __call__(self, frame: Any, what: str, _argument: Any) -> None:
        if what not in ("call", "c_call", "c_return") or not frame.f_code.co_filename.startswith(OWN):
            return
        self.calls += 1
        if self.calls == self.number or (not self.number and self.calls <= MOST):
            sys.setprofile(None)
            self.finalizer()
            sys.setprofile(self)

    def during(self, work: Callable[[], object]) -> None:
        sys.setprofile(self)
        try:
            work()
        finally:
            sys.setprofile(None)


def finishes(*works: Callable[[], object]) -> bool:
    """Whether threads that do this come to their ends."""
    failed: list[BaseException] = []

    def kept(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # raised below
            failed.append(error)

    threads = [threading.Thread(target=kept, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    if failed:
        raise failed[0]
    return not any(thread.is_alive() for thread in threads)


def a_bit_of_everything(account: nbxrt.DeviceAllocator, device: int, sizes: list[int]) -> None:
    """Requests of new sizes, so that no bin has them, and what else may come to a lock."""
    sizes[0] += 512
    ptr, other, host = account.malloc(sizes[0], device), account.malloc(MIB + sizes[0], device), account.malloc_host(1)
    account.record_use(ptr, 0)
    account.register_reclaim_hook(print)()
    account.stats(device)
    account.trim(device)
    for each in (ptr, other):
        account.free(each)
    account.free_host(host)


def test_finalizers_in_the_pools_of_two_devices_do_not_wait_for_each_other(
    pool: nbxrt.DeviceAllocator, left: Callable[[], list[Any]]
) -> None:
    both, held = threading.Barrier(2, timeout=20), []

    def work(device: int) -> None:
        def collect(frame: Any, what: str, _argument: Any) -> None:
            if what == "call" and frame.f_code.co_name == "find":  # it has the lock
                sys.setprofile(None)
                both.wait()
                held.append(pool.malloc(3 * MIB, 1 - device))
                both.wait()

        sys.setprofile(collect)
        held.append(pool.malloc(MIB, device))

    assert finishes(lambda: work(0), lambda: work(1))

    assert [pool.memory_allocated(device) for device in (0, 1)] == [4 * MIB, 4 * MIB]
    for ptr in held:
        pool.free(ptr)
    pool.trim()
    assert left() == []


def test_a_finalizer_waits_for_no_thread_whatever_that_is_at(
    account: nbxrt.DeviceAllocator, runtime: nbxrt.Runtime, left: Callable[[], list[Any]]
) -> None:
    """One thread stops at each call in turn until the other is done, which runs finalizers at every call."""
    policy, number, sizes = account.stats(0)["policy"], 1, [0]
    stopped = Collector(lambda: None)
    while number == 1 or stopped.calls >= number:
        fresh = nbxrt.DeviceAllocator(runtime, policy)
        finalizers = Collector(lambda: a_bit_of_everything(fresh, 0, sizes))  # noqa: B023  # called in this turn alone
        other = lambda: finalizers.during(lambda: a_bit_of_everything(fresh, 1, sizes))  # noqa: B023, E731
        stopped = Collector(lambda: finishes(other) or pytest.fail(f"call {number}"), number)  # noqa: B023

        stopped.during(lambda: a_bit_of_everything(fresh, 0, sizes))  # noqa: B023

        assert [fresh.memory_allocated(device) for device in (0, 1)] == [0, 0], f"call {number}"
        left()  # all work is done now
        fresh.trim()
        assert left() == [], f"call {number}"
        number += STRIDE


def test_a_finalizer_in_a_thread_that_works_for_another_does_not_wait_for_it(pool: nbxrt.DeviceAllocator) -> None:
    """A thread that never used a device lets another one call there, and holds the lock meanwhile."""
    source = pool.policy(1).source
    grow, held, sizes = source.grow, [], [0]

    def growing(*arguments: Any) -> None:
        source.grow = grow
        held.append(pool.malloc(5 * MIB, 1))
        a_bit_of_everything(pool, 1, sizes)
        grow(*arguments)

    source.grow = growing

    assert finishes(lambda: held.append(pool.malloc(MIB, 1)))

    assert pool.memory_allocated(1) == 6 * MIB


def test_a_finalizer_of_compiled_code_that_has_no_frame_does_not_wait_for_itself(pool: nbxrt.DeviceAllocator) -> None:
    sizes = iter(range(MIB, 100 * MIB, 512))
    asked: list[int] = []
    get = functools.partial(pool.malloc, MIB + 256, 0)  # a size that has a bin after the first request

    class Cycle:
        __del__ = iter(lambda: 0, 1).__next__

        def __init__(self) -> None:
            self.me = self

    Cycle.__del__ = map(asked.append, iter(get, 0)).__next__  # type: ignore[method-assign]

    def work() -> None:
        threshold = gc.get_threshold()
        gc.set_threshold(1)
        for _each in range(100):
            Cycle()
            pool.malloc(next(sizes), 0)
        gc.set_threshold(*threshold)

    assert finishes(work)

    assert len(asked) == len(set(asked)) > 90


def test_one_thread_at_a_time_is_inside_and_every_one_that_waits_goes_on() -> None:
    inside, count, most = Exclusive(), [0], [0]

    def work() -> None:
        for _each in range(300):
            with inside:
                count[0] += 1
                most[0] = max(most[0], count[0])
                len([*map(str, range(20))])
                count[0] -= 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    done = finishes(*[work] * 8)
    sys.setswitchinterval(interval)

    assert (done, most, inside.key, inside.waiting) == (True, [1], [None], [])


@pytest.mark.parametrize("moment", ["c_call", "c_return"])
def test_a_key_that_comes_back_as_a_thread_begins_to_wait_is_taken_and_leaves_nobody_waiting(moment: str) -> None:
    inside = Exclusive()
    inside.__enter__()

    def give_back(_frame: Any, what: str, called: Any) -> None:
        if what == moment and getattr(called, "__self__", None) is inside.waiting:
            sys.setprofile(None)
            inside.__exit__()

    sys.setprofile(give_back)
    inside.wait()

    assert (inside.key, inside.waiting) == ([], [])


def test_a_stream_ends_while_another_thread_is_in_the_pool(
    pool: nbxrt.DeviceAllocator, left: Callable[[], list[Any]]
) -> None:
    stream, streams = pool.runtime.stream_create(), pool.policy(0).pool.streams
    for each in (0, stream):
        pool.free(pool.malloc(MIB, 0, each))

    with pool.policy(0).pool:
        assert finishes(lambda: pool.forget_stream(stream))

    assert list(streams) == [0]
    another = pool.runtime.stream_create()
    before = pool.memory_reserved(0)
    ptr = pool.malloc(MIB, 0, another)
    assert (list(streams), pool.memory_reserved(0)) == ([0, another], before)  # what the stream had serves the next
    pool.free(ptr)
    pool.trim()
    assert left() == []


class Above(nbxrt.memory.layers.Layer):
    """A layer of a user's."""

    def malloc(self, nbytes: int, device: int | None = None, stream: int = 0) -> int:
        return self.below.malloc(nbytes, device, stream)


def test_what_a_layer_or_a_hook_asks_for_waits_as_any_other_request(
    pool: nbxrt.DeviceAllocator, simulation: Simulation, calls: Callable[[], list[str]]
) -> None:
    simulation.memory = 64 * MIB
    pool.malloc(MIB, 0)
    for layer in (Above, nbxrt.memory.layers.Statistics):
        pool.add_layer(layer)
    taken = threading.Event()

    def hook(device: int, _nbytes: int) -> None:
        taken.clear()
        threading.Thread(target=hold).start()
        taken.wait()
        calls()
        assert pool.malloc(MIB, device)
        assert calls() == []  # it is of the pool

    def hold() -> None:
        with pool.policy(0).pool:
            taken.set()
            time.sleep(0.02)

    pool.register_reclaim_hook(hook)

    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        pool.malloc(1 << 30, 0)

    assert "a reclaim hook raised" not in str(caught.value)
    assert pool.memory_allocated(0) == 2 * MIB
