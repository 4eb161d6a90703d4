"""What stands for a block of memory while a caller holds it: how it was got, and how it goes back.

Every entry has `nbytes`, `stream`, `users`, `tally` and `clean`, and `append(address)`, which takes the block back. A
bin of the pool is the entry of all its blocks; the entries here stand for one block each.
"""

from itertools import count

from nbxrt.locks import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.memory.deferred import Deferred
    from nbxrt.memory.policies import DirectPolicy, OrderedPolicy
    from nbxrt.memory.pool import Bin
    from nbxrt.memory.tally import Tally


_numbers = count(1)
_mine = local()


def this_thread() -> int:
    """A number of the calling thread that no other ever has: the system gives its own numbers out again."""
    try:
        number: int = _mine.number
    except AttributeError:
        number = _mine.number = next(_numbers)
    return number


class Entry:
    """The common part. An entry holds no waiting block, so it is false, as an empty bin is."""

    __slots__ = ("clean", "nbytes", "stream", "tally")

    #: Other streams that use the block, as `record_use` named them.
    users: "tuple[Any, ...]" = ()

    def __init__(self, nbytes: int, stream: "Any", tally: "Tally") -> None:
        self.nbytes = nbytes
        self.stream = stream
        self.tally = tally
        self.clean = False

    def __bool__(self) -> bool:
        return False

    def forget(self, stream: "Any") -> None:
        """Name a stream no more that is about to be destroyed; its work has finished."""
        if self.stream == stream:
            self.stream = 0


class Direct(Entry):
    """A block of the vendor's own `malloc`, whose `free` waits for all work that uses it."""

    __slots__ = ("_policy",)

    def __init__(self, policy: "DirectPolicy", nbytes: int, stream: "Any") -> None:
        super().__init__(nbytes, stream, policy.tally)
        self._policy = policy

    def refill(self) -> int:
        self.tally.demand(self.nbytes)
        home = self._policy.home
        home.captures.demand_none("memory cannot be had", home.device)
        address: int = home.run(self._policy.vendor_malloc, self.nbytes)
        self._policy.gain(self.nbytes, address)
        return address

    def append(self, address: int) -> None:
        self._policy.let_go(address, self)

    def go(self, address: int) -> None:
        """Free the block. Raises: DeviceError."""
        self._policy.vendor_free(address)
        self._policy.lose(self.nbytes, address)

    def use(self, _stream: "Any") -> "Direct":
        return self


class Ordered(Entry):
    """A block of the driver's own pool, allocated and freed in the order of its stream."""

    __slots__ = ("_policy", "users")

    def __init__(self, policy: "OrderedPolicy", nbytes: int, stream: "Any") -> None:
        super().__init__(nbytes, stream, policy.tally)
        self._policy = policy
        self.users = ()

    def refill(self) -> int:
        self.tally.demand(self.nbytes)
        return self._policy.obtain(self.nbytes, self.stream)

    def append(self, address: int) -> None:
        self._policy.let_go(address, self)

    def go(self, address: int) -> None:
        """Free the block after the work that its streams have now. Raises: DeviceError."""
        self._policy.give_back(address, self.stream, self.users)
        self.tally.release(self.nbytes, address)

    def forget(self, stream: "Any") -> None:
        super().forget(stream)
        self.users = tuple(user for user in self.users if user != stream)

    def use(self, stream: "Any") -> "Ordered":
        if stream not in self.users:
            self.users = (*self.users, stream)
        return self


class Shared(Entry):
    """A block of the pool that other streams use too: it comes back when their work has finished."""

    __slots__ = ("_bin", "_deferred", "users")

    def __init__(self, bin_: "Bin", deferred: "Deferred", stream: "Any") -> None:
        super().__init__(bin_.nbytes, bin_.stream, bin_.tally)
        self._bin = bin_
        self._deferred = deferred
        self.users = (stream,)

    def append(self, address: int) -> None:
        self._deferred.put(address, self.users, self._bin)

    def forget(self, stream: "Any") -> None:
        super().forget(stream)
        self.users = tuple(user for user in self.users if user != stream)

    def use(self, stream: "Any") -> "Shared":
        if stream not in self.users:
            self.users = (*self.users, stream)
        return self


def handle_of(stream: "Any") -> "int | None":
    """The handle by which this thread can name a stream; None for another thread's own stream."""
    if stream.__class__ is not tuple:
        handle: int = stream
        return handle
    return stream[0] if stream[1] == this_thread() else None
