"""Checks of the group `pinned`: host memory that devices reach directly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.conformance.bench import host_read, host_write
from nbxrt.conformance.checking import check, expect, expect_bytes, expect_error, expect_that, pattern
from nbxrt.conformance.memory import IMPOSSIBLE

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

PAGE = 4096


@check("pinned", ("malloc_host", "free_host", "malloc", "free", "memcpy"))
def page_locked_memory_holds_what_is_written_and_copied(bench: Bench) -> None:
    """The host reads and writes it, and copies go both ways."""
    for size in (1, 255, 4096, 65537, 1 << 20):
        content = pattern(size, size)
        source, target, address = bench.pinned(size), bench.pinned(size), bench.memory(size)
        host_write(source, content)
        host_write(target, bytes(size))
        bench.runtime.memcpy(address, source, size, "host_to_device")
        bench.runtime.memcpy(target, address, size, "device_to_host")
        expect_bytes(host_read(target, size), content, f"{size} bytes of page-locked memory")


@check("pinned", ("malloc_host", "free_host"))
def zero_bytes_of_page_locked_memory_are_address_zero(bench: Bench) -> None:
    """That address may be released."""
    expect(bench.runtime.malloc_host(0), 0, "malloc_host(0)")
    expect(bench.runtime.free_host(0), None, "free_host(0)")


@check("pinned", ("malloc_host", "free_host"))
def page_locked_memory_that_cannot_be_had_is_out_of_memory(bench: Bench) -> None:
    """The next request is met."""
    error = expect_error(errors.OutOfMemoryError, f"malloc_host({IMPOSSIBLE})", bench.runtime.malloc_host, IMPOSSIBLE)
    expect(error.operation, "malloc_host", "operation of the error")
    expect_that(bench.pinned(PAGE) != 0, "malloc_host after a failure: came address 0")


@check("pinned", ("host_register", "host_unregister", "malloc", "free", "memcpy"))
def memory_of_the_caller_can_be_registered_and_copied(bench: Bench) -> None:
    """It serves as before when it is no longer registered."""
    size = 4 * PAGE
    content = pattern(size, 9)
    host, address = bench.host(content, PAGE), bench.memory(size)
    bench.runtime.host_register(host, size)
    try:
        bench.runtime.memcpy(address, host, size, "host_to_device")
        host_write(host, bytes(size))
        bench.runtime.memcpy(host, address, size, "device_to_host")
    finally:
        bench.runtime.host_unregister(host)
    expect_bytes(host_read(host, size), content, "registered memory after a copy back")
    bench.runtime.memcpy(host, address, size, "device_to_host")


@check("pinned", ("host_register", "host_unregister"))
def registering_twice_is_refused_or_harmless(bench: Bench) -> str:
    """The memory stays registered, and can be unregistered once."""
    host = bench.host(PAGE, PAGE)
    bench.runtime.host_register(host, PAGE)
    try:
        bench.runtime.host_register(host, PAGE)
        said = "harmless"
    except errors.DeviceError as error:
        bench.expect_kind(error, "already_registered")
        said = f"refused: {error.name or error.code}"
    finally:
        bench.runtime.host_unregister(host)
    return said


@check("pinned", ("malloc_host", "free_host", "host_get_device_pointer", "malloc", "free", "memcpy"))
def the_device_has_an_address_for_page_locked_memory(bench: Bench) -> None:
    """The device copies from that address."""
    content = pattern(PAGE, 4)
    host, address = bench.pinned(PAGE), bench.memory(PAGE)
    host_write(host, content)
    on_device = bench.runtime.host_get_device_pointer(host)
    expect_that(on_device != 0, "host_get_device_pointer: came address 0")
    bench.runtime.memcpy(address, on_device, PAGE, "default")
    expect_bytes(bench.read(address, PAGE), content, "bytes copied from the device's address of host memory")


@check("pinned", ("malloc_host", "free_host", "memcpy_async", "malloc", "free", "stream_create", "stream_sync"))
def copies_of_page_locked_memory_are_ordered_on_their_stream(bench: Bench) -> None:
    """They go forth, and back into other memory."""
    size = 1 << 20
    content = pattern(size, 11)
    host, back, address, stream = bench.pinned(size), bench.pinned(size), bench.memory(size), bench.stream()
    host_write(host, content)
    host_write(back, bytes(size))
    bench.runtime.memcpy_async(address, host, size, "host_to_device", stream)
    bench.runtime.memcpy_async(back, address, size, "device_to_host", stream)
    bench.runtime.stream_sync(stream)
    expect_bytes(host_read(back, size), content, "1 MiB of page-locked memory")
