"""The address table: which memory an address lies in, and the object that it stands for. Handles for objects too."""

from bisect import bisect_right, insort

from nbxrt import errors, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Where addresses begin that stand for objects without one: no process has memory there, so no copy by the host
#: can be taken for one. Each is followed by a gap, so that one past the end of an allocation is in none.
FIRST_MINTED = 0x4E42_0000_0000_0000
GAP = 4096


class Block:
    """Memory in the table: its address and size, the object that it stands for, the state of its device, its kind."""

    __slots__ = ("address", "memory", "nbytes", "offset", "state", "target")

    def __init__(self, address: int, nbytes: int, target: int, state: "Any", memory: str, offset: int = 0) -> None:
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
    """The table of one backend. Its lock guards the order of addresses, which is looked up for interior ones."""

    def __init__(self) -> None:
        self._lock = locks.Lock()
        self._blocks: dict[int, Block] = {}
        self._starts: list[int] = []
        self._next = FIRST_MINTED

    def add(self, address: int, nbytes: int, target: int, state: "Any", memory: str, offset: int = 0) -> None:
        """Put memory into the table; what was at the same address before was freed behind our back."""
        with self._lock:
            if address not in self._blocks:
                insort(self._starts, address)
            self._blocks[address] = Block(address, nbytes, target, state, memory, offset)

    def mint(self, nbytes: int, target: int, state: "Any", memory: str) -> int:
        """A new address for an object that has none, a multiple of 4096."""
        with self._lock:
            address = self._next
            self._next += -(-nbytes // GAP) * GAP + GAP
        self.add(address, nbytes, target, state, memory)
        return address

    def remove(self, address: int, operation: str, _given: "Mapping[str, Any]") -> Block:
        """Take out the memory that begins at an address.

        Raises: ArgumentValueError for an address at which none begins.
        """
        with self._lock:
            block = self._blocks.pop(address, None)
            if block is not None:
                del self._starts[bisect_right(self._starts, address) - 1]
                return block
        inside = self.look(address)
        where = f"lies inside the allocation at {inside.address:#x}" if inside else "is no memory of this backend"
        raise errors.ArgumentValueError(
            f"`{operation}`: the address {address:#x} {where}, or was released already", operation=operation
        )

    def find(self, address: int, operation: str) -> Block:
        """The memory that an address lies in; one past its end is outside.

        Raises: ArgumentValueError.
        """
        block = self._blocks.get(address) or self.look(address)
        if block is None:
            raise errors.ArgumentValueError(
                f"`{operation}`: the address {address:#x} lies in no memory of this backend", operation=operation
            )
        return block

    def look(self, address: int) -> "Block | None":
        """The memory that an address lies in, or None."""
        with self._lock:
            at = bisect_right(self._starts, address) - 1
            block = self._blocks[self._starts[at]] if at >= 0 else None
        return block if block is not None and address < block.address + max(block.nbytes, 1) else None

    def __len__(self) -> int:
        return len(self._blocks)

    def allocated(self, state: "Any") -> int:
        """The bytes in the table that were made on a device."""
        with self._lock:
            return sum(block.nbytes for block in self._blocks.values() if block.state is state)

    def renew_lock(self) -> None:
        """Make the lock anew, in a process that was forked; the memory is the parent's."""
        self._lock = locks.Lock()
        self._blocks.clear()
        self._starts.clear()


class Boxes:
    """Objects behind handles that nbxrt mints. Its lock guards the making of handles."""

    def __init__(self) -> None:
        self._lock = locks.Lock()
        self._boxes: dict[int, Any] = {}
        self._next = 0x1000

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
        """Make the lock anew, in a process that was forked."""
        self._lock = locks.Lock()

    @staticmethod
    def _unknown(handle: int) -> errors.ArgumentValueError:
        return errors.ArgumentValueError(f"nothing has the handle {handle:#x}: unknown, or destroyed already")
