"""Capsules of DLPack that other libraries made, as arrays: whose memory it is, and how it is given back."""

import ctypes
import struct
import time
from collections import deque

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
    from typing import Any, NoReturn

    from nbxrt.objects.device import Device
    from nbxrt.objects.dlpack import Form
    from nbxrt.objects.dtypes import DType
    from nbxrt.runtime import Runtime

#: More dimensions than any library has: a structure that says more is damaged.
_DIMENSIONS = 64
#: Element types by DLPack's class, bits and lanes.
_KINDS = {(kind.code, kind.itemsize * 8, 1): kind for kind in DTYPES.values()}

_name_of = function("PyCapsule_GetName", ctypes.c_char_p)
_set_name = function("PyCapsule_SetName", None)

#: Numbers of DLPack's devices have 32 bits.
_BEYOND = 1 << 31

#: The type of capsules, which Python has no name for.
Capsule: type = type(dlpack.new_capsule(LEGACY.name, LEGACY.used, None))


def place(runtime: "Runtime", code: int, index: int) -> "tuple[str, Device]":
    """Kind of memory and device by DLPack's numbers. Raises: ExchangeError naming both backends."""
    places = state_of(runtime).places
    found = places.get((code, index))
    if found is None:
        if not (-_BEYOND <= code < _BEYOND and -_BEYOND <= index < _BEYOND):
            raise errors.ExchangeError(f"{code} and {index} are no device type and id of DLPack")
        found = places[code, index] = _looked_up(runtime, code, index)
    return found


def _looked_up(runtime: "Runtime", code: int, index: int) -> "tuple[str, Device]":
    numbers: Mapping[str, int] = runtime.description["interop"]["dlpack"]
    for kind, number in numbers.items():
        if number == code:
            return kind, as_device(index if kind == "device" else max(index, 0), runtime)
    owner = next((name for name in descriptions.names() if code in _numbers_of(name)), "")
    whose = f"memory of the backend `{owner}`" if owner else "of no backend that is known here"
    hint = "`nbxrt.asarray(…, device=…)` copies it to a device" if code == HOST else ""
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


#: Functions of other libraries that take structures back, by address; there need be none.
_deleters: "dict[int, Callable[[int], None] | None]" = {0: None}


def _deleter_at(address: int) -> "Callable[[int], None] | None":
    if address not in _deleters:
        _deleters[address] = Deleter(address)
    return _deleters[address]


def asked(value: "Any", stream: "int | None") -> "Any":
    """A capsule of another library's array, by the newest form of the question that it knows. Raises: ExchangeError."""
    try:
        if stream is None:
            return value.__dlpack__(max_version=VERSION)
        return value.__dlpack__(max_version=VERSION, stream=stream)
    except TypeError:  # older than 1.0 of DLPack
        given = {} if stream is None else {"stream": stream}
    try:
        return value.__dlpack__(**given)
    except TypeError:  # older than streams: what it gives is ready
        return value.__dlpack__()


class Imported(Closing, Memory):
    """Memory of another library, whose structure is given back to it with this object; `taken` alone makes it."""

    __slots__ = ("_deleter", "_process", "_structure")

    __init__ = object.__init__  # what `taken` fills in is all, and the call costs as much
    #: The same for each, and so of the class: a value more of an object costs as much as all these lines.
    owner = None
    readonly = False

    _deleter: "Callable[[int], None] | None"
    _structure: int

    def _close(self, _on: "Callable[..., object]") -> None:
        """Give the structure back, with the graphs that are being captured where there are any, as they may use it."""
        self.is_open = False
        if self._deleter is None:
            return
        state = self.device.runtime.objects
        if state is not None and state.captures:
            from nbxrt.objects.graph import hand_over

            hand_over(state.captures, self.device, self._deleter, self._structure)
        else:
            self._deleter(self._structure)


class ImportedReadOnly(Imported):
    """The same of memory that may only be read."""

    __slots__ = ()

    readonly = True


_new = object.__new__
#: The form of the last capsule, which the next one most often has too: it is known once its pointer is given.
_expected = [VERSIONED]
#: Where addresses end.
_END = 1 << 64
#: So many layouts of a sort are remembered.
_SEEN = 1024
#: Where no extents are: a reader of some refuses it, as it would not refuse 0.
_NOWHERE = -1
#: Strides that lie no further behind their extents are read with them at once.
_NEAR = 8 * _DIMENSIONS
#: What a thread takes out while it looks at a capsule's name and changes it: no function of Python's does both at once,
#: and any lock costs more. It holds no more than the one, also where one who waited for too long has gone without it.
_turn: "deque[None]" = deque((None,), 1)


def _wait_for_turn() -> None:
    """Wait for the thread that is at it, a moment: after a second it was interrupted, or is not in this fork."""
    for _each in range(1000):
        time.sleep(0.001)
        try:
            _turn.pop()
        except IndexError:
            continue
        else:
            return


def taken(capsule: "Any", runtime: "Runtime", stream: "Any") -> "DeviceArray":  # noqa: C901, PLR0912, PLR0915  # a call more costs
    """The array of a capsule, which is used up; it is ready for work on the stream.

    Raises: ExchangeError, and then the capsule is as it was.
    """
    at = argument(id(capsule))
    try:
        _turn.pop()
    except IndexError:
        _wait_for_turn()
    try:
        form = _expected[0]
        try:
            structure: int = pointer_of(at, form.name)
        except ValueError:  # the capsule has another name
            form = _expected[0] = _form_of(capsule, at)
            structure = pointer_of(at, form.name)
        _set_name(at, form.used)
    finally:
        _turn.append(None)
    # the two objects without constructors of ours; parts go into them at once, as each that is kept beside costs too
    memory, array = Imported(), _new(DeviceArray)
    try:
        if form is VERSIONED:
            major, deleter, flags, data, sort, shape_at, strides_at, offset = form.read(MEMORY, structure)
            if major != VERSION[0]:
                _refuse_version(structure)
            if flags and flags & READ_ONLY:
                memory = ImportedReadOnly()
        else:
            data, sort, shape_at, strides_at, offset, deleter = form.read(MEMORY, structure)
        try:  # what was seen before was checked then
            memory.kind, device, array.dtype, readers, layouts = runtime.objects.sorts[sort]  # type: ignore[union-attr]
            read = readers[strides_at - shape_at if strides_at else None]
            array.shape, array.strides, first, nbytes, highest = layouts[read(MEMORY, shape_at or _NOWHERE)]
            memory._deleter = _deleters[deleter]  # noqa: SLF001
        except (AttributeError, KeyError, struct.error):
            memory.kind, device, array.dtype, seen = _looked_at(runtime, sort, shape_at, strides_at)
            array.shape, array.strides, first, nbytes, highest = seen
            memory._deleter = _deleter_at(deleter)  # noqa: SLF001
        begin = ptr = data + offset if offset else data
        if first:  # some strides are below 0
            begin = ptr + first if ptr + first >= 0 else _END
        if not nbytes:
            begin = ptr = 0
        elif not data or begin > highest:
            _refuse_place(array.shape, data)
        if stream is not None:
            as_stream(stream, device)
    except BaseException:  # it is given back as it was
        _set_name(at, form.name)
        raise
    # at most three values at once: more would be made a tuple first
    memory.device, memory.address, memory.nbytes = device, begin, nbytes
    memory.is_open, memory._structure, memory._process = True, structure, process[0]  # noqa: SLF001
    array.memory, array.ptr, array.is_aligned = memory, ptr, not ptr & 15
    array.device, array.runtime, array._device_idx = device, runtime, device._device_idx  # noqa: SLF001
    array.exports = array.launch_key = None
    return array


def device_of(capsule: "Any", runtime: "Runtime") -> "Device":
    """The device that a capsule's array is on; the capsule stays as it is. Raises: ExchangeError."""
    at = argument(id(capsule))
    form = _form_of(capsule, at)
    sort: bytes = form.read(MEMORY, pointer_of(at, form.name))[4 if form is VERSIONED else 1]
    code, index, *_rest = dlpack.parts_of_sort(sort)
    return place(runtime, code, index)[1]


def _looked_at(runtime: "Runtime", sort: bytes, shape_at: int, strides_at: int) -> "tuple[Any, ...]":
    """Kind of memory, device, element type and layout of a tensor, remembered for the next one like it.

    A layout is shape, strides in bytes, first byte, how many, and the last address that the first may have.
    Raises: ExchangeError for what no array has.
    """
    code, index, ndim, *word = dlpack.parts_of_sort(sort)
    sorts = state_of(runtime).sorts
    if sort not in sorts:
        memory_kind, device = place(runtime, code, index)
        if not 0 <= ndim <= _DIMENSIONS:
            raise errors.ExchangeError(f"the capsule says that the array has {ndim} dimensions")
        kind = _KINDS.get(tuple(word)) or _unknown_kind(*word)
        sorts[sort] = memory_kind, device, kind, {None: _reader(f"{8 * ndim}s")}, {}
    memory_kind, device, kind, readers, layouts = sorts[sort]
    if ndim and not shape_at:
        raise errors.ExchangeError(f"the capsule has no shape, and its array {ndim} dimensions")
    extents = _extents(ndim, readers, shape_at, strides_at)
    if extents not in layouts:
        if len(layouts) >= _SEEN:
            layouts.clear()
        layouts[extents] = _measured(kind, ndim, b"".join(extents))
    return memory_kind, device, kind, layouts[extents]


def _reader(form: str) -> "Callable[..., tuple[bytes, ...]]":
    return struct.Struct(f"@{form}").unpack_from


def _extents(ndim: int, readers: "dict[Any, Any]", shape_at: int, strides_at: int) -> "tuple[bytes, ...]":
    """Shape and strides as they are read: by one reader where the strides lie near behind the shape."""
    nbytes = 8 * ndim
    gap = strides_at - shape_at - nbytes
    if strides_at and 0 <= gap <= _NEAR:
        readers[nbytes + gap] = _reader(f"{nbytes}s{gap}x{nbytes}s" if gap else f"{2 * nbytes}s")
    read: Callable[..., tuple[bytes, ...]] | None = readers.get(strides_at - shape_at if strides_at else None)
    if read is not None:
        return read(MEMORY, shape_at or _NOWHERE)
    apart: Callable[..., tuple[bytes, ...]] = readers[None]
    return apart(MEMORY, shape_at or _NOWHERE) + apart(MEMORY, strides_at)


def _measured(kind: "DType", ndim: int, extents: bytes) -> "tuple[Any, ...]":
    numbers = memoryview(extents).cast("q").tolist() if extents else []
    shape, steps = tuple(numbers[:ndim]), numbers[ndim:]
    if min(shape, default=0) < 0:
        raise errors.ExchangeError(f"the capsule says that the array has the shape {shape}")
    strides = tuple([step * kind.itemsize for step in steps]) if steps else layout.strides_of(shape, kind.itemsize)
    first, last = layout.span_of(shape, strides, kind.itemsize)
    return shape, strides, first, last - first, _END - (last - first)


def _form_of(capsule: "Any", at: "Any") -> "Form":
    """The form of a capsule by its name. Raises: ExchangeError for one of another name, and one that was taken."""
    name: bytes | None = _name_of(at)
    form = FORMS.get(name or b"")
    if form is not None:
        return form
    if (name or b"").startswith(b"used_dltensor"):
        raise errors.ExchangeError("the capsule was taken already, and DLPack gives each one once") from None
    raise errors.ExchangeError(
        f"{capsule!r} is no capsule of DLPack", hint="ask the array anew by its `__dlpack__`"
    ) from None


def _refuse_version(address: int) -> "NoReturn":
    theirs, ours = (".".join(map(str, parts)) for parts in (struct.unpack_from("@II", MEMORY, address), VERSION))
    raise errors.ExchangeError(f"the capsule is of DLPack {theirs}, and this nbxrt knows {ours}")


def _refuse_place(shape: "tuple[int, ...]", address: int) -> "NoReturn":
    raise errors.ExchangeError(f"the capsule's array of shape {shape} at {address:#x} is in no memory")


def _unknown_kind(code: int, bits: int, lanes: int) -> "NoReturn":
    raise errors.ExchangeError(
        f"the element type of DLPack's class {code} with {bits} bits and {lanes} lanes is unknown"
    )
