"""Page-locked memory of the account."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt import memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

MIB = 1 << 20


@pytest.fixture
def account(runtime: nbxrt.Runtime) -> nbxrt.DeviceAllocator:
    return memory.account()


def test_sizes_are_rounded_up_to_one_page_at_most(account: nbxrt.DeviceAllocator, simulation: Simulation) -> None:
    account.malloc_host(20 * MIB + 1)

    (live,) = simulation.ledger()

    assert live.nbytes == 20 * MIB + 4096


def test_a_block_is_used_again_when_the_work_on_it_has_finished(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    runtime = account.runtime
    stream = runtime.stream_create_flags(non_blocking=True)
    device, host = account.malloc(MIB), account.malloc_host(MIB)
    runtime.memcpy_async(device, host, MIB, "host_to_device", stream)
    account.record_use(host, stream)

    account.free_host(host)

    assert account.malloc_host(MIB) != host
    runtime.stream_sync(stream)
    runtime.stream_sync(0)
    assert account.malloc_host(MIB) == host


def test_a_copy_on_the_default_stream_needs_no_word(account: nbxrt.DeviceAllocator) -> None:
    runtime = account.runtime
    device, host = account.malloc(MIB), account.malloc_host(MIB)
    runtime.memcpy_async(device, host, MIB, "host_to_device", 0)

    account.free_host(host)

    assert account.malloc_host(MIB) != host
    runtime.sync()
    assert account.malloc_host(MIB) == host


def test_what_is_kept_is_bounded_and_the_oldest_leaves_first(
    account: nbxrt.DeviceAllocator, simulation: Simulation, calls: Callable[[], list[str]]
) -> None:
    account.malloc_host(1)
    account._pinned.most_kept = 8 * MIB
    for ptr in [account.malloc_host(3 * MIB) for _block in range(5)]:
        account.free_host(ptr)
    account.runtime.sync()
    calls()

    account.malloc_host(4096)

    assert calls().count("free_host") == 3


def test_everything_is_released_by_a_trim(account: nbxrt.DeviceAllocator, left: Callable[[], list[Any]]) -> None:
    for ptr in [account.malloc_host(nbytes) for nbytes in (1, 5000, 5 * MIB)]:
        account.free_host(ptr)
    account.runtime.sync()

    account.trim()

    assert left() == []
    assert account.stats(0)["pinned_reserved"] == 0


@pytest.mark.parametrize("keep", [0, 4096])
def test_a_finalizer_may_take_or_give_a_block_or_trim_anywhere(
    account: nbxrt.DeviceAllocator, left: Callable[[], list[Any]], keep: int
) -> None:
    """At each call in turn; what it takes it keeps, and then no hint of the block is right."""
    held: list[int] = []
    finalizers: list[Callable[[], object]] = [
        lambda: held.append(account.malloc_host(100)),
        lambda: account.free_host(given),
        lambda: account._pinned.trim(0),
    ]

    class At:
        def __init__(self, number: int, finalizer: Callable[[], object]) -> None:
            self.left, self.finalizer = number, finalizer

        def __call__(self, frame: Any, _what: str, _argument: Any) -> None:
            self.left -= frame.f_code.co_filename.endswith("pinned.py")
            if self.left == 0:
                sys.setprofile(None)
                self.finalizer()

    for finalizer in finalizers:
        at = At(0, finalizer)
        number = 0
        while at.left <= 0:
            number += 1
            given, first, second = (account.malloc_host(nbytes) for nbytes in (100, 100, 5000))
            account.free_host(first)
            account.free_host(second)
            account.runtime.sync()
            at = At(number, finalizer)
            sys.setprofile(at)
            account.trim(keep=keep)
            sys.setprofile(None)
            for ptr in [*held, *({given} & set(account._pinned.live))]:
                account.free_host(ptr)
            held.clear()
            account.runtime.sync()
            account.trim()
            assert left() == [], f"call {number}"
            assert account._pinned.kept == 0, f"call {number}"


def test_kept_blocks_make_room_when_no_more_can_be_pinned(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    account.free_host(account.malloc_host(MIB))
    simulation.fail("malloc_host", 1, "out_of_memory")

    assert account.malloc_host(2 * MIB)
    assert account.stats(0)["pinned_reserved"] == 2 * MIB


def test_a_second_free_is_refused(account: nbxrt.DeviceAllocator) -> None:
    ptr = account.malloc_host(1)
    account.free_host(ptr)

    with pytest.raises(nbxrt.PointerError):
        account.free_host(ptr)
