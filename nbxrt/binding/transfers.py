"""Copies and fills for APIs whose device memory the host can also see: by the device where it can, else by the host."""

import ctypes

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.binding.addresses import Block
    from nbxrt.binding.binder import Binder
    from nbxrt.binding.queues import Stream


class Transfers:
    """A copy inside device memory goes through the stream where sizes and offsets suit the device.

    Everything else is done by the host when the stream has finished: with memory that both see that is a plain copy.
    """

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        self._alignment: int = binder.values("transfers").get("alignment", 1)
        self._copy, self._fill = (binder.part("transfers", part) for part in ("copy", "fill"))

    def memcpy(self, dst: int, src: int, nbytes: int, _kind: int) -> None:
        self._transfer("memcpy", dst, src, nbytes, self._queues().find(0), whole_device=True)

    def memcpy_async(self, dst: int, src: int, nbytes: int, _kind: int, stream: int) -> None:
        self._transfer("memcpy_async", dst, src, nbytes, self._queues().find(stream), whole_device=False)

    def memset(self, address: int, value: int, nbytes: int) -> None:
        self._set("memset", address, value, nbytes, self._queues().find(0))

    def memset_async(self, address: int, value: int, nbytes: int, stream: int) -> None:
        self._set("memset_async", address, value, nbytes, self._queues().find(stream))

    def _queues(self) -> "Any":
        return self._binder.policy("queues")

    def _transfer(
        self, operation: str, dst: int, src: int, nbytes: int, stream: "Stream", *, whole_device: bool
    ) -> None:
        target, source = (self._within(operation, address, nbytes) for address in (dst, src))
        if target is not None and source is not None and target.target != source.target:
            offsets = (src - source.address, dst - target.address)
            if self._suits(*offsets, nbytes) and target.state is stream.state is source.state:
                self._raise_lost(stream)
                self._copy(stream.state, source.target, offsets[0], target.target, offsets[1], nbytes, stream)
                return
        self._finish(stream, whole_device=whole_device)
        ctypes.memmove(dst, src, nbytes)

    def _set(self, operation: str, address: int, value: int, nbytes: int, stream: "Stream") -> None:
        block = self._within(operation, address, nbytes)
        if block is not None and block.state is stream.state and self._suits(address - block.address, nbytes):
            self._raise_lost(stream)
            self._fill(stream.state, block.target, address - block.address, nbytes, value & 0xFF, stream)
            return
        self._finish(stream, whole_device=False)
        ctypes.memset(address, value & 0xFF, nbytes)

    def _within(self, operation: str, address: int, nbytes: int) -> "Block | None":
        """The memory that an address lies in; None for memory of the host alone.

        Raises: ArgumentValueError where the bytes go beyond its end.
        """
        block: Block | None = self._binder.addresses.look(address)
        if block is not None and address + nbytes > block.address + block.nbytes:
            raise errors.ArgumentValueError(
                f"`{operation}`: {nbytes} bytes at {address:#x} go beyond the end of the allocation at "
                f"{block.address:#x}, which has {block.nbytes}",
                operation=operation,
            )
        return block

    def _suits(self, *numbers: int) -> bool:
        return all(number % self._alignment == 0 for number in numbers)

    def _finish(self, stream: "Stream", *, whole_device: bool) -> None:
        """Wait for the work that may touch the bytes: the stream's, or with an ordinary copy the whole device's."""
        if whole_device:
            self._queues().sync()
        else:
            self._queues().drain(stream)

    @staticmethod
    def _raise_lost(stream: "Stream") -> None:
        if stream.failed:
            raise stream.failure()
