"""Policies for memory that host and device reach at one address: copies, fills, and pages of the caller's.

The device copies and fills where its rules allow it, in the caller's stream and without waiting. What they do not
allow, the host does once the stream has nothing left to do: the order is kept, and the call waits.
"""

import ctypes
import mmap

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.binding.addresses import Block
    from nbxrt.binding.binder import Binder
    from nbxrt.binding.queues import Queues, Stream

#: Positions of the words of `memcpy_kind` whose target, and whose source, is device memory.
TO_DEVICE, FROM_DEVICE = (1, 3), (2, 3)


class HostVisible:
    """Copies and fills of memory that the host sees."""

    def __init__(self, binder: "Binder") -> None:
        self._table = binder.addresses
        self._queues: Queues = binder.policy("queues")
        #: What offsets and sizes have to be multiples of for the device.
        self._multiple: int = binder.values("host_visible").get("multiple", 1)
        self._copy, self._fill = (binder.part("host_visible", part) for part in ("copy", "fill"))

    def memcpy(self, dst: int, src: int, nbytes: int, kind: int) -> None:
        sides = self._sides("memcpy", dst, src, nbytes, kind)
        for state in {side.state for side in sides if side is not None} or {self._queues.find(0).state}:
            self._queues.drain_all(state)
        ctypes.memmove(dst, src, nbytes)

    def memcpy_async(self, dst: int, src: int, nbytes: int, kind: int, stream: int) -> None:
        record = self._stream(stream)
        target, source = self._sides("memcpy_async", dst, src, nbytes, kind)
        if target is not None and source is not None:
            there, here = _offset(target, dst), _offset(source, src)
            if self._is_for_device(record, target, source, there, here, nbytes):
                work = self._copy(record.state, record.queue, source.target, here, target.target, there, nbytes)
                self._queues.pend(record, work)
                return
        self._queues.drain(record)
        ctypes.memmove(dst, src, nbytes)

    def memset(self, address: int, value: int, nbytes: int) -> None:
        self._filled("memset", address, value, nbytes, 0)

    def memset_async(self, address: int, value: int, nbytes: int, stream: int) -> None:
        self._filled("memset_async", address, value, nbytes, stream)

    def _filled(self, operation: str, address: int, value: int, nbytes: int, stream: int) -> None:
        record = self._stream(stream)
        block = self._block(operation, "address", address, nbytes)
        offset = _offset(block, address)
        if (offset | nbytes) % self._multiple == 0 and block.state is record.state:
            work = self._fill(record.state, record.queue, block.target, offset, nbytes, value & 0xFF)
            self._queues.pend(record, work)
            return
        self._queues.drain(record)
        ctypes.memset(address, value & 0xFF, nbytes)

    def _stream(self, stream: int) -> "Stream":
        record = self._queues.find(stream)
        if record.failed:
            raise record.failure()
        return record

    def _sides(self, operation: str, dst: int, src: int, nbytes: int, kind: int) -> "tuple[Block | None, Block | None]":
        """The memory of this backend on each side; where the kind says that there is some, it has to be there."""
        target = self._side(operation, "dst", dst, nbytes, must_be=kind in TO_DEVICE)
        return target, self._side(operation, "src", src, nbytes, must_be=kind in FROM_DEVICE)

    def _side(self, operation: str, parameter: str, address: int, nbytes: int, *, must_be: bool) -> "Block | None":
        if must_be or self._table.look(address) is not None:
            return self._block(operation, parameter, address, nbytes)
        return None

    def _block(self, operation: str, parameter: str, address: int, nbytes: int) -> "Block":
        """The memory that a range lies in. Raises: ArgumentValueError where it lies in none, or goes on after it."""
        block: Block = self._table.find(address, operation)
        left = block.address + block.nbytes - address
        if nbytes > left:
            raise errors.ArgumentValueError(
                f"`{operation}`: {nbytes} bytes from `{parameter}` {address:#x} on are asked for, and its memory has "
                f"{left} there",
                operation=operation,
                parameter=parameter,
            )
        return block

    def _is_for_device(
        self, record: "Stream", target: "Block", source: "Block", there: int, here: int, nbytes: int
    ) -> bool:
        overlaps = target.target == source.target and abs(there - here) < nbytes
        here_only = target.state is record.state and source.state is record.state
        return here_only and not overlaps and (there | here | nbytes) % self._multiple == 0


def _offset(block: "Block", address: int) -> int:
    """Where an address lies in the object of its memory."""
    offset: int = address - block.address + block.offset
    return offset


class WrappedPages:
    """Host memory of the caller's, made an object that the device reaches: whole pages around it."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._table = binder.addresses
        self._registered: set[int] = set()
        self._wrap, self._unwrap = (binder.part("wrapped_pages", part) for part in ("wrap", "unwrap"))

    def host_register(self, address: int, nbytes: int) -> None:
        if self._table.look(address) is not None or self._table.look(address + nbytes - 1) is not None:
            raise self._failure("host_register", "already_registered", address=address, nbytes=nbytes)
        state = self._binder.state()
        skipped = address % mmap.PAGESIZE
        length = -(-(skipped + nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        target = self._wrap(state, address - skipped, length)
        self._table.add(address, nbytes, target, state, "host", skipped)
        self._registered.add(address)

    def host_unregister(self, address: int) -> None:
        if address not in self._registered:
            raise self._failure("host_unregister", "not_registered", address=address)
        self._registered.discard(address)
        block = self._table.remove(address, "host_unregister", {})
        try:  # nothing of the device may touch the pages once they are the caller's alone
            self._binder.policy("queues").drain_all(block.state)
        finally:
            self._unwrap(block.state, block.target)

    def _failure(self, operation: str, kind: str, **given: "Any") -> errors.DeviceError:
        library = self._binder.library("runtime")
        code = (library.codes(kind) or (0,))[0]
        return library.failure(code, operation, "the address table", given, kind=kind)
