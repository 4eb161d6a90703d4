"""Making arrays: empty ones, ones of zeros, copies of what is on the host, views of other libraries' arrays."""

from nbxrt import errors
from nbxrt.errors import wrong_type
from nbxrt.objects import dtypes, hostmemory
from nbxrt.objects.array import DeviceArray, made
from nbxrt.objects.buffer import Buffer, shared
from nbxrt.objects.device import Device, as_device
from nbxrt.objects.layout import strides_of
from nbxrt.objects.stream import as_stream
from nbxrt.runtime import opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.objects.dtypes import DType
    from nbxrt.objects.given import DeviceLike, DTypeLike, MemoryKind, Shape, StreamLike


def empty(
    shape: "Shape",
    dtype: "DTypeLike" = "float32",
    *,
    device: "DeviceLike" = None,
    stream: "StreamLike" = None,
    kind: "MemoryKind" = "device",
) -> DeviceArray:
    """A new array whose elements are whatever was in the memory, for use on the stream; `kind` is as of `Buffer`.

    Device and stream are the thread's current ones when left out.
    Raises: ArgumentTypeError, ArgumentValueError; OutOfMemoryError, DeviceError.
    """
    if device.__class__ is not Device:
        device = as_device(device)
    return made(shape, dtypes.dtype(dtype), device, as_stream(stream, device), kind)


def empty_like(
    array: "Any",
    dtype: "DTypeLike | None" = None,
    *,
    device: "DeviceLike" = None,
    stream: "StreamLike" = None,
    kind: "MemoryKind" = "device",
) -> DeviceArray:
    """A new array of the shape and type of another, on its device when that is a DeviceArray. Raises: as `empty`."""
    shape, dtype, device = _like(array, dtype, device)
    return empty(shape, dtype, device=device, stream=stream, kind=kind)


def zeros(
    shape: "Shape",
    dtype: "DTypeLike" = "float32",
    *,
    device: "DeviceLike" = None,
    stream: "StreamLike" = None,
    kind: "MemoryKind" = "device",
) -> DeviceArray:
    """A new array of zeros; they are written in the order of the stream. Raises: as `empty`."""
    array = empty(shape, dtype, device=device, stream=stream, kind=kind)
    if array.nbytes:
        array.buffer().fill(0, stream=stream)
        if array.memory.on_host:
            as_stream(stream, array.device).sync()  # the host may look at once
    return array


def zeros_like(
    array: "Any",
    dtype: "DTypeLike | None" = None,
    *,
    device: "DeviceLike" = None,
    stream: "StreamLike" = None,
    kind: "MemoryKind" = "device",
) -> DeviceArray:
    """A new array of zeros of the shape and type of another. Raises: as `empty`."""
    shape, dtype, device = _like(array, dtype, device)
    return zeros(shape, dtype, device=device, stream=stream, kind=kind)


def from_numpy(
    array: "Any", *, device: "DeviceLike" = None, stream: "StreamLike" = None, kind: "MemoryKind" = "device"
) -> DeviceArray:
    """A copy of a NumPy array on the device.

    With a stream it is ordered on it: the NumPy array is kept, and must not be changed before the stream has passed the
    copy. Without one the copy is done when this returns. Raises: ArgumentTypeError; as `empty`.
    """
    import numpy as np

    if not isinstance(array, (np.ndarray, np.generic)):
        raise wrong_type("`from_numpy`", "a NumPy array", array, "`nbxrt.asarray` takes other kinds")
    new = empty(array.shape, array.dtype, device=device, stream=stream, kind=kind)
    new.copy_from(np.ascontiguousarray(array).reshape(array.shape), stream=stream)
    return new


def asarray(
    value: "Any",
    dtype: "DTypeLike | None" = None,
    *,
    device: "DeviceLike" = None,
    stream: "StreamLike" = None,
    copy: "bool | None" = None,
) -> DeviceArray:
    """The array that a value is, without a copy where its memory is the device's already.

    Taken: a DeviceArray; a Buffer (bytes, unless `dtype` says otherwise); arrays of other libraries on a device of this
    backend, by DLPack or the backend's array interface; and what the host has, which is copied to the device: NumPy
    arrays, arrays of other libraries on the host, anything with the buffer protocol. Memory of the host is shared only
    where it is the device's, as of the backend `host`. With `dtype` the value must be of that type, as no element is
    converted. `copy=True` always copies, `copy=False` never.
    Raises: ArgumentTypeError; ArgumentValueError where the type differs, or it cannot be had without a copy;
    ExchangeError; OutOfMemoryError, DeviceError.
    """
    from nbxrt.objects import exchange

    if copy is not None:
        errors.boolean("`asarray`", "copy", copy)
    target = None if device is None else as_device(device)
    array = _shared(value) if exchange.is_ours(value) else exchange.taken(value, target, stream)
    if array is None:
        array = _from_host(value, target, stream, copy)
    elif copy or (target is not None and array.device is not target):
        array = copied(array, target or array.device, stream, copy)
    if dtype is not None and dtypes.dtype(dtype) != array.dtype:
        return _retyped(array, dtypes.dtype(dtype), value)
    return array


def _like(array: "Any", kind: "Any", device: "Any") -> "tuple[Any, Any, Any]":
    try:
        shape, own = tuple(array.shape), array.dtype
    except (AttributeError, TypeError, ValueError):  # also a class of arrays, and a view that was released
        wanted = "something with `shape` and `dtype`"
        raise wrong_type("an array of the shape of another", wanted, array) from None
    if device is None and isinstance(array, DeviceArray):
        device = array.device
    return shape, own if kind is None else kind, device


def _shared(value: "Any") -> DeviceArray:
    """A DeviceArray itself, or a Buffer as an array of bytes."""
    value.memory.check()
    return value if isinstance(value, DeviceArray) else value.bytes_array()


def copied(array: DeviceArray, device: "Any", stream: "Any", copy: "bool | None") -> DeviceArray:
    """A copy of an array on a device. Raises: ArgumentValueError where `copy` is False."""
    if copy is False:
        raise errors.ArgumentValueError(f"{array!r} is not on {device}, and `copy=False`", value=array)
    if array.device is device:
        return array.copy(stream=stream)
    ordered = as_stream(stream, device)
    if array.runtime.kind == "cpu" and array.runtime is not device.runtime:  # of the backend `host`
        new = made(array.shape, array.dtype, device, ordered, "device")
        new.copy_from(array.tobytes(), stream=stream)
        return new
    source = array.contiguous()
    new = made(source.shape, source.dtype, device, ordered, "device")
    new.copy_from(source, stream=ordered)
    return new


def on_host(array: DeviceArray) -> DeviceArray:
    """A copy of an array in plain memory of the host; waits for the thread's current stream. Raises: DeviceError."""
    device = Device(0, runtime=opened("host"))
    new = made(array.shape, array.dtype, device, device.default_stream, "device")
    new.copy_from(array.tobytes())
    return new


def _from_host(value: "Any", device: "Any", stream: "Any", copy: "bool | None") -> DeviceArray:
    """An array of what the host has: shared where that is the device's memory, copied otherwise."""
    device = as_device(device)
    view, shape, kind = _host_array(value)
    if copy is not True and device.runtime.kind == "cpu":
        address = hostmemory.address_of(view)
        memory = Buffer.from_handle(address, view.nbytes, device, owner=view, readonly=view.readonly).memory
        return DeviceArray(memory, address, shape, strides_of(shape, kind.itemsize), kind)
    if copy is False:
        raise errors.ArgumentValueError(
            f"{type(value).__name__} is in memory of the host, which {device} does not share, and `copy=False`",
            value=value,
        )
    new = made(shape, kind, device, as_stream(stream, device), "device")
    new.copy_from(view, stream=stream)
    return new


def _host_array(value: "Any") -> "tuple[memoryview, tuple[int, ...], DType]":
    """The bytes of an array of the host in C order, its shape and its element type."""
    if isinstance(value, type):
        raise wrong_type("`asarray`", "an array, and not a class of arrays", value)
    if hasattr(value, "__array_interface__"):
        import numpy as np

        try:
            array = np.asarray(value)
        except (TypeError, ValueError) as error:
            raise errors.ExchangeError(f"NumPy does not take {type(value).__name__}: {error}", value=value) from error
        return hostmemory.view_of(np.ascontiguousarray(array), "`asarray`"), array.shape, dtypes.dtype(array.dtype)
    if not _has_buffer(value):
        from nbxrt.objects import exchange

        if exchange.has_dlpack(value):  # not by NumPy, which lacks some element types
            taken = exchange.taken_by_dlpack(value, opened("host"), None).contiguous()
            view = hostmemory.memory_at(taken.ptr, taken.nbytes, readonly=taken.readonly, owner=taken)
            return view, taken.shape, taken.dtype
        hint = "`numpy.asarray(…)` makes one of lists and numbers"
        raise wrong_type("`asarray`", "an array, a Buffer or an object with the buffer protocol", value, hint)
    whole = memoryview(value)
    if not whole.c_contiguous:
        whole = memoryview(whole.tobytes()).cast("B").cast(whole.format, whole.shape)  # type: ignore[call-overload]
    return (
        hostmemory.view_of(whole, "`asarray`"),
        tuple(whole.shape or ()),
        dtypes.by_format(whole.format, whole.itemsize),
    )


def _has_buffer(value: "Any") -> bool:
    try:
        memoryview(value).release()
    except (TypeError, ValueError, BufferError):  # the protocol has no word for some element types
        return False
    return True


def _retyped(array: DeviceArray, wanted: "DType", value: "Any") -> DeviceArray:
    if isinstance(value, Buffer):
        if array.nbytes % wanted.itemsize:
            raise errors.ArgumentValueError(f"{value!r} does not hold whole elements of {wanted}", value=value)
        whole = shared(array.memory, array.ptr, array.nbytes)
        count = array.nbytes // wanted.itemsize
        return DeviceArray(whole.memory, whole.ptr, (count,), (wanted.itemsize,), wanted)
    raise errors.ArgumentValueError(
        f"{array!r} is not of {wanted}, and no element is converted here",
        hint="convert it where it comes from",
        value=value,
    )
