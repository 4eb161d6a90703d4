"""Memory of the simulated devices: where bytes are when, what is refused, what is counted."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


def host(data: bytes) -> Any:
    return ctypes.create_string_buffer(data, len(data))


def refused(kind: str) -> Any:
    """An error of that kind from the vendor's library."""
    return pytest.raises(nbxrt.DeviceError, match=kind.upper())


@pytest.mark.parametrize("nbytes", [1, 255, 256, 4096, 4097, 1 << 20])
def test_bytes_come_back_as_they_went(runtime: Runtime, nbytes: int) -> None:
    sent, received = host(bytes(index % 251 for index in range(nbytes))), host(bytes(nbytes))
    address = runtime.malloc(nbytes)

    runtime.memcpy(address, ctypes.addressof(sent), nbytes, "host_to_device")
    runtime.memcpy(ctypes.addressof(received), address, nbytes, "device_to_host")

    assert received.raw == sent.raw


def test_a_host_read_before_a_sync_sees_the_old_bytes(runtime: Runtime) -> None:
    sent, received = host(b"new"), host(b"old")
    address, stream = runtime.malloc(3), runtime.stream_create()

    runtime.memcpy_async(address, ctypes.addressof(sent), 3, "host_to_device", stream)
    runtime.memcpy_async(ctypes.addressof(received), address, 3, "device_to_host", stream)

    assert received.raw == b"old"
    runtime.stream_sync(stream)
    assert received.raw == b"new"


def test_an_asynchronous_copy_reads_its_source_when_the_stream_comes_to_it(runtime: Runtime) -> None:
    sent, received = host(b"first"), host(b".....")
    address, stream = runtime.malloc(5), runtime.stream_create()

    runtime.memcpy_async(address, ctypes.addressof(sent), 5, "host_to_device", stream)
    sent.raw = b"later"
    runtime.stream_sync(stream)
    runtime.memcpy(ctypes.addressof(received), address, 5, "device_to_host")

    assert received.raw == b"later"


def test_a_fill_takes_the_lowest_byte_of_the_value(runtime: Runtime) -> None:
    received = host(bytes(4))
    address = runtime.malloc(4)

    runtime.memset(address, 0x1FF, 4)
    runtime.memcpy(ctypes.addressof(received), address, 4, "device_to_host")

    assert received.raw == b"\xff" * 4


def test_new_memory_holds_no_zeros(cuda: Simulation) -> None:
    runtime, received = cuda.open(), host(bytes(64))

    runtime.memcpy(ctypes.addressof(received), runtime.malloc(64), 64, "device_to_host")

    assert received.raw == b"\xa5" * 64


def test_addresses_of_device_memory_need_more_than_32_bits(runtime: Runtime) -> None:
    assert runtime.malloc(1) > 2**32


def test_device_memory_is_limited(simulation: Simulation) -> None:
    simulation.memory = 100 << 20
    runtime = simulation.open()

    blocks = [runtime.malloc(10 << 20) for _block in range(10)]

    assert runtime.mem_get_info() == (0, 100 << 20)
    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.malloc(1)
    runtime.free(blocks[0])
    assert runtime.mem_get_info() == (10 << 20, 100 << 20)


def test_each_device_has_memory_of_its_own(cuda: Simulation) -> None:
    cuda.set_memory(1, 1 << 20)
    runtime = cuda.open()
    runtime.malloc(1 << 20)

    runtime.set_device(1)

    assert runtime.mem_get_info() == (1 << 20, 1 << 20)


def test_sizes_above_four_gigabytes_arrive_whole(simulation: Simulation) -> None:
    runtime = simulation.open()

    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.malloc(2**40 + 1)

    assert [call.arguments["nbytes"] for call in simulation.log() if call.operation == "malloc"] == [2**40 + 1]


def test_releasing_twice_is_refused(runtime: Runtime) -> None:
    address = runtime.malloc(64)
    runtime.free(address)

    with refused("invalid_value"):
        runtime.free(address)


def test_releasing_the_middle_of_a_block_is_refused(runtime: Runtime) -> None:
    with refused("invalid_value"):
        runtime.free(runtime.malloc(64) + 8)


def test_a_copy_past_the_end_of_a_block_is_refused(runtime: Runtime) -> None:
    sent = host(bytes(65))
    address = runtime.malloc(64)

    with refused("invalid_value"):
        runtime.memcpy(address, ctypes.addressof(sent), 65, "host_to_device")
    with refused("invalid_value"):
        runtime.memset(address + 1, 0, 64)


def test_a_copy_to_memory_that_was_released_is_refused(runtime: Runtime) -> None:
    sent, address = host(b"x"), runtime.malloc(1)
    runtime.free(address)

    with refused("invalid_value"):
        runtime.memcpy(address, ctypes.addressof(sent), 1, "host_to_device")


@pytest.mark.parametrize(
    ("to", "source", "kind"),
    [
        ("device", "host", "device_to_host"),
        ("device", "host", "device_to_device"),
        ("device", "host", "host_to_host"),
        ("device", "device", "host_to_device"),
        ("host", "device", "host_to_device"),
    ],
)
def test_a_direction_that_does_not_fit_the_addresses_is_refused(
    cuda: Simulation, to: str, source: str, kind: str
) -> None:
    runtime, buffer = cuda.open(), host(b"x")
    addresses = {"device": runtime.malloc(1), "host": ctypes.addressof(buffer)}

    with refused("invalid_value"):
        runtime.memcpy(addresses[to], addresses[source], 1, kind)


def test_the_direction_can_be_left_to_the_runtime(runtime: Runtime) -> None:
    sent, received, address = host(b"x"), host(b"."), runtime.malloc(1)

    runtime.memcpy(address, ctypes.addressof(sent), 1, "default")
    runtime.memcpy(ctypes.addressof(received), address, 1, "default")

    assert received.raw == b"x"


def test_a_copy_between_devices_returns_before_it_is_done(cuda: Simulation) -> None:
    runtime = cuda.open()
    one, other = runtime.malloc(8), runtime.malloc(8)
    runtime.memset(one, 1, 8)

    runtime.memcpy(other, one, 8, "device_to_device")

    assert cuda.pending() == 2
    runtime.sync()
    assert cuda.pending() == 0


def test_free_waits_for_the_work_that_uses_the_memory(runtime: Runtime) -> None:
    received = host(b".")
    address, stream = runtime.malloc(1), runtime.stream_create_flags(non_blocking=True)
    runtime.memset_async(address, 7, 1, stream)
    runtime.memcpy_async(ctypes.addressof(received), address, 1, "device_to_host", stream)

    runtime.free(address)

    assert received.raw == b"\x07"


def test_pinned_memory_is_the_hosts_and_the_devices(simulation: Simulation) -> None:
    runtime = simulation.open()
    address = runtime.malloc_host(16)

    ctypes.memset(address, 5, 16)

    assert runtime.host_get_device_pointer(address) == address
    assert runtime.pointer_attributes(address)[0] == "host"
    assert [live.kind for live in simulation.ledger()] == ["pinned"]
    runtime.free_host(address)
    assert simulation.ledger() == []


def test_pinned_memory_is_not_released_as_device_memory(runtime: Runtime) -> None:
    pinned, device = runtime.malloc_host(16), runtime.malloc(16)

    with refused("invalid_value"):
        runtime.free(pinned)
    with refused("invalid_value"):
        runtime.free_host(device)


def test_registered_memory_is_known_until_it_is_unregistered(runtime: Runtime) -> None:
    buffer = host(bytes(100))
    address = ctypes.addressof(buffer)

    runtime.host_register(address, 100)

    assert runtime.pointer_attributes(address + 50)[0] == "host"
    with refused("already_registered"):
        runtime.host_register(address + 10, 10)
    runtime.host_unregister(address)
    with refused("not_registered"):
        runtime.host_unregister(address)


def test_device_memory_is_not_registered_as_the_hosts(runtime: Runtime) -> None:
    address = runtime.malloc(4096)

    with refused("invalid_value"):
        runtime.host_register(address, 4096)


def test_managed_memory_serves_both_sides(runtime: Runtime) -> None:
    address = runtime.malloc_managed(8)
    runtime.mem_advise(address, 8, "set_read_mostly", 0)
    runtime.mem_prefetch(address, 8, 1, 0)

    runtime.memset_async(address, 3, 8, 0)
    runtime.sync()

    assert ctypes.string_at(address, 8) == b"\x03" * 8
    runtime.free(address)


def test_prefetching_memory_that_is_not_managed_is_refused(runtime: Runtime) -> None:
    with refused("invalid_value"):
        runtime.mem_prefetch(runtime.malloc(8), 8, 0, 0)


def test_an_address_tells_what_it_points_to(runtime: Runtime) -> None:
    runtime.set_device(1)
    address = runtime.malloc(64)

    assert runtime.pointer_attributes(address + 8) == ("device", 1, address + 8, 0)


def test_stream_ordered_memory_is_released_when_the_stream_comes_to_it(simulation: Simulation) -> None:
    runtime = simulation.open()
    stream = runtime.stream_create()
    address = runtime.malloc_async(64, stream)

    runtime.free_async(address, stream)

    assert "pool" in [live.kind for live in simulation.ledger()]
    runtime.stream_sync(stream)
    assert "pool" not in [live.kind for live in simulation.ledger()]


def test_stream_ordered_memory_is_not_used_behind_its_release(runtime: Runtime) -> None:
    stream = runtime.stream_create()
    address = runtime.malloc_async(64, stream)
    runtime.free_async(address, stream)

    with refused("invalid_value"):
        runtime.memset_async(address, 0, 64, stream)
    with refused("invalid_value"):
        runtime.free_async(address, stream)


def test_a_pool_keeps_what_its_threshold_allows(runtime: Runtime) -> None:
    pool = runtime.mempool_get_default(0)
    runtime.mempool_set_attribute(pool, "release_threshold", 600)
    addresses = [runtime.malloc_async(500, 0) for _block in range(2)]

    for address in addresses:
        runtime.free_async(address, 0)
    runtime.sync()

    assert runtime.mempool_get_attribute(pool, "reserved_current") == 600
    assert runtime.mempool_get_attribute(pool, "reserved_high") == 1000
    assert runtime.mempool_get_attribute(pool, "used_current") == 0
    assert runtime.mempool_get_attribute(pool, "used_high") == 1000
    runtime.mempool_trim(pool, 100)
    assert runtime.mempool_get_attribute(pool, "reserved_current") == 100


def test_what_a_pool_keeps_is_not_free_for_others(simulation: Simulation) -> None:
    simulation.memory = 1000
    runtime = simulation.open()
    pool = runtime.mempool_get_default(0)
    runtime.mempool_set_attribute(pool, "release_threshold", 2**64 - 1)
    runtime.free_async(runtime.malloc_async(600, 0), 0)
    runtime.sync()

    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.malloc(600)
    runtime.mempool_trim(pool)
    assert runtime.malloc(600)


def test_copies_between_devices_name_both(runtime: Runtime) -> None:
    received, source = host(b"."), runtime.malloc(1)
    runtime.memset(source, 9, 1)
    runtime.set_device(1)
    target = runtime.malloc(1)

    with refused("invalid_value"):
        runtime.memcpy_peer(target, 0, source, 1, 1)
    runtime.set_device(0)
    runtime.memcpy_peer(target, 1, source, 0, 1)
    runtime.sync()
    runtime.memcpy(ctypes.addressof(received), target, 1, "device_to_host")

    assert received.raw == b"\x09"


def test_everything_that_is_alive_is_in_the_ledger_and_can_be_released(simulation: Simulation) -> None:
    runtime = simulation.open()
    runtime.malloc(10)
    runtime.malloc_host(20)
    runtime.malloc_managed(30)
    runtime.malloc_async(40, 0)
    runtime.stream_create()
    runtime.event_create()

    kinds = sorted(live.kind for live in simulation.ledger())
    simulation.release_all()

    assert kinds == ["device", "event", "managed", "pinned", "pool", "stream"]
    assert simulation.ledger() == []
    assert runtime.mem_get_info() == (simulation.memory, simulation.memory)
