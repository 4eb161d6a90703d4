"""Arrays: typed, strided views of memory, to hand to kernels and to other libraries. No arithmetic."""

from nbxrt import errors
from nbxrt.objects import arrayinterface, buffer, copying, dlpack, dtypes, layout
from nbxrt.objects.copying import Side
from nbxrt.objects.dtypes import DType, dtype
from nbxrt.objects.hostmemory import memory_at
from nbxrt.objects.memory import Memory, allocated
from nbxrt.objects.state import follow_runtimes, refuse_copying
from nbxrt.objects.stream import as_stream, current_stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.objects.buffer import Buffer
    from nbxrt.objects.device import Device
    from nbxrt.objects.given import StreamLike
    from nbxrt.runtime import Runtime

#: Pieces of a strided array that are copied on the device one by one; more go through the host.
_PIECES = 256


class DeviceArray:
    """A typed, strided view of memory: `shape`, `dtype`, `strides` in bytes, `ptr` (0 where there are no elements).

    `nbxrt.empty`, `zeros`, `from_numpy`, `asarray` and `from_dlpack` make them; views share the memory and keep it.
    `is_aligned` tells whether `ptr` is a multiple of 16. Arithmetic is what CuPy, PyTorch and JAX are for: they take
    one through DLPack without a copy.
    """

    __slots__ = (
        "__weakref__", "_device_idx", "device", "dtype", "exports", "is_aligned", "launch_key", "memory", "ptr",
        "runtime", "shape", "strides",
    )  # fmt: skip

    device: "Device"
    dtype: DType
    shape: "tuple[int, ...]"
    strides: "tuple[int, ...]"
    #: What its exports by DLPack have in common, once there was one.
    exports: "dict[Any, Any] | None"
    #: What launches of kernels keep, None before the first: see nbxrt/launch/keys.py.
    launch_key: "int | None"

    def __init__(
        self, memory: Memory, ptr: int, shape: "tuple[int, ...]", strides: "tuple[int, ...]", kind: DType
    ) -> None:
        """A view of some memory; everything is right already. The functions above are for everybody else."""
        device = memory.device
        # at most three values at once, here and in capsules.py: more would be made a tuple first
        self.memory, self.ptr, self.dtype = memory, ptr, kind
        self.shape, self.strides, self.is_aligned = shape, strides, not ptr & 15
        self.device, self.runtime, self._device_idx = device, device.runtime, device._device_idx  # noqa: SLF001
        self.exports = self.launch_key = None

    # what it is

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return layout.size_of(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, gaps between them not counted."""
        return self.size * self.dtype.itemsize

    @property
    def kind(self) -> str:
        """The kind of memory: `device`, `pinned` or `managed`."""
        return self.memory.kind

    @property
    def readonly(self) -> bool:
        """Whether it may only be read: the memory of another library that said so."""
        return self.memory.readonly

    @property
    def _device(self) -> str:
        return self.runtime.name

    def data_ptr(self) -> int:
        """The address of its first element. Raises: ArgumentValueError when the memory is closed."""
        if not self.memory.is_open:
            self.memory.check()
        return self.ptr

    def ptr_range(self) -> int:
        """The bytes of the allocation that it lies in, as Triton asks for them."""
        return self.memory.nbytes

    def element_size(self) -> int:
        """Bytes of an element, as PyTorch spells it."""
        return self.dtype.itemsize

    def numel(self) -> int:
        """The number of elements, as PyTorch spells it."""
        return layout.size_of(self.shape)

    def stride(self, dim: "int | None" = None) -> "Any":
        """Strides in elements, or that of one dimension, as PyTorch spells it and kernels take it.

        Raises: ArgumentTypeError, ArgumentIndexError.
        """
        if dim is not None:
            return self.strides[layout.position(dim, len(self.strides))] // self.dtype.itemsize
        return tuple(stride // self.dtype.itemsize for stride in self.strides)

    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return layout.is_contiguous(self.shape, self.strides, self.dtype.itemsize)

    def __len__(self) -> int:
        if not self.shape:
            raise errors.ArgumentTypeError("an array of no dimensions has no length", value=self)
        return self.shape[0]

    def __repr__(self) -> str:
        extra = "" if self.is_contiguous() else f", strides={self.strides}"
        extra += "" if self.kind == "device" else f", kind={self.kind}"
        extra += "" if self.memory.is_open else ", closed"
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device}{extra})"

    def __reduce__(self) -> "Any":
        raise refuse_copying(self, "`array.numpy()` is a copy that can be pickled")

    # views

    def __getitem__(self, index: "Any") -> "DeviceArray":
        """A view by integers, slices, `...` and None; also one element is an array, of no dimensions.

        Raises: ArgumentIndexError, ArgumentTypeError, ArgumentValueError.
        """
        offset, shape, strides = layout.indexed(self.shape, self.strides, index)
        return self._view(offset, shape, strides, self.dtype)

    def __iter__(self) -> "Any":
        raise errors.ArgumentTypeError(
            "an array of a device is not iterated over, as each element would be a copy of its own",
            hint="`array.numpy()` copies it once", value=self,
        )  # fmt: skip

    def reshape(self, *shape: "Any") -> "DeviceArray":
        """A view of another shape; one extent may be -1.

        Raises: ArgumentValueError where sizes differ, or where it would need a copy (`.contiguous()` makes one).
        """
        wanted = shape[0] if len(shape) == 1 else shape
        new, strides = layout.reshaped(self.shape, self.strides, self.dtype.itemsize, wanted)
        if strides is None:
            raise errors.ArgumentValueError(
                f"{self!r} cannot be seen as {new} without a copy", hint="`array.contiguous().reshape(…)`", value=wanted
            )
        return self._view(0, new, strides, self.dtype)

    def view(self, kind: "Any") -> "DeviceArray":
        """The same bytes as elements of another type; the last dimension is longer or shorter by the sizes' ratio.

        Raises: ArgumentValueError where the sizes do not go into each other, or the last dimension has gaps.
        """
        new, old = dtype(kind), self.dtype
        if new.itemsize == old.itemsize:
            return self._view(0, self.shape, self.strides, new)
        last = self.shape[-1] * old.itemsize if self.shape else 0
        even = (
            bool(self.shape) and last % new.itemsize == 0 and (self.strides[-1] == old.itemsize or self.shape[-1] <= 1)
        )
        steps = all(stride % new.itemsize == 0 for stride in self.strides[:-1])
        if not even or not steps:
            raise errors.ArgumentValueError(f"{self!r} cannot be seen as elements of {new}", value=kind)
        return self._view(0, (*self.shape[:-1], last // new.itemsize), (*self.strides[:-1], new.itemsize), new)

    def transpose(self, *axes: int) -> "DeviceArray":
        """A view with the dimensions in another order, reversed when none is given.

        Raises: ArgumentTypeError, ArgumentValueError.
        """
        order = tuple([errors.integer("`transpose`", "integers", each) for each in axes])
        order = order or tuple(reversed(range(self.ndim)))
        if sorted(order) != list(range(self.ndim)):
            raise errors.ArgumentValueError(f"{order} is no order of {self.ndim} dimensions", value=axes)
        return self._view(0, tuple(self.shape[k] for k in order), tuple(self.strides[k] for k in order), self.dtype)

    @property
    def T(self) -> "DeviceArray":  # noqa: N802  # NumPy's name
        """A view with the dimensions in reverse order."""
        return self.transpose()

    def _view(self, offset: int, shape: "tuple[int, ...]", strides: "tuple[int, ...]", kind: DType) -> "DeviceArray":
        ptr = 0 if 0 in shape else self.ptr + offset
        return DeviceArray(self.memory, ptr, shape, strides, kind)

    # copies

    def side(self) -> Side:
        """It as a side of a copy. Raises: ArgumentValueError where it is not contiguous."""
        if not self.is_contiguous():
            raise errors.ArgumentValueError(f"{self!r} is not contiguous", hint="`array.contiguous()`", value=self)
        return Side(self.ptr, self.nbytes, self.memory, self)

    def copy_from(self, source: "Any", *, stream: "StreamLike" = None) -> None:
        """Copy all bytes of `source`, as `Buffer.copy_from`. Raises: as there; it must be contiguous."""
        copying.copy(self.side(), buffer.side_of(source, "`copy_from`", written=False), self.device, stream)

    def copy_to(self, target: "Any", *, stream: "StreamLike" = None) -> None:
        """Copy all bytes into `target`, as `Buffer.copy_to`. Raises: as there; it must be contiguous."""
        copying.copy(buffer.side_of(target, "`copy_to`", written=True), self.side(), self.device, stream)

    def contiguous(self, *, stream: "StreamLike" = None) -> "DeviceArray":
        """The array itself where its elements lie in C order without gaps, else a copy, ordered on the stream.

        A copy of many small pieces goes through the host and is done when this returns. Raises: OutOfMemoryError,
        DeviceError.
        """
        return self if self.is_contiguous() else self.copy(stream=stream)

    def copy(self, *, stream: "StreamLike" = None) -> "DeviceArray":
        """A contiguous copy on the same device, ordered on the stream, the thread's current one when left out.

        Raises: OutOfMemoryError, DeviceError.
        """
        ordered = as_stream(stream, self.device)
        new = made(self.shape, self.dtype, self.device, ordered, self.kind)
        if new.nbytes:
            self._copy_into(new, ordered)
        return new

    def _copy_into(self, new: "DeviceArray", stream: "Any") -> None:
        nbytes, offsets = layout.runs(self.shape, self.strides, self.dtype.itemsize)
        if new.nbytes > nbytes * _PIECES:
            new.copy_from(self._gathered(stream))
            return
        for number, offset in enumerate(offsets):
            source = Side(self.ptr + offset, nbytes, self.memory, self)
            target = Side(new.ptr + number * nbytes, nbytes, new.memory, new)
            copying.copy(target, source, self.device, stream)

    def _gathered(self, stream: "StreamLike" = None) -> bytearray:
        """Its bytes on the host, in C order; waits for the stream."""
        nbytes, offsets = layout.runs(self.shape, self.strides, self.dtype.itemsize)
        first, last = layout.span_of(self.shape, self.strides, self.dtype.itemsize)
        spanned = bytearray(last - first)
        source = Side(self.ptr + first, last - first, self.memory, self)
        ordered = as_stream(stream, self.device)
        copying.copy(buffer.side_of(spanned, "a copy", written=True), source, self.device, ordered)
        ordered.sync()
        if nbytes == self.nbytes:
            return spanned
        return bytearray().join(spanned[offset - first : offset - first + nbytes] for offset in offsets)

    def tobytes(self) -> bytes:
        """A copy of its elements in C order; waits for the thread's current stream. Raises: DeviceError."""
        return bytes(self._gathered()) if self.nbytes else b""

    def numpy(self) -> "Any":
        """A copy as a NumPy array; waits for the thread's current stream.

        Raises: ImportError without NumPy; CapabilityError for a type that needs `ml_dtypes`; DeviceError.
        """
        import numpy as np

        gathered = self._gathered() if self.nbytes else bytearray()
        return np.frombuffer(gathered, dtype=self.dtype.numpy).reshape(self.shape)

    # what Triton's autotuner calls, as PyTorch spells it

    def zero_(self) -> "DeviceArray":
        """Write zeros, in the order of the thread's current stream. Raises: as `Buffer.fill`; it must be contiguous."""
        if self.nbytes:
            self.buffer().fill(0)
        return self

    def clone(self) -> "DeviceArray":
        """A copy, in the order of the thread's current stream. Raises: as `copy`."""
        return self.copy()

    def copy_(self, source: "Any") -> "DeviceArray":
        """Copy another array into this one, in the order of the thread's current stream. Raises: as `copy_from`."""
        self.copy_from(source, stream=current_stream_of(self.device))
        return self

    # exchange

    def __dlpack__(
        self, *, stream: "Any" = dlpack.UNSAID, max_version: "Any" = None, dl_device: "Any" = dlpack.UNSAID,
        copy: "Any" = dlpack.UNSAID,
    ) -> "Any":  # fmt: skip
        """A capsule of DLPack. What was given to the thread's current stream is ready for the consumer's `stream`.

        Each argument may be None, as if it was left out. Raises: ExchangeError, which is a BufferError;
        ArgumentTypeError.
        """
        return dlpack.exported(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> "tuple[int, int]":
        """DLPack's device type and id. Raises: ExchangeError."""
        return dlpack.device_numbers(self)

    @property
    def __array_interface__(self) -> "dict[str, Any]":
        """NumPy's interface, of memory that the host reaches. Raises: AttributeError for others."""
        return arrayinterface.attribute(self, arrayinterface.HOST)

    def __array__(self, *_args: "Any", **_named: "Any") -> "Any":
        raise errors.ArgumentTypeError(
            f"{self!r} is not made a NumPy array in passing, since that is a copy",
            hint="`array.numpy()` makes one", value=self,
        )  # fmt: skip

    def __buffer__(self, _flags: int) -> memoryview:
        """Its elements for the host, typed and shaped (Python 3.12 and later).

        Raises: BufferError where the host does not reach them, or the protocol has no word for such an array.
        """
        self.memory.check()
        if not self.memory.on_host or not self.is_contiguous():
            raise errors.ExchangeError(f"the host does not reach {self!r}, or it is not contiguous", hint="`.numpy()`")
        letter = dtypes.letter_of(self.dtype)
        if not letter or (not self.size and self.shape != (0,)):
            raise errors.ExchangeError(f"the buffer protocol has no word for {self!r}", hint="`.numpy()`")
        plain: Any = memory_at(self.ptr, self.nbytes, readonly=self.readonly)
        view: memoryview = plain.cast(letter, self.shape) if self.size else plain.cast(letter)
        return view

    def buffer(self) -> "Buffer":
        """Its bytes as a Buffer that shares the memory. Raises: ArgumentValueError where it is not contiguous."""
        side = self.side()
        return buffer.shared(self.memory, side.address, side.nbytes)


@follow_runtimes
def _offer_interface(runtime: "Runtime") -> None:
    """Give arrays the interface that the vendor's libraries share memory by.

    It is an attribute of the class, because `__getattr__` would make each reading of each attribute slow.
    """
    name = runtime.description["interop"]["array_interface"]
    if name and name not in DeviceArray.__dict__:
        setattr(DeviceArray, name, property(lambda array: arrayinterface.attribute(array, name)))


def made(given: "Any", kind: DType, device: "Device", stream: "Any", memory_kind: str) -> DeviceArray:
    """A new contiguous array of a shape that a caller gives. Raises: as `Buffer`; as `layout.shape_of`."""
    shape, nbytes, strides = layout.dense(given, kind.itemsize)
    memory = allocated(nbytes, device, stream, memory_kind)
    return DeviceArray(memory, memory.address, shape, strides, kind)
