"""Free ranges of addresses: best fit, split and joined, as fast as Python's own containers are."""

from bisect import bisect_left, insort

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Sizes and addresses are multiples of this, so that what is left of a range can always be used.
UNIT = 512
#: What a size is shifted by to make one number of it and an address: such numbers are in order as their ranges are.
SHIFT = 64
_ADDRESS = (1 << SHIFT) - 1


def whole_units(nbytes: int) -> int:
    """A size rounded up to whole units."""
    return (nbytes + UNIT - 1) & -UNIT


class FreeRanges:
    """Free ranges, joined with their neighbours. Whoever changes them holds the lock of their device.

    Ranges are never joined across an address of `borders`, where separate pieces of memory happen to touch.
    """

    __slots__ = ("_ordered", "_starts", "borders", "ends")

    def __init__(self) -> None:
        #: Where each free range ends by where it starts, and where it starts by where it ends.
        self.ends: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        #: One number for each, the smallest first, of equal ones the lowest.
        self._ordered: list[int] = []
        self.borders: set[int] = set()

    def __len__(self) -> int:
        return len(self._ordered)

    def __iter__(self) -> "Iterator[tuple[int, int]]":
        """Where each range starts and ends, in order of address."""
        return iter(sorted(self.ends.items()))

    def largest(self) -> int:
        """Bytes of the largest range, 0 when there is none."""
        return self._ordered[-1] >> SHIFT if self._ordered else 0

    def best(self, nbytes: int) -> int:
        """The address that `take` would give."""
        index = bisect_left(self._ordered, nbytes << SHIFT)
        return self._ordered[index] & _ADDRESS if index < len(self._ordered) else 0

    def take(self, nbytes: int) -> int:
        """The address of that many bytes, from the smallest range that holds them and the lowest of these; 0 if none.

        What is left of the range stays free.
        """
        ordered = self._ordered
        size = nbytes << SHIFT
        index = bisect_left(ordered, size)
        if index == len(ordered):
            return 0
        number = ordered.pop(index)
        address = number & _ADDRESS
        end = self.ends.pop(address)
        rest = address + nbytes
        if rest == end:
            del self._starts[end]
        else:
            self.ends[rest] = end
            self._starts[end] = rest
            insort(ordered, number - size + nbytes)
        return address

    def give(self, address: int, nbytes: int) -> None:
        """Make a range free, and join it with the free ranges that touch it."""
        ordered, starts, ends = self._ordered, self._starts, self.ends
        end = address + nbytes
        if address in starts and address not in self.borders:
            before = starts.pop(address)
            del ordered[bisect_left(ordered, (address - before << SHIFT) + before)]
            address = before
        if end in ends and end not in self.borders:
            after = ends.pop(end)
            del ordered[bisect_left(ordered, (after - end << SHIFT) + end)]
            end = after
        ends[address] = end
        starts[end] = address
        insort(ordered, (end - address << SHIFT) + address)

    def give_many(self, ranges: "list[tuple[int, int]]") -> None:
        """Make many ranges (address, size) free at once: everything is put in order anew, which is faster for many."""
        parts = [*self.ends.items(), *((address, address + nbytes) for address, nbytes in ranges)]
        self.ends = {}
        begin = last = 0
        for start, end in sorted(parts):
            if start != last or start in self.borders:
                begin = start
            self.ends[begin] = last = end
        self._starts = {end: start for start, end in self.ends.items()}
        self._ordered = sorted((end - start << SHIFT) + start for start, end in self.ends.items())

    def cut(self, address: int, nbytes: int) -> None:
        """Take exactly these addresses out of the free range that holds them."""
        start, end = next((start, end) for start, end in self.ends.items() if start <= address < end)
        del self.ends[start], self._starts[end]
        del self._ordered[bisect_left(self._ordered, (end - start << SHIFT) + start)]
        for low, high in ((start, address), (address + nbytes, end)):
            if low < high:
                self.give(low, high - low)
