"""Segments: pieces of device memory of the vendor's own `malloc`, each given back when it is wholly free."""

from nbxrt.memory.ranges import UNIT, whole_units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbxrt.memory.home import Home
    from nbxrt.memory.pool import Heap
    from nbxrt.memory.tally import Tally

MIB = 1 << 20
#: Small requests share segments of this size.
SMALL_SEGMENT = 2 * MIB
#: Requests below the second number share segments of the first; larger ones have one of their own, in whole SMALL ones.
LARGE_SEGMENT, LARGE_FROM = 20 * MIB, 10 * MIB


def segment_size(nbytes: int, *, is_large: bool) -> int:
    """Bytes of the segment that is made for a request."""
    if not is_large:
        return SMALL_SEGMENT
    if nbytes < LARGE_FROM:
        return LARGE_SEGMENT
    return -(-nbytes // SMALL_SEGMENT) * SMALL_SEGMENT


class SegmentSource:
    """Reserves memory by `malloc` and gives it back by `free`."""

    def __init__(self, home: "Home", tally: "Tally") -> None:
        self._tally, self._home = tally, home
        self._malloc, self._free = home.runtime.malloc, home.runtime.free

    def window(self, _heap: "Heap") -> "dict[int, tuple[int, int, int]]":
        """By the address of what is used of each segment: its size, and the segment's own address and size."""
        return {}

    def holds(self, _heap: "Heap", _address: int, _nbytes: int) -> bool:
        return True

    def elsewhere(self, heap: "Heap", nbytes: int) -> int:
        return heap.ranges.take(nbytes)

    def largest(self, heap: "Heap") -> int:
        return heap.ranges.largest()

    def grow(self, heap: "Heap", nbytes: int) -> None:
        size = segment_size(nbytes, is_large=heap.is_large)
        if not self._tally.fits(size):
            size = nbytes  # what the limit leaves may do for the request itself
        self._tally.demand(size)
        self._home.captures.demand_none("the pool cannot grow", self._home.device)
        whole: int = self._malloc(size)
        address = whole
        if whole % UNIT:  # such as the C library's own memory
            self._free(whole)
            size += UNIT
            whole = self._malloc(size)
            address = whole_units(whole)
        heap.gain(size, whole)
        usable = (whole + size - address) & -UNIT
        heap.window[address] = (usable, whole, size)
        heap.ranges.borders.add(address)
        heap.ranges.give(address, usable)

    def trim(self, heaps: "list[Heap]", keep: int) -> None:
        if self._home.captures:
            return
        for heap in heaps:
            for address, (usable, whole, size) in list(heap.window.items()):
                if (address, address + usable) in heap.ranges and self._tally.reserved - size >= keep:
                    self._free(whole)
                    del heap.window[address]
                    heap.ranges.cut(address, usable)
                    heap.ranges.borders.discard(address)
                    heap.lose(size, whole)

    def segments(self, heap: "Heap") -> "Iterator[tuple[int, int]]":
        yield from sorted((address, usable) for address, (usable, _whole, _size) in heap.window.items())
