"""Buffers: bytes of a device, of page-locked host memory or of managed memory."""

from nbxrt import errors
from nbxrt.errors import integer, wrong_type
from nbxrt.objects import copying
from nbxrt.objects.copying import Side, host_side
from nbxrt.objects.device import as_device
from nbxrt.objects.dtypes import DTYPES
from nbxrt.objects.hostmemory import memory_at
from nbxrt.objects.memory import Memory, allocated, check_kind
from nbxrt.objects.state import follow_runtimes, refuse_copying
from nbxrt.objects.stream import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

    from nbxrt.objects.array import DeviceArray
    from nbxrt.objects.given import DeviceLike, MemoryKind, StreamLike
    from nbxrt.objects.ipc import Handle
    from nbxrt.runtime import Runtime

#: The most bytes of a pattern that are written from the host; the rest is copied from what is there already.
_PATTERN = 1 << 16


class Buffer:
    """New memory, `nbytes` bytes without a type.

    `kind` is `device`, `pinned` (page-locked host memory) or `managed` (which migrates between both).
    It is for use on `stream`, the thread's current one when left out, and is given back with the last Buffer or
    DeviceArray that shares it. Slices share the memory and keep it. As a context manager it is closed after the block.
    `shareable` device memory has a handle for other processes, and comes from the driver instead of the account's pool;
    where the device gives none it is refused here already.
    `ptr` is its address, 0 for no bytes. Safe to use from several threads.
    Raises: ArgumentError; CapabilityError; OutOfMemoryError, DeviceError.
    """

    __slots__ = ("__weakref__", "_device_idx", "device", "memory", "nbytes", "ptr", "runtime")

    def __init__(
        self,
        nbytes: int,
        device: "DeviceLike" = None,
        *,
        stream: "StreamLike" = None,
        kind: "MemoryKind" = "device",
        shareable: bool = False,
    ) -> None:
        device = as_device(device)
        if errors.boolean("`Buffer`", "shareable", shareable) and kind != "device":
            raise errors.ArgumentValueError(f"`shareable` is for device memory, not for {kind} memory", value=kind)
        ordered = as_stream(stream, device)
        if shareable:
            from nbxrt.objects import ipc

            memory = ipc.shareable(nbytes, device)
        else:
            memory = allocated(nbytes, device, ordered, kind)
        self._stand_for(memory, memory.address, memory.nbytes)

    @classmethod
    def from_handle(
        cls, ptr: int, nbytes: int, device: "DeviceLike" = None, *, owner: "Any" = None, kind: "MemoryKind" = "device",
        readonly: bool = False,
    ) -> "Buffer":  # fmt: skip
        """Memory of somebody else, which is never given back here; `owner` is kept as long as the memory is used.

        Raises: ArgumentTypeError, ArgumentValueError; as `Device`.
        """
        address, size = (
            integer("`Buffer.from_handle`", f"an integer for `{name}`", value)
            for name, value in (("ptr", ptr), ("nbytes", nbytes))
        )
        if not 0 <= address <= address + size < 1 << 64 or (size and not address):
            raise errors.ArgumentValueError(f"{size} bytes at {address} are no memory", value=ptr)
        check_kind(kind)
        errors.boolean("`Buffer.from_handle`", "readonly", readonly)
        memory = Memory(as_device(device), address, size, kind, owner, readonly)
        return shared(memory, memory.address, memory.nbytes)

    def _stand_for(self, memory: Memory, ptr: int, nbytes: int) -> None:
        self.memory, self.ptr, self.nbytes = memory, ptr, nbytes
        self.device = memory.device
        self.runtime, self._device_idx = memory.device.runtime, memory.device.index

    @property
    def kind(self) -> str:
        """`device`, `pinned` or `managed`."""
        return self.memory.kind

    @property
    def stream(self) -> "Any":
        """The stream that it was allocated for, None for memory of somebody else."""
        return self.memory.stream

    @property
    def is_closed(self) -> bool:
        """Whether the memory was given back."""
        return not self.memory.is_open

    @property
    def owns(self) -> bool:
        """Whether the memory is given back with the last object that shares it."""
        return self.memory.is_owned

    def __len__(self) -> int:
        return self.nbytes

    def __repr__(self) -> str:
        state = ", closed" if self.is_closed else ""
        return f"<nbxrt.Buffer of {self.nbytes} bytes, {self.kind} memory of {self.device}{state}>"

    def __reduce__(self) -> "Any":
        raise refuse_copying(self, "`buffer.ipc_handle()` is for other processes, `buffer.tobytes()` for the bytes")

    def data_ptr(self) -> int:
        """Its address. Raises: ArgumentValueError when it is closed."""
        self.memory.check()
        return self.ptr

    def __getitem__(self, part: "slice") -> "Buffer":
        """The bytes of a slice with step 1, sharing the memory.

        Raises: ArgumentTypeError; ArgumentValueError for a slice that is not wholly inside.
        """
        if not isinstance(part, slice):
            raise wrong_type("a Buffer", "a slice", part)
        self.memory.check()
        first, last = _bounds(part, self.nbytes)
        return shared(self.memory, self.ptr + first if self.ptr else 0, last - first)

    # copies

    def copy_from(self, source: "Any", *, stream: "StreamLike" = None) -> None:
        """Copy all bytes of `source`: a Buffer, a contiguous DeviceArray, or anything with the buffer protocol.

        With a stream the copy is ordered on it and may be done later; the source is kept, and locked against resizing,
        until the stream has passed the copy, and must not be changed before. Without one the copy is ordered on the
        thread's current stream and done when this returns. From plain (pageable) host memory the vendor may copy into
        page-locked memory of its own first, so the call may last as long as the copy: `kind="pinned"` avoids that.
        Raises: ArgumentTypeError; ArgumentValueError where sizes differ, the sides overlap, or one is closed,
        read-only, not contiguous or of another backend; DeviceError.
        """
        copying.copy(self.side(), side_of(source, "`copy_from`", written=False), self.device, stream)

    def copy_to(self, target: "Any", *, stream: "StreamLike" = None) -> None:
        """Copy all bytes into `target`; as `copy_from`, with the sides exchanged.

        With a stream, what is in `target` may be read only after the stream was waited for.
        """
        copying.copy(side_of(target, "`copy_to`", written=True), self.side(), self.device, stream)

    def tobytes(self) -> bytes:
        """A copy of its bytes; waits for the thread's current stream. Raises: as `copy_to`."""
        copied = bytearray(self.nbytes)
        self.copy_to(copied)
        return bytes(copied)

    def fill(self, value: "int | bytes", *, stream: "StreamLike" = None) -> None:
        """Fill it with a byte, an integer from 0 to 255, or a pattern of 1, 2 or 4 bytes; ordered on the stream.

        It may be done later; the order of the stream is all that later work on it needs.
        Raises: ArgumentTypeError, ArgumentValueError for another pattern, or one that does not go into it; DeviceError.
        """
        pattern = _pattern(value, self.nbytes)
        self.memory.check()
        if self.memory.readonly:
            raise errors.ArgumentValueError(f"{self!r} may only be read", value=self)
        ordered = as_stream(stream, self.device)
        if not self.nbytes:
            return
        if pattern == pattern[:1] * len(pattern):
            self.memory.used_on(ordered)
            _set_bytes(self, pattern[0], ordered)
            return
        written = min(self.nbytes, _PATTERN)
        self[:written].copy_from(pattern * (written // len(pattern)), stream=ordered)
        while written < self.nbytes:
            more = min(written, self.nbytes - written)
            self[written : written + more].copy_from(self[:more], stream=ordered)
            written += more

    # lifetime

    def close(self) -> None:
        """Give the memory back for all that share it; closing it again does nothing. Raises: DeviceError."""
        self.memory.close()

    def __enter__(self) -> "Self":
        self.memory.check()
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self.close()

    # other processes

    def ipc_handle(self) -> "Handle":
        """A handle of its bytes for another process; that of `shareable` memory can be pickled.

        Memory of the policy `expandable` has one too where its pieces have file descriptors: it travels by
        `multiprocessing`. Work that fills the bytes has to be waited for.
        Raises: CapabilityError where the backend has none; ArgumentValueError, DeviceError.
        """
        from nbxrt.objects import ipc

        return ipc.of_buffer(self)

    @classmethod
    def from_ipc_handle(cls, handle: "Handle") -> "Buffer":
        """The bytes of another process by its handle; that process keeps them alive.

        Raises: ArgumentTypeError; ArgumentValueError for a handle of this process, another backend or a hidden device;
        CapabilityError, OutOfMemoryError, DeviceError.
        """
        from nbxrt.objects import ipc

        return shared(*ipc.open_memory(handle))

    # exchange

    def __dlpack__(self, **asked: "Any") -> "Any":
        """A capsule of DLPack: an array of bytes. Raises: ExchangeError."""
        return self.bytes_array().__dlpack__(**asked)

    def __dlpack_device__(self) -> "tuple[int, int]":
        """DLPack's device type and id. Raises: ExchangeError."""
        return self.bytes_array().__dlpack_device__()

    @property
    def __array_interface__(self) -> "dict[str, Any]":
        """NumPy's interface, of memory that the host reaches. Raises: AttributeError for others."""
        return self.bytes_array().__array_interface__

    def bytes_array(self) -> "DeviceArray":
        """The same memory as a DeviceArray of `uint8`."""
        from nbxrt.objects.array import DeviceArray

        return DeviceArray(self.memory, self.ptr, (self.nbytes,), (1,), DTYPES["uint8"])

    def __buffer__(self, _flags: int) -> memoryview:
        """Its bytes for the host (Python 3.12 and later). Raises: BufferError where the host does not reach them."""
        self.memory.check()
        if not self.memory.on_host:
            raise errors.ExchangeError(f"the host does not reach {self!r}", hint="`buffer.tobytes()` copies it")
        return memory_at(self.ptr, self.nbytes, readonly=self.memory.readonly)

    def side(self) -> Side:
        """It as a side of a copy."""
        return Side(self.ptr, self.nbytes, self.memory, self)


@follow_runtimes
def _offer_interface(runtime: "Runtime") -> None:
    """Give buffers the interface that the vendor's libraries share memory by, as arrays have it."""
    name = runtime.description["interop"]["array_interface"]
    if name and name not in Buffer.__dict__:
        setattr(Buffer, name, property(lambda buffer: getattr(buffer.bytes_array(), name)))


def shared(memory: Memory, ptr: int, nbytes: int) -> Buffer:
    """A Buffer of a part of some memory."""
    buffer = Buffer.__new__(Buffer)
    buffer._stand_for(memory, ptr, nbytes)  # noqa: SLF001
    return buffer


def side_of(value: "Any", what: str, *, written: bool) -> Side:
    """A side of a copy: a Buffer or a contiguous DeviceArray, or the memory of an object of the host.

    Raises: ArgumentTypeError, ArgumentValueError.
    """
    from nbxrt.objects.array import DeviceArray

    if isinstance(value, (Buffer, DeviceArray)):
        return value.side()
    return host_side(value, what, written=written)


def _bounds(part: slice, nbytes: int) -> "tuple[int, int]":
    """First and last byte of a slice, which must be wholly inside: copying less than was asked for hides a mistake."""
    if part.step not in (None, 1):
        raise errors.ArgumentValueError(f"a slice of a Buffer has step 1, not {part.step!r}", value=part)
    ends = [
        default if end is None else integer("a slice of a Buffer", "integers", end)
        for end, default in ((part.start, 0), (part.stop, nbytes))
    ]
    first, last = (end + nbytes if end < 0 else end for end in ends)
    if not 0 <= first <= last <= nbytes:
        raise errors.ArgumentValueError(f"[{part.start}:{part.stop}] is not inside {nbytes} bytes", value=part)
    return first, last


def _pattern(value: "Any", nbytes: int) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            pattern = bytes(value)
        except ValueError as error:  # a view that was released
            raise errors.ArgumentValueError(f"a pattern: {error}", value=value) from None
        if len(pattern) not in (1, 2, 4) or nbytes % len(pattern):
            raise errors.ArgumentValueError(
                f"a pattern has 1, 2 or 4 bytes and goes into {nbytes} bytes without rest; this one has {len(pattern)}",
                value=value,
            )
        return pattern
    number = integer("`fill`", "an integer from 0 to 255, or bytes", value)
    if not 0 <= number <= 255:
        raise errors.ArgumentValueError(
            f"a byte is from 0 to 255, not {number}", hint="give a pattern as bytes", value=value
        )
    return bytes((number,))


def _set_bytes(buffer: Buffer, value: int, stream: "Any") -> None:
    runtime = buffer.runtime
    if runtime.supports("memset_async"):
        stream.call(runtime.memset_async, buffer.ptr, value, buffer.nbytes, stream.handle)
        return
    stream.sync()
    buffer.device.on(runtime.memset, buffer.ptr, value, buffer.nbytes)
    buffer.device.default_stream.sync()
