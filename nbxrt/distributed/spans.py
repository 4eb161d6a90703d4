"""What a collective is given: address, count, element type and place of any array, in one tuple.

Arrays tell these by `data_ptr()` (torch and its like), by `__cuda_array_interface__` or by `__array_interface__`. Which
way a class goes is found out once.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.datatypes import NBYTES, datatype_of, datatype_of_typestr

if TYPE_CHECKING:
    from collections.abc import Callable

#: Address, number of elements, element type, device, whether it may be written to. The device is HOST for host memory
#: and None where the array does not say which one it is on.
Span = tuple[int, int, str, "int | None", bool]
HOST = -1

_readers: dict[type, Callable[[Any, str | None], Span]] = {}


def span_of(array: Any, datatype: str | None = None) -> Span:
    """What a collective needs to know of an array; with `datatype`, its bytes are elements of that type.

    Raises: ArgumentTypeError for what is no array or has another element type, ArgumentValueError for one with gaps.
    """
    reader = _readers.get(array.__class__)
    if reader is None:
        reader = _readers[array.__class__] = _reader_for(array)
    return reader(array, datatype)


def _reader_for(array: Any) -> Callable[[Any, str | None], Span]:
    for attribute, reader in _READERS.items():
        if hasattr(array, attribute):
            return reader
    raise errors.ArgumentTypeError(
        f"a collective takes an array, not {type(array).__name__}",
        hint="an array has `data_ptr()`, `__cuda_array_interface__` or `__array_interface__`",
        value=array,
    )


def _of_tensor(tensor: Any, datatype: str | None) -> Span:
    if not tensor.is_contiguous():
        raise _gaps(tensor)
    place = tensor.get_device() if hasattr(tensor, "get_device") else getattr(tensor, "_device_idx", None)
    if datatype is None:
        return tensor.data_ptr(), tensor.numel(), datatype_of(tensor.dtype), place, True
    return tensor.data_ptr(), _counted(tensor.numel() * tensor.element_size(), datatype), datatype, place, True


def _of_device_interface(array: Any, datatype: str | None) -> Span:
    address, count, datatype, writable = _of_interface(array, array.__cuda_array_interface__, datatype)
    device = getattr(array, "device", None)
    ordinal = device if device.__class__ is int else getattr(device, "id", getattr(device, "index", None))
    return address, count, datatype, ordinal if ordinal.__class__ is int else None, writable


def _of_host_interface(array: Any, datatype: str | None) -> Span:
    address, count, datatype, writable = _of_interface(array, array.__array_interface__, datatype)
    return address, count, datatype, HOST, writable


def _of_interface(array: Any, interface: dict[str, Any], datatype: str | None) -> tuple[int, int, str, bool]:
    if interface.get("strides") is not None and not _has_no_gaps(interface):
        raise _gaps(array)
    address, read_only = interface["data"]
    typestr, count = interface["typestr"], prod(interface["shape"])
    if datatype is not None:
        return address, _counted(count * int(typestr[2:]), datatype), datatype, not read_only
    named = typestr[1] == "V" and hasattr(array, "dtype")  # types that the protocol has no letter for
    return address, count, datatype_of(array.dtype) if named else datatype_of_typestr(typestr), not read_only


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


_READERS: dict[str, Callable[[Any, str | None], Span]] = {
    "data_ptr": _of_tensor,
    "__cuda_array_interface__": _of_device_interface,
    "__array_interface__": _of_host_interface,
}


def stream_handle(stream: Any) -> int:
    """The handle of a stream: an integer, or of an object that has one; None is the default stream.

    Raises: ArgumentTypeError.
    """
    if stream is None:
        return 0
    for attribute in ("handle", "cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if handle.__class__ is int:
            return int(handle)
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    raise errors.ArgumentTypeError(f"`stream` is a handle or a stream, not {type(stream).__name__}", value=stream)
