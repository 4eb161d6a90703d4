"""Memory that a kernel asks for beside its arguments, for the time of one launch."""

import contextlib
import functools

from nbxrt.memory.allocator import account_of
from nbxrt.memory.ranges import UNIT
from nbxrt.objects.state import state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from nbxrt.launch.launcher import Shape
    from nbxrt.runtime import Runtime


@contextlib.contextmanager
def room(runtime: "Runtime", shape: "Shape", grid: "tuple[int, int, int]", stream: int) -> "Iterator[list[int]]":
    """The addresses of the kernel's hidden arguments, in order; empty where it needs none.

    The user's allocator (`triton.set_allocator`) is asked where one is set; otherwise the memory is of the account's,
    and is given back in the stream's order. Graphs that are being captured keep what the user's gives.
    Raises: OutOfMemoryError, DeviceError.
    """
    if not shape.needs_scratch:
        yield []
        return
    blocks = grid[0] * grid[1] * grid[2] * shape.clusters
    kept: list[Any] = []
    ours: list[Callable[[], None]] = []
    addresses = []
    try:
        for size, align, hidden in shape.scratch:
            if not size:
                addresses.append(0)
                continue
            allocate = _users_allocator(hidden)
            if allocate is not None:
                kept.append(allocate(blocks * size, align, stream))
                addresses.append(int(kept[-1].data_ptr()))
            else:
                address, give_back = _obtain(runtime, blocks * size, align, stream)
                ours.append(give_back)
                addresses.append(address)
        yield addresses
    finally:
        for graph in list(state_of(runtime).captures):
            graph.keep(*kept)
        for give_back in ours:
            give_back()


def _obtain(runtime: "Runtime", nbytes: int, align: int, stream: int) -> "tuple[int, Callable[[], None]]":
    """An aligned address for work of the stream, and what gives it back in the stream's order.

    While a graph is recorded the memory is allocated and freed by the graph, which runs again when the account has long
    given a block of its own to others.
    """
    if state_of(runtime).captures:
        allocate, free = runtime.malloc_async, runtime.free_async
        address: int = allocate(nbytes + align, stream)
        return -(-address // align) * align, functools.partial(free, address, stream)
    account = account_of(runtime)
    address = account.malloc(nbytes + (align if align > UNIT else 0), stream=stream)
    return -(-address // align) * align, functools.partial(account.free, address, stream)


def _users_allocator(hidden: str) -> "Callable[..., Any] | None":
    """What the user has set; None where Triton would refuse."""
    from triton.runtime import _allocation

    name = "_allocator" if hidden.startswith("global") else "_profile_allocator"
    allocator = getattr(_allocation, name).get()
    return None if type(allocator).__name__ == "NullAllocator" else allocator
