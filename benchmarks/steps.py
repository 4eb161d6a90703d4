"""What operations of several calls cost: compiled steps beside the same calls written by hand with ctypes.

    python benchmarks/steps.py [--rounds N] [--device N]

All call the same functions of the same OpenCL driver. By hand, every function is typed, and one cell is kept for what
comes out of a call: arguments are not checked, and two threads could not make the call at the same time.
Then what opening adds to the driver's own start, in fresh processes.
"""

from __future__ import annotations

import argparse
import ctypes
from typing import TYPE_CHECKING, Any

from measuring import in_turn, median, nanoseconds, said_by_process, show

if TYPE_CHECKING:
    from collections.abc import Callable

import nbxrt

SIZE = 64
TIMES = 100  # and then the queue is emptied: a long one slows its driver down

#: The same start in both: the loader, the devices, a context and memory. Prints milliseconds of the thread's own time,
#: for importing what is needed, for the list of devices, and for the first allocation.
BARE = """
import time
now = time.thread_time_ns
start = now()
import ctypes
imported = now()
lib = ctypes.CDLL("libOpenCL.so.1")
P, U, Z, L = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64
count, platform, device, code = U(), P(), P(), ctypes.c_int()
lib.clGetPlatformIDs(1, ctypes.byref(platform), ctypes.byref(count))
lib.clGetDeviceIDs(platform, L(14), 1, ctypes.byref(device), ctypes.byref(count))
listed = now()
lib.clCreateContext.restype = lib.clSVMAlloc.restype = P
context = P(lib.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(code)))
assert lib.clSVMAlloc(context, L(1), Z(64), 0)
print((imported - start) / 1e6, (listed - imported) / 1e6, (now() - listed) / 1e6)
"""
OPEN = """
import time
now = time.thread_time_ns
start = now()
import ctypes
import nbxrt.runtime
imported = now()
runtime = nbxrt.open("opencl")
assert runtime.device_count()
listed = now()
assert runtime.malloc(64)
print((imported - start) / 1e6, (listed - imported) / 1e6, (now() - listed) / 1e6)
"""
STAGES = ("importing", "opening, and the list of devices", "the first allocation")


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of operations that are steps.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", type=int, default=0)
    options = parser.parse_args()
    runtime: Any = nbxrt.open("opencl")
    runtime.set_device(options.device)
    state = runtime._binder.state()  # noqa: SLF001  # by hand the same handles are used
    print(f"{runtime.device_name(options.device)}, model {state.model}, {runtime.library().path}")
    for name, (ours, by_hand) in _pairs(runtime, state).items():
        _compare(name, ours, by_hand, runtime, options.rounds)
    _opening(options.rounds)


def _opening(rounds: int) -> None:
    """What opening adds to the driver's own start, stage by stage."""
    ways = {"by hand": BARE, "nbxrt": OPEN}
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _round in range(rounds):
        for way, program in ways.items():
            found[way].append(said_by_process(program))
    for at, stage in enumerate(STAGES):
        rows = {way: median([row[at] for row in values]) for way, values in found.items()}
        show(stage, rows | {"added": rows["nbxrt"] - rows["by hand"]}, "ms")


def _compare(name: str, ours: Callable[[], object], by_hand: Callable[[], object], runtime: Any, rounds: int) -> None:
    def timed(call: Callable[[], object]) -> Callable[[], float]:
        def measure() -> float:
            taken = nanoseconds(call, TIMES)
            runtime.sync()
            return taken

        return measure

    found = in_turn({"by hand": timed(by_hand), "nbxrt": timed(ours)}, 20 * rounds)
    rows = {way: median(values) for way, values in found.items()}
    least = {way: min(values) for way, values in found.items()}
    show(name, {**rows, **{f"{way}, least": value for way, value in least.items()}}, "ns", 0)
    print(f"  ratio {rows['nbxrt'] / rows['by hand']:.2f}, of the least {least['nbxrt'] / least['by hand']:.2f}")


def _pairs(runtime: Any, state: Any) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Each operation, and the same calls by hand."""
    address, stream = runtime.malloc(SIZE), runtime.stream_create()
    source = ctypes.create_string_buffer(SIZE)
    where = ctypes.addressof(source)
    hand = Hand(runtime, state, stream)

    def allocation() -> None:
        runtime.free(runtime.malloc(SIZE))

    return {
        "memset_async: fill, flush, give up the event before": (
            lambda: runtime.memset_async(address, 7, SIZE, stream),
            lambda: hand.fill(address, 7, SIZE),
        ),
        "memcpy_async: copy, flush, give up the event before": (
            lambda: runtime.memcpy_async(address, where, SIZE, "host_to_device", stream),
            lambda: hand.copy(address, where, SIZE, 0),
        ),
        "memcpy: one blocking call": (
            lambda: runtime.memcpy(address, where, SIZE, "host_to_device"),
            lambda: hand.copy(address, where, SIZE, 1),
        ),
        "malloc and free: allocate, finish each queue, release": (allocation, lambda: hand.allocation(SIZE)),
    }


class Hand:
    """The calls written by hand: by shared virtual memory, or by unified shared memory."""

    def __init__(self, runtime: Any, state: Any, stream: int) -> None:
        library = ctypes.CDLL(runtime.library().path)
        pointer, uint, size = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t
        copied = (pointer, uint, pointer, pointer, size, uint, pointer, pointer)
        filled = (pointer, pointer, pointer, size, size, uint, pointer, pointer)
        self.is_usm = state.model == "usm"
        names = ("clEnqueueMemcpyINTEL", "clEnqueueMemFillINTEL") if self.is_usm else (
            "clEnqueueSVMMemcpy", "clEnqueueSVMMemFill")  # fmt: skip
        get = self._by_address(library, state) if self.is_usm else lambda name: library[name]
        self.enqueue_copy, self.enqueue_fill = (
            self._typed(get(name), types) for name, types in zip(names, (copied, filled), strict=True)
        )
        self.flush, self.finish = (self._typed(library[name], (pointer,)) for name in ("clFlush", "clFinish"))
        self.release_event = self._typed(library["clReleaseEvent"], (pointer,))
        if self.is_usm:
            self.alloc = self._typed(
                get("clDeviceMemAllocINTEL"), (pointer, pointer, pointer, size, uint, pointer), pointer
            )
            self.release = self._typed(get("clMemBlockingFreeINTEL"), (pointer, pointer))
        else:
            self.alloc = self._typed(library["clSVMAlloc"], (pointer, ctypes.c_uint64, size, uint), pointer)
            self.release = self._typed(library["clSVMFree"], (pointer, pointer), None)
        self.state, self.stream = state, stream
        self.queues = runtime._binder.policy("queues").by_state[state]  # noqa: SLF001
        self.queue = state.default_stream.queue
        self.event, self.value, self.code = ctypes.c_size_t(), ctypes.c_uint8(), ctypes.c_int()
        self.at_event, self.at_value, self.at_code = map(ctypes.addressof, (self.event, self.value, self.code))
        self.last = 0

    @staticmethod
    def _typed(function: Any, types: tuple[Any, ...], returns: Any = ctypes.c_int) -> Any:
        function.argtypes, function.restype = types, returns
        return function

    @staticmethod
    def _by_address(library: Any, state: Any) -> Callable[[str], Any]:
        find = library["clGetExtensionFunctionAddressForPlatform"]
        find.argtypes, find.restype = (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_void_p
        return lambda name: _from_address(find(state.platform, name.encode()))

    def _flushed(self) -> None:
        before, self.last = self.last, self.event.value
        if before and self.release_event(before):
            raise RuntimeError
        if self.flush(self.stream):
            raise RuntimeError

    def fill(self, address: int, value: int, nbytes: int) -> None:
        self.value.value = value
        if self.enqueue_fill(self.stream, address, self.at_value, 1, nbytes, 0, None, self.at_event):
            raise RuntimeError
        self._flushed()

    def copy(self, dst: int, src: int, nbytes: int, blocking: int) -> None:
        if blocking:
            if self.enqueue_copy(self.queue, 1, dst, src, nbytes, 0, None, None):
                raise RuntimeError
            return
        if self.enqueue_copy(self.stream, 0, dst, src, nbytes, 0, None, self.at_event):
            raise RuntimeError
        self._flushed()

    def allocation(self, nbytes: int) -> None:
        if self.is_usm:
            address = self.alloc(self.state.context, self.state.handle, None, nbytes, 256, self.at_code)
            if self.release(self.state.context, address):
                raise RuntimeError
            return
        address = self.alloc(self.state.context, 1, nbytes + 255, 0)  # with room for a multiple of 256, as ours
        for queue in self.queues:
            if self.finish(queue):
                raise RuntimeError
        self.release(self.state.context, address)


def _from_address(address: int) -> Any:
    """A function that a driver gave by its address; its types are set by whoever takes it."""

    class Function:
        argtypes: tuple[Any, ...] = ()
        restype: Any = None
        _made: Any = None

        def __call__(self, *given: Any) -> Any:
            if self._made is None:
                self._made = ctypes.CFUNCTYPE(self.restype, *self.argtypes)(address)
            return self._made(*given)

    return Function()


if __name__ == "__main__":
    main()
