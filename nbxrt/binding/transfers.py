"""Copies and fills of memory that stands for objects: by the device where its rules allow it, else by the host."""

import ctypes

from nbxrt.binding.addresses import is_minted
from nbxrt.binding.pages import WrappedPages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nbxrt.binding.addresses import Addresses, Block
    from nbxrt.binding.binder import Binder
    from nbxrt.binding.queues import Queues, Stream
    from nbxrt.binding.states import State


#: Positions of the words of `memcpy_kind` whose target, and whose source, is device memory.
TO_DEVICE, FROM_DEVICE = (1, 3), (2, 3)


class Transfers:
    """Copies and fills on a stream are the device's where it can do them, and the host's when the stream has finished.

    Inside its own memory the device copies what its rules of sizes and offsets allow. Memory that the host sees is
    otherwise moved by the host. Memory that it does not see is carried by the file's parts `read` and `write`.
    """

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._queues: Queues = binder.policy("queues")
        self._table: Addresses = binder.addresses
        self._alignment: int = binder.values("transfers").get("alignment", 1)
        self._copy, self._fill = (binder.part("transfers", part) for part in ("copy", "fill"))
        #: By the model of device; none for memory that the host sees.
        self._read, self._write = (binder.parts_by_model("transfers", part) for part in ("read", "write"))
        pages = WrappedPages(binder)
        self.host_register, self.host_unregister = pages.host_register, pages.host_unregister

    def memcpy(self, dst: int, src: int, nbytes: int, kind: int) -> None:
        sides = self._sides("memcpy", dst, src, nbytes, kind)
        for state in {side.state for side in sides if side is not None} or {self._binder.state()}:
            self._queues.drain_all(state)
        self._move(dst, src, nbytes, *sides)

    def memcpy_async(self, dst: int, src: int, nbytes: int, kind: int, stream: int) -> None:
        record = self._queues.find(stream)
        sides = self._sides("memcpy_async", dst, src, nbytes, kind)
        if not self._give(dst, src, nbytes, *sides, record):
            self._drain(record, *sides)
            self._move(dst, src, nbytes, *sides)

    def memset(self, address: int, value: int, nbytes: int) -> None:
        self._set("memset", address, value, nbytes, self._queues.find(0))

    def memset_async(self, address: int, value: int, nbytes: int, stream: int) -> None:
        self._set("memset_async", address, value, nbytes, self._queues.find(stream))

    def _give(
        self, dst: int, src: int, nbytes: int, target: "Block | None", source: "Block | None", stream: "Stream"
    ) -> bool:
        """Give a copy to the device, ordered on the stream, where it can do it; whether it was given."""
        if target is not None and source is not None and target.state is stream.state is source.state:
            there, here = target.offset_of(dst), source.offset_of(src)
            overlaps = target.target == source.target and abs(there - here) < nbytes
            if overlaps or not self._suits(there, here, nbytes):
                return False
            self._raise_lost(stream)
            self._copy(stream.state, source.target, here, target.target, there, nbytes, stream)
            return True
        is_read, is_written = self._is_unseen(source), self._is_unseen(target)
        if is_read and not is_written and source is not None and source.state is stream.state:
            self._raise_lost(stream)
            read = _of_model(self._read, stream.state)
            read(stream.state, source.target, source.offset_of(src), dst, nbytes, stream)
            return True
        if is_written and not is_read and target is not None and target.state is stream.state:
            self._raise_lost(stream)
            write = _of_model(self._write, stream.state)
            write(stream.state, src, target.target, target.offset_of(dst), nbytes, stream)
            return True
        return False

    def _set(self, operation: str, address: int, value: int, nbytes: int, stream: "Stream") -> None:
        block = self._table.within(address, nbytes, operation)
        offset = block.offset_of(address)
        if block.state is stream.state and self._suits(offset, offset, nbytes):
            self._raise_lost(stream)
            self._fill(stream.state, block.target, offset, nbytes, value & 0xFF, stream)
            return
        self._drain(stream, block)
        if self._is_unseen(block):
            filled = ctypes.create_string_buffer(bytes((value & 0xFF,)) * nbytes, nbytes)
            self._move(address, ctypes.addressof(filled), nbytes, block, None)
            return
        ctypes.memset(address, value & 0xFF, nbytes)

    def _move(self, dst: int, src: int, nbytes: int, target: "Block | None", source: "Block | None") -> None:
        """Copy what nothing works on any more, and wait for it; what no device can do goes through the host."""
        unseen = [side for side in (target, source) if self._is_unseen(side) and side is not None]
        if not unseen:
            ctypes.memmove(dst, src, nbytes)
            return
        stream = unseen[0].state.default_stream
        if self._give(dst, src, nbytes, target, source, stream):
            self._queues.drain(stream)
            return
        room = ctypes.create_string_buffer(nbytes)
        self._move(ctypes.addressof(room), src, nbytes, None, source)
        self._move(dst, ctypes.addressof(room), nbytes, target, None)

    def _is_unseen(self, block: "Block | None") -> bool:
        """Whether memory is one that the host does not see."""
        return block is not None and block.memory == "device" and _of_model(self._read, block.state) is not None

    def _drain(self, stream: "Stream", *blocks: "Block | None") -> None:
        """Wait for the stream, and for all of another device that has some of the memory."""
        self._queues.drain(stream)
        for state in {block.state for block in blocks if block is not None} - {stream.state}:
            self._queues.drain_all(state)

    def _sides(self, operation: str, dst: int, src: int, nbytes: int, kind: int) -> "tuple[Block | None, Block | None]":
        """The memory of each side, None for the host's own; where the kind says device memory, it has to be there.

        Raises: ArgumentValueError where the bytes go beyond its end, or where there has to be some and is none.
        """
        target = self._within(operation, dst, nbytes, must_be=kind in TO_DEVICE)
        return target, self._within(operation, src, nbytes, must_be=kind in FROM_DEVICE)

    def _within(self, operation: str, address: int, nbytes: int, *, must_be: bool) -> "Block | None":
        if not must_be and not is_minted(address) and self._table.look(address) is None:
            return None
        return self._table.within(address, nbytes, operation)

    def _suits(self, there: int, here: int, nbytes: int) -> bool:
        by = self._alignment
        return not (nbytes % by or there % by or here % by)

    @staticmethod
    def _raise_lost(stream: "Stream") -> None:
        if stream.failed:
            raise stream.failure()


def _of_model(parts: "Mapping[str, Any]", state: "State") -> "Any":
    """A part as it is for a device; None where it is not given for that."""
    return parts.get(state.model) or parts.get("")
