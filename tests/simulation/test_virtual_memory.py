"""Virtual memory and modules of the simulated devices."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

MIB = 1 << 20


def mapped(runtime: Runtime, nbytes: int, device: int = 0) -> tuple[int, int]:
    """A range of addresses with memory behind it, in chunks of the granularity; the address and the last allocation."""
    address = runtime.mem_address_reserve(nbytes)
    for offset in range(0, nbytes, 2 * MIB):
        allocation = runtime.mem_create(2 * MIB, device)
        runtime.mem_map(address + offset, 2 * MIB, 0, allocation)
        runtime.mem_release(allocation)
    runtime.mem_set_access(address, nbytes, device)
    return address, allocation


def test_mapped_memory_holds_bytes_across_its_chunks(runtime: Runtime) -> None:
    address, _allocation = mapped(runtime, 6 * MIB)
    sent = ctypes.create_string_buffer(bytes(range(256)) * (4 * MIB // 256), 4 * MIB)
    received = ctypes.create_string_buffer(4 * MIB)

    runtime.memcpy(address + MIB, ctypes.addressof(sent), 4 * MIB, "host_to_device")
    runtime.memcpy(ctypes.addressof(received), address + MIB, 4 * MIB, "device_to_host")

    assert received.raw == sent.raw


def test_the_granularity_is_two_mebibytes(runtime: Runtime) -> None:
    assert runtime.mem_granularity(0) == 2 * MIB


def test_sizes_that_are_no_multiple_of_the_granularity_are_refused(runtime: Runtime) -> None:
    address, allocation = runtime.mem_address_reserve(4 * MIB), runtime.mem_create(2 * MIB, 0)

    for call in (
        lambda: runtime.mem_create(2 * MIB + 1, 0),
        lambda: runtime.mem_address_reserve(1),
        lambda: runtime.mem_map(address, MIB, 0, allocation),
        lambda: runtime.mem_map(address + MIB, 2 * MIB, 0, allocation),
    ):
        with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
            call()


def test_addresses_are_aligned_as_asked(runtime: Runtime) -> None:
    assert runtime.mem_address_reserve(2 * MIB, 64 * MIB) % (64 * MIB) == 0


def test_mapped_memory_is_used_only_with_access(runtime: Runtime) -> None:
    address, allocation = runtime.mem_address_reserve(2 * MIB), runtime.mem_create(2 * MIB, 0)
    runtime.mem_map(address, 2 * MIB, 0, allocation)

    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.memset(address, 0, 16)
    runtime.mem_set_access(address, 2 * MIB, 0, "read")
    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.memset(address, 0, 16)
    runtime.mem_set_access(address, 2 * MIB, 0)
    runtime.memset(address, 0, 16)


def test_addresses_without_memory_behind_them_are_refused(runtime: Runtime) -> None:
    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.memset(runtime.mem_address_reserve(2 * MIB), 0, 16)


def test_memory_is_mapped_once_at_an_address(runtime: Runtime) -> None:
    address, _allocation = mapped(runtime, 2 * MIB)

    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.mem_map(address, 2 * MIB, 0, runtime.mem_create(2 * MIB, 0))


def test_one_allocation_can_be_mapped_twice(runtime: Runtime) -> None:
    address, allocation = runtime.mem_address_reserve(4 * MIB), runtime.mem_create(2 * MIB, 0)
    received = ctypes.create_string_buffer(1)
    for offset in (0, 2 * MIB):
        runtime.mem_map(address + offset, 2 * MIB, 0, allocation)
    runtime.mem_set_access(address, 4 * MIB, 0)

    runtime.memset(address, 5, 1)
    runtime.memcpy(ctypes.addressof(received), address + 2 * MIB, 1, "device_to_host")

    assert received.raw == b"\x05"


def test_physical_memory_counts_until_it_is_neither_held_nor_mapped(simulation: Simulation) -> None:
    simulation.memory = 4 * MIB
    runtime = simulation.open()
    address, _allocation = mapped(runtime, 4 * MIB)

    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.mem_create(2 * MIB, 0)
    runtime.mem_unmap(address, 2 * MIB)
    runtime.mem_create(2 * MIB, 0)
    assert runtime.mem_get_info() == (0, 4 * MIB)


def test_a_range_is_released_when_nothing_is_mapped_in_it(simulation: Simulation) -> None:
    runtime = simulation.open()
    address, _allocation = mapped(runtime, 4 * MIB)

    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.mem_address_free(address, 4 * MIB)
    runtime.mem_unmap(address, 4 * MIB)
    runtime.mem_address_free(address, 4 * MIB)

    assert simulation.ledger() == []


def test_a_part_of_a_mapping_is_not_unmapped(runtime: Runtime) -> None:
    address, allocation = runtime.mem_address_reserve(4 * MIB), runtime.mem_create(4 * MIB, 0)
    runtime.mem_map(address, 4 * MIB, 0, allocation)

    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.mem_unmap(address, 2 * MIB)


def test_a_device_without_virtual_memory_says_so(simulation: Simulation) -> None:
    simulation.set_attribute("virtual_memory_supported", 0)
    runtime = simulation.open()

    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.mem_create(2 * MIB, 0)

    assert caught.value.kind == "not_supported"


def test_everything_mapped_can_be_released_at_once(simulation: Simulation) -> None:
    runtime = simulation.open()
    mapped(runtime, 6 * MIB)
    runtime.mem_create(2 * MIB, 0)

    simulation.release_all()

    assert simulation.ledger() == []


def open_files() -> list[Path]:
    """The file descriptors of this process."""
    return sorted(Path("/proc/self/fd").iterdir())


def at(runtime: Runtime, allocation: int, nbytes: int) -> int:
    """An address of physical memory."""
    address: int = runtime.mem_address_reserve(nbytes)
    runtime.mem_map(address, nbytes, 0, allocation)
    runtime.mem_set_access(address, nbytes, 0)
    return address


def test_a_file_descriptor_of_memory_is_the_memory(runtime: Runtime) -> None:
    created = runtime.mem_create(2 * MIB, 0, "file")
    file = runtime.mem_export(created)
    imported = runtime.mem_import(file)
    os.close(file)
    runtime.mem_release(created)
    first, second = at(runtime, imported, 2 * MIB), at(runtime, imported, 2 * MIB)
    received = ctypes.create_string_buffer(1)

    runtime.memset(first, 5, 1)
    runtime.memcpy(ctypes.addressof(received), second, 1, "device_to_host")

    assert received.raw == b"\x05"


def test_another_handle_of_mapped_memory_keeps_it(simulation: Simulation) -> None:
    runtime = simulation.open()
    address, _allocation = mapped(runtime, 2 * MIB)
    free = runtime.mem_get_info()[0]

    retained = runtime.mem_retain(address + 5)
    runtime.mem_unmap(address, 2 * MIB)
    assert runtime.mem_get_info()[0] == free
    runtime.mem_release(retained)

    assert runtime.mem_get_info()[0] == free + 2 * MIB
    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.mem_retain(address)


def test_memory_that_was_not_created_to_be_shared_is_not_exported(runtime: Runtime) -> None:
    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.mem_export(runtime.mem_create(2 * MIB, 0))


def test_a_file_that_is_no_memory_is_not_imported(runtime: Runtime) -> None:
    with Path(os.devnull).open() as file, pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.mem_import(file.fileno())


def test_shared_memory_holds_no_file_once_it_is_given_back(simulation: Simulation) -> None:
    runtime = simulation.open()
    runtime.mem_release(runtime.mem_create(2 * MIB, 0))
    before = open_files()

    created = runtime.mem_create(2 * MIB, 0, "file")
    file = runtime.mem_export(created)
    address = at(runtime, runtime.mem_import(file), 2 * MIB)
    os.close(file)
    assert len(open_files()) == len(before) + 2
    runtime.mem_unmap(address, 2 * MIB)
    simulation.release_all()

    assert open_files() == before
