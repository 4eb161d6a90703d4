"""Checks of the group `pool`: stream-ordered allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.conformance.bench import host_read
from nbxrt.conformance.checking import check, expect, expect_bytes, expect_error, expect_that, pattern
from nbxrt.conformance.memory import IMPOSSIBLE, SIZES

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

MIB = 1 << 20
ASYNC = ("malloc_async", "free_async", "stream_create", "stream_destroy", "stream_sync")


@check("pool", (*ASYNC, "memcpy_async"))
def memory_of_a_stream_is_used_and_released_in_its_order(bench: Bench) -> None:
    """It is copied to and from before its release, on the default stream and on another."""
    content = pattern(MIB, 21)
    for stream in (0, bench.stream()):
        source, target = bench.host(content), bench.host(MIB)
        address = bench.runtime.malloc_async(MIB, stream)
        try:
            bench.runtime.memcpy_async(address, source, MIB, "host_to_device", stream)
            bench.runtime.memcpy_async(target, address, MIB, "device_to_host", stream)
        finally:
            bench.runtime.free_async(address, stream)
        bench.runtime.stream_sync(stream)
        expect_bytes(host_read(target, MIB), content, f"1 MiB allocated on stream {stream:#x}")


@check("pool", ASYNC)
def addresses_of_a_pool_are_multiples_of_256(bench: Bench) -> None:
    """Memory of every size is aligned so."""
    stream = bench.stream()
    for size in SIZES:
        address = bench.runtime.malloc_async(size, stream)
        bench.later(bench.runtime.free_async, address, stream)
        expect(address % 256, 0, f"malloc_async({size}) is {address:#x}; modulo 256")


@check("pool", ASYNC)
def zero_bytes_of_a_pool_are_address_zero(bench: Bench) -> None:
    """That address may be released."""
    stream = bench.stream()
    expect(bench.runtime.malloc_async(0, stream), 0, "malloc_async(0)")
    expect(bench.runtime.free_async(0, stream), None, "free_async(0)")


@check("pool", ASYNC)
def a_pool_that_cannot_meet_a_request_is_out_of_memory(bench: Bench) -> None:
    """It meets the next one."""
    stream = bench.stream()
    error = expect_error(
        errors.OutOfMemoryError, f"malloc_async({IMPOSSIBLE})", bench.runtime.malloc_async, IMPOSSIBLE, stream
    )
    expect(error.operation, "malloc_async", "operation of the error")
    expect(bench.stored_error(), 0, "the thread's stored error after a failure")
    address = bench.runtime.malloc_async(MIB, stream)
    bench.later(bench.runtime.free_async, address, stream)
    expect_that(address != 0, "malloc_async after a failure: came address 0")


@check("pool", ("mempool_get_default", "mempool_get_attribute", *ASYNC, "sync"))
def a_pool_accounts_for_what_is_used(bench: Bench) -> None:
    """Use grows by an allocation and falls by its release; what is reserved is never less than what is used."""
    runtime, stream = bench.runtime, bench.stream()
    pool = runtime.mempool_get_default(bench.device)
    runtime.sync()
    before = runtime.mempool_get_attribute(pool, "used_current")
    address = runtime.malloc_async(4 * MIB, stream)
    try:
        runtime.stream_sync(stream)
        words = ("used_current", "reserved_current", "used_high")
        during, reserved, high = (runtime.mempool_get_attribute(pool, word) for word in words)
    finally:
        runtime.free_async(address, stream)
    runtime.stream_sync(stream)
    after = runtime.mempool_get_attribute(pool, "used_current")
    expect_that(during - before >= 4 * MIB, f"used: {before} before and {during} with an allocation of {4 * MIB}")
    expect_that(reserved >= during, f"reserved {reserved} is less than used {during}")
    expect_that(high >= during, f"the most that was used, {high}, is less than {during}")
    expect(after, before, "used, after the release")


@check("pool", ("mempool_get_default", "mempool_get_attribute", "mempool_set_attribute"))
def the_release_threshold_is_what_it_was_set_to(bench: Bench) -> None:
    """Values of 64 bits come back too."""
    runtime = bench.runtime
    pool = runtime.mempool_get_default(bench.device)
    before = runtime.mempool_get_attribute(pool, "release_threshold")
    bench.later(runtime.mempool_set_attribute, pool, "release_threshold", before)
    for value in (0, MIB, 5 << 32, 2**64 - 1):
        runtime.mempool_set_attribute(pool, "release_threshold", value)
        expect(runtime.mempool_get_attribute(pool, "release_threshold"), value, "release_threshold, read back")


@check("pool", ("mempool_get_default", "mempool_get_attribute", "mempool_set_attribute", "mempool_trim", *ASYNC))
def trimming_gives_back_what_is_not_used(bench: Bench) -> str:
    """A pool that keeps everything holds less afterwards."""
    runtime, stream = bench.runtime, bench.stream()
    pool = runtime.mempool_get_default(bench.device)
    before = runtime.mempool_get_attribute(pool, "release_threshold")
    bench.later(runtime.mempool_set_attribute, pool, "release_threshold", before)
    runtime.mempool_set_attribute(pool, "release_threshold", 2**64 - 1)
    runtime.free_async(runtime.malloc_async(64 * MIB, stream), stream)
    runtime.stream_sync(stream)
    kept = runtime.mempool_get_attribute(pool, "reserved_current")
    runtime.mempool_trim(pool)
    left, used = (runtime.mempool_get_attribute(pool, word) for word in ("reserved_current", "used_current"))
    expect_that(kept >= 64 * MIB, f"reserved {kept} after 64 MiB were released under a threshold of 2**64 - 1")
    expect_that(left <= kept - 32 * MIB, f"reserved {left} after a trim, {kept} before it, {used} used")
    return f"{kept} bytes reserved before, {left} after"
