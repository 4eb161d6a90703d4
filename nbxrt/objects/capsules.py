"""Capsules of DLPack that other libraries made, as arrays: whose memory it is, and how it is given back."""

import ctypes
import sys

from nbxrt import descriptions, errors
from nbxrt.objects import layout
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.device import as_device
from nbxrt.objects.dlpack import (
    FORMS,
    HOST,
    LEGACY,
    READ_ONLY,
    VERSION,
    VERSIONED,
    Deleter,
    Form,
    extents_type,
    new_capsule,
)  # fmt: skip
from nbxrt.objects.dtypes import by_dlpack
from nbxrt.objects.memory import Memory
from nbxrt.objects.pythonapi import function
from nbxrt.objects.state import state_of
from nbxrt.objects.stream import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.runtime import Runtime

#: More dimensions than any library has: a structure that says more is damaged.
_DIMENSIONS = 64

_pointer_of = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
_name_of = function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_set_name = function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_void_p)


#: The type of capsules, which Python has no name for.
Capsule: type = type(new_capsule(LEGACY.name, LEGACY.used, None))


def place(runtime: "Runtime", code: int, index: int) -> "tuple[str, Device]":
    """Kind of memory and device by DLPack's numbers. Raises: ExchangeError naming both backends."""
    places = state_of(runtime).places
    found = places.get((code, index))
    if found is None:
        found = places[code, index] = _looked_up(runtime, code, index)
    return found


def _looked_up(runtime: "Runtime", code: int, index: int) -> "tuple[str, Device]":
    numbers: Mapping[str, int] = runtime.description["interop"]["dlpack"]
    for kind, number in numbers.items():
        if number == code:
            return kind, as_device(index if kind == "device" else max(index, 0), runtime)
    owner = next((name for name in descriptions.names() if code in _numbers_of(name)), "")
    whose = f"memory of the backend `{owner}`" if owner else "of no backend that is known here"
    hint = "`nbxrt.asarray` copies it to the device" if code == HOST else ""
    raise errors.ExchangeError(
        f"DLPack's device type {code} is {whose}, and {runtime!r} is at work",
        hint=hint,
        code=code,
        backend=runtime.name,
    )


def _numbers_of(name: str) -> "tuple[int, ...]":
    try:
        return tuple(descriptions.find(name)[1]()["interop"]["dlpack"].values())
    except errors.NbxrtError:  # a file with faults; they are told where it is opened
        return ()


def asked(value: "Any", stream: "int | None") -> "Any":
    """A capsule of another library's array, by the newest form of the question that it knows. Raises: ExchangeError."""
    given = {} if stream is None else {"stream": stream}
    try:
        return value.__dlpack__(max_version=VERSION, **given)
    except TypeError:  # older than 1.0 of DLPack
        pass
    try:
        return value.__dlpack__(**given)
    except TypeError:  # older than streams: what it gives is ready
        return value.__dlpack__()


class _Imported:
    """A structure of another library, given back with this object."""

    __slots__ = ("_address", "_deleter")

    def __init__(self, address: int, deleter: int) -> None:
        self._address, self._deleter = address, deleter

    def __del__(self, _is_finalizing: "Callable[[], bool]" = sys.is_finalizing, _call: "Any" = Deleter) -> None:
        if self._deleter and not _is_finalizing():
            _call(self._deleter)(self._address)


def taken(capsule: "Any", runtime: "Runtime", stream: "Any") -> "DeviceArray":
    """The array of a capsule, which is used up; it is ready for work on the stream.

    Raises: ExchangeError, and then the capsule is as it was.
    """
    form = FORMS.get(_name_of(capsule)) or _no_form(capsule)
    address: int = _pointer_of(capsule, form.name)
    packed = form.bytes.from_address(address)
    if form is VERSIONED:
        (
            major, minor, _context, deleter, flags,
            data, code, index, ndim, kind_code, bits, lanes, shape_at, strides_at, offset,
        ) = form.unpack(packed)  # fmt: skip
        if major != VERSION[0]:
            known = ".".join(map(str, VERSION))
            raise errors.ExchangeError(f"the capsule is of DLPack {major}.{minor}, and this nbxrt knows {known}")
    else:
        flags = 0
        (
            data, code, index, ndim, kind_code, bits, lanes, shape_at, strides_at, offset, _context, deleter,
        ) = form.unpack(packed)  # fmt: skip
    if not 0 <= ndim <= _DIMENSIONS:
        raise errors.ExchangeError(f"the capsule says that the array has {ndim} dimensions")
    kind = by_dlpack(kind_code, bits, lanes)
    memory_kind, device = place(runtime, code, index)
    shape = tuple(_extents(shape_at, ndim))
    itemsize = kind.itemsize
    if strides_at and ndim:
        strides = tuple([step * itemsize for step in _extents(strides_at, ndim)])
    else:
        strides = layout.strides_of(shape, itemsize)
    first, last = layout.span_of(shape, strides, itemsize)
    ptr = (data or 0) + offset if last > first else 0
    ordered = as_stream(stream, device)
    owner = _Imported(address, deleter)
    _set_name(capsule, form.used)
    memory = Memory(
        device, ptr + first, last - first,
        kind=memory_kind, stream=ordered, owner=owner, readonly=flags & READ_ONLY != 0,
    )  # fmt: skip
    return DeviceArray(memory, ptr, shape, strides, kind)


def _no_form(capsule: "Any") -> Form:
    if (_name_of(capsule) or b"").startswith(b"used_dltensor"):
        raise errors.ExchangeError("the capsule was taken already, and DLPack gives each one once")
    raise errors.ExchangeError(f"{capsule!r} is no capsule of DLPack", hint="ask the array anew by its `__dlpack__`")


def _extents(address: int, ndim: int) -> "list[int]":
    return extents_type(ndim).from_address(address)[:] if ndim else []
