"""DLPack: its structures, and our arrays as capsules for other libraries; capsules.py takes theirs.

A capsule holds the address of a C structure (dlpack.h): the tensor, and a function that the consumer calls when it no
longer needs the memory. Structures are packed as bytes into blocks that are used again. At the interpreter's exit every
structure that is still in use gets a function that frees its block and no more: nothing calls back into Python then,
and the memory stays. (No function at all would be simpler, but some consumers look for one only when they take it.)
"""

import atexit
import ctypes
import struct
import sys

from nbxrt import errors
from nbxrt.binding.prebuilt import argument
from nbxrt.errors import integer, wrong_type
from nbxrt.objects.handover import hand_over
from nbxrt.objects.pythonapi import address_of_function, function, keep_for_ever
from nbxrt.objects.state import state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.objects.array import DeviceArray

#: The version that is written, and the one whose major number is read.
VERSION = (1, 1)
READ_ONLY, IS_COPIED = 1, 2

# The tensor: data; its sort, which is device type and id, ndim, element class, bits and lanes; shape, strides, byte
# offset. It is read with the sort as bytes, which tables have: each number more would be an object more.
_SORT = "iiiBBH"
_TENSOR, _TENSOR_READ = f"P{_SORT}PPQ", f"P{struct.calcsize(f'@{_SORT}')}sPPQ"
parts_of_sort = struct.Struct(f"@{_SORT}").unpack

#: All memory that this process can address, for `struct` to read at any address without making an object first.
MEMORY = (ctypes.c_char * sys.maxsize).from_address(0)


# Blocks are of C's own memory, so that a function of C can free them when there is no Python any more.
_allocate = function("PyMem_RawMalloc", ctypes.c_void_p, ctypes.c_size_t)
_free_address = address_of_function("PyMem_RawFree")


class Form:
    """One of the two structures: what its capsules are called, and where its parts are."""

    def __init__(self, name: bytes, written: "tuple[str, str]", read: "tuple[str, str]", deleter_at: int) -> None:
        self.data_at, self.deleter_at = struct.calcsize(f"@{written[0]}"), deleter_at
        self.extents_at = self.data_at + struct.calcsize(f"@P{_SORT}")
        packed = struct.Struct(f"@{written[0]}{_TENSOR}{written[1]}")
        self.pack, self.nbytes = packed.pack, packed.size
        self.read = struct.Struct(f"@{read[0]}{_TENSOR_READ}{read[1]}").unpack_from
        self._names = ctypes.create_string_buffer(name), ctypes.create_string_buffer(b"used_" + name)
        self.name, self.used = (argument(ctypes.addressof(each)) for each in self._names)
        self.destructor: Any = None
        self.destructor_argument: Any = None

    def split(self, packed: bytes) -> "tuple[bytes, bytes, bytes]":
        """A packed structure: what is before the tensor's address, from there to the extents, and what follows them."""
        pointer = struct.calcsize("@P")
        parts = packed[: self.data_at], packed[self.data_at + pointer : self.extents_at]
        return *parts, packed[self.extents_at + 2 * pointer :]


class Room:
    """Blocks for structures of so many dimensions, each with its shape and strides behind it."""

    def __init__(self, form: Form, ndim: int) -> None:
        self.form, self._ndim = form, ndim
        self.name, self.destructor = form.name, form.destructor_argument
        self.spare: list[tuple[memoryview, bytes, int, Any]] = []

    def block(self) -> "tuple[memoryview, bytes, int, Any]":
        """Memory, the pointers to shape and strides in it, its address, and that as an argument."""
        nbytes = self.form.nbytes
        whole = nbytes + 16 * self._ndim
        address: int = _allocate(whole)
        pointers = struct.pack("@PP", address + nbytes, address + nbytes + 8 * self._ndim)
        return memoryview((ctypes.c_char * whole).from_address(address)).cast("B"), pointers, address, argument(address)


LEGACY = Form(b"dltensor", ("", "PP"), ("", "8xP"), 56)
VERSIONED = Form(b"dltensor_versioned", ("IIPPQ", ""), ("I12xPQ", ""), 16)
FORMS = {b"dltensor": LEGACY, b"dltensor_versioned": VERSIONED}
_rooms: "dict[tuple[Form, int], Room]" = {}

#: Structures that a consumer or a capsule holds, by address: block, room, and what keeps the memory.
_held: "dict[int, tuple[Any, ...]]" = {}
_over = False

new_capsule = function("PyCapsule_New", ctypes.py_object)
# A capsule that is being destroyed is an address and no object: holding it would bring it back.
_is_valid = function("PyCapsule_IsValid", ctypes.c_int)
pointer_of = function("PyCapsule_GetPointer", ctypes.c_void_p)

Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # takes the interpreter's lock: consumers call it from any thread
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def _give_back(address: int, _pop: "Callable[..., Any]" = _held.pop) -> None:
    """What the consumer calls when it is done, once."""
    held = _pop(address, None)
    if held is not None:
        held[1].spare.append(held[0])


_deleter = Deleter(_give_back)
_deleter_address: int = ctypes.cast(_deleter, ctypes.c_void_p).value or 0


def _destructor_of(form: Form) -> "Any":
    def destroy(
        address: int, _name: "Any" = form.name, _is: "Any" = _is_valid, _pointer: "Any" = pointer_of,
        _back: "Any" = _give_back, _argument: "Any" = argument,
    ) -> None:  # fmt: skip
        """A capsule goes away: what nobody took out of it is given back.

        A consumer's error may be on its way: the first call here raises it. It is raised again as what it is, so that
        Python tells of it; that it gets lost for the consumer cannot be helped from Python.
        """
        pending = None
        try:
            capsule = _argument(address)
        except BaseException as error:  # noqa: BLE001
            pending, capsule = error, _argument(address)
        if _is(capsule, _name):
            _back(_pointer(capsule, _name))
        if pending is not None:
            raise pending

    return _Destructor(destroy)


for _form in (LEGACY, VERSIONED):
    _function = _form.destructor = _destructor_of(_form)
    _form.destructor_argument = argument(ctypes.cast(_function, ctypes.c_void_p).value or 0)
    keep_for_ever(_function)  # capsules outlive this module at exit
keep_for_ever(_deleter)


@atexit.register
def _end() -> None:
    """Let no consumer call back into Python from now on; what it still holds stays where it is."""
    global _over  # noqa: PLW0603
    _over = True
    for address, held in list(_held.items()):
        _orphan(address, held)


def _orphan(address: int, held: "tuple[Any, ...]") -> None:
    ctypes.c_void_p.from_address(address + held[1].form.deleter_at).value = _free_address
    keep_for_ever(held)


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


def _capsule(array: "DeviceArray", asked: "tuple[int, int] | None", *, copied: bool) -> "Any":
    """A capsule of the array, which keeps the memory until its consumer is done. Raises: ExchangeError."""
    made = array.exports.get(asked) if array.exports else None
    if made is None:
        made = _structure(array, asked, copied=copied)
        if not copied:  # by another thread at the same time it is made anew, and either is right
            array.exports = {**array.exports, asked: made} if array.exports else {asked: made}
    return _filled(array, made)


def _filled(array: "DeviceArray", made: "tuple[Room, bytes, bytes]") -> "Any":
    """A capsule with a structure."""
    room, head, tail = made
    try:
        block = room.spare.pop()
    except IndexError:
        block = room.block()
    memory, pointers, address, at = block
    memory[:] = head + pointers + tail
    held = _held[address] = (block, room, array)
    if _over:
        _orphan(address, held)
    return new_capsule(at, room.name, room.destructor)


#: Structures of so many arrays that differ are remembered.
_SEEN = 1024
_address = struct.Struct("@P").pack


def _structure(array: "DeviceArray", asked: "tuple[int, int] | None", *, copied: bool) -> "tuple[Room, bytes, bytes]":
    """Room, head and tail of an array's structure, which are the same for every export of a version.

    All but the address are the same for every array like it too. Raises: ExchangeError.
    """
    memory, seen = array.memory, state_of(array.runtime).structures
    said = (
        array._device_idx, memory.kind, memory.readonly, array.dtype.name, array.shape, array.strides, asked, copied,  # noqa: SLF001
    )  # fmt: skip
    found = seen.get(said)
    if found is None:
        if len(seen) >= _SEEN:
            seen.clear()
        found = seen[said] = _parts(array, asked, copied=copied)
    room, before, behind, tail = found
    return room, before + _address(array.ptr) + behind, tail


def _parts(
    array: "DeviceArray", asked: "tuple[int, int] | None", *, copied: bool
) -> "tuple[Room, bytes, bytes, bytes]":
    """Room of an array's structure, its head before and behind the address, and its tail. Raises: ExchangeError."""
    itemsize, ndim = array.dtype.itemsize, len(array.shape)
    number, index = device_numbers(array)
    form = LEGACY if asked is None or asked[0] < VERSION[0] else VERSIONED
    if array.readonly and form is LEGACY:
        raise errors.ExchangeError(
            f"{array!r} may only be read, which DLPack can say from version 1.0 on",
            hint="ask with `max_version=(1, 0)`, or export a copy",
        )
    steps = zip(array.shape, array.strides, strict=True)  # those of one element, and of none, lead nowhere
    if array.size and any(stride % itemsize for extent, stride in steps if extent > 1):
        raise errors.ExchangeError(f"{array!r} has strides that are no whole elements")
    extents = struct.pack(f"@{2 * ndim}q", *array.shape, *[each // itemsize for each in array.strides])
    tensor = (0, number, index, ndim, array.dtype.code, itemsize * 8, 1, 0, 0, 0)
    if form is LEGACY:
        whole = form.pack(*tensor, 0, _deleter_address)
    else:
        flags = (READ_ONLY if array.readonly else 0) | (IS_COPIED if copied else 0)
        whole = form.pack(*min(VERSION, asked or VERSION), 0, _deleter_address, flags, *tensor)
    before, behind, tail = form.split(whole)
    room = _rooms.get((form, ndim)) or _rooms.setdefault((form, ndim), Room(form, ndim))
    return room, before, behind, tail + extents


#: What `__dlpack__` was not asked.
UNSAID: "Any" = ()


def exported(array: "DeviceArray", stream: "Any", max_version: "Any", dl_device: "Any", copy: "bool | None") -> "Any":
    """What `__dlpack__` answers. Raises: ExchangeError; ArgumentTypeError, ArgumentValueError."""
    if not array.memory.is_open:
        array.memory.check()
    if stream.__class__ is int and stream == -1 and dl_device is UNSAID and copy is UNSAID:  # there is no more to it
        if array.exports:
            try:  # what was asked before is answered as before
                return _filled(array, array.exports[max_version])
            except (KeyError, TypeError):
                pass
        asked = None if max_version is None else pair(max_version, "`__dlpack__`: `max_version`")
        return _capsule(array, asked, copied=False)
    asked = None if max_version is None else pair(max_version, "`__dlpack__`: `max_version`")
    if copy is not None and copy is not UNSAID:
        errors.boolean("`__dlpack__`", "copy", copy)
    if dl_device is None and copy is None and stream is UNSAID:
        _refuse_numpy(array)
    elif dl_device is not None and dl_device is not UNSAID:
        wanted = pair(dl_device, "`__dlpack__`: `dl_device`")
        if wanted != device_numbers(array):
            return _elsewhere(array, wanted, copy, asked)
    if copy:
        array = array.copy()
    hand_over(array, None if stream is UNSAID else stream, "`__dlpack__`: `stream`")
    return _capsule(array, asked, copied=bool(copy))


def pair(given: "Any", what: str) -> "tuple[int, int]":
    """Two integers. Raises: ArgumentTypeError."""
    if given.__class__ is tuple and len(given) == 2 and given[0].__class__ is given[1].__class__ is int:
        return given
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise wrong_type(what, "a pair of integers", given)
    return integer(what, "a pair of integers", given[0]), integer(what, "a pair of integers", given[1])


def _refuse_numpy(array: "DeviceArray") -> None:
    """Refuse what NumPy would: it alone says nothing of a stream, and says of device and copy that it asks nothing.

    Its own refusal is lost as it drops the capsule, and Python tells of an error that nobody set.
    Raises: ExchangeError.
    """
    if not array.memory.on_host:
        what = f"the host does not reach {array!r}"
    elif not array.dtype.typestr:
        what = f"NumPy takes no {array.dtype} by DLPack"
    else:
        return
    raise errors.ExchangeError(what, hint="`array.numpy()` makes a copy")


def _elsewhere(
    array: "DeviceArray", wanted: "tuple[int, int]", copy: "bool | None", asked: "tuple[int, int] | None"
) -> "Any":
    """A copy in memory of the host, the only other place that an array is exported to."""
    if copy is False or wanted != (HOST, 0):
        raise errors.ExchangeError(f"{array!r} is not in DLPack's device {wanted}", value=wanted)
    from nbxrt.objects.creation import on_host

    return _capsule(on_host(array), asked, copied=True)


#: DLPack's number of plain memory of the host.
HOST = 1
