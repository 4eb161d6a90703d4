"""Capsules of DLPack that other libraries made, as arrays: whose memory it is, and how it is given back."""

import ctypes
import struct
import time

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
#: What reads so many extents or strides, and element types by the number that is read.
_READERS: "dict[int | None, Any]" = {ndim: struct.Struct(f"@{ndim}q").unpack_from for ndim in range(_DIMENSIONS + 1)}
#: The same for extents with their strides right behind them, as NumPy, CuPy and nbxrt have them.
_BOTH: "dict[int, Any]" = {ndim: struct.Struct(f"@{2 * ndim}q").unpack_from for ndim in range(_DIMENSIONS + 1)}
_KINDS = {dlpack.kind_word(kind.code, kind.itemsize * 8): kind for kind in DTYPES.values()}

_name_of = function("PyCapsule_GetName", ctypes.c_char_p)
_set_name = function("PyCapsule_SetName", ctypes.c_int)


#: The type of capsules, which Python has no name for.
Capsule: type = type(dlpack.new_capsule(LEGACY.name, LEGACY.used, None))


def place(runtime: "Runtime", code: int, index: int) -> "tuple[str, Device]":
    """Kind of memory and device by DLPack's numbers. Raises: ExchangeError naming both backends."""
    places = state_of(runtime).places
    found = places.get((code, index))
    if found is None:
        word = dlpack.place_word(code, index)
        found = places[code, index] = places[word] = _looked_up(runtime, code, index)
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


#: Functions of other libraries that take structures back, by address.
_deleters: "dict[int, Callable[[int], None]]" = {}


def _deleter_at(address: int) -> "Callable[[int], None]":
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

    _deleter: int
    _structure: int

    def _close(self, _on: "Callable[..., object]") -> None:
        """Give the structure back, with the graphs that are being captured where there are any, as they may use it."""
        self.is_open = False
        captures = state_of(self.device.runtime).captures
        if captures and self._deleter:
            from nbxrt.objects.graph import hand_over

            hand_over(captures, self.device, _deleter_at(self._deleter), self._structure)
        elif self._deleter:
            _deleter_at(self._deleter)(self._structure)


_new = object.__new__
#: The form of the last capsule, which the next one most often has too: it is known once its pointer is given.
_expected = [VERSIONED]
#: Where addresses end.
_END = 1 << 64
#: Layouts that were seen, at most so many, by what is read.
_layouts: "dict[Any, tuple[Any, ...]]" = {}
_SEEN = 1024
#: What a thread takes out while it looks at a capsule's name and changes it: no function of Python's does both at once,
#: and any lock costs more.
_turn: "list[None]" = [None]
_one = (None,)


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


def taken(capsule: "Any", runtime: "Runtime", stream: "Any") -> "DeviceArray":  # noqa: PLR0915  # each call more costs
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
        _turn[:] = _one  # and no more, where one who waited for too long has gone without it
    try:
        if form is VERSIONED:
            major, deleter, flags, data, where, ndim, word, shape_at, strides_at, offset = form.read(MEMORY, structure)
            if major != VERSION[0]:
                _refuse_version(structure)
        else:
            data, where, ndim, word, shape_at, strides_at, offset, deleter = form.read(MEMORY, structure)
            flags = 0
        try:  # what was seen before was checked then
            memory_kind, device = runtime.objects.places[where]  # type: ignore[union-attr]
            read = _READERS[ndim if shape_at or not ndim else None]
            seen = (  # one read where it can be: the second costs a twentieth of all
                _layouts[word, _BOTH[ndim](MEMORY, shape_at)]
                if strides_at - shape_at == 8 * ndim
                else _layouts[word, read(MEMORY, shape_at), read(MEMORY, strides_at) if strides_at else None]
            )
            shape, strides, kind, first, nbytes, highest = seen
        except (AttributeError, KeyError):
            memory_kind, device = place(runtime, *dlpack.parts_of_place(where))
            shape, strides, kind, first, nbytes, highest = _layout(word, ndim, shape_at, strides_at)
        ptr = data + offset if offset else data
        begin = ptr + first if first else ptr
        if not nbytes:
            begin = ptr = 0
        elif not data or not 0 <= begin <= highest:
            _refuse_place(shape, data)
        if stream is not None:
            as_stream(stream, device)
    except BaseException:  # it is given back as it was
        _set_name(at, form.name)
        raise
    # the two objects without their constructors, and at most three values at once: more would be made a tuple first
    memory = _new(Imported)
    memory.device, memory.address, memory.nbytes = device, begin, nbytes
    memory.kind, memory.owner, memory.is_open = memory_kind, None, True
    memory.readonly, memory._process = flags & READ_ONLY != 0, process[0]  # noqa: SLF001
    memory._structure, memory._deleter = structure, deleter  # noqa: SLF001
    array = _new(DeviceArray)
    array.memory, array.ptr, array.dtype = memory, ptr, kind
    array.shape, array.strides, array.is_aligned = shape, strides, not ptr & 15
    array.device, array.runtime, array._device_idx = device, runtime, device._device_idx  # noqa: SLF001
    array.exports = array.launch_key = None
    return array


def _layout(word: int, ndim: int, shape_at: int, strides_at: int) -> "tuple[Any, ...]":
    """Shape, strides in bytes, element type, first byte, how many, and the last address that the first may have.

    Raises: ExchangeError for what no array has.
    """
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
        if steps is not None or not ndim:
            _layouts[word, (*shape, *(steps or ()))] = found
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
    return shape, strides, kind, first, last - first, _END - (last - first)


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


def _unknown_kind(word: int) -> "DType":
    code, bits, lanes = dlpack.parts_of_kind(word)
    raise errors.ExchangeError(
        f"the element type of DLPack's class {code} with {bits} bits and {lanes} lanes is unknown"
    )
