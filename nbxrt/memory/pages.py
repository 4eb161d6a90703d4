"""Expandable memory: a wide range of addresses for each heap, with physical memory put behind it as it is needed.

A block goes where it fits best among the addresses that are free, with memory behind them or not, so that the same
requests meet the same addresses again, whatever was given back meanwhile. What has no memory there gets it: new memory
as long as little more is reserved than callers ever held, then that of pieces that are wholly free elsewhere on the
device. A piece of physical memory is as large as the growth that made it, up to a size of the backend's file, because
each costs the driver about the same, and can be given back only as a whole.
"""

from bisect import bisect_left, bisect_right, insort

from nbxrt import errors
from nbxrt.memory.pool import BACKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from nbxrt.memory.home import Home
    from nbxrt.memory.pool import Heap
    from nbxrt.memory.tally import Tally
    from nbxrt.runtime import Runtime

#: Pieces that are free are used elsewhere before more is reserved than callers ever held and this part of it.
WASTE = 1 / 256
#: A heap of large blocks grows by the `ahead` of the backend's file at least while less is reserved of what was free.
LITTLE = 1 / 32
#: So many times larger a piece may be meanwhile: best fit keeps low addresses in use, so it would hardly ever move.
EARLY = 4
#: A heap's range of addresses is this part of the device's memory, and so many ranges are made at most.
RANGE, SMALL_RANGE, MOST_RANGES = 9 / 8, 1 / 16, 64


class Window:
    """The addresses of one heap: ranges reserved, pieces of memory behind them, and what is bare."""

    __slots__ = ("edges", "pieces", "ranges", "starts")

    def __init__(self) -> None:
        #: Address and size of each range of addresses that is reserved.
        self.ranges: list[tuple[int, int]] = []
        #: Size by address of each piece of memory, and their addresses in order.
        self.pieces: dict[int, int] = {}
        self.starts: list[int] = []
        #: Where what has nothing behind it begins and ends, in turn and in order.
        self.edges: list[int] = []

    def put(self, address: int, nbytes: int) -> None:
        """A piece of memory is there now."""
        self.pieces[address] = nbytes
        insort(self.starts, address)
        self.turn(address, address + nbytes)

    def drop(self, address: int) -> None:
        """A piece of memory is gone."""
        nbytes = self.pieces.pop(address)
        del self.starts[bisect_left(self.starts, address)]
        self.turn(address, address + nbytes)

    def turn(self, *edges: int) -> None:
        """Let addresses between two edges be bare that were not, or the other way."""
        for edge in edges:
            index = bisect_left(self.edges, edge)
            if index < len(self.edges) and self.edges[index] == edge:
                del self.edges[index]
            else:
                self.edges.insert(index, edge)

    def bare(self, address: int, end: int) -> "Iterator[tuple[int, int]]":
        """Where each run of bare addresses begins and ends that reaches into a range."""
        edges = self.edges
        index = bisect_right(edges, address) & -2
        while index < len(edges) and edges[index] < end:
            yield edges[index], edges[index + 1]
            index += 2

    def backed(self, address: int, end: int) -> "Iterator[tuple[int, int]]":
        """Where each run within a range begins and ends that has memory behind it."""
        for start, stop in self.bare(address, end):
            if start > address:
                yield address, start
            address = stop
        if address < end:
            yield address, end

    def within(self, address: int, end: int) -> "list[int]":
        """Addresses of the pieces that lie wholly within a range."""
        first = last = bisect_left(self.starts, address)
        while last < len(self.starts) and self.starts[last] + self.pieces[self.starts[last]] <= end:
            last += 1
        return self.starts[first:last]


class PageSource:
    """Reserves memory by the virtual memory operations, and gives back pieces that are wholly free."""

    def __init__(self, home: "Home", tally: "Tally") -> None:
        runtime = home.runtime
        self._home, self._tally = home, tally
        self._reserve, self._unreserve = runtime.mem_address_reserve, runtime.mem_address_free
        self._create, self._release = runtime.mem_create, runtime.mem_release
        self._map, self._vendor_unmap, self._allow = runtime.mem_map, runtime.mem_unmap, runtime.mem_set_access
        self._sync_stream, self._sync = runtime.stream_sync, runtime.sync
        self.granularity: int = runtime.mem_granularity(home.device)
        #: Why other processes cannot have this memory; empty where they can.
        self.private = _why_private(home, self.granularity)
        self._sharing: Literal["none", "file"] = "none" if self.private else "file"
        sizes = runtime.description["expandable"]
        #: The handle of each piece, where its memory would go with the handle; None where it lives on.
        self._handles: dict[int, int] | None = {} if sizes["keeps_handles"] else None
        self._piece, self._split, self._ahead = self._whole(sizes["piece"]), sizes["split"], self._whole(sizes["ahead"])
        #: Bytes that were free at first, and all that the device has.
        room: tuple[int, int] = home.run(runtime.mem_get_info)
        self._room, self._total = room
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

    def holds(self, heap: "Heap", address: int, nbytes: int) -> bool:
        return next(heap.window.bare(address, address + nbytes), None) is None

    def largest(self, heap: "Heap") -> int:
        return max((end - start for start, end in self._free(heap)), default=0)

    def elsewhere(self, heap: "Heap", nbytes: int) -> int:
        size, address = min(
            ((end - start, start) for start, end in self._free(heap) if end - start >= nbytes), default=(0, 0)
        )
        if size:
            heap.ranges.cut(address, nbytes)
        return address

    def _free(self, heap: "Heap") -> "Iterator[tuple[int, int]]":
        """Where each run of free addresses begins and ends that has memory behind it."""
        for free in heap.ranges:
            yield from heap.window.backed(*free)

    # growing

    def grow(self, heap: "Heap", nbytes: int) -> None:
        try:
            self._grow(heap, nbytes, is_last=False)
        except errors.OutOfMemoryError:
            pass
        else:
            return
        for each in self._heaps:
            each.join_all()
        self._grow(heap, nbytes, is_last=True)

    def _grow(self, heap: "Heap", nbytes: int, *, is_last: bool) -> None:
        """Back the best range for a request; the last time without spare, and from whatever is free."""
        address = heap.ranges.best(nbytes) or self._widen(heap, nbytes)
        place = address, address + nbytes
        parts = self._parts(heap, *place)
        needed = sum(size for _address, size in parts)
        self._give_back(needed if is_last else min(needed, self._waste(needed, nbytes)), heap, place)
        if not is_last:
            parts[-1] = self._with_spare(heap, *parts[-1])
        self._back(heap, parts)

    def _parts(self, heap: "Heap", address: int, end: int) -> "list[tuple[int, int]]":
        """What is to be backed for a block, in whole granules: (address, size) of each part."""
        parts = []
        for start, stop in heap.window.bare(address, end):
            low = start + max(0, address - start) // self.granularity * self.granularity
            parts.append((low, min(stop - low, self._whole(end - low))))
        return parts

    def _waste(self, needed: int, nbytes: int) -> int:
        """Bytes that would be reserved too much if so many more were, for a request."""
        tally = self._tally
        reserved = tally.reserved + needed
        over = reserved - int(max(tally.peak_allocated, tally.allocated + nbytes) * (1 + WASTE))
        return over if tally.limit is None else max(over, reserved - tally.limit)

    def _with_spare(self, heap: "Heap", address: int, nbytes: int) -> "tuple[int, int]":
        """A part, made larger where it is at the end of what was ever used."""
        ahead, (last, end) = self._ahead, heap.window.edges[-2:]
        is_last = last <= address <= end - ahead
        has_spare = heap.is_large and is_last and self._is_little(ahead) and self._tally.fits(ahead)
        return address, max(nbytes, ahead) if has_spare else nbytes

    def _is_little(self, more: int) -> bool:
        """Whether what is reserved and so much more is little of what there may be."""
        limit = self._tally.limit
        return self._tally.reserved + more < (self._room if limit is None else min(limit, self._room)) * LITTLE

    def _whole(self, nbytes: int) -> int:
        return -(-nbytes // self.granularity) * self.granularity

    def _widen(self, heap: "Heap", nbytes: int) -> int:
        """Reserve another range of addresses for a heap; where it begins.

        Its last granule is never used, so that ranges which touch are not joined.
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
        address: int = self._reserve(wanted + self.granularity)
        window.ranges.append((address, wanted + self.granularity))
        window.turn(address, address + wanted)
        self._look(heap)
        heap.ranges.give(address, wanted)
        return address

    def _back(self, heap: "Heap", parts: "list[tuple[int, int]]") -> None:
        """Put memory behind parts of a heap's addresses; all of them, or none."""
        self._tally.demand(sum(size for _address, size in parts))
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
        early = self._piece * EARLY
        largest = max(early if self._is_little(early) else self._piece, self._whole(nbytes // self._split))
        for offset in range(0, nbytes, largest):
            yield address + offset, min(largest, nbytes - offset)

    def _add_piece(self, heap: "Heap", address: int, nbytes: int) -> None:
        allocation = self._create(nbytes, self._home.device, self._sharing)
        is_kept = False
        try:
            self._map(address, nbytes, 0, allocation)
            if self._handles is not None:
                self._handles[address], is_kept = allocation, True
            try:
                for device in (self._home.device, *self.peers):
                    self._allow(address, nbytes, device)
            except BaseException:
                self._unmap_or_keep(heap, address, nbytes)
                raise
        finally:
            if not is_kept:
                self._release_or_keep(allocation)
        self._put(heap, address, nbytes)

    def _release_or_keep(self, allocation: int) -> None:
        try:
            self._release(allocation)
        except errors.DeviceError:
            self._unreleased.append(allocation)

    def _unmap(self, address: int, nbytes: int) -> None:
        """Take a piece away. Raises: DeviceError; then it is there still."""
        self._vendor_unmap(address, nbytes)
        if self._handles is not None:
            self._release_or_keep(self._handles.pop(address))

    def _unmap_or_keep(self, heap: "Heap", address: int, nbytes: int) -> None:
        try:
            self._unmap(address, nbytes)
        except errors.DeviceError:  # nobody may use these addresses until they are unmapped
            heap.ranges.cut(address, nbytes)
            self._put(heap, address, nbytes)
            self._stuck.append((heap, address, nbytes))

    def _put(self, heap: "Heap", address: int, nbytes: int) -> None:
        """A piece of memory is there now."""
        heap.window.put(address, nbytes)
        self._look(heap)
        heap.gain(nbytes, address)

    def _drop(self, heap: "Heap", address: int) -> None:
        """A piece of memory is gone."""
        nbytes = heap.window.pieces[address]
        heap.window.drop(address)
        self._look(heap)
        heap.lose(nbytes, address)

    def _look(self, heap: "Heap") -> None:
        """See from where on a heap's addresses may be bare."""
        heap.backed = next(iter(heap.window.edges), BACKED)

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

    def _give_back(self, needed: int, growing: "Heap", place: "tuple[int, int]") -> None:
        """Give back free pieces of at least as many bytes, as far as there are any, but none of the growing place."""
        low, high = place
        for heap in sorted(self._heaps, key=lambda each: (not each.is_large, each is growing)):
            if needed <= 0:
                return
            if self._home.captures.holds(heap.stream):
                continue
            if heap is not growing and heap.is_worth_joining():
                heap.join_all()
            window: Window = heap.window
            going = []
            # The highest first: best fit comes to low addresses more often.
            for piece in [piece for free in heap.ranges for piece in window.within(*free)][::-1]:
                nbytes = window.pieces[piece]
                if needed > 0 and not (heap is growing and piece < high and piece + nbytes > low):
                    going.append(piece)
                    needed -= nbytes
            if going:
                self._take_away(heap, going)

    def _take_away(self, heap: "Heap", pieces: "list[int]") -> None:
        """Give free pieces back to the device; the work that used them is waited for."""
        self._wait_for(heap)
        for piece in pieces:
            self._unmap(piece, heap.window.pieces[piece])
            self._drop(heap, piece)

    def _wait_for(self, heap: "Heap") -> None:
        """Unmapping does not wait by itself."""
        stream = heap.stream  # once: a finalizer may destroy it
        try:
            if stream.__class__ is int:
                self._sync_stream(stream)
                return
        except errors.DeviceError as error:  # the stream is destroyed, and its work may run on
            if error.sticky:
                raise
        self._sync()

    def _drop_piece(self, heap: "Heap", address: int) -> None:
        """Undo a piece that nobody used yet; one that cannot be unmapped stays, as any free piece."""
        try:
            self._unmap(address, heap.window.pieces[address])
        except errors.DeviceError:
            return
        self._drop(heap, address)

    def _tidy(self, heap: "Heap") -> None:
        """Give the addresses of a heap back once nothing is behind them."""
        window: Window = heap.window
        while window.ranges and not window.pieces:
            address, nbytes = window.ranges[-1]
            self._unreserve(address, nbytes)
            window.ranges.pop()
            heap.ranges.cut(address, nbytes - self.granularity)
            window.turn(address, address + nbytes - self.granularity)
            self._look(heap)

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
            self._drop(heap, address)
            heap.ranges.give(address, nbytes)

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
