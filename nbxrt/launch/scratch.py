"""Memory that a kernel asks for beside its arguments, for the time of one launch."""

import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from nbxrt.launch.launcher import Shape
    from nbxrt.runtime import Runtime


@contextlib.contextmanager
def room(runtime: "Runtime", shape: "Shape", grid: "tuple[int, int, int]", stream: int) -> "Iterator[list[int]]":
    """The addresses of the kernel's hidden arguments, in order; empty where it needs none.

    The user's allocator (`triton.set_allocator`) is asked where one is set; otherwise the memory is the runtime's, and
    is given back in the stream's order.
    """
    if not shape.needs_scratch:
        yield []
        return
    blocks = grid[0] * grid[1] * grid[2] * shape.clusters
    kept: list[Any] = []
    ours: list[int] = []
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
                ours.append(runtime.malloc_async(blocks * size, stream))
                addresses.append(ours[-1])
        yield addresses
    finally:
        for address in ours:
            runtime.free_async(address, stream)


def _users_allocator(hidden: str) -> "Callable[..., Any] | None":
    """What the user has set; None where Triton would refuse."""
    from triton.runtime import _allocation

    name = "_allocator" if hidden.startswith("global") else "_profile_allocator"
    allocator = getattr(_allocation, name).get()
    return None if type(allocator).__name__ == "NullAllocator" else allocator
