"""The policies by name: how memory of one device is got, and which is the best that a device supports."""

from _collections import deque  # type: ignore[import-not-found]  # `collections` is slow to import

from nbxrt import errors
from nbxrt.memory.deferred import Deferred
from nbxrt.memory.entries import Direct, Ordered, handle_of
from nbxrt.memory.home import Home
from nbxrt.memory.pages import PageSource, trial
from nbxrt.memory.pool import DevicePool
from nbxrt.memory.segments import SegmentSource
from nbxrt.memory.tally import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from nbxrt.memory.pool import Bin

#: What can be asked for; `auto` is the best of the others that a device supports.
POLICIES = ("auto", "direct", "caching", "stream_ordered", "expandable")


class Policy:
    """How memory of one device is got. `why` says why it was chosen."""

    name = ""
    #: What a block is a part of, in words.
    segment = ""

    def __init__(self, home: Home, why: str) -> None:
        self.home = home
        self.why = why
        self.tally = Tally(home.device)
        self._single: DirectPolicy | None = None

    def alone(self, nbytes: int, stream: "Any") -> Direct:
        """What stands for a block of the vendor's own `malloc`, whatever the policy gives to others."""
        single = self._single
        if single is None:
            made = DirectPolicy(self.home, "")
            made.tally = self.tally
            single = self._single = self._single or made  # a finalizer, or another thread, may have been quicker
        return Direct(single, nbytes, stream)

    def bins(self, _stream: "Any") -> "dict[int, Any]":
        """The bins of a stream by size, of a policy that has a pool. Raises: Reentered."""
        return {}

    def entry(self, nbytes: int, stream: "Any") -> "Any":
        """What stands for a block of that size on that stream. Raises: Reentered."""
        raise NotImplementedError

    def reserved(self) -> "tuple[int, int]":
        """Bytes that are taken from the device now, and the most that ever were. Raises: DeviceError."""
        return self.tally.reserved, self.tally.peak_reserved

    def reset_peak(self) -> None:
        """Let the peaks start from what is now. Raises: DeviceError."""
        self.tally.reset_peak()

    def trim(self, keep: int) -> int:
        """Give unused memory back to the device; how many bytes it was. Raises: DeviceError."""
        given_back = self._single.trim(keep) if self._single is not None else 0
        return given_back + self._trim(keep)

    def _trim(self, _keep: int) -> int:
        """The same for what is the policy's own. Raises: DeviceError."""
        return 0

    def drain(self) -> None:
        """Wait for memory that was freed and is in use on other streams. Raises: DeviceError."""

    def resume(self) -> None:
        """Do what was put off while a graph was recorded. Raises: DeviceError; it is put off further."""
        if self._single is not None:
            self._single.resume()

    def largest_free(self) -> int:
        """Bytes of the largest block that can be given out without taking more from the device."""
        return 0

    def segments(self) -> "Iterator[tuple[Any, bool, int, int]]":
        """(stream, whether it is for large requests, address, size) of each piece of memory that is reserved."""
        return iter(())

    def pending(self) -> "set[int]":
        """Addresses of blocks that were freed and are in use on other streams."""
        return set()

    def renew_locks(self) -> None:
        """Make every lock anew, in a process that was forked."""

    def knows(self, _stream: "Any") -> bool:
        """Whether memory may be on the stream, or wait for it."""
        return False

    def forget(self, _stream: "Any") -> None:
        """Name a stream no more that is about to be destroyed; its work has finished."""

    def was_freed(self, address: int) -> bool:
        """Whether the address is one that was given out and freed, as far as that is known."""
        return self._single is not None and self._single.was_freed(address)

    def pieces_of(self, _address: int, _nbytes: int) -> "list[tuple[int, int]]":
        """Address and size of each piece that a block lies in, of memory that others can have by the piece."""
        return []

    def why_private(self) -> str:
        """Why other processes cannot have the policy's pieces; empty where they can, and where there are none."""
        return ""

    def admit(self, peer: int) -> None:
        """Let another device use the memory of this one. Raises: CapabilityError, DeviceError."""
        runtime = self.home.runtime
        if peer != self.home.device:
            Home(runtime, peer, self.home.captures).run(runtime.device_enable_peer_access, self.home.device)


class SinglePolicy(Policy):
    """Every block is the vendor's own; one that could not be freed is tried again whenever memory is given back."""

    def __init__(self, home: Home, why: str) -> None:
        super().__init__(home, why)
        #: Bytes that are taken from the device, and the most that ever were.
        self.held = self.peak_held = 0
        #: Addresses that were freed lately, to tell a second free from a wrong address.
        self._freed: deque[int] = deque(maxlen=256)
        self._unfreed: list[tuple[int, Direct | Ordered]] = []

    def let_go(self, address: int, entry: "Direct | Ordered") -> None:
        """Free a block, after a capture that is under way. Raises: DeviceError; then it is kept, to be tried again."""
        try:
            if self._is_captured(entry):
                self._unfreed.append((address, entry))
                return
            entry.go(address)
        except errors.DeviceError:
            self._unfreed.append((address, entry))
            raise
        self._freed.append(address)

    def _is_captured(self, entry: "Direct | Ordered") -> bool:
        """Whether freeing a block would be part of a capture, draw its stream into one, or spoil it."""
        return any(map(self.home.captures.holds, (entry.stream, *entry.users)))

    def gain(self, nbytes: int, address: int) -> None:
        """Count a block that was taken from the device."""
        self.held += nbytes
        self.peak_held = max(self.peak_held, self.held)
        self.tally.reserve(nbytes, address)

    def lose(self, nbytes: int, address: int) -> None:
        """Count a block that was given back."""
        self.held -= nbytes
        self.tally.release(nbytes, address)

    def resume(self) -> None:
        super().resume()
        SinglePolicy._trim(self, 0)  # the driver's own pool keeps what it has

    def _trim(self, keep: int) -> int:
        before = self.tally.reserved
        for _block in range(len(self._unfreed)):
            if self.tally.reserved <= keep or self.home.captures:
                break
            try:
                address, entry = self._unfreed.pop()
            except IndexError:  # another thread does it too
                break
            try:
                if self._is_captured(entry):
                    self._unfreed.insert(0, (address, entry))
                else:
                    entry.go(address)
            except BaseException:
                self._unfreed.append((address, entry))
                raise
        return before - self.tally.reserved

    def was_freed(self, address: int) -> bool:
        return address in self._freed or super().was_freed(address)

    def forget(self, stream: "Any") -> None:
        for _address, entry in list(self._unfreed):
            entry.forget(stream)


class DirectPolicy(SinglePolicy):
    """Every request is a call of the vendor's `malloc`, every free one of its `free`."""

    name = "direct"
    segment = "a block of the account"

    def __init__(self, home: Home, why: str) -> None:
        super().__init__(home, why)
        self.vendor_malloc, self.vendor_free = home.runtime.malloc, home.runtime.free

    def entry(self, nbytes: int, stream: "Any") -> Direct:
        return Direct(self, nbytes, stream)


class OrderedPolicy(SinglePolicy):
    """The driver's own pool of the device, which keeps what it has until it is trimmed."""

    name = "stream_ordered"
    segment = "a part of the driver's own pool"

    def __init__(self, home: Home, why: str) -> None:
        super().__init__(home, why)
        runtime = home.runtime
        self._malloc, self._free = runtime.malloc_async, runtime.free_async
        self._sync, self._sync_stream, self._wait = runtime.sync, runtime.stream_sync, runtime.stream_wait_event
        self._make, self._record, self._destroy = runtime.event_create, runtime.event_record, runtime.event_destroy
        self._pool = 0
        if runtime.supports("mempool_set_attribute", home.device):
            self._pool = runtime.mempool_get_default(home.device)
            runtime.mempool_set_attribute(self._pool, "release_threshold", 2**64 - 1)

    def entry(self, nbytes: int, stream: "Any") -> Ordered:
        return Ordered(self, nbytes, stream)

    def knows(self, _stream: "Any") -> bool:
        return True  # which streams the driver's pool has served is not written down

    def obtain(self, nbytes: int, stream: "Any") -> int:
        """A block, ordered on the stream. Raises: OutOfMemoryError, DeviceError."""
        self.home.captures.demand_none("memory cannot be had of the driver's own pool", self.home.device)
        handle = stream[0] if stream.__class__ is tuple else stream
        obtain = self._obtain_apart if self.home.captures.holds(stream) else self._malloc
        address: int = self.home.run(obtain, nbytes, handle)
        self.gain(nbytes, address)
        return address

    def _obtain_apart(self, nbytes: int, _stream: int) -> int:
        """A block by a stream of its own: on one that records a graph it would be the graph's, and gone with it."""
        runtime = self.home.runtime
        plain = not runtime.supports("stream_create_flags")
        stream: int = runtime.stream_create() if plain else runtime.stream_create_flags(non_blocking=True)
        try:
            address: int = self._malloc(nbytes, stream)
            self._sync_stream(stream)
        finally:
            runtime.stream_destroy(stream)
        return address

    def give_back(self, address: int, stream: "Any", users: "tuple[Any, ...]") -> None:
        """Free a block after the work that its streams have now. Raises: DeviceError."""
        self.home.run(self._free_after, address, stream, users)

    def _free_after(self, address: int, stream: "Any", users: "tuple[Any, ...]") -> None:
        handle = handle_of(stream)
        others = [handle_of(user) for user in users]
        if handle is None or None in others:
            self._sync()
        else:
            for other in others:
                self._order_or_wait(handle, other)
        try:
            self._free(address, handle or 0)
        except errors.DeviceError as error:  # the stream is destroyed already
            if error.kind != "invalid_handle":
                raise
            self._sync()
            self._free(address, 0)

    def _order_or_wait(self, stream: int, other: "Any") -> None:
        try:
            self._order(stream, other)
        except errors.DeviceError as error:  # the stream is destroyed already, say, or of another device
            if error.sticky:
                raise
            self._sync()
            try:
                self._sync_stream(other)
            except errors.DeviceError as gone:
                if gone.kind != "invalid_handle":
                    raise

    def _order(self, stream: int, other: "Any") -> None:
        """Later work of a stream waits for what another has now."""
        event = self._make()
        try:
            self._record(event, other)
            self._wait(stream, event)
        finally:
            self._destroy(event)

    def reserved(self) -> "tuple[int, int]":
        if not self._pool:
            return super().reserved()
        ask, single = self.home.runtime.mempool_get_attribute, self._single
        held, peak = (single.held, single.peak_held) if single is not None else (0, 0)
        return ask(self._pool, "reserved_current") + held, ask(self._pool, "reserved_high") + peak

    def reset_peak(self) -> None:
        super().reset_peak()
        if self._single is not None:
            self._single.peak_held = self._single.held
        if self._pool:
            self.home.runtime.mempool_set_attribute(self._pool, "reserved_high", 0)

    def _trim(self, keep: int) -> int:
        if self.home.captures:
            return 0
        before = self.reserved()[0]
        super()._trim(keep)
        if not self._pool or any(self._is_captured(entry) for _address, entry in list(self._unfreed)):
            return before - self.reserved()[0]
        self.home.run(self._sync)
        self.home.runtime.mempool_trim(self._pool, keep)
        return before - self.reserved()[0]


class PoolPolicy(Policy):
    """A pool of our own; the source of its memory makes the difference."""

    def __init__(self, home: Home, why: str) -> None:
        super().__init__(home, why)
        self.source = self._source()
        self.deferred = Deferred(home)
        self.pool = DevicePool(home, self.tally, self.source, self.deferred)

    def _source(self) -> "Any":
        raise NotImplementedError

    def bins(self, stream: "Any") -> "dict[int, Any]":
        return self.pool.bins(stream)

    def entry(self, nbytes: int, stream: "Any") -> "Bin":
        return self.pool.bin(nbytes, stream)

    def _trim(self, keep: int) -> int:
        given_back = self.pool.trim(keep)
        if not keep:
            self.home.run(self.deferred.release)
        return given_back

    def drain(self) -> None:
        self.deferred.drain()

    def resume(self) -> None:
        super().resume()
        self.deferred.resume()

    def pending(self) -> "set[int]":
        return self.deferred.addresses()

    def renew_locks(self) -> None:
        self.pool.renew()

    def knows(self, stream: "Any") -> bool:
        return stream in self.pool.streams

    def forget(self, stream: "Any") -> None:
        self.pool.forget(stream)

    def largest_free(self) -> int:
        return self.pool.largest_free()

    def segments(self) -> "Iterator[tuple[Any, bool, int, int]]":
        for heap in self.pool.heaps():
            for address, nbytes in self.source.segments(heap):
                yield heap.stream, heap.is_large, address, nbytes

    def was_freed(self, address: int) -> bool:
        inside = any(start <= address < start + nbytes for _stream, _large, start, nbytes in self.segments())
        return inside or super().was_freed(address)


class CachingPolicy(PoolPolicy):
    """A pool over segments of the vendor's `malloc`."""

    name = "caching"
    segment = "a part of a segment"

    def _source(self) -> SegmentSource:
        return SegmentSource(self.home, self.tally)


class ExpandablePolicy(PoolPolicy):
    """A pool over ranges of addresses that physical memory is put behind, and taken away from where it is free."""

    name = "expandable"
    segment = "a part of a VMM segment (virtual memory)"

    def _source(self) -> PageSource:
        return PageSource(self.home, self.tally)

    def admit(self, peer: int) -> None:
        self.home.run(self.source.admit, peer)

    def pieces_of(self, address: int, nbytes: int) -> "list[tuple[int, int]]":
        if self.source.private:
            return []
        found: list[tuple[int, int]] = self.pool.alone(lambda: self.source.pieces_of(address, nbytes)) or []
        return found

    def why_private(self) -> str:
        private: str = self.source.private
        return private


KINDS: "dict[str, type[Policy]]" = {
    kind.name: kind for kind in (DirectPolicy, CachingPolicy, OrderedPolicy, ExpandablePolicy)
}


def check_name(name: "Any", where: str) -> str:
    """The name of a policy as it is. Raises: UnknownPolicyError."""
    if name in POLICIES:
        return str(name)
    close = errors.nearest(str(name), list(POLICIES))
    raise errors.UnknownPolicyError(
        f"{where}: {name!r} is no policy, which are {', '.join(POLICIES)}",
        hint=f"did you mean `{close}`?" if close else "",
        parameter="policy",
        value=name,
    )


def make_policy(home: Home, name: str) -> Policy:
    """The policy for a device: the one of that name, or the best that works here if the device does not support it.

    Raises: DeviceError after which the context is lost.
    """
    if name == "auto":
        return _best(home)
    reason = _why_not(home, name)
    if not reason:
        return KINDS[name](home, "asked for")
    return CachingPolicy(home, f"`{name}` was asked for and does not work here: {reason}")


def _best(home: Home) -> Policy:
    if home.runtime.kind == "cpu":
        return DirectPolicy(home, "the host's own allocator is a pool already")
    reason = _why_not(home, "expandable")
    if not reason:
        return ExpandablePolicy(home, "virtual memory works here, and it does not fragment")
    return CachingPolicy(home, f"virtual memory does not work here: {reason}")


def _why_not(home: Home, name: str) -> str:
    """Why a policy does not work on a device; empty when it does."""
    if name == "expandable":
        return trial(home)
    if name == "stream_ordered":
        return _try_ordered(home)
    return ""


def _try_ordered(home: Home) -> str:
    runtime = home.runtime
    for operation in ("malloc_async", "free_async"):
        if not runtime.supports(operation, home.device):
            return f"`{operation}` is not offered here"
    try:
        home.run(lambda: runtime.free_async(runtime.malloc_async(1, 0), 0))
    except errors.DeviceError as error:
        if error.sticky:
            raise
        return error.summary
    return ""
