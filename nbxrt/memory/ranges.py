"""Free ranges of addresses: best fit, split and joined, as fast as Python's own containers are."""

from bisect import bisect_left, insort

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Sizes and addresses are multiples of this, so that what is left of a range can always be used.
UNIT = 512
#: One number of the size of a range and where it ends: such numbers are in order as ranges are that best fit looks for.
SHIFT = 64
ADDRESS = (1 << SHIFT) - 1


def whole_units(nbytes: int) -> int:
    """A size rounded up to whole units."""
    return (nbytes + UNIT - 1) & -UNIT


class Blocks(list[int]):
    """Addresses of free blocks of one size. `clean` says that whoever appends has to tell who joins them."""

    __slots__ = ("clean", "nbytes", "size")

    def __init__(self, nbytes: int, *addresses: int) -> None:
        super().__init__(addresses)
        self.nbytes = nbytes
        self.size = nbytes << SHIFT
        self.clean = False


class FreeRanges:
    """Free ranges, joined with their neighbours. Whoever changes them holds the lock of their device.

    Ranges are never joined across an address of `borders`, where separate pieces of memory happen to touch.
    """

    __slots__ = ("borders", "numbers", "ordered", "starts")

    def __init__(self) -> None:
        #: The number of each free range by where it starts, and where it starts by where it ends.
        self.numbers: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        #: The numbers, the smallest range first, of equal ones the lowest.
        self.ordered: list[int] = []
        self.borders: set[int] = set()

    def __len__(self) -> int:
        return len(self.ordered)

    def __iter__(self) -> "Iterator[tuple[int, int]]":
        """Where each range starts and ends, in order of address."""
        return iter(sorted((start, number & ADDRESS) for start, number in self.numbers.items()))

    def __contains__(self, place: "tuple[int, int]") -> bool:
        """Whether a range starts and ends exactly there."""
        start, end = place
        return self.starts.get(end) == start

    def largest(self) -> int:
        """Bytes of the largest range, 0 when there is none."""
        return self.ordered[-1] >> SHIFT if self.ordered else 0

    def best(self, nbytes: int) -> int:
        """Where the smallest range starts that holds so many bytes, the lowest of these; 0 if none does."""
        index = bisect_left(self.ordered, nbytes << SHIFT)
        return self.starts[self.ordered[index] & ADDRESS] if index < len(self.ordered) else 0

    def take(self, nbytes: int) -> int:
        """The address of so many bytes from the best range; 0 if there is none."""
        address = self.best(nbytes)
        if address:
            self.cut(address, nbytes)
        return address

    def cut(self, address: int, nbytes: int) -> None:
        """Take exactly these addresses out of the free range that holds them."""
        start = address if address in self.numbers else next(low for low, high in self if low <= address < high)
        number = self.numbers.pop(start)
        end = number & ADDRESS
        del self.starts[end], self.ordered[bisect_left(self.ordered, number)]
        for low, high in ((start, address), (address + nbytes, end)):
            if low < high:
                self.give(low, high - low)

    def give(self, address: int, nbytes: int) -> None:
        """Make a range free, and join it with the free ranges that touch it."""
        self.join([Blocks(nbytes, address)])

    def join(self, dirty: "list[Any]") -> None:
        """Make free ranges of blocks, joined with the free ranges that touch them; all lists are emptied."""
        numbers, starts, ordered, borders = self.numbers, self.starts, self.ordered, self.borders
        while dirty:
            blocks = dirty.pop()
            blocks.clean = True  # before it is emptied: who appends meanwhile tells again
            nbytes, size = blocks.nbytes, blocks.size
            while blocks:
                try:
                    address = blocks.pop()
                except IndexError:  # another thread took the last one
                    break
                end = address + nbytes
                if end in numbers and (not borders or end not in borders):
                    number = numbers.pop(end)
                    del ordered[bisect_left(ordered, number)]
                    end = number & ADDRESS
                    number += size
                else:
                    number = size + end
                if address in starts and (not borders or address not in borders):
                    start = starts.pop(address)
                    below = numbers[start]
                    del ordered[bisect_left(ordered, below)]
                    number += below - address
                    address = start
                numbers[address] = number
                starts[end] = address
                insort(ordered, number)

    def give_many(self, ranges: "list[tuple[int, int]]") -> None:
        """Make many ranges (address, size) free at once: everything is put in order anew, which is faster for many."""
        parts = [*self, *((address, address + nbytes) for address, nbytes in ranges)]
        ends: dict[int, int] = {}
        begin = last = 0
        for start, end in sorted(parts):
            if start != last or start in self.borders:
                begin = start
            ends[begin] = last = end
        self.numbers = {start: (end - start << SHIFT) + end for start, end in ends.items()}
        self.starts = {end: start for start, end in ends.items()}
        self.ordered = sorted(self.numbers.values())
