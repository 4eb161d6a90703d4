"""Checks of the group `peer`: two devices and each other's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.conformance.bench import host_read
from nbxrt.conformance.checking import Skipped, check, expect, expect_bytes, expect_that, pattern

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

ACCESS = ("device_can_access_peer", "device_enable_peer_access", "device_disable_peer_access")
MEMORY = ("malloc", "free", "memcpy", "set_device")
SIZE = (1 << 20) + 3


def _other(bench: Bench) -> int:
    return (bench.device + 1) % bench.devices


def _on_other(bench: Bench, nbytes: int) -> int:
    """Memory of the other device; this one stays current."""
    bench.use(_other(bench))
    try:
        return bench.memory(nbytes)
    finally:
        bench.use(bench.device)


@check("peer", ("device_can_access_peer",), devices=2)
def devices_say_whether_they_reach_each_other(bench: Bench) -> str:
    """Every pair is asked."""
    pairs = [(one, other) for one in range(bench.devices) for other in range(bench.devices) if one != other]
    reach = {pair: bench.runtime.device_can_access_peer(*pair) for pair in pairs}
    expect_that(all(type(answer) is bool for answer in reach.values()), f"device_can_access_peer: came {reach}")
    return ", ".join(f"{one} to {other} {'yes' if answer else 'no'}" for (one, other), answer in reach.items())


@check("peer", ("memcpy_peer", *MEMORY), devices=2)
def copies_between_devices_move_the_bytes(bench: Bench) -> None:
    """They go both ways, with access or without."""
    runtime, other = bench.runtime, _other(bench)
    here, back, there = bench.memory(SIZE), bench.memory(SIZE), _on_other(bench, SIZE)
    bench.write(here, pattern(SIZE, 3))
    runtime.memcpy_peer(there, other, here, bench.device, SIZE)
    runtime.memcpy_peer(back, bench.device, there, other, SIZE)
    runtime.sync()
    expect_bytes(bench.read(back, SIZE), pattern(SIZE, 3), "bytes that went to the other device and came back")


@check("peer", ("memcpy_peer_async", "stream_create", "stream_destroy", "stream_sync", *MEMORY), devices=2)
def copies_between_devices_are_ordered_on_their_stream(bench: Bench) -> None:
    """One follows the other."""
    runtime, other, stream = bench.runtime, _other(bench), bench.stream()
    here, back, there = bench.memory(SIZE), bench.memory(SIZE), _on_other(bench, SIZE)
    bench.write(here, pattern(SIZE, 5))
    bench.write(back, bytes(SIZE))
    runtime.sync()
    runtime.memcpy_peer_async(there, other, here, bench.device, SIZE, stream)
    runtime.memcpy_peer_async(back, bench.device, there, other, SIZE, stream)
    runtime.stream_sync(stream)
    expect_bytes(bench.read(back, SIZE), pattern(SIZE, 5), "bytes that went to the other device and came back")


@check("peer", ("memcpy_peer",), devices=2)
def zero_bytes_between_devices_are_nothing_to_do(bench: Bench) -> None:
    """Addresses are not looked at."""
    expect(bench.runtime.memcpy_peer(0, _other(bench), 0, bench.device, 0), None, "memcpy_peer of 0 bytes")


@check("peer", (*ACCESS, *MEMORY), devices=2)
def access_is_gained_and_lost_and_asking_twice_is_no_error(bench: Bench) -> None:
    """Asking twice leaves no error stored either."""
    runtime, other = bench.runtime, _other(bench)
    if not runtime.device_can_access_peer(bench.device, other):
        raise Skipped(f"device {bench.device} cannot access device {other}")
    there, target = _on_other(bench, SIZE), bench.memory(SIZE)
    bench.use(other)
    bench.write(there, pattern(SIZE, 7))
    bench.use(bench.device)
    for _turn in range(2):
        runtime.device_enable_peer_access(other)
        expect(bench.stored_error(), 0, "the thread's stored error after enabling access")
    runtime.memcpy(target, there, SIZE, "default")
    expect_bytes(bench.read(target, SIZE), pattern(SIZE, 7), "a plain copy from the other device's memory")
    for _turn in range(2):
        runtime.device_disable_peer_access(other)
        expect(bench.stored_error(), 0, "the thread's stored error after disabling access")


@check("peer", (*MEMORY, "memcpy_async", "stream_create", "stream_sync"), devices=2)
def each_device_has_its_own_memory_and_streams(bench: Bench) -> None:
    """One thread uses them in turn."""
    runtime, size = bench.runtime, 4096
    places = []
    for device in (bench.device, _other(bench)):
        bench.use(device)
        stream, address, target = bench.stream(), bench.memory(size), bench.host(size)
        source = bench.host(pattern(size, device))
        runtime.memcpy_async(address, source, size, "host_to_device", stream)
        places.append((device, stream, address, target))
    for device, stream, address, target in places:
        bench.use(device)
        runtime.memcpy_async(target, address, size, "device_to_host", stream)
        runtime.stream_sync(stream)
        expect_bytes(host_read(target, size), pattern(size, device), f"bytes of device {device}")
