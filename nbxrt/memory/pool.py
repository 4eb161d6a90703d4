"""The pool of one device: bins of blocks that wait for a request of their size, over free ranges that are joined.

Freeing never takes a lock: a block is appended to the bin of its size, so finalizers may free at any time, also inside
the pool. A request takes the newest block of its bin. Where the bin is empty, the lock of the device is taken, large
blocks that were freed since are joined with their neighbours, and the best range is cut; small ones are joined when no
range is left. Only where nothing fits is more reserved.
"""

from bisect import bisect_left, insort

from nbxrt import errors
from nbxrt.memory.entries import Shared
from nbxrt.memory.exclusive import Exclusive, Reentered
from nbxrt.memory.ranges import ADDRESS, Blocks, FreeRanges, whole_units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from nbxrt.memory.deferred import Deferred
    from nbxrt.memory.home import Home
    from nbxrt.memory.tally import Tally

    class Source(Protocol):
        """Where a pool's memory comes from. Its calls are made with the lock held, and the device current."""

        def window(self, heap: "Heap") -> Any:
            """What the source keeps for a heap."""

        def holds(self, heap: "Heap", address: int, nbytes: int) -> bool:
            """Whether there is memory behind all of these addresses."""

        def grow(self, heap: "Heap", nbytes: int) -> None:
            """Let the best range for so many bytes be one with memory behind it.

            Raises: OutOfMemoryError, DeviceError; then nothing is held.
            """

        def elsewhere(self, heap: "Heap", nbytes: int) -> int:
            """The address of so many bytes where there is memory, if not in the best range; 0 when there is none."""

        def largest(self, heap: "Heap") -> int:
            """Bytes of the largest free range that has memory behind it."""

        def trim(self, heaps: "list[Heap]", keep: int) -> None:
            """Give free memory back to the device as long as more than `keep` bytes are reserved."""

        def segments(self, heap: "Heap") -> "Iterator[tuple[int, int]]":
            """Address and size of each contiguous piece of the heap, in order of address."""


#: Requests up to this size are small: they live in a heap of their own, so that large ranges stay whole.
SMALL = 128 << 10
#: Up to so many blocks are joined one by one; more are put in order all at once.
FEW = 24
#: In the place of the thread whose own stream a handle means: of a stream that is destroyed.
NOBODY = -1
#: While the small heap is less than this part of all, it grows rather than being searched for what could be joined.
SMALL_SHARE = 1024
#: An address that every other is below.
BACKED = 1 << 64
#: So many sizes are remembered; then those that are not in use are forgotten.
MOST_SIZES = 1 << 16


class Bin(Blocks):
    """Blocks of one size that wait for a request, the newest last.

    It also stands for each block of its size while a caller holds it. `clean` says that whoever appends has to tell the
    heap: large blocks are joined at the next request that they do not fit.
    """

    __slots__ = ("heap", "stream", "tally")

    #: Of no other streams: a block that they use has an entry of its own.
    users: "tuple[Any, ...]" = ()

    def __init__(self, heap: "Heap", nbytes: int) -> None:
        super().__init__(nbytes)
        self.heap = heap
        self.stream = heap.stream
        self.tally = heap.pool.tally
        self.clean = heap.is_large

    def refill(self) -> int:
        """The address of a block of this size that no bin has: from the best free range, in one frame.

        Raises: OutOfMemoryError, DeviceError; Reentered.
        """
        heap = self.heap
        pool = heap.pool
        key = pool.key
        try:
            del key[0]
        except IndexError:
            pool.wait()
        try:
            ranges, dirty = heap.ranges, heap.dirty
            if dirty:
                if len(dirty) > FEW or len(dirty[0]) > FEW:
                    heap.join_many(dirty)
                else:
                    ranges.join(dirty)
            ordered = ranges.ordered
            index = bisect_left(ordered, self.size)
            try:
                number = ordered[index]
            except IndexError:
                number = 0
            if not number:  # outside of what was handled: it is no part of the errors that are raised there
                return pool.find(heap, self.nbytes)
            end = number & ADDRESS
            address = ranges.starts[end]
            rest = address + self.nbytes
            if rest > heap.backed and not pool.source.holds(heap, address, self.nbytes):
                return pool.find(heap, self.nbytes)
            del ranges.numbers[address]
            if rest == end:
                del ranges.starts[end], ordered[index]
                return address
            number -= self.size
            ranges.numbers[rest] = number
            ranges.starts[end] = rest
            if index and ordered[index - 1] > number:
                del ordered[index]
                insort(ordered, number, 0, index)
            else:  # what is left keeps its place, as mostly
                ordered[index] = number
            return address
        finally:
            key.append(None)
            if pool.waiting:
                pool.wake()

    def use(self, stream: "Any") -> Shared:
        """What stands for a block of this size that another stream uses too."""
        return Shared(self, self.heap.pool.deferred, stream)

    def settle(self, address: int) -> None:
        """Take a block back whose use on other streams has finished."""
        self.append(address)
        if self.clean:
            self.clean = False
            self.heap.dirty.append(self)


class Heap:
    """Memory of one stream for small or for large requests: its free ranges, and the bins of its blocks."""

    __slots__ = ("backed", "bins", "dirty", "held", "is_large", "pool", "ranges", "stream", "window")

    def __init__(self, pool: "DevicePool", stream: "Any", *, is_large: bool) -> None:
        self.pool = pool
        self.stream = stream
        self.is_large = is_large
        self.ranges = FreeRanges()
        self.bins: list[Bin] = []
        #: Bins that were given a block since their blocks were joined last.
        self.dirty: list[Bin] = []
        #: Bytes that its source has reserved for it.
        self.held = 0
        #: Addresses below this have memory behind them; of those above the source is asked.
        self.backed = BACKED
        self.window = pool.source.window(self)

    def is_worth_joining(self) -> bool:
        """Whether it is so much of all that finding free ranges here is worth emptying the bins."""
        return self.is_large or self.held >= self.pool.tally.reserved // SMALL_SHARE

    def join_all(self) -> None:
        """Make free ranges of all blocks that wait."""
        self.join_many(self.dirty)
        if not self.is_large:
            self.join_many(list(self.bins))

    def join_many(self, bins: "list[Bin]") -> None:
        """Make free ranges of the blocks in some bins, all at once."""
        found: list[tuple[int, int]] = []
        while bins:
            bin_ = bins.pop()
            if bins is self.dirty:
                bin_.clean = True  # before it is emptied: who appends meanwhile tells again
            nbytes = bin_.nbytes
            try:
                while bin_:
                    found.append((bin_.pop(), nbytes))
            except IndexError:
                pass
        if found:
            self.ranges.give_many(found)

    def gain(self, nbytes: int, address: int) -> None:
        """Count memory that the source has reserved for this heap."""
        self.held += nbytes
        self.pool.tally.reserve(nbytes, address)

    def lose(self, nbytes: int, address: int) -> None:
        """Count memory that the source has given back."""
        self.held -= nbytes
        self.pool.tally.release(nbytes, address)


class StreamPool:
    """What one stream uses: two heaps, and the bin of every size that was asked for."""

    __slots__ = ("bins", "large", "small")

    def __init__(self, pool: "DevicePool", stream: "Any") -> None:
        self.small = Heap(pool, stream, is_large=False)
        self.large = Heap(pool, stream, is_large=True)
        #: The bin by size, also by each size that was rounded up to it.
        self.bins: dict[int, Bin] = {}

    def heaps(self) -> "tuple[Heap, Heap]":
        return self.small, self.large

    def pass_on(self, stream: "Any") -> None:
        """Let it be of another stream; the work of the one before has finished."""
        for heap in self.heaps():
            heap.stream = stream
            for bin_ in heap.bins:
                bin_.stream = stream


class DevicePool(Exclusive):
    """The pool of one device. One thread at a time does more than append to and pop from bins, or end a stream."""

    def __init__(self, home: "Home", tally: "Tally", source: "Source", deferred: "Deferred") -> None:
        super().__init__()
        self.home = home
        self.tally = tally
        self.source = source
        self.deferred = deferred
        self.streams: dict[Any, StreamPool] = {}
        #: What streams used that are destroyed: the next new stream has it.
        self.left: list[StreamPool] = []

    def bins(self, stream: "Any") -> "dict[int, Bin]":
        """The bins of a stream by size. Raises: Reentered."""
        with self:
            return self._of(stream).bins

    def _of(self, stream: "Any") -> StreamPool:
        """What a stream uses, made at its first request."""
        pool = self.streams.get(stream)
        if pool is None:
            try:
                made = self.left.pop()
            except IndexError:
                made = StreamPool(self, stream)
            made.pass_on(stream)
            pool = self.streams.setdefault(stream, made)
            if pool is not made:  # a finalizer was quicker
                self._leave(made, stream)
        return pool

    def _leave(self, pool: StreamPool, stream: "Any") -> None:
        pool.pass_on((stream, NOBODY))
        self.left.append(pool)

    def forget(self, stream: "Any") -> None:
        """Name a stream no more that is about to be destroyed; its work has finished.

        Without the lock: a finalizer does it too, inside of what who holds the lock may wait for.
        """
        pool = self.streams.pop(stream, None)
        if pool is not None:
            self._leave(pool, stream)

    def bin(self, nbytes: int, stream: "Any") -> Bin:
        """The bin of a size on a stream, made at the first request. Raises: Reentered."""
        with self:
            pool = self._of(stream)
            bins = pool.bins
            if len(bins) >= MOST_SIZES:
                self._forget_sizes(pool)
            size = whole_units(nbytes)
            found = bins.get(size)
            if found is None:
                heap = pool.small if size <= SMALL else pool.large
                found = bins[size] = Bin(heap, size)
                heap.bins.append(found)
            bins[nbytes] = found
            return found

    def _forget_sizes(self, pool: StreamPool) -> None:
        """Forget all bins. Those that live blocks stand in are joined when these are freed, as `clean` asks for."""
        for heap in pool.heaps():
            for bin_ in heap.bins:
                bin_.clean = True
            heap.join_all()
            heap.bins.clear()
        pool.bins.clear()

    def heaps(self) -> "Iterator[Heap]":
        for pool in [*self.streams.copy().values(), *self.left]:
            yield from pool.heaps()

    def find(self, heap: Heap, nbytes: int) -> int:
        """The address of a block for which there is no range, or the best one may have no memory behind it.

        What waits is joined, then more is reserved. Joining small blocks empties their bins, and later requests pay for
        it.
        """
        self.deferred.poll()
        if heap.is_worth_joining():
            heap.join_all()
            address = heap.ranges.best(nbytes)
            if address and self.source.holds(heap, address, nbytes):
                return heap.ranges.take(nbytes)
        return self._grow(heap, nbytes)

    def _grow(self, heap: Heap, nbytes: int) -> int:
        """The address of a block of memory that is reserved for it, as far as nothing free backs it."""
        try:
            self.home.run(self.source.grow, heap, nbytes)
        except errors.OutOfMemoryError:
            heap.join_all()
            address = self.source.elsewhere(heap, nbytes)
            if not address:
                raise
            return address
        return heap.ranges.take(nbytes)

    def trim(self, keep: int) -> int:
        """Give free memory back to the device as long as more than `keep` bytes are reserved; how much it was.

        Raises: DeviceError; what was not given back stays in the pool.
        """

        def work() -> int:
            before = self.tally.reserved
            self.deferred.poll()
            for heap in self.heaps():
                heap.join_all()
            self.home.run(self.source.trim, list(self.heaps()), keep)
            return before - self.tally.reserved

        given_back: int = self.alone(work)
        return given_back

    def largest_free(self) -> int:
        """Bytes of the largest block that can be given out without reserving more."""

        def work() -> int:
            for heap in self.heaps():
                heap.join_all()
            return max(map(self.source.largest, self.heaps()), default=0)

        largest: int = self.alone(work)
        return largest

    def alone(self, work: "Callable[[], Any]") -> "Any":
        """What a function answers while nobody else is in the pool; 0 in a finalizer that finds somebody there."""
        try:
            with self:
                return work()
        except Reentered:
            return 0
