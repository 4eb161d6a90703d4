"""Copies and fills of memory that stands for objects: by the device where its rules allow it, else by the host."""

import ctypes

from nbxrt import errors
from nbxrt.binding.addresses import is_minted
from nbxrt.binding.pages import WrappedPages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.binding.addresses import Block
    from nbxrt.binding.binder import Binder
    from nbxrt.binding.queues import Stream
    from nbxrt.binding.states import State


#: Positions of the words of `memcpy_kind` whose target, and whose source, is device memory.
TO_DEVICE, FROM_DEVICE = (1, 3), (2, 3)


class Transfers:
    """A copy inside device memory goes through the stream where sizes and offsets suit the device.

    Everything else is done by the host when the stream has finished: with memory that both see that is a plain copy.
    Memory with a minted address is the device's alone: the file's parts `read` and `write` carry it over.
    """

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._alignment: int = binder.values("transfers").get("alignment", 1)
        self._copy, self._fill = (binder.part("transfers", part) for part in ("copy", "fill"))
        self._read, self._write = (binder.optional_part("transfers", part) for part in ("read", "write"))
        pages = WrappedPages(binder)
        self.host_register, self.host_unregister = pages.host_register, pages.host_unregister

    def memcpy(self, dst: int, src: int, nbytes: int, kind: int) -> None:
        sides = self._sides("memcpy", dst, src, nbytes, kind)
        for state in {side.state for side in sides if side is not None} or {self._binder.state()}:
            self._queues().drain_all(state)
        self._move(dst, src, nbytes, *sides)

    def memcpy_async(self, dst: int, src: int, nbytes: int, kind: int, stream: int) -> None:
        self._transfer("memcpy_async", dst, src, nbytes, kind, self._queues().find(stream))

    def memset(self, address: int, value: int, nbytes: int) -> None:
        self._set("memset", address, value, nbytes, self._queues().find(0))

    def memset_async(self, address: int, value: int, nbytes: int, stream: int) -> None:
        self._set("memset_async", address, value, nbytes, self._queues().find(stream))

    def _queues(self) -> "Any":
        return self._binder.policy("queues")

    def _transfer(self, operation: str, dst: int, src: int, nbytes: int, kind: int, stream: "Stream") -> None:
        target, source = self._sides(operation, dst, src, nbytes, kind)
        if target is not None and source is not None and target.state is stream.state is source.state:
            there, here = target.offset_of(dst), source.offset_of(src)
            overlaps = target.target == source.target and abs(there - here) < nbytes
            if not overlaps and self._suits(there, here, nbytes):
                self._raise_lost(stream)
                self._copy(stream.state, source.target, here, target.target, there, nbytes, stream)
                return
        self._drain(stream, target, source)
        self._move(dst, src, nbytes, target, source)

    def _set(self, operation: str, address: int, value: int, nbytes: int, stream: "Stream") -> None:
        block = self._within(operation, address, nbytes, must_be=True)
        assert block is not None  # noqa: S101  # it must be
        offset = block.offset_of(address)
        if block.state is stream.state and self._suits(offset, nbytes):
            self._raise_lost(stream)
            self._fill(stream.state, block.target, offset, nbytes, value & 0xFF, stream)
            return
        self._drain(stream, block)
        if is_minted(address):
            filled = ctypes.create_string_buffer(bytes((value & 0xFF,)) * nbytes, nbytes)
            self._move(address, ctypes.addressof(filled), nbytes, block, None)
            return
        ctypes.memset(address, value & 0xFF, nbytes)

    def _move(self, dst: int, src: int, nbytes: int, target: "Block | None", source: "Block | None") -> None:
        """Copy by the host what nothing works on any more; what it does not see is read first, and written after."""
        if source is not None and is_minted(src):
            room = ctypes.create_string_buffer(nbytes) if is_minted(dst) else None
            host = dst if room is None else ctypes.addressof(room)
            self._carry(self._read, source.state, source.target, source.offset_of(src), host, nbytes)
            if room is None:
                return
            src = host
        if target is not None and is_minted(dst):
            self._carry(self._write, target.state, src, target.target, target.offset_of(dst), nbytes)
            return
        ctypes.memmove(dst, src, nbytes)

    def _carry(self, part: "Any", state: "State", *given: int) -> None:
        """Read or write on the device's default stream, and wait for it."""
        stream = state.default_stream
        self._raise_lost(stream)
        part(state, *given, stream)
        self._queues().drain(stream)

    def _drain(self, stream: "Stream", *blocks: "Block | None") -> None:
        """Wait for the stream, and for all of another device that has some of the memory."""
        self._queues().drain(stream)
        for state in {block.state for block in blocks if block is not None} - {stream.state}:
            self._queues().drain_all(state)

    def _sides(self, operation: str, dst: int, src: int, nbytes: int, kind: int) -> "tuple[Block | None, Block | None]":
        """The memory of each side, None for the host's own; where the kind says device memory, it has to be there."""
        target = self._within(operation, dst, nbytes, must_be=kind in TO_DEVICE)
        return target, self._within(operation, src, nbytes, must_be=kind in FROM_DEVICE)

    def _within(self, operation: str, address: int, nbytes: int, *, must_be: bool) -> "Block | None":
        """The memory that an address lies in; None for memory of the host alone.

        Raises: ArgumentValueError where the bytes go beyond its end, or where there has to be some and is none.
        """
        table = self._binder.addresses
        must_be = must_be or is_minted(address)
        block: Block | None = table.find(address, operation) if must_be else table.look(address)
        if block is not None and address + nbytes > block.address + block.nbytes:
            raise errors.ArgumentValueError(
                f"`{operation}`: {nbytes} bytes at {address:#x} go beyond the end of the allocation at "
                f"{block.address:#x}, which has {block.nbytes}",
                operation=operation,
            )
        return block

    def _suits(self, *numbers: int) -> bool:
        return all(number % self._alignment == 0 for number in numbers)

    @staticmethod
    def _raise_lost(stream: "Stream") -> None:
        if stream.failed:
            raise stream.failure()
