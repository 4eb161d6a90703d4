"""Checks of the group `managed`: memory that migrates between host and device. They use little of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.conformance.bench import host_read, host_write
from nbxrt.conformance.checking import Skipped, check, expect, expect_bytes, pattern
from nbxrt.conformance.device import named_attributes

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

SIZE = 64 << 10


def _managed(bench: Bench, nbytes: int) -> int:
    address: int = bench.runtime.malloc_managed(nbytes)
    bench.later(bench.runtime.free, address)
    return address


def _skip_unless_shared(bench: Bench) -> None:
    """Drivers refuse to move or advise memory that host and device may not use at the same time."""
    word = "concurrent_managed_access"
    if word in named_attributes(bench) and not bench.runtime.device_attribute(word, bench.device):
        raise Skipped(f"the device's `{word}` is 0")


@check("managed", ("malloc_managed", "free", "memset", "sync"))
def host_and_device_see_the_same_managed_memory(bench: Bench) -> None:
    """In turn the host writes, the device fills, the host reads."""
    address = _managed(bench, SIZE)
    host_write(address, pattern(SIZE))
    bench.runtime.memset(address, 0x42, SIZE // 2)
    bench.runtime.sync()
    expect_bytes(host_read(address, SIZE), b"\x42" * (SIZE // 2) + pattern(SIZE)[SIZE // 2 :], "managed memory")


@check("managed", ("malloc_managed", "free", "memcpy", "malloc", "sync"))
def managed_memory_is_copied_like_other_memory(bench: Bench) -> None:
    """It goes to device memory by the kind that finds out by itself."""
    address, plain = _managed(bench, SIZE), bench.memory(SIZE)
    host_write(address, pattern(SIZE, 8))
    bench.runtime.memcpy(plain, address, SIZE, "default")
    expect_bytes(bench.read(plain, SIZE), pattern(SIZE, 8), "a copy of managed memory")


@check("managed", ("malloc_managed",))
def zero_bytes_of_managed_memory_are_address_zero(bench: Bench) -> None:
    """Zero bytes are nothing, as everywhere."""
    expect(bench.runtime.malloc_managed(0), 0, "malloc_managed(0)")


@check("managed", ("malloc_managed", "free", "mem_prefetch", "stream_create", "stream_sync"))
def managed_memory_moves_to_the_device_and_keeps_its_bytes(bench: Bench) -> None:
    """The move is ordered on a stream."""
    _skip_unless_shared(bench)
    address, stream = _managed(bench, SIZE), bench.stream()
    host_write(address, pattern(SIZE, 2))
    bench.runtime.mem_prefetch(address, SIZE, bench.device, stream)
    bench.runtime.stream_sync(stream)
    expect_bytes(host_read(address, SIZE), pattern(SIZE, 2), "managed memory after a prefetch")


@check("managed", ("malloc_managed", "free", "mem_advise", "sync"))
def advice_changes_no_bytes(bench: Bench) -> None:
    """Advice can be taken back."""
    _skip_unless_shared(bench)
    address = _managed(bench, SIZE)
    host_write(address, pattern(SIZE, 6))
    for advice in ("read_mostly", "preferred_location", "accessed_by"):
        bench.runtime.mem_advise(address, SIZE, f"set_{advice}", bench.device)
        bench.runtime.mem_advise(address, SIZE, f"unset_{advice}", bench.device)
    bench.runtime.sync()
    expect_bytes(host_read(address, SIZE), pattern(SIZE, 6), "managed memory after advice")
