"""What a collective is given: address, count, element type and place of any array, in one tuple.

Arrays tell these by `data_ptr()` (nbxrt's own, torch's and their like), by the array interface that the backend file
names, or by NumPy's. Which way a class goes is found out once.
"""

from __future__ import annotations

import sys
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.datatypes import NBYTES, datatype_of, datatype_of_typestr
from nbxrt.memory.allocator import account_of
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.buffer import Buffer
from nbxrt.objects.state import state_of
from nbxrt.objects.stream import Stream, as_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.objects.device import Device
    from nbxrt.runtime import Runtime

#: Address, number of elements, element type, device, whether it may be written to. The device is HOST for host memory
#: and None where the array does not say which one it is on.
Span = tuple[int, int, str, "int | None", bool]
HOST = -1
#: Streams that are remembered by handle.
_MOST_STREAMS = 64

_HOST_INTERFACE = "__array_interface__"


class Spans:
    """Reads arrays for one device. Streams and memory are nbxrt's own objects or other libraries'."""

    def __init__(self, runtime: Runtime, device: Device) -> None:
        self._device = device
        self._interface: str | None = runtime.description["interop"]["array_interface"]
        self._current = runtime.current
        self._streams: dict[int, Stream] = {}
        #: Whether the account knows that memory is in use on a stream; graphs that are captured now and keep it, too.
        self.is_recorded = account_of(runtime).is_recorded
        self.captures = state_of(runtime).captures
        self._readers: dict[type, Callable[[Any, str | None], Span]] = {DeviceArray: _of_array, Buffer: _of_buffer}

    def read(self, array: Any, datatype: str | None = None) -> Span:
        """What a collective needs to know of an array; with `datatype`, its bytes are elements of that type.

        Raises: ArgumentTypeError for what is no array or has another element type, ArgumentValueError for one that has
        gaps or is closed.
        """
        reader = self._readers.get(array.__class__)
        try:
            if reader is None:
                reader = self._readers[array.__class__] = self._reader_for(array)
            return reader(array, datatype)
        except errors.NbxrtError:
            raise
        except Exception as error:
            raise errors.ArgumentTypeError(
                f"a collective cannot read this {type(array).__name__}: {type(error).__name__}: {error}", value=array
            ) from error

    def stream(self, stream: Any) -> int:
        """The handle of a stream: an integer is one, None is the thread's current stream.

        Raises: ArgumentTypeError, ArgumentValueError.
        """
        if stream.__class__ is int:
            return int(stream)
        if stream is None and not getattr(self._current, "streams", None):
            return 0
        return as_stream(stream, self._device).handle

    def use(self, array: Any, handle: int) -> None:
        """Say that work of a stream uses an array, whose memory then is not given to others before it has finished."""
        if array.__class__ is DeviceArray or array.__class__ is Buffer:
            memory = array.memory
            if memory.home != handle and (self.captures or not self.is_recorded(memory.address, handle)):
                stream = self._streams.get(handle)
                if stream is None:
                    if len(self._streams) >= _MOST_STREAMS:  # those that are closed are not told from the others
                        self._streams.clear()
                    stream = self._streams[handle] = Stream.from_handle(handle, self._device)
                memory.used_on(stream)

    def _reader_for(self, array: Any) -> Callable[[Any, str | None], Span]:
        if _is_numpy_scalar(array):  # its interface is one of a copy that lives as long as the question
            raise errors.ArgumentTypeError(
                f"a collective takes an array, not the NumPy scalar {array!r}", hint="make an array of it", value=array
            )
        if hasattr(array, "data_ptr"):
            return _of_tensor
        if self._interface and hasattr(array, self._interface):
            return self._of_device_interface
        if hasattr(array, _HOST_INTERFACE):
            return _of_host_interface
        ways = ", ".join(f"`{way}`" for way in ("data_ptr", self._interface, _HOST_INTERFACE) if way)
        raise errors.ArgumentTypeError(
            f"a collective takes an array, not {type(array).__name__}",
            hint=f"an array of {self._device.runtime.title} has one of {ways}",
            value=array,
        )

    def _of_device_interface(self, array: Any, datatype: str | None) -> Span:
        interface = getattr(array, self._interface or "")
        address, count, datatype, writable = _of_interface(array, interface, datatype)
        device = getattr(array, "device", None)
        ordinal = device if device.__class__ is int else getattr(device, "id", getattr(device, "index", None))
        return address, count, datatype, ordinal if ordinal.__class__ is int else None, writable


#: Count, element type and bytes of an element of arrays of that shape, strides and type; a call is half as long for it.
_layouts: dict[tuple[Any, ...], tuple[int, str, int]] = {}
_MOST_LAYOUTS = 4096


def _of_array(array: DeviceArray, datatype: str | None) -> Span:
    memory = array.memory
    if not memory.is_open:
        memory.check()
    key = (array.shape, array.strides, array.dtype.name)
    layout = _layouts.get(key) or _layout_of(array, key)
    place = HOST if memory.kind == "pinned" else array._device_idx  # noqa: SLF001  # by which engines know it, too
    if datatype is None:
        return array.ptr, layout[0], layout[1] or datatype_of(array.dtype), place, not memory.readonly
    return array.ptr, _counted(layout[0] * layout[2], datatype), datatype, place, not memory.readonly


def _layout_of(array: DeviceArray, key: tuple[Any, ...]) -> tuple[int, str, int]:
    if not array.is_contiguous():
        raise _gaps(array)
    if len(_layouts) >= _MOST_LAYOUTS:
        _layouts.clear()
    try:
        datatype = datatype_of(array.dtype)
    except errors.ArgumentTypeError:  # unless its bytes are seen as something else, where it is asked for
        datatype = ""
    layout = _layouts[key] = (array.numel(), datatype, array.itemsize)
    return layout


def _of_buffer(buffer: Buffer, datatype: str | None) -> Span:
    place = HOST if buffer.kind == "pinned" else buffer._device_idx  # noqa: SLF001
    datatype = datatype or "uint8"
    return buffer.data_ptr(), _counted(buffer.nbytes, datatype), datatype, place, not buffer.memory.readonly


def _of_tensor(tensor: Any, datatype: str | None) -> Span:
    if not tensor.is_contiguous():
        raise _gaps(tensor)
    place = tensor.get_device() if hasattr(tensor, "get_device") else getattr(tensor, "_device_idx", None)
    address, count = _in_memory(tensor.data_ptr(), tensor.numel())
    if datatype is None:
        return address, count, datatype_of(tensor.dtype), place, True
    return address, _counted(count * tensor.element_size(), datatype), datatype, place, True


def _of_host_interface(array: Any, datatype: str | None) -> Span:
    address, count, datatype, writable = _of_interface(array, array.__array_interface__, datatype)
    return address, count, datatype, HOST, writable


def _of_interface(array: Any, interface: dict[str, Any], datatype: str | None) -> tuple[int, int, str, bool]:
    if interface.get("strides") is not None and not _has_no_gaps(interface):
        raise _gaps(array)
    address, read_only = interface["data"]
    typestr, count = interface["typestr"], prod(interface["shape"])
    address, _least = _in_memory(address, min(interface["shape"], default=count))
    if datatype is not None:
        return address, _counted(count * int(typestr[2:]), datatype), datatype, not read_only
    named = typestr[1] == "V" and hasattr(array, "dtype")  # types that the protocol has no letter for
    return address, count, datatype_of(array.dtype) if named else datatype_of_typestr(typestr), not read_only


def _in_memory(address: Any, count: Any) -> tuple[int, int]:
    """What can be an address and a number of elements there. Raises: ArgumentValueError."""
    address, count = index(address), index(count)
    if count < 0 or address < (count > 0):
        raise errors.ArgumentValueError(f"a collective takes an array, and {count!r} elements at {address!r} are none")
    return address, count


def _is_numpy_scalar(array: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.generic)


def _counted(nbytes: int, datatype: str) -> int:
    count, rest = divmod(nbytes, NBYTES[datatype])
    if rest:
        raise errors.ArgumentValueError(f"{nbytes} bytes are no whole number of {datatype}", parameter="dtype")
    return count


def _has_no_gaps(interface: dict[str, Any]) -> bool:
    expected = int(interface["typestr"][2:])
    for extent, stride in zip(reversed(interface["shape"]), reversed(interface["strides"]), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def _gaps(array: Any) -> errors.ArgumentValueError:
    return errors.ArgumentValueError(
        f"a collective takes an array without gaps, and this {type(array).__name__} is not contiguous",
        hint="make a contiguous copy of it",
        value=array,
    )
