"""Page-locked host memory: blocks of whole pages that wait for the next request of their size.

Pinning costs about as much as a millisecond of copying, so what is freed is kept, up to MOST_KEPT bytes. A block waits
for the work that its streams had when it was freed; nothing is released from a callback of the driver.
"""

from nbxrt import errors
from nbxrt.memory.deferred import Deferred
from nbxrt.memory.hotpath import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.memory.captures import Captures
    from nbxrt.runtime import Runtime

#: Sizes are whole pages of this size.
PAGE = 4096
#: Bytes that are kept for later requests.
MOST_KEPT = 1 << 30


class Here:
    """The way to make calls whatever device is current."""

    def __init__(self, runtime: "Runtime", captures: "Captures") -> None:
        self.runtime = runtime
        self.captures = captures

    def run(self, call: "Callable[..., Any]", *arguments: "Any") -> "Any":
        return call(*arguments)


class PinnedPool:
    """The page-locked memory of a process.

    Other threads and finalizers may come in between at every call, and nothing waits for them. A block is had by
    whoever takes it out of `_order`; what `_waiting` says of it is a hint, which may come late.
    """

    def __init__(self, runtime: "Runtime", captures: "Captures") -> None:
        self._vendor_malloc, self._vendor_free = runtime.malloc_host, runtime.free_host
        self._captures = captures
        self._deferred = Deferred(Here(runtime, captures))  # type: ignore[arg-type]  # all that it needs of a home
        #: Blocks by size; each with its size in the order in which they came back; and what that makes.
        self._waiting: dict[int, list[int]] = {}
        self._order: dict[tuple[int, int], bool] = {}
        self.kept = 0
        #: Size of each block that is held.
        self.live: dict[int, PinnedBlock] = {}
        self.allocated = self.reserved = self.peak_allocated = self.peak_reserved = 0
        self.most_kept = MOST_KEPT
        self.malloc, self.free, self.trim = guarded(self._malloc, self._free, self._trim)

    def _malloc(self, nbytes: int) -> int:
        """Address of page-locked memory. Raises: CapabilityError; OutOfMemoryError; DeviceError."""
        size = -(-nbytes // PAGE) * PAGE
        address = self._waiting_block(size)
        if not address:
            self._deferred.poll()
            self._evict(self.most_kept)
            address = self._waiting_block(size) or self._obtain(size)
        self.live[address] = PinnedBlock(self, size)
        self.allocated += size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return address

    def _waiting_block(self, size: int) -> int:
        blocks = self._waiting.get(size, [])
        while blocks:
            try:
                address = blocks.pop()
            except IndexError:  # somebody took the last one
                break
            if self._order.pop((address, size), False):
                self.kept -= size
                return address
        return 0

    def _obtain(self, size: int) -> int:
        self._captures.demand_none("page-locked memory cannot be had")
        try:
            address: int = self._vendor_malloc(size)
        except errors.OutOfMemoryError:
            self._deferred.drain()
            if not self.trim(0):
                raise
            address = self._vendor_malloc(size)
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return address

    def _free(self, address: int) -> bool:
        """Take a block back once the work that may use it has finished; whether there is such. Raises: DeviceError."""
        block = self.live.pop(address, None)
        if block is None:
            return False
        self.allocated -= block.nbytes
        self._deferred.put(address, block.streams, block)
        return True

    def use(self, address: int, stream: "Any") -> None:
        """Note that a stream uses a block. Raises: KeyError."""
        block = self.live[address]
        if stream not in block.streams:
            block.streams = (*block.streams, stream)

    def forget(self, stream: "Any") -> None:
        """Name a stream no more that is about to be destroyed; its work has finished."""
        for block in list(self.live.copy().values()):
            block.streams = tuple(each for each in block.streams if each != stream)

    def settle(self, address: int, size: int) -> None:
        """Keep a block for later."""
        self._order[address, size] = True
        self.kept += size
        self._waiting.setdefault(size, []).append(address)

    def _trim(self, keep: int) -> int:
        """Release what waits, the oldest first, as long as more than `keep` bytes wait; how much it was.

        Raises: DeviceError; the rest waits on.
        """
        self._deferred.poll()
        given_back = self._evict(keep)
        if not keep:
            self._deferred.release()
        return given_back

    def resume(self) -> None:
        """Do what was put off while a graph was recorded. Raises: DeviceError after which the context is lost."""
        self._deferred.resume()

    def _evict(self, keep: int) -> int:
        given_back = 0
        while self.kept > keep and not self._captures:
            try:
                address, size = next(iter(self._order))
                del self._order[address, size]
            except StopIteration:  # who has the last one counts it still
                break
            except (RuntimeError, KeyError):  # somebody has freed or taken a block just now
                continue
            self.kept -= size
            try:  # noqa: SIM105  # contextlib is not imported yet
                self._waiting[size].remove(address)
            except (KeyError, ValueError):  # the list is told later
                pass
            try:
                self._vendor_free(address)
            except BaseException:
                self.settle(address, size)
                raise
            self.reserved -= size
            given_back += size
        return given_back


class PinnedBlock:
    """A block of page-locked memory while a caller holds it."""

    __slots__ = ("nbytes", "pool", "streams")

    def __init__(self, pool: PinnedPool, nbytes: int) -> None:
        self.pool = pool
        self.nbytes = nbytes
        #: The default stream, which also waits for all streams that wait for it, and what `record_use` names.
        self.streams: tuple[Any, ...] = (0,)

    def settle(self, address: int) -> None:
        self.pool.settle(address, self.nbytes)
