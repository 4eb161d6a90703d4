"""The address table: which memory an address lies in, and the object that it stands for. Handles for objects too."""

from bisect import bisect_right, insort

from nbxrt import errors, locks
from nbxrt.binding.failures import unknown
from nbxrt.locks import is_mine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Where addresses begin that stand for objects without one: no process has memory there, so no copy by the host
#: can be taken for one. Each is followed by a gap, so that one past the end of an allocation is in none.
FIRST_MINTED, LAST_MINTED = 0x4E42_0000_0000_0000, 0x4E42_FFFF_FFFF_FFFF
GAP = 4096
#: As many addresses are put into the order one by one; with more it is made anew, and no more than these wait for it.
FEW, MOST_UNSORTED = 32, 4096


def is_minted(address: int) -> bool:
    """Whether an address stands for an object without one: nothing may be read or written there by the host."""
    return FIRST_MINTED <= address <= LAST_MINTED


class Block:
    """Memory in the table: its address and size, the object that it stands for, the state of its device, its kind."""

    __slots__ = ("address", "memory", "nbytes", "offset", "state", "target")

    def __init__(self, address: int, nbytes: int, target: int, state: "Any", memory: str, offset: int) -> None:
        self.address = address
        self.nbytes = nbytes
        self.target = target
        self.state = state
        self.memory = memory
        #: Where the memory begins in the object.
        self.offset = offset

    def offset_of(self, address: int) -> int:
        """Where an address lies in the object."""
        return address - self.address + self.offset


class Addresses:
    """The table of one backend.

    An entry is what a Block is made of behind its address: making a Block of each would cost as much as some drivers
    take to allocate. Steps write and take entries themselves (sequence.py). Which address comes before another is only
    asked for those inside an allocation, so the order is made then: `_starts` may lack what `new` has, and have what
    was taken out. Its lock guards the order, which a finalizer that finds it held does without; entries come and go by
    single operations of a dictionary and a list, of which threads do not see halves.
    """

    def __init__(self) -> None:
        self._lock = locks.RLock()
        #: Size, object, state, kind and offset of the memory that begins at an address.
        self.entries: dict[int, tuple[int, int, Any, str, int]] = {}
        #: Addresses that came since the order was made; whoever adds one beyond MOST_UNSORTED calls `sort`.
        self.new: list[int] = []
        self._starts: list[int] = []
        self._next = FIRST_MINTED
        self._of_parent = False

    def add(self, address: int, nbytes: int, target: int, state: "Any", memory: str, offset: int = 0) -> None:
        """Put memory into the table; what was at the same address before was freed behind our back."""
        self.entries[address] = (nbytes, target, state, memory, offset)
        self.new.append(address)
        if len(self.new) > MOST_UNSORTED:
            self.sort()

    def mint(self, nbytes: int, target: int, state: "Any", memory: str) -> int:
        """A new address for an object that has none, a multiple of 4096."""
        with self._lock:
            address = self._next
            self._next += -(-nbytes // GAP) * GAP + GAP
        self.add(address, nbytes, target, state, memory)
        return address

    def remove(self, address: int, operation: str) -> "tuple[int, int, Any, str, int]":
        """Take out the memory that begins at an address: its size, object, state, kind and offset.

        Raises: ArgumentValueError for an address at which none begins.
        """
        try:
            return self.entries.pop(address)
        except KeyError:
            raise self.unknown(address, operation) from None

    def unknown(self, address: int, operation: str) -> errors.ArgumentValueError:
        """The error for an address at which no memory begins."""
        inside = self.look(address)
        where = f"lies inside the allocation at {inside.address:#x}" if inside else "is no memory of this backend"
        said = f"`{operation}`: the address {address:#x} {where}, or was released already"
        return unknown(said, of_parent=self._of_parent, operation=operation)

    def find(self, address: int, operation: str) -> Block:
        """The memory that an address lies in; one past its end is outside.

        Raises: ArgumentValueError.
        """
        block = self.look(address)
        if block is None:
            said = f"`{operation}`: the address {address:#x} lies in no memory of this backend"
            raise unknown(said, of_parent=self._of_parent, operation=operation)
        return block

    def within(self, address: int, nbytes: int, operation: str) -> Block:
        """The memory that so many bytes at an address lie in. Raises: ArgumentValueError."""
        block = self.find(address, operation)
        if address + nbytes > block.address + block.nbytes:
            raise errors.ArgumentValueError(
                f"`{operation}`: {nbytes} bytes at {address:#x} go beyond the end of the allocation at "
                f"{block.address:#x}, which has {block.nbytes}",
                operation=operation,
            )
        return block

    def look(self, address: int) -> "Block | None":
        """The memory that an address lies in, or None."""
        entry = self.entries.get(address)
        if entry is not None:
            return Block(address, *entry)
        if is_mine(self._lock):
            start = max([each for each in self.entries.copy() if each <= address], default=-1)
        else:
            with self._lock:
                start = self._before(address)
        entry = self.entries.get(start)
        return Block(start, *entry) if entry is not None and address < start + max(entry[0], 1) else None

    def _before(self, address: int) -> int:
        """Where the memory begins that comes last before an address; -1 where there is none."""
        starts, entries = self._starts, self.entries
        if len(self.new) > FEW or len(starts) > 2 * len(entries) + MOST_UNSORTED:
            self._sort()
        while self.new:
            insort(starts, self.new.pop())
        at = bisect_right(starts, address) - 1
        while at >= 0 and starts[at] not in entries:
            del starts[at]
            at -= 1
        return starts[at] if at >= 0 else -1

    def sort(self) -> None:
        """Make the order anew."""
        if not is_mine(self._lock):
            with self._lock:
                self._sort()

    def _sort(self) -> None:
        """The same, with the lock. What is added meanwhile is in the entries already, or comes to `new` afterwards."""
        while self.new:
            self.new.pop()
        self._starts[:] = sorted(self.entries.copy())

    def __len__(self) -> int:
        return len(self.entries)

    def allocated(self, state: "Any") -> int:
        """The bytes in the table that were made on a device."""
        return sum(entry[0] for entry in self.entries.copy().values() if entry[2] is state)

    def renew_lock(self) -> None:
        """Make the lock anew, in a process that was forked; the memory is the parent's."""
        self._lock = locks.RLock()
        self._of_parent = self._of_parent or bool(self.entries)
        for kept in (self.entries, self._starts, self.new):
            kept.clear()


class Boxes:
    """Objects behind handles that nbxrt mints. Its lock guards the making of handles."""

    def __init__(self) -> None:
        self._lock = locks.RLock()
        self._boxes: dict[int, Any] = {}
        self._next = 0x1000
        self._of_parent = False

    def add(self, target: "Any" = 0) -> int:
        """A new handle with an object in its box, a tuple of several, or 0."""
        with self._lock:
            self._next += 16
            self._boxes[self._next] = target
            return self._next

    def get(self, handle: int) -> "Any":
        """What is in the box. Raises: ArgumentValueError for a handle that was not minted, or was ended."""
        try:
            return self._boxes[handle]
        except KeyError:
            raise self._unknown(handle) from None

    def swap(self, handle: int, target: "Any") -> "Any":
        """Put an object into the box; what was in it. Raises: ArgumentValueError."""
        with self._lock:
            former = self._boxes.get(handle)
            if former is not None:
                self._boxes[handle] = target
                return former
        raise self._unknown(handle)

    def remove(self, handle: int) -> "Any":
        """End a handle; what was in its box. Raises: ArgumentValueError."""
        try:
            return self._boxes.pop(handle)
        except KeyError:
            raise self._unknown(handle) from None

    def renew_lock(self) -> None:
        """Make the lock anew, in a process that was forked; the objects are the parent's."""
        self._lock = locks.RLock()
        self._of_parent = self._of_parent or bool(self._boxes)
        self._boxes.clear()

    def _unknown(self, handle: int) -> errors.ArgumentValueError:
        said = f"nothing has the handle {handle:#x}: unknown, or destroyed already"
        return unknown(said, of_parent=self._of_parent)
