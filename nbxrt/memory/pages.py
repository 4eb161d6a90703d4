"""Expandable memory: a wide range of addresses for each heap, with physical memory put behind it as it is needed.

A heap grows where the least new memory makes room: at its end, or in a gap that was given back. Pieces that are wholly
free elsewhere on the device are given back first, so that what is reserved grows only by what nothing free can back:
large blocks do not fragment by bad luck. A piece of physical memory is as large as the growth that made it, up to a
size of the backend's file, because each costs the driver about the same, and can be given back only as a whole.
"""

from bisect import bisect_left, bisect_right, insort
from itertools import pairwise

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from nbxrt.memory.home import Home
    from nbxrt.memory.pool import Heap
    from nbxrt.memory.tally import Tally
    from nbxrt.runtime import Runtime

#: A heap grows by the `ahead` of the backend's file at least as long as less than the first part of the device is
#: reserved, and from the second on by SPARE of what is: few growths, which keep next to nothing unused.
LITTLE, MUCH, SPARE = 1 / 128, 1 / 8, 1 / 1024
#: A heap's range of addresses is this part of the device's memory, and so many ranges are made at most.
RANGE, SMALL_RANGE, MOST_RANGES = 9 / 8, 1 / 16, 64


class Window:
    """The addresses of one heap: ranges reserved, pieces of memory behind them, holes between the pieces."""

    __slots__ = ("holes", "pieces", "ranges", "starts", "top")

    def __init__(self) -> None:
        #: Address and size of each range of addresses that is reserved; the last one is where the heap grows.
        self.ranges: list[tuple[int, int]] = []
        #: The end of what was ever used of the last range.
        self.top = 0
        #: Size by address of each piece of memory, and their addresses in order.
        self.pieces: dict[int, int] = {}
        self.starts: list[int] = []
        #: Size by address of what has nothing behind it, below `top`.
        self.holes: dict[int, int] = {}

    def room(self) -> int:
        """Bytes of addresses above `top`."""
        if not self.ranges:
            return 0
        address, nbytes = self.ranges[-1]
        return address + nbytes - self.top

    def put(self, address: int, nbytes: int) -> None:
        """A piece of memory is there now, in a hole or at the top."""
        self.pieces[address] = nbytes
        insort(self.starts, address)
        if address == self.top:
            self.top += nbytes
            return
        hole = next(start for start, size in self.holes.items() if start <= address < start + size)
        size = self.holes.pop(hole)
        if address > hole:
            self.holes[hole] = address - hole
        if address + nbytes < hole + size:
            self.holes[address + nbytes] = hole + size - address - nbytes

    def drop(self, address: int) -> None:
        """A piece of memory is gone."""
        nbytes = self.pieces.pop(address)
        del self.starts[bisect_left(self.starts, address)]
        self.add_hole(address, nbytes)

    def add_hole(self, address: int, nbytes: int) -> None:
        """Join a hole with those that touch it; one at the top lowers the top."""
        borders = {start for start, _size in self.ranges}  # no hole reaches from one range into another
        if address + nbytes not in borders:
            nbytes += self.holes.pop(address + nbytes, 0)
        before = next((start for start, size in self.holes.items() if start + size == address), None)
        if before is not None and address not in borders:
            nbytes += self.holes.pop(before)
            address = before
        if address + nbytes == self.top and self.ranges[-1][0] <= address:
            self.top = address
        else:
            self.holes[address] = nbytes

    def within(self, address: int, nbytes: int) -> "list[int]":
        """Addresses of the pieces that lie wholly within a range."""
        found = []
        for start in self.starts[bisect_left(self.starts, address) :]:
            if start + self.pieces[start] > address + nbytes:
                break
            found.append(start)
        return found


class PageSource:
    """Reserves memory by the virtual memory operations, and gives back pieces that are wholly free."""

    def __init__(self, home: "Home", tally: "Tally") -> None:
        runtime = home.runtime
        self._home, self._tally = home, tally
        self._reserve, self._unreserve = runtime.mem_address_reserve, runtime.mem_address_free
        self._create, self._release = runtime.mem_create, runtime.mem_release
        self._map, self._unmap, self._allow = runtime.mem_map, runtime.mem_unmap, runtime.mem_set_access
        self._sync_stream, self._sync = runtime.stream_sync, runtime.sync
        self.granularity: int = runtime.mem_granularity(home.device)
        #: Why other processes cannot have this memory; empty where they can.
        self.private = _why_private(home, self.granularity)
        self._sharing: Literal["none", "file"] = "none" if self.private else "file"
        sizes = runtime.description["expandable"]
        self._piece, self._split, self._ahead = self._whole(sizes["piece"]), sizes["split"], self._whole(sizes["ahead"])
        self._total: int = home.run(runtime.mem_get_info)[1]
        self._heaps: list[Heap] = []
        #: Devices that use this one's memory.
        self.peers: list[int] = []
        #: Handles that the driver would not take back; tried again whenever memory is given back.
        self._unreleased: list[int] = []
        #: Pieces that could be neither used nor unmapped.
        self._stuck: list[tuple[Heap, int, int]] = []

    def window(self, heap: "Heap") -> Window:
        self._heaps.append(heap)
        return Window()

    def segments(self, heap: "Heap") -> "Iterator[tuple[int, int]]":
        window: Window = heap.window
        start = end = 0
        for address in window.starts:
            if address != end:
                if end > start:
                    yield start, end - start
                start = address
            end = address + window.pieces[address]
        if end > start:
            yield start, end - start

    def pieces_of(self, address: int, nbytes: int) -> "list[tuple[int, int]]":
        """Address and size of each piece that a block lies in; none of a block that is not of these heaps."""
        for heap in self._heaps:
            window: Window = heap.window
            at = bisect_right(window.starts, address) - 1
            if at < 0 or address >= window.starts[at] + window.pieces[window.starts[at]]:
                continue
            end = bisect_left(window.starts, address + nbytes)
            return [(start, window.pieces[start]) for start in window.starts[at:end]]
        return []

    # growing

    def grow(self, heap: "Heap", nbytes: int) -> None:
        spare = self._spare(heap)
        try:
            self._grow(heap, nbytes, spare)
        except errors.OutOfMemoryError:
            if not spare:
                raise
            self._grow(heap, nbytes, 0)

    def _grow(self, heap: "Heap", nbytes: int, spare: int) -> None:
        low, parts = self._place(heap, nbytes, spare)
        needed = sum(size for _address, size in parts)
        self._give_back(needed, heap, low, low + nbytes)
        self._tally.demand(needed)
        self._back(heap, parts)

    def _place(self, heap: "Heap", nbytes: int, spare: int) -> "tuple[int, list[tuple[int, int]]]":
        """Where the request goes, and the parts of it that need memory: (address, size) of each.

        At the top `spare` bytes are taken at least.
        """
        window: Window = heap.window
        best = self._best_gap(heap, nbytes) if window.holes else None
        tail = heap.ranges.ending_at(window.top) if window.top else 0
        at_top = self._whole(nbytes - tail)
        if best is not None and best[0] <= at_top:
            return best[1], best[2]
        if window.room() < at_top:
            self._widen(heap, nbytes)
            tail, at_top = 0, self._whole(nbytes)
        return window.top - tail, [(window.top, max(at_top, spare) if window.room() >= spare else at_top)]

    def _spare(self, heap: "Heap") -> int:
        """Bytes that a heap grows by at least at its top."""
        reserved = self._tally.reserved
        spare = self._ahead if reserved < self._total * LITTLE else 0
        if reserved > self._total * MUCH:
            spare = self._whole(int(reserved * SPARE))
        return spare if heap.is_large and self._tally.fits(spare) else 0

    def _best_gap(self, heap: "Heap", nbytes: int) -> "tuple[int, int, list[tuple[int, int]]] | None":
        """Bytes of new memory, address, and parts, for the gap between live blocks that needs the least."""
        found = [self._fill(gap, nbytes) for gap in self._gaps(heap) if sum(size for _a, size, _f in gap) >= nbytes]
        return min(((sum(size for _a, size in parts), low, parts) for low, parts in found), default=None)

    def _gaps(self, heap: "Heap") -> "Iterator[list[tuple[int, int, bool]]]":
        """Runs of free ranges and holes that touch: (address, size, whether memory is behind it) of each."""
        window: Window = heap.window
        items = sorted(
            [(*item, True) for item in heap.ranges.sizes.items()] + [(*item, False) for item in window.holes.items()]
        )
        run = items[:1]
        for (address, size, _backed), item in pairwise(items):
            if item[0] != address + size or item[0] in heap.ranges.borders:
                yield run
                run = []
            run.append(item)
        if run:
            yield run

    def _fill(self, gap: "list[tuple[int, int, bool]]", nbytes: int) -> "tuple[int, list[tuple[int, int]]]":
        """The parts of a gap that need memory for a request at its beginning."""
        low = gap[0][0]
        parts = []
        for address, size, backed in gap:
            if address >= low + nbytes:
                break
            if not backed:
                parts.append((address, min(size, self._whole(low + nbytes - address))))
        return low, parts

    def _whole(self, nbytes: int) -> int:
        return -(-nbytes // self.granularity) * self.granularity

    def _widen(self, heap: "Heap", nbytes: int) -> None:
        """Reserve another range of addresses for a heap.

        Raises: OutOfMemoryError, DeviceError.
        """
        window: Window = heap.window
        if len(window.ranges) >= MOST_RANGES:
            raise errors.OutOfMemoryError(
                f"a heap of device {self._home.device} has {MOST_RANGES} ranges of addresses and none has room",
                kind="out_of_memory",
                device=self._home.device,
            )
        wanted = self._whole(max(nbytes, int(self._total * (RANGE if heap.is_large else SMALL_RANGE))))
        address: int = self._reserve(wanted)
        left = window.room()
        if left:
            window.holes[window.top] = left
        window.ranges.append((address, wanted))
        window.top = address
        heap.ranges.borders.add(address)

    def _back(self, heap: "Heap", parts: "list[tuple[int, int]]") -> None:
        """Put memory behind parts of a heap's addresses; all of them, or none."""
        made: list[int] = []
        try:
            for part in parts:
                for address, nbytes in self._pieces(*part):
                    self._add_piece(heap, address, nbytes)
                    made.append(address)
        except BaseException:
            for address in reversed(made):
                self._drop_piece(heap, address)
            self._tidy_quietly(heap)
            raise

    def _pieces(self, address: int, nbytes: int) -> "Iterator[tuple[int, int]]":
        """Address and bytes of each piece that a growth by so many bytes is made of."""
        largest = max(self._piece, self._whole(nbytes // self._split))
        for offset in range(0, nbytes, largest):
            yield address + offset, min(largest, nbytes - offset)

    def _add_piece(self, heap: "Heap", address: int, nbytes: int) -> None:
        allocation = self._create(nbytes, self._home.device, self._sharing)
        try:
            self._map(address, nbytes, 0, allocation)
            try:
                for device in (self._home.device, *self.peers):
                    self._allow(address, nbytes, device)
            except BaseException:
                self._unmap_or_keep(heap, address, nbytes)
                raise
        finally:
            self._release_or_keep(allocation)
        heap.window.put(address, nbytes)
        heap.gain(nbytes, address)
        heap.ranges.give(address, nbytes)

    def _release_or_keep(self, allocation: int) -> None:
        try:
            self._release(allocation)
        except errors.DeviceError:
            self._unreleased.append(allocation)

    def _unmap_or_keep(self, heap: "Heap", address: int, nbytes: int) -> None:
        try:
            self._unmap(address, nbytes)
        except errors.DeviceError:  # nobody may use these addresses until they are unmapped
            heap.window.put(address, nbytes)
            heap.gain(nbytes, address)
            self._stuck.append((heap, address, nbytes))

    # giving back

    def trim(self, heaps: "list[Heap]", keep: int) -> None:
        self._retry()
        left = self._tally.reserved
        for heap in heaps:
            if self._home.captures.holds(heap.stream):
                continue
            window: Window = heap.window
            going = []
            for piece in [piece for free in heap.ranges for piece in window.within(*free)]:
                if left - window.pieces[piece] >= keep:
                    left -= window.pieces[piece]
                    going.append(piece)
            if going:
                self._take_away(heap, going)
            self._tidy(heap)

    def _give_back(self, needed: int, growing: "Heap", low: int, high: int) -> None:
        """Give back free pieces of at least as many bytes, as far as there are any, but none of the growing place."""
        free = [
            (heap.window.pieces[piece], piece, heap)
            for heap in self._heaps
            if not self._home.captures.holds(heap.stream)
            for address, nbytes in heap.ranges.sizes.items()
            if nbytes >= self.granularity and not (heap is growing and address < high and address + nbytes > low)
            for piece in heap.window.within(address, nbytes)
        ]
        if not free:
            return
        # Small heaps first among equals: which heap's addresses are lower is the driver's whim.
        chosen = _chosen(needed, sorted(free, key=lambda each: (each[0], each[2].is_large, each[1])))
        for heap in self._heaps:
            pieces = [piece for _size, piece, holder in chosen if holder is heap]
            if pieces:
                self._take_away(heap, pieces)

    def _take_away(self, heap: "Heap", pieces: "list[int]") -> None:
        """Give free pieces back to the device; the work that used them is waited for."""
        self._wait_for(heap)
        for piece in pieces:
            nbytes = heap.window.pieces[piece]
            self._unmap(piece, nbytes)
            heap.ranges.cut(piece, nbytes)
            heap.window.drop(piece)
            heap.lose(nbytes, piece)

    def _wait_for(self, heap: "Heap") -> None:
        """Unmapping does not wait by itself."""
        try:
            if heap.stream.__class__ is int:
                self._sync_stream(heap.stream)
                return
        except errors.DeviceError as error:  # the stream is destroyed, and its work may run on
            if error.sticky:
                raise
        self._sync()

    def _drop_piece(self, heap: "Heap", address: int) -> None:
        """Undo a piece that nobody used yet; one that cannot be unmapped stays, as any free piece."""
        nbytes = heap.window.pieces[address]
        try:
            self._unmap(address, nbytes)
        except errors.DeviceError:
            return
        heap.ranges.cut(address, nbytes)
        heap.window.drop(address)
        heap.lose(nbytes, address)

    def _tidy(self, heap: "Heap") -> None:
        """Give the addresses of a heap back once nothing is behind them."""
        window: Window = heap.window
        while window.ranges and not window.pieces:
            address, nbytes = window.ranges[-1]
            self._unreserve(address, nbytes)
            window.ranges.pop()
            heap.ranges.borders.discard(address)
            window.holes.clear()
            window.top = window.ranges[-1][0] if window.ranges else 0

    def _tidy_quietly(self, heap: "Heap") -> None:
        try:  # noqa: SIM105  # contextlib is not imported yet
            self._tidy(heap)
        except errors.DeviceError:  # the addresses stay the heap's; the error that led here is the one to tell
            pass

    def _retry(self) -> None:
        """What the driver would not take back before is offered again."""
        while self._unreleased:
            self._release(self._unreleased[-1])
            self._unreleased.pop()
        while self._stuck:
            heap, address, nbytes = self._stuck[-1]
            self._unmap(address, nbytes)
            self._stuck.pop()
            heap.window.drop(address)
            heap.lose(nbytes, address)

    def admit(self, peer: int) -> None:
        """Let another device use the memory, what is there and what will be.

        Raises: DeviceError.
        """
        if peer in self.peers or peer == self._home.device:
            return
        for heap in self._heaps:
            for address in heap.window.starts:
                self._allow(address, heap.window.pieces[address], peer)
        self.peers.append(peer)


def _chosen(needed: int, free: "list[tuple[int, int, Heap]]") -> "list[tuple[int, int, Heap]]":
    """The smallest piece that is enough, else the largest, and so on for what is still needed."""
    chosen = []
    while needed > 0 and free:
        index = bisect_left(free, needed, key=lambda each: each[0])
        piece = free.pop(index if index < len(free) else -1)
        chosen.append(piece)
        needed -= piece[0]
    return chosen


def _why_private(home: "Home", granularity: int) -> str:
    """Why memory is not created so that other processes can have it; empty where it is, which costs nothing then.

    Raises: DeviceError after which the context is lost.
    """
    runtime = home.runtime
    missing = [name for name in ("mem_retain", "mem_export", "mem_import") if not runtime.supports(name, home.device)]
    if missing:
        return f"`{missing[0]}` is not offered here"
    try:
        home.run(lambda: runtime.mem_release(runtime.mem_create(granularity, home.device, "file")))
    except errors.DeviceError as error:
        if error.sticky:
            raise
        return error.summary
    except errors.CapabilityError as error:
        return str(error)
    return ""


def trial(home: "Home") -> str:
    """Use a little of the device's virtual memory, and give it back: why it does not work, or an empty text.

    Raises: DeviceError after which the context is lost.
    """
    runtime = home.runtime
    needed = ("mem_granularity", "mem_address_reserve", "mem_create", "mem_map", "mem_set_access", "mem_unmap",
              "mem_release", "mem_address_free")  # fmt: skip
    missing = [operation for operation in needed if not runtime.supports(operation, home.device)]
    if missing:
        return f"`{missing[0]}` is not offered here"
    try:
        home.run(_try, runtime, home.device)
    except errors.DeviceError as error:
        if error.sticky:
            raise
        return error.summary
    return ""


def _try(runtime: "Runtime", device: int) -> None:
    granule = runtime.mem_granularity(device)
    address = runtime.mem_address_reserve(granule)
    try:
        allocation = runtime.mem_create(granule, device)
        try:
            runtime.mem_map(address, granule, 0, allocation)
            try:
                runtime.mem_set_access(address, granule, device)
                runtime.memset(address, 0, granule)
                runtime.sync()
            finally:
                runtime.mem_unmap(address, granule)
        finally:
            runtime.mem_release(allocation)
    finally:
        runtime.mem_address_free(address, granule)
