"""The account: what it gives, what it holds, what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt import memory

if TYPE_CHECKING:
    from nbxrt.simulation import Simulation

MIB = 1 << 20


def test_there_is_one_account_of_a_runtime(account: nbxrt.DeviceAllocator) -> None:
    assert memory.account() is account


def test_what_is_allocated_is_held_until_it_is_freed(account: nbxrt.DeviceAllocator) -> None:
    ptr = account.malloc(MIB)

    assert account.holds(ptr)
    assert account.memory_allocated() == MIB
    account.free(ptr)
    assert not account.holds(ptr)
    assert account.memory_allocated() == 0


def test_memory_is_on_the_device_that_was_asked_for_and_the_current_one_stays(
    account: nbxrt.DeviceAllocator, simulation: Simulation
) -> None:
    ptr = account.malloc(MIB, device=1)

    assert account.runtime.get_device() == 0
    assert [live.device for live in simulation.ledger()] == [1]
    assert (account.memory_allocated(0), account.memory_allocated(1)) == (0, MIB)
    account.free(ptr)
    assert simulation.ledger() == []


def test_no_bytes_are_address_0_and_freeing_it_does_nothing(account: nbxrt.DeviceAllocator) -> None:
    assert account.malloc(0) == 0
    account.free(0)
    assert account.malloc_host(0) == 0
    account.free_host(0)


def test_pinned_memory_goes_through_the_account(account: nbxrt.DeviceAllocator, simulation: Simulation) -> None:
    ptr = account.malloc_host(5000)

    assert account.holds(ptr)
    assert account.memory_allocated() == 0
    account.free_host(ptr)
    assert not account.holds(ptr)


def test_methods_called_on_the_class_are_those_of_the_account_in_force(account: nbxrt.DeviceAllocator) -> None:
    ptr = nbxrt.DeviceAllocator.malloc(MIB)

    assert account.holds(ptr)
    nbxrt.DeviceAllocator.free(ptr)
    assert not account.holds(ptr)


@pytest.mark.parametrize("nbytes", [-1, 1 << 61, 1 << 64, 1.0, True, "8", None])
def test_sizes_that_are_none_are_refused_before_any_call(
    account: nbxrt.DeviceAllocator, simulation: Simulation, nbytes: object
) -> None:
    simulation.clear()

    with pytest.raises(nbxrt.ArgumentError, match="nbytes"):
        account.malloc(nbytes)  # type: ignore[arg-type]
    with pytest.raises(nbxrt.ArgumentError, match="nbytes"):
        account.malloc_host(nbytes)  # type: ignore[arg-type]
    assert simulation.log() == []


def test_unknown_addresses_are_refused_before_any_call(account: nbxrt.DeviceAllocator, simulation: Simulation) -> None:
    ptr = account.malloc(MIB)
    account.free(ptr)
    simulation.clear()

    for call in (lambda: account.free(ptr), lambda: account.record_use(ptr, 0), lambda: account.free_host(12)):
        with pytest.raises(nbxrt.PointerError):
            call()
    assert simulation.log() == []


def test_devices_that_are_not_there_are_refused(account: nbxrt.DeviceAllocator) -> None:
    with pytest.raises(nbxrt.DeviceIndexError):
        account.malloc(1, device=2)
    with pytest.raises(nbxrt.DeviceIndexError):
        account.memory_allocated(-1)
