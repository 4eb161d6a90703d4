"""Memory of virtual-memory segments shared with other processes, by file descriptors of the pieces that it lies in."""

import os
from functools import partial
from multiprocessing import ProcessError, reduction

from nbxrt import errors
from nbxrt.objects.ipc import Handle
from nbxrt.objects.memory import Memory, OwnedMemory
from nbxrt.objects.state import refuse_copying

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.runtime import Runtime


class SegmentHandle(Handle):
    """A handle of memory by file descriptors, which it owns: they are closed with it, or by `close`.

    `multiprocessing` passes it on (queues, pipes, arguments of processes). Bytes alone hold no file descriptors, so
    `pickle` itself refuses it.
    """

    __slots__ = ("_files", "sizes")

    def __init__(self, device: "Device", sizes: "tuple[int, ...]", offset: int, nbytes: int) -> None:
        self._files: list[int] = []
        self.sizes = sizes
        super().__init__("memory", device, b"", offset=offset, nbytes=nbytes)

    @property
    def files(self) -> "tuple[int, ...]":
        """The file descriptor of each piece, in the order of addresses; `sizes` has the bytes of each.

        Raises: ArgumentValueError when it is closed.
        """
        if len(self._files) != len(self.sizes):
            raise errors.ArgumentValueError(f"{self!r} is closed", value=self)
        return tuple(self._files)

    def close(self, _close: "Callable[[int], None]" = os.close) -> None:
        """Close its file descriptors; what was opened from it stays. Closing it again does nothing."""
        while self._files:
            try:
                file = self._files.pop()
            except IndexError:  # another thread has closed the last one
                return
            _close(file)

    def __reduce__(self) -> "Any":
        raise refuse_copying(
            self,
            "send it by `multiprocessing` (a queue, a pipe, an argument of a process), which passes file descriptors; "
            "the handle of a `Buffer(nbytes, shareable=True)` is plain data",
        )

    def __del__(self) -> None:
        self.close()


def _reduced(handle: SegmentHandle) -> "tuple[Any, ...]":
    """What `multiprocessing` sends for a handle."""
    plain = {name: getattr(handle, name) for name in (*Handle.__slots__, "sizes")}
    sent = [reduction.DupFd(file) for file in handle.files]  # type: ignore[attr-defined,unused-ignore]  # not Windows's
    return _received, (plain, sent)


def _received(plain: "dict[str, Any]", sent: "list[Any]") -> SegmentHandle:
    handle = SegmentHandle.__new__(SegmentHandle)
    handle._files = []  # noqa: SLF001
    for name, value in plain.items():
        setattr(handle, name, value)
    try:
        _fill(handle, (each.detach for each in sent))
    except (OSError, EOFError, ProcessError) as error:
        raise errors.ExchangeError(
            f"the file descriptors of {handle!r} did not arrive: {error!r}",
            hint="who sends a handle has to live until it is received, which is once each time that it is sent, and is "
            "of the same program: `multiprocessing` passes descriptors between a process and those that it starts",
        ) from error
    return handle


def _fill(handle: SegmentHandle, files: "Iterator[Callable[[], int]]") -> None:
    """Give a handle what each function gives, or close it."""
    try:
        for file in files:
            handle._files.append(file())  # noqa: SLF001
    except BaseException:
        handle.close()
        raise


reduction.register(SegmentHandle, _reduced)


def of_pieces(device: "Device", pieces: "list[tuple[int, int]]", address: int, nbytes: int) -> SegmentHandle:
    """A handle of a range that lies in these pieces of memory. Raises: DeviceError."""
    handle = SegmentHandle(device, tuple(size for _piece, size in pieces), address - pieces[0][0], nbytes)
    _fill(handle, (partial(device.on, _exported, device.runtime, piece) for piece, _size in pieces))
    return handle


def _exported(runtime: "Runtime", address: int) -> int:
    """A file descriptor of the physical memory at an address."""
    retained = runtime.mem_retain(address)
    try:
        file: int = runtime.mem_export(retained)
    finally:
        runtime.mem_release(retained)
    return file


def open_pieces(handle: SegmentHandle, device: "Device") -> "tuple[Memory, int, int]":
    """The memory that a handle stands for, and the address and size of the part that was shared.

    Each opening is a mapping at addresses of its own. Raises: OutOfMemoryError, DeviceError.
    """
    mapping = _Mapping(device.runtime, device.index, handle.sizes)
    address = device.on(mapping.make, handle.files)
    return OwnedMemory(device, address, mapping.nbytes, mapping.undo), address + handle.offset, handle.nbytes


class _Mapping:
    """A range of addresses with the memory of another process behind it."""

    __slots__ = ("_device", "_runtime", "_sizes", "nbytes")

    def __init__(self, runtime: "Runtime", device: int, sizes: "tuple[int, ...]") -> None:
        self._runtime, self._device, self._sizes, self.nbytes = runtime, device, sizes, sum(sizes)

    def make(self, files: "tuple[int, ...]") -> int:
        """Its address. Raises: OutOfMemoryError, DeviceError, after which nothing is left of it."""
        address: int = self._runtime.mem_address_reserve(self.nbytes)
        end = address
        try:
            for index, file in enumerate(files):
                self._map(end, self._sizes[index], file)
                end += self._sizes[index]
            self._runtime.mem_set_access(address, self.nbytes, self._device)
        except BaseException:
            self._unmap(address, end)
            raise
        return address

    def _map(self, address: int, nbytes: int, file: int) -> None:
        imported = self._runtime.mem_import(file)
        try:
            self._runtime.mem_map(address, nbytes, 0, imported)
        finally:
            self._runtime.mem_release(imported)

    def undo(self, address: int) -> None:
        """Take it away, once the work of its device has finished. Raises: DeviceError."""
        self._runtime.sync()
        self._unmap(address, address + self.nbytes)

    def _unmap(self, address: int, end: int) -> None:
        at = address
        for size in self._sizes:
            if at < end:
                self._runtime.mem_unmap(at, size)
            at += size
        self._runtime.mem_address_free(address, self.nbytes)
