"""Checks of the group `module`: loaded code and launches. What is launched is the caller's (image.py)."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.conformance.bench import host_read
from nbxrt.conformance.checking import Skipped, check, expect, expect_bytes, expect_error, expect_that
from nbxrt.conformance.graph import GRAPH, captured, executable
from nbxrt.locks import in_another_thread

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench
    from nbxrt.conformance.image import ModuleImage

LOAD = ("module_load", "module_unload", "module_get_function")
LAUNCH = (*LOAD, "launch_kernel", "malloc", "free", "memcpy", "stream_create", "stream_destroy", "stream_sync")
COUNT = 1000


def _image(bench: Bench) -> ModuleImage:
    if bench.image is None:
        raise Skipped("no module was given to the run")
    return bench.image


def _loaded(bench: Bench) -> int:
    module: int = bench.runtime.module_load(_image(bench).image)
    bench.later(bench.runtime.module_unload, module)
    return module


def _kernel(bench: Bench) -> int:
    function: int = bench.runtime.module_get_function(_loaded(bench), _image(bench).kernel)
    return function


def _words(values: Any) -> bytes:
    """Unsigned 32-bit integers as bytes, as every device here stores them."""
    return struct.pack(f"<{COUNT}I", *values)


class Sum:
    """Two vectors on the device, room for their sum, and the kernel that makes it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.kernel = _kernel(bench)
        self.left, self.right, self.out = (bench.memory(4 * COUNT) for _vector in range(3))
        bench.write(self.left, _words(3 * index for index in range(COUNT)))
        bench.write(self.right, _words((7 << 28) + index for index in range(COUNT)))
        self.clear()

    def clear(self) -> None:
        """Fill the room with something that is not the sum."""
        self.bench.write(self.out, b"\xee" * 4 * COUNT)

    def arguments(self, count: int = COUNT) -> tuple[Any, ...]:
        """The kernel's arguments, for the first `count` elements."""
        return (*map(ctypes.c_uint64, (self.left, self.right, self.out)), ctypes.c_uint32(count))

    def launch(self, stream: int, count: int = COUNT) -> None:
        """Run the kernel on the stream."""
        block = _image(self.bench).block
        grid = (-(-COUNT // block), 1, 1)
        self.bench.runtime.launch_kernel(self.kernel, grid, (block, 1, 1), 0, stream, self.arguments(count))

    def expected(self, count: int = COUNT) -> bytes:
        """What must be in the room then."""
        return _words((7 << 28) + 4 * index for index in range(COUNT))[: 4 * count] + b"\xee" * 4 * (COUNT - count)

    def look(self, what: str, count: int = COUNT) -> None:
        """Compare."""
        expect_bytes(self.bench.read(self.out, 4 * COUNT), self.expected(count), what)


@check("module", LAUNCH)
def a_kernel_adds_two_vectors(bench: Bench) -> None:
    """It adds all elements or some, on the default stream and on another."""
    vectors = Sum(bench)
    for stream in (0, bench.stream()):
        for count in (COUNT, 1, 257):
            vectors.clear()
            bench.runtime.sync()
            vectors.launch(stream, count)
            bench.runtime.stream_sync(stream)
            vectors.look(f"{count} sums of {COUNT}", count)


@check("module", LAUNCH)
def a_grid_may_have_more_blocks_than_a_block_has_threads(bench: Bench) -> None:
    """The extents of the grid are blocks, and those of a block threads: a block of that many threads is refused."""
    vectors = Sum(bench)
    block = (_image(bench).block, 1, 1)
    bench.runtime.launch_kernel(vectors.kernel, (4 * COUNT, 1, 1), block, 0, 0, vectors.arguments())
    bench.runtime.sync()
    vectors.look("sums by more threads than there are elements")


@check("module", (*LAUNCH, "memcpy_async"))
def a_launch_is_ordered_on_its_stream(bench: Bench) -> None:
    """It runs after the copies before it and before the copy after it."""
    vectors, stream = Sum(bench), bench.stream()
    left, right = bench.read(vectors.left, 4 * COUNT), bench.read(vectors.right, 4 * COUNT)
    sources, target = [bench.host(left), bench.host(right)], bench.host(4 * COUNT)
    bench.write(vectors.left, bytes(4 * COUNT))
    bench.write(vectors.right, bytes(4 * COUNT))
    for address, source in zip((vectors.left, vectors.right), sources, strict=True):
        bench.runtime.memcpy_async(address, source, 4 * COUNT, "host_to_device", stream)
    vectors.launch(stream)
    bench.runtime.memcpy_async(target, vectors.out, 4 * COUNT, "device_to_host", stream)
    bench.runtime.stream_sync(stream)
    expect_bytes(host_read(target, 4 * COUNT), vectors.expected(), "sums that were copied back on the stream")


@check("module", LAUNCH)
def arguments_may_be_packed_before(bench: Bench) -> None:
    """Their address is taken as it is."""
    vectors, block = Sum(bench), _image(bench).block
    values = vectors.arguments()
    packed = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    grid = (-(-COUNT // block),)
    bench.runtime.launch_kernel(vectors.kernel, grid, (block,), 0, 0, ctypes.addressof(packed))
    bench.runtime.stream_sync(0)
    vectors.look("sums with arguments packed before")


@check("module", LAUNCH)
def a_thread_that_called_nothing_before_can_launch(bench: Bench) -> None:
    """Where a library wants a context for the thread, it gets one; only a device other than 0 must be set before."""
    vectors, stream = Sum(bench), bench.stream()

    def launch() -> None:
        if bench.device:
            bench.runtime.set_device(bench.device)
        vectors.launch(stream)

    in_another_thread(launch)
    bench.runtime.stream_sync(stream)
    vectors.look("sums of another thread's launch")


@check("module", (*LAUNCH, *GRAPH))
def a_launch_can_be_captured_and_replayed(bench: Bench) -> None:
    """A replay takes what is in memory then."""
    vectors, stream = Sum(bench), bench.stream()
    bench.runtime.sync()
    replay = executable(bench, captured(bench, stream, lambda: vectors.launch(stream)))
    for _turn in range(3):
        vectors.clear()
        bench.runtime.sync()
        bench.runtime.graph_launch(replay, stream)
        bench.runtime.stream_sync(stream)
        vectors.look("sums of a replayed launch")


@check("module", LOAD)
def a_kernel_that_is_not_in_the_module_is_not_found(bench: Bench) -> None:
    """The error's kind says so."""
    error = expect_error(
        errors.DeviceError, "module_get_function", bench.runtime.module_get_function, _loaded(bench), "no_such_kernel"
    )
    expect(error.kind, "not_found", "kind of the error")


@check("module", ("module_load", "module_unload"))
def bytes_that_are_no_code_are_refused(bench: Bench) -> str:
    """They are a value that is not acceptable, or code that is not for this device."""
    error = expect_error(errors.DeviceError, "module_load", bench.runtime.module_load, b"this is no code\0" * 64)
    expect_that(error.kind in ("invalid_value", "no_binary"), f"kind of the error: came {error.kind!r} ({error.code})")
    return f"{error.name or 'status'} ({error.code})"


@check("module", (*LOAD, "function_get_attribute"))
def facts_of_a_kernel_are_answered(bench: Bench) -> str:
    """Each is an int within what is possible; a preference that nobody has set is -1."""
    kernel, runtime = _kernel(bench), bench.runtime
    words = {word for _s, _b, numbers in runtime.description["enums"].get("function_attribute", ()) for word in numbers}
    facts = {word: runtime.function_get_attribute(word, kernel) for word in sorted(words)}
    for word, value in facts.items():
        least = -1 if word.startswith("preferred_") else 0
        expect_that(type(value) is int and least <= value < 2**31, f"{word}: came {value!r}")
    threads = facts.get("max_threads_per_block", _image(bench).block)
    expect_that(threads >= _image(bench).block, f"max_threads_per_block: came {threads}")
    return ", ".join(f"{word} {value}" for word, value in facts.items())


@check("module", (*LOAD, "function_get_attribute", "function_set_attribute"))
def the_dynamic_shared_memory_of_a_kernel_is_what_it_was_set_to(bench: Bench) -> None:
    """Later launches may ask for as much."""
    kernel, word = _kernel(bench), "max_dynamic_shared_memory"
    bench.runtime.function_set_attribute(kernel, word, 4096)
    expect(bench.runtime.function_get_attribute(word, kernel), 4096, f"{word}, read back")


@check("module", (*LOAD, "module_get_global", "memcpy"))
def a_global_variable_is_where_the_module_says(bench: Bench) -> None:
    """It has its size and its value."""
    image = _image(bench)
    if not image.variable:
        raise Skipped("the module that was given names no global variable")
    address, nbytes = bench.runtime.module_get_global(_loaded(bench), image.variable)
    expect(nbytes, 4, "size of the variable")
    if image.value is not None:
        expect_bytes(bench.read(address, 4), struct.pack("<I", image.value), "value of the variable")
    bench.write(address, b"\1\2\3\4")
    expect_bytes(bench.read(address, 4), b"\1\2\3\4", "the variable, written and read back")


@check("module", (*LOAD, "module_get_global"))
def a_global_variable_that_is_not_in_the_module_is_not_found(bench: Bench) -> None:
    """The error's kind says so."""
    module = _loaded(bench)
    error = expect_error(
        errors.DeviceError, "module_get_global", bench.runtime.module_get_global, module, "no_such_name"
    )
    expect(error.kind, "not_found", "kind of the error")


_MATRIX = (("2Q", (32, 16)), ("Q", (128,)), ("2I", (8, 8)), ("2I", (1, 1)))


@check("module", ("tensor_map_encode", "malloc", "free"))
def a_tensor_is_described_for_the_unit_that_copies_tensors(bench: Bench) -> None:
    """The same tensor always in the same way, and another one in another; an odd address is refused."""
    address = bench.memory(4096)
    described = [_described(bench, at) for at in (address, address, address + 1024)]
    expect_bytes(described[1], described[0], "the description of the same tensor")
    expect_that(described[2] != described[0], "tensors at two addresses have one description")
    expect_error(errors.DeviceError, "tensor_map_encode with an odd address", _described, bench, address + 1)


def _described(bench: Bench, address: int) -> bytes:
    """A matrix of 16 by 32 floats, of which blocks of 8 by 8 are copied."""
    room = bench.host(128, align=64)
    extents, strides, block, steps = (struct.pack(f"={form}", *given) for form, given in _MATRIX)
    bench.runtime.tensor_map_encode(
        room, "float32", 2, address, extents, strides, block, steps, swizzle="none", fill="zero"
    )
    return host_read(room, 128)
