"""Checks of the group `memory`: allocation, copies, fills, and what an address points to."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.conformance.bench import host_read
from nbxrt.conformance.checking import check, expect, expect_bytes, expect_error, expect_that, pattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.conformance.bench import Bench

#: Sizes around everything that a copy may do in pieces: words, vectors, pages, transfer blocks.
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 1000, 4095, 4096, 4097,
         65535, 65536, 65537, (1 << 20) - 1, 1 << 20, (1 << 20) + 3)  # fmt: skip
OFFSETS = (0, 1, 2, 3, 4, 7, 8, 16, 31, 64, 255)
LARGE = 64 << 20
GUARD = 256
#: More than any device has, and more than a process can address.
IMPOSSIBLE = 1 << 60

ALL = ("malloc", "free", "memcpy", "memset")


@check("memory", ALL)
def copies_of_every_size_come_back_unchanged(bench: Bench) -> str:
    """They touch nothing before or after their range."""
    room = bench.memory(max(SIZES) + 2 * GUARD)
    for size in SIZES:
        _round_trip(bench, room, size, GUARD)
    return f"{len(SIZES)} sizes, 1 to {max(SIZES)} bytes"


@check("memory", ALL)
def copies_at_every_alignment_come_back_unchanged(bench: Bench) -> str:
    """The device's address and the host's are each at every offset."""
    room = bench.memory(8192)
    content = pattern(4099, 17)
    for there in OFFSETS:
        for here in OFFSETS:
            source, target = bench.host(bytes(here) + content) + here, bench.host(here + 4099) + here
            bench.runtime.memset(room, 0, 8192)
            bench.runtime.memcpy(room + there, source, 4099, "host_to_device")
            bench.runtime.memcpy(target, room + there, 4099, "device_to_host")
            expect_bytes(host_read(target, 4099), content, f"4099 bytes at device offset {there}, host offset {here}")
    return f"{len(OFFSETS)} by {len(OFFSETS)} offsets"


@check("memory", ALL)
def a_large_copy_comes_back_unchanged(bench: Bench) -> None:
    """It has 64 MiB."""
    content = pattern(LARGE)
    address = bench.memory(LARGE)
    bench.write(address, content)
    expect_bytes(bench.read(address, LARGE), content, "64 MiB")


def _round_trip(bench: Bench, room: int, size: int, offset: int) -> None:
    """Bytes to the device and back, between guards that must stay."""
    content = pattern(size, size)
    bench.runtime.memset(room, 0xA5, size + 2 * offset)
    bench.write(room + offset, content)
    guard = bytes([0xA5]) * offset
    expect_bytes(bench.read(room, size + 2 * offset), guard + content + guard, f"a copy of {size} bytes between guards")
    expect_bytes(bench.read(room + offset, size), content, f"a copy of {size} bytes")


@check("memory", ALL)
def every_direction_of_a_copy_works_by_word_and_by_number(bench: Bench) -> str:
    """Directions that the backend has no number for do not count."""
    content = pattern(5000, 3)
    here, there = bench.host(content), bench.memory(5000)
    bench.write(there, content)
    sides: dict[str, tuple[Callable[[], int], int]] = {
        "host_to_host": (lambda: bench.host(5000), here),
        "host_to_device": (lambda: bench.memory(5000), here),
        "device_to_host": (lambda: bench.host(5000), there),
        "device_to_device": (lambda: bench.memory(5000), there),
    }
    words = bench.runtime.contract["enums"]["memcpy_kind"][1]
    done = []
    for number, word in enumerate(words):
        directions = sides if word == "default" else (word,)
        if all(_copied(bench, one, sides, kind, content) for kind in (word, number) for one in directions):
            done.append(f"{word} {number}")
    expect_that(bool(done), "no direction is offered")
    return ", ".join(done)


def _copied(bench: Bench, direction: str, sides: Any, kind: str | int, content: bytes) -> bool:
    """Copy with this kind and look; False when the backend has no such kind."""
    make, source = sides[direction]
    target = make()
    try:
        bench.runtime.memcpy(target, source, len(content), kind)
    except errors.CapabilityError:
        return False
    came = bench.read(target, len(content)) if direction.endswith("_device") else host_read(target, len(content))
    expect_bytes(came, content, f"a copy {direction} with kind {kind!r}")
    return True


@check("memory", ALL)
def copies_inside_the_device_move_the_bytes(bench: Bench) -> None:
    """They go from one allocation to another, and between two places of one."""
    content = pattern(10000, 5)
    first, second = bench.memory(30000), bench.memory(10000)
    bench.write(first, content)
    bench.runtime.memcpy(second, first, 10000, "device_to_device")
    bench.runtime.memcpy(first + 20000, second, 10000, "device_to_device")
    expect_bytes(bench.read(second, 10000), content, "a copy to another allocation")
    expect_bytes(bench.read(first + 20000, 10000), content, "a copy to another place of the same allocation")


@check("memory", ALL)
def a_fill_writes_the_lowest_byte_of_its_value(bench: Bench) -> None:
    """The value may be any that a C int holds."""
    address = bench.memory(1001)
    for value in (0, 1, 0x5A, 127, 128, 255, 256, 0x1FF, 0x12345678, -1, -2, 2**31 - 1, -(2**31)):
        bench.runtime.memset(address, (value & 0xFF) ^ 0xFF, 1001)
        bench.runtime.memset(address, value, 1001)
        expect_bytes(bench.read(address, 1001), bytes([value & 0xFF]) * 1001, f"memory filled with {value}")


@check("memory", ALL)
def a_fill_touches_only_its_range(bench: Bench) -> None:
    """The range is tried at every alignment."""
    address = bench.memory(4096)
    for offset in OFFSETS:
        for size in (1, 3, 16, 255, 1024):
            bench.runtime.memset(address, 0x11, 4096)
            bench.runtime.memset(address + offset, 0x22, size)
            filled = b"\x11" * offset + b"\x22" * size + b"\x11" * (4096 - offset - size)
            expect_bytes(bench.read(address, 4096), filled, f"a fill of {size} bytes at offset {offset}")


@check("memory", ALL)
def zero_bytes_are_nothing_to_do(bench: Bench) -> None:
    """Allocating them gives address 0; addresses that could not be used are not looked at."""
    runtime = bench.runtime
    expect(runtime.malloc(0), 0, "malloc(0)")
    expect(runtime.memcpy(1, 3, 0, "host_to_device"), None, "memcpy of 0 bytes between addresses that are not there")
    expect(runtime.memcpy(0, 0, 0, "device_to_device"), None, "memcpy of 0 bytes from address 0 to address 0")
    expect(runtime.memset(1, 255, 0), None, "memset of 0 bytes")
    expect(runtime.memcpy_async(1, 3, 0, "device_to_host", 0), None, "memcpy_async of 0 bytes")


@check("memory", ("free",))
def releasing_address_zero_does_nothing(bench: Bench) -> None:
    """It may be done twice."""
    expect([bench.runtime.free(0), bench.runtime.free(0)], [None, None], "free(0), twice")


@check("memory", ("malloc", "free"))
def addresses_are_multiples_of_256(bench: Bench) -> None:
    """Memory of every size is aligned so."""
    for size in SIZES:
        address = bench.memory(size)
        expect(address % 256, 0, f"malloc({size}) is {address:#x}; modulo 256")


@check("memory", ALL)
def allocations_do_not_overlap(bench: Bench) -> None:
    """Each of 64 keeps its own bytes."""
    sizes = [1 + 37 * number for number in range(64)]
    addresses = [bench.memory(size) for size in sizes]
    for number, (address, size) in enumerate(zip(addresses, sizes, strict=True)):
        bench.runtime.memset(address, number, size)
    for number, (address, size) in enumerate(zip(addresses, sizes, strict=True)):
        expect_bytes(bench.read(address, size), bytes([number]) * size, f"allocation {number} of {size} bytes")


@check("memory", ALL)
def memory_that_was_released_can_be_had_again(bench: Bench) -> None:
    """A MiB is allocated and released a thousand times."""
    for number in range(1000):
        address = bench.runtime.malloc(1 << 20)
        try:
            if number % 100 == 0:
                _round_trip(bench, address, 4096, 16)
        finally:
            bench.runtime.free(address)


@check("memory", ("malloc", "free", "memcpy", "memset"))
def a_request_that_cannot_be_met_is_out_of_memory_and_harms_nothing(bench: Bench) -> str:
    """The error carries its facts, the stored error is cleared, and the next calls work."""
    error = expect_error(errors.OutOfMemoryError, f"malloc({IMPOSSIBLE})", bench.runtime.malloc, IMPOSSIBLE)
    expect_that(isinstance(error, MemoryError), "an OutOfMemoryError is no MemoryError")
    expect(error.operation, "malloc", "operation of the error")
    expect(error.kind, "out_of_memory", "kind of the error")
    expect_that(
        bool(error.symbol and error.library), f"symbol and library of the error: {error.symbol!r}, {error.library!r}"
    )
    expect_that(isinstance(error.code, int) and error.code != 0, f"code of the error: came {error.code!r}")
    expect(bench.stored_error(), 0, "the thread's stored error after a failure")
    _round_trip(bench, bench.memory(8192), 4096, 256)
    return f"{error.name or 'status'} ({error.code}): {error.text}"


@check("memory", (*ALL, "memcpy_async", "stream_create", "stream_destroy", "stream_sync"))
def asynchronous_copies_come_back_unchanged(bench: Bench) -> None:
    """Every size goes over the default stream and over another."""
    for stream in (0, bench.stream()):
        for size in SIZES:
            content = pattern(size, size)
            source, target, address = bench.host(content), bench.host(size), bench.memory(size)
            bench.runtime.memcpy_async(address, source, size, "host_to_device", stream)
            bench.runtime.memcpy_async(target, address, size, "device_to_host", stream)
            bench.runtime.stream_sync(stream)
            expect_bytes(host_read(target, size), content, f"{size} bytes on stream {stream:#x}")


@check("memory", (*ALL, "memset_async", "stream_create", "stream_destroy", "stream_sync"))
def asynchronous_fills_write_the_lowest_byte_of_their_value(bench: Bench) -> None:
    """They run on the default stream and on another."""
    address = bench.memory(3001)
    for stream in (0, bench.stream()):
        for value in (0, 0x3C, 255, 0x100, -1):
            bench.runtime.memset(address, (value & 0xFF) ^ 0xFF, 3001)
            bench.runtime.sync()
            bench.runtime.memset_async(address, value, 3001, stream)
            bench.runtime.stream_sync(stream)
            expect_bytes(bench.read(address, 3001), bytes([value & 0xFF]) * 3001, f"memory filled with {value}")


@check("memory", ALL)
def eight_threads_copy_at_the_same_time(bench: Bench) -> str:
    """Each sets its device, makes memory, and finds its own bytes again, 50 times."""
    faults: list[Exception] = []

    def work(number: int) -> None:
        try:
            _copy_in_thread(bench, number)
        except Exception as error:  # noqa: BLE001  # it must reach the thread that checks
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return "8 threads, 50 round trips each"


def _copy_in_thread(bench: Bench, number: int) -> None:
    runtime = bench.runtime
    runtime.set_device(bench.device)
    for turn in range(50):
        size = 1000 * (number + 1) + turn
        content = pattern(size, 31 * number + turn)
        address = runtime.malloc(size)
        try:
            runtime.memset(address, number, size)
            source, target = bench.host(content), bench.host(size)
            runtime.memcpy(address, source, size, "host_to_device")
            runtime.memcpy(target, address, size, "device_to_host")
            expect_bytes(host_read(target, size), content, f"thread {number}, turn {turn}")
            expect(runtime.get_device(), bench.device, f"current device of thread {number}")
        finally:
            runtime.free(address)


@check("memory", ("malloc", "free", "pointer_attributes"))
def an_address_of_device_memory_is_known_as_such(bench: Bench) -> None:
    """Its device is known too, also inside an allocation."""
    address = bench.memory(4096)
    for offset in (0, 1000):
        memory, device, on_device, _on_host = bench.runtime.pointer_attributes(address + offset)
        expect((memory, device), ("device", bench.device), f"memory and device of an address at offset {offset}")
        expect(on_device, address + offset, f"device address of an address at offset {offset}")


@check("memory", ("malloc_host", "free_host", "pointer_attributes"))
def an_address_of_page_locked_memory_is_known_as_such(bench: Bench) -> None:
    """Its address on the host is known too."""
    address = bench.pinned(4096)
    memory, _device, _on_device, on_host = bench.runtime.pointer_attributes(address)
    expect((memory, on_host), ("host", address), "memory and host address of page-locked memory")


@check("memory", ("malloc_managed", "free", "pointer_attributes"))
def an_address_of_managed_memory_is_known_as_such(bench: Bench) -> None:
    """It has the same address on both sides."""
    address = bench.runtime.malloc_managed(4096)
    bench.later(bench.runtime.free, address)
    memory, _device, on_device, on_host = bench.runtime.pointer_attributes(address)
    expect((memory, on_device, on_host), ("managed", address, address), "memory and both addresses of managed memory")


@check("memory", ("pointer_attributes",))
def an_address_of_plain_host_memory_is_not_taken_for_device_memory(bench: Bench) -> str:
    """It is unregistered, or refused by the libraries that cannot say so."""
    address = bench.host(4096)
    try:
        memory = bench.runtime.pointer_attributes(address)[0]
    except errors.DeviceError as error:
        expect(error.kind, "invalid_value", "kind of the error for plain host memory")
        return f"refused: {error.name or error.code}"
    expect(memory, "unregistered", "memory of a plain host address")
    return "unregistered"
