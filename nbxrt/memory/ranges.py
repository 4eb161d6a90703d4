"""Free ranges of addresses: best fit, split and joined, as fast as Python's own containers are."""

from bisect import bisect_left, bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Sizes and addresses are multiples of this, so that what is left of a range can always be used.
UNIT = 512


def whole_units(nbytes: int) -> int:
    """A size rounded up to whole units."""
    return (nbytes + UNIT - 1) & -UNIT


class FreeRanges:
    """Free ranges, joined with their neighbours. Whoever changes them holds the lock of their device.

    Ranges are never joined across an address of `borders`, where separate pieces of memory happen to touch.
    """

    __slots__ = ("_addresses", "_ends", "_ordered", "borders", "sizes")

    def __init__(self) -> None:
        #: Size of each free range by its address.
        self.sizes: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        #: The sizes in order, and in a second list the address of each, in order within a size: two plain lists are
        #: faster than one of pairs.
        self._ordered: list[int] = []
        self._addresses: list[int] = []
        self.borders: set[int] = set()

    def __len__(self) -> int:
        return len(self._ordered)

    def __iter__(self) -> "Iterator[tuple[int, int]]":
        """Address and size of each range, in order of address."""
        return iter(sorted(self.sizes.items()))

    def total(self) -> int:
        """Bytes in all ranges."""
        return sum(self._ordered)

    def largest(self) -> int:
        """Bytes of the largest range, 0 when there is none."""
        return self._ordered[-1] if self._ordered else 0

    def ending_at(self, address: int) -> int:
        """Bytes of the free range that ends there, 0 when none does."""
        return address - self._ends.get(address, address)

    def take(self, nbytes: int) -> int:
        """The address of that many bytes, from the smallest range that holds them and the lowest of these; 0 if none.

        What is left of the range stays free.
        """
        ordered = self._ordered
        index = bisect_left(ordered, nbytes)
        if index == len(ordered):
            return 0
        size, address = ordered.pop(index), self._addresses.pop(index)
        sizes = self.sizes
        del sizes[address]
        if size == nbytes:
            del self._ends[address + nbytes]
            return address
        rest, left = address + nbytes, size - nbytes
        sizes[rest] = left
        self._ends[address + size] = rest
        index = bisect_left(ordered, left, 0, index)
        if index < len(ordered) and ordered[index] == left:
            index = self._place(index, left, rest)
        ordered.insert(index, left)
        self._addresses.insert(index, rest)
        return address

    def _place(self, index: int, nbytes: int, address: int) -> int:
        """Where an address stands among the ranges of one size, of which the first is at the index."""
        return bisect_left(self._addresses, address, index, bisect_right(self._ordered, nbytes, index))

    def give(self, address: int, nbytes: int) -> None:
        """Make a range free, and join it with the free ranges that touch it."""
        sizes, ends, ordered, addresses = self.sizes, self._ends, self._ordered, self._addresses
        end = address + nbytes
        if address in ends and address not in self.borders:
            address = ends.pop(address)
            size = sizes[address]
            index = bisect_left(ordered, size)
            if addresses[index] != address:
                index = self._place(index, size, address)
            del ordered[index], addresses[index]
            nbytes += size
        if end in sizes and end not in self.borders:
            size = sizes.pop(end)
            index = bisect_left(ordered, size)
            if addresses[index] != end:
                index = self._place(index, size, end)
            del ordered[index], addresses[index]
            nbytes += size
            end += size
        sizes[address] = nbytes
        ends[end] = address
        index = bisect_left(ordered, nbytes)
        if index < len(ordered) and ordered[index] == nbytes:
            index = self._place(index, nbytes, address)
        ordered.insert(index, nbytes)
        addresses.insert(index, address)

    def give_many(self, ranges: "list[tuple[int, int]]") -> None:
        """Make many ranges (address, size) free at once: everything is put in order anew, which is faster for many."""
        joined: list[tuple[int, int]] = []
        start = end = 0
        for address, nbytes in sorted([*self.sizes.items(), *ranges]):
            if address == end and address not in self.borders:
                end += nbytes
                continue
            if end:
                joined.append((start, end - start))
            start, end = address, address + nbytes
        if end:
            joined.append((start, end - start))
        self.sizes = dict(joined)
        self._ends = {address + nbytes: address for address, nbytes in joined}
        pairs = sorted((nbytes, address) for address, nbytes in joined)
        self._ordered = [nbytes for nbytes, _address in pairs]
        self._addresses = [address for _nbytes, address in pairs]

    def holder(self, address: int) -> "tuple[int, int]":
        """The free range (address, size) that an address lies in; (0, 0) when it is not free."""
        for start, nbytes in self.sizes.items():
            if start <= address < start + nbytes:
                return start, nbytes
        return 0, 0

    def cut(self, address: int, nbytes: int) -> None:
        """Take exactly these addresses out of the free range that holds them."""
        start, size = self.holder(address)
        index = self._place(bisect_left(self._ordered, size), size, start)
        del self._ordered[index], self._addresses[index], self.sizes[start], self._ends[start + size]
        if address > start:
            self._put(start, address - start)
        if address + nbytes < start + size:
            self._put(address + nbytes, start + size - address - nbytes)

    def _put(self, address: int, nbytes: int) -> None:
        self.sizes[address] = nbytes
        self._ends[address + nbytes] = address
        index = self._place(bisect_left(self._ordered, nbytes), nbytes, address)
        self._ordered.insert(index, nbytes)
        self._addresses.insert(index, address)
