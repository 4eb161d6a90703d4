"""DLPack, both ways: arrays as capsules for other libraries, and capsules of theirs as arrays.

A capsule holds the address of a C structure (dlpack.h): the tensor, and a function that the consumer calls when it no
longer needs the memory. Structures are packed as bytes into blocks that are used again. At the interpreter's exit every
structure that is still in use loses its function and is left as it is, so that nothing calls back into Python then.
"""

import atexit
import ctypes
import struct

from nbxrt import errors
from nbxrt.objects import layout
from nbxrt.objects.dtypes import by_dlpack
from nbxrt.objects.keeping import is_finalizing
from nbxrt.objects.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.objects.array import DeviceArray
    from nbxrt.objects.device import Device
    from nbxrt.objects.stream import Stream

#: The version that is written, and the one whose major number is read.
VERSION = (1, 1)
READ_ONLY, IS_COPIED = 1, 2
#: More dimensions than any library has: a structure that says more is damaged.
_DIMENSIONS = 64

# The tensor: data, device type and id, ndim, element class, bits and lanes, shape, strides, byte offset.
_TENSOR = "PiiiBBHPPQ"
_TENSOR_BYTES = 48
_read_tensor = struct.Struct(f"@{_TENSOR}").unpack_from


class _Form:
    """One of the two structures: what its capsules are called, and where its parts are."""

    def __init__(self, name: bytes, packed: str, nbytes: int, tensor_at: int, deleter_at: int) -> None:
        self.packed, self.nbytes, self.tensor_at, self.deleter_at = packed, nbytes, tensor_at, deleter_at
        self._names = ctypes.create_string_buffer(name), ctypes.create_string_buffer(b"used_" + name)
        self.name, self.used = (ctypes.c_void_p(ctypes.addressof(each)) for each in self._names)
        self.destructor: Any = None
        self.destructor_argument: Any = None
        self.packers: dict[int, Callable[..., None]] = {}
        self.spare: dict[int, list[tuple[Any, int, ctypes.c_void_p]]] = {}

    def packer(self, ndim: int) -> "Callable[..., None]":
        if ndim not in self.packers:
            self.packers[ndim] = struct.Struct(f"@{self.packed}{2 * ndim}q").pack_into
        return self.packers[ndim]

    def block(self, ndim: int) -> "tuple[Any, int, ctypes.c_void_p]":
        """Room for a structure: its memory, its address, and that as an argument."""
        spare = self.spare.setdefault(ndim, [])
        try:
            return spare.pop()
        except IndexError:
            memory = (ctypes.c_char * (self.nbytes + 16 * ndim))()
            address = ctypes.addressof(memory)
            return memory, address, ctypes.c_void_p(address)


_LEGACY = _Form(b"dltensor", f"{_TENSOR}PP", 64, 0, 56)
_VERSIONED = _Form(b"dltensor_versioned", f"IIPPQ{_TENSOR}", 80, 32, 16)

#: Structures that a consumer or a capsule holds, by address: block, form, dimensions, and what keeps the memory.
_held: "dict[int, tuple[Any, ...]]" = {}
_over = False

_api = ctypes.PyDLL(None)
_new_capsule = _api.PyCapsule_New
_new_capsule.restype = ctypes.py_object  # all arguments are ctypes values: no types need to be told
_pointer_of = _api.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = (ctypes.py_object, ctypes.c_void_p), ctypes.c_void_p
_is_valid = _api.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_void_p), ctypes.c_int
_set_name = _api.PyCapsule_SetName
_set_name.argtypes, _set_name.restype = (ctypes.py_object, ctypes.c_void_p), ctypes.c_int
# A capsule that is being destroyed is an address and no object: holding it would bring it back.
_dying_is_valid = ctypes.PyDLL(None)["PyCapsule_IsValid"]
_dying_is_valid.argtypes, _dying_is_valid.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int
_dying_pointer = ctypes.PyDLL(None)["PyCapsule_GetPointer"]
_dying_pointer.argtypes, _dying_pointer.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_void_p

_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # takes the interpreter's lock: consumers call it from any thread
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def _give_back(address: int, _pop: "Callable[..., Any]" = _held.pop) -> None:
    """What the consumer calls when it is done, once."""
    held = _pop(address, None)
    if held is not None:
        block, form, ndim, _owner = held
        form.spare[ndim].append(block)


_deleter = _Deleter(_give_back)
_deleter_address: int = ctypes.cast(_deleter, ctypes.c_void_p).value or 0


def _destructor_of(form: _Form) -> "Any":
    def destroy(
        capsule: int, _name: "Any" = form.name, _is: "Any" = _dying_is_valid, _at: "Any" = _dying_pointer,
        _back: "Any" = _give_back,
    ) -> None:  # fmt: skip
        """A capsule goes away: what nobody took out of it is given back."""
        if _is(capsule, _name):
            _back(_at(capsule, _name))

    return _Destructor(destroy)


for _form in (_LEGACY, _VERSIONED):
    _function = _form.destructor = _destructor_of(_form)
    _form.destructor_argument = ctypes.cast(_function, ctypes.c_void_p)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))  # capsules outlive this module at exit
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_deleter))


@atexit.register
def _end() -> None:
    """Let no consumer call back from now on; what it still holds stays where it is."""
    global _over  # noqa: PLW0603
    _over = True
    for address, held in list(_held.items()):
        _orphan(address, held)


def _orphan(address: int, held: "tuple[Any, ...]") -> None:
    ctypes.memset(address + held[1].deleter_at, 0, ctypes.sizeof(ctypes.c_void_p))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


# Out


def device_numbers(array: "DeviceArray") -> "tuple[int, int]":
    """DLPack's device type and id of an array. Raises: ExchangeError where the backend's file has no number for it."""
    numbers = array.runtime.description["interop"]["dlpack"]
    number = numbers.get(array.memory.kind)
    if number is None:
        raise errors.ExchangeError(
            f"{array.runtime.title} has no DLPack number for {array.memory.kind} memory", backend=array.runtime.name
        )
    return number, 0 if array.runtime.kind == "cpu" else array._device_idx  # noqa: SLF001


def capsule(array: "DeviceArray", *, versioned: bool, minor: int = VERSION[1], copied: bool = False) -> "Any":
    """A capsule of the array, which keeps the memory until its consumer is done. Raises: ExchangeError."""
    kind = array.dtype
    itemsize, shape, memory = kind.itemsize, array.shape, array.memory
    if not memory.is_open:
        memory.check()
    if memory.readonly and not versioned:
        raise errors.ExchangeError(
            f"{array!r} may only be read, which DLPack can say from version 1.0 on",
            hint="ask with `max_version=(1, 0)`, or export a copy",
        )
    number, index = device_numbers(array)
    strides = [stride // itemsize for stride in array.strides]
    if any(stride % itemsize for stride in array.strides):
        raise errors.ExchangeError(f"{array!r} has strides that are no whole elements")
    form = _VERSIONED if versioned else _LEGACY
    ndim = len(shape)
    block = form.block(ndim)
    room, address, argument = block
    extents = address + form.nbytes
    tensor = (array.ptr, number, index, ndim, kind.code, itemsize * 8, 1, extents, extents + 8 * ndim, 0)
    pack = form.packers.get(ndim) or form.packer(ndim)
    if versioned:
        flags = (READ_ONLY if memory.readonly else 0) | (IS_COPIED if copied else 0)
        pack(room, 0, VERSION[0], minor, 0, _deleter_address, flags, *tensor, *shape, *strides)
    else:
        pack(room, 0, *tensor, 0, _deleter_address, *shape, *strides)
    held = _held[address] = (block, form, ndim, array)
    if _over:
        _orphan(address, held)
    return _new_capsule(argument, form.name, form.destructor_argument)


def exported(array: "DeviceArray", stream: "Any", max_version: "Any", dl_device: "Any", copy: "bool | None") -> "Any":
    """What `__dlpack__` answers. Raises: ExchangeError."""
    from nbxrt.objects import exchange

    versioned = max_version is not None and max_version[0] >= VERSION[0]
    minor = min(VERSION[1], max_version[1]) if versioned and max_version[0] == VERSION[0] else VERSION[1]
    copied = False
    if dl_device is not None and tuple(dl_device) != device_numbers(array):
        return _elsewhere(array, tuple(dl_device), copy, versioned=versioned, minor=minor)
    if copy:
        array, copied = array.copy(), True
    if stream != -1:
        exchange.hand_over(array, stream, "`__dlpack__`: `stream`")
    return capsule(array, versioned=versioned, minor=minor, copied=copied)


def _elsewhere(
    array: "DeviceArray", wanted: "tuple[int, int]", copy: "bool | None", *, versioned: bool, minor: int
) -> "Any":
    """A copy in memory of the host, the only other place that an array is exported to."""
    if copy is False or wanted[0] != _HOST:
        raise errors.ExchangeError(f"{array!r} is not in DLPack's device {wanted}", value=wanted)
    import numpy as np

    host = array.numpy()
    if versioned and np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return host.__dlpack__(max_version=(VERSION[0], minor))
    return host.__dlpack__()


#: DLPack's number of plain memory of the host.
_HOST = 1


# In


def is_capsule(value: "Any") -> bool:
    """Whether a value is a capsule of Python's C interface."""
    return type(value).__name__ == "PyCapsule"


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

    def __del__(self, _is_finalizing: "Callable[[], bool]" = is_finalizing, _call: "Any" = _Deleter) -> None:
        if self._deleter and not _is_finalizing():
            _call(self._deleter)(self._address)


def taken(capsule: "Any", place: "Callable[[int, int], tuple[str, Device]]", stream: "Stream | None") -> "DeviceArray":
    """The array of a capsule, which is used up; `place` tells kind and device by DLPack's numbers.

    Raises: ExchangeError, and then the capsule is as it was.
    """
    from nbxrt.objects.array import DeviceArray

    form = _form_of(capsule)
    address: int = _pointer_of(capsule, form.name)
    head = (ctypes.c_char * form.nbytes).from_address(address)
    flags = _flags(head) if form is _VERSIONED else 0
    data, number, index, ndim, code, bits, lanes, shape_at, strides_at, offset = _read_tensor(head, form.tensor_at)
    if not 0 <= ndim <= _DIMENSIONS:
        raise errors.ExchangeError(f"the capsule says that the array has {ndim} dimensions")
    kind = by_dlpack(code, bits, lanes)
    memory_kind, device = place(number, index)
    shape = _extents(shape_at, ndim)
    itemsize = kind.itemsize
    strides = (
        tuple(step * itemsize for step in _extents(strides_at, ndim))
        if strides_at
        else layout.strides_of(shape, itemsize)
    )
    first, last = layout.span_of(shape, strides, itemsize)
    ptr = (data or 0) + offset if last > first else 0
    owner = _Imported(address, *struct.unpack_from("@P", head, form.deleter_at))
    _set_name(capsule, form.used)
    memory = Memory(
        device, ptr + first, last - first,
        kind=memory_kind, stream=stream, owner=owner, readonly=bool(flags & READ_ONLY),
    )  # fmt: skip
    return DeviceArray(memory, ptr, shape, strides, kind)


def _form_of(capsule: "Any") -> _Form:
    for form in (_VERSIONED, _LEGACY):
        if _is_valid(capsule, form.name):
            return form
    if any(_is_valid(capsule, form.used) for form in (_VERSIONED, _LEGACY)):
        raise errors.ExchangeError("the capsule was taken already, and DLPack gives each one once")
    raise errors.ExchangeError(f"{capsule!r} is no capsule of DLPack", hint="ask the array anew by its `__dlpack__`")


def _flags(head: "Any") -> int:
    major, minor, _context, _function, flags = struct.unpack_from("@IIPPQ", head)
    if major != VERSION[0]:
        known = ".".join(map(str, VERSION))
        raise errors.ExchangeError(f"the capsule is of DLPack {major}.{minor}, and this nbxrt knows {known}")
    return int(flags)


def _extents(address: int, ndim: int) -> "tuple[int, ...]":
    return struct.unpack(f"@{ndim}q", ctypes.string_at(address, 8 * ndim)) if ndim else ()
