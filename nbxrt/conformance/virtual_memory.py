"""Checks of the group `virtual_memory`: address ranges, and the physical memory behind them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.conformance.checking import check, expect, expect_bytes, expect_error, expect_that, pattern
from nbxrt.conformance.memory import IMPOSSIBLE

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

VIRTUAL = ("mem_granularity", "mem_address_reserve", "mem_address_free", "mem_create", "mem_release", "mem_map",
           "mem_unmap", "mem_set_access")  # fmt: skip


def reserved(bench: Bench, nbytes: int) -> int:
    """A range of addresses with nothing behind it."""
    address: int = bench.runtime.mem_address_reserve(nbytes)
    bench.later(bench.runtime.mem_address_free, address, nbytes)
    return address


def map_new(bench: Bench, address: int, nbytes: int, sharing: str = "none") -> None:
    """Put new physical memory behind addresses, for this device; its handle is given up at once, or when it may be."""
    runtime = bench.runtime
    allocation = runtime.mem_create(nbytes, bench.device, sharing)
    keeps = runtime.description["expandable"]["keeps_handles"]
    if keeps:
        bench.later(runtime.mem_release, allocation)
    try:
        runtime.mem_map(address, nbytes, 0, allocation)
    finally:
        if not keeps:
            runtime.mem_release(allocation)
    bench.later(runtime.mem_unmap, address, nbytes)
    runtime.mem_set_access(address, nbytes, bench.device)


@check("virtual_memory", ("mem_granularity",))
def the_granularity_is_a_power_of_two(bench: Bench) -> str:
    """It is a number of bytes."""
    nbytes = bench.runtime.mem_granularity(bench.device)
    expect_that(nbytes > 0 and nbytes & (nbytes - 1) == 0, f"mem_granularity: came {nbytes!r}")
    return f"{nbytes} bytes"


@check("virtual_memory", (*VIRTUAL, "memcpy", "memset", "sync"))
def memory_behind_a_range_is_used_like_other_memory(bench: Bench) -> None:
    """Two pieces one after the other are one range; copies go across the border."""
    granule = bench.runtime.mem_granularity(bench.device)
    address = reserved(bench, 4 * granule)
    for number in (0, 1):
        map_new(bench, address + number * granule, granule)
    content = pattern(65536, 13)
    bench.runtime.memset(address, 0x77, 2 * granule)
    bench.write(address + granule - 32768, content)
    expect_bytes(bench.read(address + granule - 32768, 65536), content, "64 KiB across the border of two pieces")
    expect_bytes(bench.read(address, 256), b"\x77" * 256, "the beginning of the range")


@check("virtual_memory", (*VIRTUAL, "memcpy", "memset", "sync"))
def a_range_grows_and_shrinks_while_the_rest_keeps_its_bytes(bench: Bench) -> None:
    """A piece is taken away and another put in its place."""
    runtime = bench.runtime
    granule = runtime.mem_granularity(bench.device)
    address = reserved(bench, 2 * granule)
    map_new(bench, address, granule)
    bench.write(address, pattern(granule, 1))
    for turn in range(3):
        allocation = runtime.mem_create(granule, bench.device)
        bench.later(runtime.mem_release, allocation)
        runtime.mem_map(address + granule, granule, 0, allocation)
        try:
            runtime.mem_set_access(address + granule, granule, bench.device, "read_write")
            runtime.memset(address + granule, turn, granule)
            expect_bytes(bench.read(address + granule, granule), bytes([turn]) * granule, f"the new piece, turn {turn}")
            runtime.sync()
        finally:
            runtime.mem_unmap(address + granule, granule)
    expect_bytes(bench.read(address, granule), pattern(granule, 1), "the piece that stayed")


@check("virtual_memory", (*VIRTUAL, "memcpy", "memset", "sync"))
def physical_memory_keeps_its_bytes_when_it_moves_to_another_address(bench: Bench) -> None:
    """The bytes belong to the memory, not to the address."""
    runtime = bench.runtime
    granule = runtime.mem_granularity(bench.device)
    first, second = reserved(bench, granule), reserved(bench, granule)
    allocation = runtime.mem_create(granule, bench.device)
    bench.later(runtime.mem_release, allocation)
    for turn, address in enumerate((first, second)):
        runtime.mem_map(address, granule, 0, allocation)
        try:
            runtime.mem_set_access(address, granule, bench.device)
            if turn == 0:
                bench.write(address, pattern(granule, 77))
            expect_bytes(bench.read(address, granule), pattern(granule, 77), f"the memory at address number {turn}")
            runtime.sync()
        finally:
            runtime.mem_unmap(address, granule)


@check("virtual_memory", ("mem_granularity", "mem_address_reserve", "mem_address_free"))
def reserved_ranges_do_not_overlap_and_keep_the_alignment(bench: Bench) -> None:
    """The alignment is the one that was asked for, or the granularity."""
    granule = bench.runtime.mem_granularity(bench.device)
    ranges = sorted(reserved(bench, 64 * granule) for _number in range(8))
    for low, high in itertools.pairwise(ranges):
        expect_that(high - low >= 64 * granule, f"ranges of {64 * granule} bytes at {low:#x} and {high:#x}")
    aligned = bench.runtime.mem_address_reserve(granule, 4 * granule)
    bench.later(bench.runtime.mem_address_free, aligned, granule)
    for address, alignment in (*((one, granule) for one in ranges), (aligned, 4 * granule)):
        expect(address % alignment, 0, f"a reserved range at {address:#x}; modulo {alignment}")


@check("virtual_memory", ("mem_granularity", "mem_create", "mem_release"))
def physical_memory_that_cannot_be_had_is_out_of_memory(bench: Bench) -> None:
    """The next request is met."""
    runtime = bench.runtime
    granule = runtime.mem_granularity(bench.device)
    expect_error(errors.OutOfMemoryError, f"mem_create({IMPOSSIBLE})", runtime.mem_create, IMPOSSIBLE, bench.device)
    runtime.mem_release(runtime.mem_create(granule, bench.device))
