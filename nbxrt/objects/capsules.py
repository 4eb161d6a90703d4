"""Capsules of DLPack that other libraries made, as arrays: whose memory it is, and how it is given back."""

import ctypes
import struct

from nbxrt import descriptions, errors
from nbxrt.binding.prebuilt import argument
from nbxrt.objects import dlpack, layout
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.closing import Closing, process
from nbxrt.objects.device import as_device
from nbxrt.objects.dlpack import FORMS, HOST, LEGACY, MEMORY, READ_ONLY, VERSION, VERSIONED, Deleter, pointer_of
from nbxrt.objects.dtypes import DTYPES
from nbxrt.objects.memory import Memory
from nbxrt.objects.pythonapi import function
from nbxrt.objects.state import state_of
from nbxrt.objects.stream import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.objects.dlpack import Form
    from nbxrt.objects.dtypes import DType
    from nbxrt.runtime import Runtime

#: More dimensions than any library has: a structure that says more is damaged.
_DIMENSIONS = 64
#: What reads so many extents or strides, and element types by the number that is read.
_READERS = [struct.Struct(f"@{ndim}q").unpack_from for ndim in range(_DIMENSIONS + 1)]
_KINDS = {dlpack.kind_word(kind.code, kind.itemsize * 8): kind for kind in DTYPES.values()}

_name_of = function("PyCapsule_GetName", ctypes.c_char_p)
_set_name = function("PyCapsule_SetName", ctypes.c_int)


#: The type of capsules, which Python has no name for.
Capsule: type = type(dlpack.new_capsule(LEGACY.name, LEGACY.used, None))


def place(runtime: "Runtime", word: int) -> "tuple[str, Device]":
    """Kind of memory and device by DLPack's numbers, as one. Raises: ExchangeError naming both backends."""
    places = state_of(runtime).places
    found = places.get(word)
    if found is None:
        found = places[word] = _looked_up(runtime, *dlpack.parts_of_place(word))
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


#: Functions of other libraries that take structures back, by address.
_deleters: "dict[int, Callable[[int], None]]" = {}


def _deleter_at(address: int) -> "Callable[[int], None]":
    if address not in _deleters:
        _deleters[address] = Deleter(address)
    return _deleters[address]


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


class Imported(Closing, Memory):
    """Memory of another library, whose structure is given back to it with this object."""

    __slots__ = ("_deleter", "_process", "_structure")

    def __init__(
        self, device: "Device", address: int, nbytes: int, kind: str, readonly: bool, structure: int, deleter: int
    ) -> None:
        self.device, self.address, self.nbytes, self.kind = device, address, nbytes, kind
        self.owner, self.readonly, self.is_open = None, readonly, True
        self._structure, self._deleter, self._process = structure, deleter, process[0]

    def _close(self, _on: "Callable[..., object]") -> None:
        """Give the structure back, while a graph is captured with that graph, which may use the memory."""
        self.is_open = False
        captures = state_of(self.device.runtime).captures
        if captures and self._deleter:
            captures[-1].take_over(_deleter_at(self._deleter), self._structure)
        elif self._deleter:
            _deleter_at(self._deleter)(self._structure)


def taken(capsule: "Any", runtime: "Runtime", stream: "Any") -> "DeviceArray":
    """The array of a capsule, which is used up; it is ready for work on the stream.

    Raises: ExchangeError, and then the capsule is as it was.
    """
    at = argument(id(capsule))
    form = FORMS.get(_name_of(at)) or _no_form(capsule, _name_of(at))
    address: int = pointer_of(at, form.name)
    if form is VERSIONED:
        major, deleter, flags, data, where, ndim, word, shape_at, strides_at, offset = form.read(MEMORY, address)
        if major != VERSION[0]:
            raise _other_version(address)
    else:
        data, where, ndim, word, shape_at, strides_at, offset, deleter = form.read(MEMORY, address)
        flags = 0
    try:
        memory_kind, device = runtime.objects.places[where]  # type: ignore[union-attr]
    except (AttributeError, KeyError):
        memory_kind, device = place(runtime, where)
    shape, strides, kind, first, nbytes = _layout(word, ndim, shape_at, strides_at)
    ptr = data + offset if nbytes else 0
    if nbytes and (not data or not 0 <= ptr + first <= _END - nbytes):
        raise errors.ExchangeError(f"the capsule's array of shape {shape} at {data:#x} is in no memory")
    if stream is not None:
        as_stream(stream, device)
    _set_name(at, form.used)
    memory = Imported(device, ptr + first, nbytes, memory_kind, flags & READ_ONLY != 0, address, deleter)
    return DeviceArray(memory, ptr, shape, strides, kind)


#: Where addresses end.
_END = 1 << 64
#: Layouts that were seen, at most so many, by what is read.
_layouts: "dict[Any, tuple[Any, ...]]" = {}
_SEEN = 1024


def _layout(word: int, ndim: int, shape_at: int, strides_at: int) -> "tuple[Any, ...]":
    """Shape, strides in bytes, element type, first byte, and how many. Raises: ExchangeError for what no array has."""
    if not 0 <= ndim <= _DIMENSIONS:
        raise errors.ExchangeError(f"the capsule says that the array has {ndim} dimensions")
    if ndim and not shape_at:
        raise errors.ExchangeError(f"the capsule has no shape, and its array {ndim} dimensions")
    read = _READERS[ndim]
    shape = read(MEMORY, shape_at)
    steps = read(MEMORY, strides_at) if strides_at else None
    try:
        return _layouts[word, shape, steps]
    except KeyError:
        if len(_layouts) >= _SEEN:
            _layouts.clear()
        found = _layouts[word, shape, steps] = _measured(word, shape, steps)
        return found


def _measured(word: int, shape: "tuple[int, ...]", steps: "tuple[int, ...] | None") -> "tuple[Any, ...]":
    kind = _KINDS.get(word) or _unknown_kind(word)
    if min(shape, default=0) < 0:
        raise errors.ExchangeError(f"the capsule says that the array has the shape {shape}")
    if steps is None:
        strides = layout.strides_of(shape, kind.itemsize)
    else:
        strides = tuple([step * kind.itemsize for step in steps])
    first, last = layout.span_of(shape, strides, kind.itemsize)
    return shape, strides, kind, first, last - first


def _no_form(capsule: "Any", name: "bytes | None") -> "Form":
    if (name or b"").startswith(b"used_dltensor"):
        raise errors.ExchangeError("the capsule was taken already, and DLPack gives each one once")
    raise errors.ExchangeError(f"{capsule!r} is no capsule of DLPack", hint="ask the array anew by its `__dlpack__`")


def _other_version(address: int) -> errors.ExchangeError:
    theirs, ours = (".".join(map(str, parts)) for parts in (struct.unpack_from("@II", MEMORY, address), VERSION))
    return errors.ExchangeError(f"the capsule is of DLPack {theirs}, and this nbxrt knows {ours}")


def _unknown_kind(word: int) -> "DType":
    code, bits, lanes = dlpack.parts_of_kind(word)
    raise errors.ExchangeError(
        f"the element type of DLPack's class {code} with {bits} bits and {lanes} lanes is unknown"
    )
