"""Where a kernel's arguments lie in memory: the types of a signature, the bytes of each value, pooled room for them.

A slot is one block of memory: room for hidden arguments, the values, the launch's configuration. All that a launch
changes lies together, so that one `Struct.pack_into` writes it.
"""

import ctypes
import struct

from nbxrt import errors
from nbxrt.launch.descriptors import NBYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from nbxrt.binding.launching import LaunchCall

#: How `struct` writes a value of a type; a pointer's begins with `*`.
FORMATS = {
    "i1": "b",
    "u1": "B",
    "i8": "b",
    "u8": "B",
    "i16": "h",
    "u16": "H",
    "i32": "i",
    "u32": "I",
    "i64": "q",
    "u64": "Q",
    "fp16": "e",
    "bf16": "H",
    "fp32": "f",
    "f32": "f",
    "fp64": "d",
}
#: What is passed by its bytes: an opaque descriptor of a tensor.
OPAQUE = {"nvTmaDesc": NBYTES}

#: The values that an integer of a type has.
_INTEGERS = {f"i{bits}": range(-(1 << (bits - 1)), 1 << (bits - 1)) for bits in (8, 16, 32, 64)} | {
    f"u{bits}": range(1 << bits) for bits in (8, 16, 32, 64)
}

_CELL = 8  # every value begins at a multiple of this, which is the widest alignment of a scalar
_ALIGNED = 128
#: The byte of a slot where the values begin.
BEGIN = _ALIGNED


def format_of(kind: str) -> str:
    """The letters of a type for `struct`, filled up to whole cells.

    Raises: ArgumentTypeError for a type that no argument has.
    """
    if kind.startswith("*"):
        return "Q"
    if kind in OPAQUE:
        return f"{OPAQUE[kind]}s"
    if kind not in FORMATS:
        raise errors.ArgumentTypeError(
            f"`{kind}` is no type of a kernel's argument", hint=f"known: {', '.join(FORMATS)}, and pointers: `*fp32`"
        )
    letter = FORMATS[kind]
    padding = -struct.calcsize("=" + letter) % _CELL
    return f"{letter}{padding}x" if padding else letter


def bfloat16(value: float) -> int:
    """The upper half of a float's bits: the number rounded toward zero."""
    return int.from_bytes(single(value)[2:], "little")


def single(value: float) -> bytes:
    """The four bytes of a number as a C program converts it: too large a one is infinite."""
    return bytes(ctypes.c_float(value))


def is_integer(kind: str) -> bool:
    """Whether values of a type are integers of its size, which `struct` writes as they are."""
    return kind in _INTEGERS


def holds(kind: str, number: int) -> bool:
    """Whether a type has an integer as one of its values; of types that are no integers there is nothing to ask."""
    return number in _INTEGERS.get(kind, (number,))


def converted(kind: str, value: "Any") -> "Any":
    """A value as `struct` takes it for a type, by the conversions of C: integers wrap, floats round or overflow.

    Raises: TypeError, OverflowError for what C does not take either.
    """
    if value.__class__ is int and kind in _INTEGERS and value in _INTEGERS[kind]:
        return value
    if kind.startswith("*"):
        return address_of(value)
    if kind == "bf16":
        return bfloat16(value)
    if kind in ("fp32", "f32"):
        return struct.unpack("=f", single(value))[0]
    if kind in ("fp64", "fp16"):
        number = float(value)
        struct.pack(FORMATS[kind], number)
        return number
    if kind in OPAQUE:
        return bytes(value)
    bits = 8 if kind in ("i1", "u1") else int(kind[1:])
    number = value.__index__()
    if not -(2**63) <= number < 2**64:
        raise OverflowError(f"{number} does not fit into 64 bits")
    number &= (1 << bits) - 1
    return number - (1 << bits) if kind[0] == "i" and number >> (bits - 1) else number


def address_of(value: "Any") -> int:
    """The address of a pointer argument: of what has `data_ptr()`, an integer as it is, and 0 for None.

    Raises: TypeError.
    """
    if value is None:
        return 0
    if value.__class__ is int:
        return value
    ask = getattr(value, "data_ptr", None)
    if ask is None:
        raise TypeError(f"a pointer is wanted, not {type(value).__name__}")
    return int(ask())


class Slots:
    """Room for the arguments and the configuration of one kernel's launches; several threads take slots of their own.

    `types` are the kernel's arguments in order, without the hidden ones; `hidden` is how many pointers follow them.
    They are null unless `hidden_written`: then they are the last values that a launch writes.
    `fixed` are the bytes of what is the same in all launches, `block` and `shared_memory`, as the configuration has it.
    `order` is what a launch writes after the values, where the function takes a configuration: `grid` (as `grid_bytes`
    makes it), `stream`, and bytes that are always the same.
    `placed` is the order in which the values lie in memory, and are written, where it is not that of the arguments.
    `pool` is a list of free slots, each (buffer, configuration, arguments); `fresh` makes one.
    """

    def __init__(
        self,
        call: "LaunchCall",
        types: "Sequence[str]",
        hidden: int,
        attributes: "Sequence[tuple[int, tuple[int, ...]]]" = (),
        *,
        fixed: "Mapping[str, bytes]",
        hidden_written: bool = False,
        placed: "Sequence[int]" = (),
    ) -> None:
        kinds = [*types, *["*"] * hidden] if hidden_written else list(types)
        kinds = [kinds[at] for at in placed] if placed else kinds
        values = [format_of(kind) for kind in kinds]
        offsets = tuple(_offsets(kinds, values))
        #: Where each argument lies, in the arguments' order.
        self.offsets = tuple(offsets[placed.index(at)] for at in range(len(kinds))) if placed else offsets
        self._hidden_at = (0, 8)[:hidden] if not hidden_written else ()
        self._values_end = offsets[-1] + _size(values[-1]) if kinds else _ALIGNED
        self.layout: Mapping[str, int] | None = call.configuration
        self._attributes = _attribute_bytes(call, attributes)
        self._attribute_count = len(attributes)
        self.pool: list[Any] = []
        #: One `struct` format for all that a launch writes, and the byte where it begins.
        self.begin = BEGIN
        self.order: list[str | bytes] = list(_configuration(self.layout, fixed)) if self.layout else []
        written = "".join(_WRITTEN[part] if isinstance(part, str) else f"{len(part)}s" for part in self.order)
        self.format = "=" + "".join(_spaced(kinds, values, offsets)) + written

    def fresh(self) -> "tuple[Any, Any, Any]":
        """A new slot: its memory, and what the launch function takes for the configuration and for the arguments."""
        size = self._values_end + (self.layout["bytes"] if self.layout else 0)
        raw = ctypes.create_string_buffer(size + _ALIGNED)
        buffer = (ctypes.c_char * size).from_buffer(raw, -ctypes.addressof(raw) % _ALIGNED)
        base = ctypes.addressof(buffer)
        places = [base + offset for offset in (*self.offsets, *self._hidden_at)]
        arguments = (ctypes.c_void_p * max(1, len(places)))(*places)
        configuration = None
        if self.layout is not None:
            at = base + self._values_end
            ctypes.c_void_p.from_address(at + self.layout["attributes"]).value = (
                ctypes.addressof(self._attributes) if self._attribute_count else None
            )
            ctypes.c_uint.from_address(at + self.layout["attribute_count"]).value = self._attribute_count
            configuration = ctypes.c_void_p(at)
        return buffer, configuration, ctypes.byref(arguments)


#: How `struct` writes what changes from launch to launch.
_WRITTEN = {"grid": "12s", "stream": "Q"}


def grid_bytes(x: int, y: int, z: int) -> bytes:
    """Three extents as a launch's configuration has them."""
    return struct.pack("=3I", x, y, z)


def configuration_order(layout: "Mapping[str, int]") -> "list[str | bytes]":
    """`order` of every launch by this configuration, with bytes of no meaning for what is fixed."""
    return list(_configuration(layout, {"block": bytes(12), "shared_memory": bytes(4)}))


def _configuration(layout: "Mapping[str, int]", fixed: "Mapping[str, bytes]") -> "Iterator[str | bytes]":
    """Grid and stream by name, and between them all that stays the same, in the order of their places."""
    between, at = b"", 0
    for part in sorted((*fixed, *_WRITTEN), key=layout.__getitem__):
        between += bytes(layout[part] - at)
        at = layout[part]
        if part in fixed:
            between += fixed[part]
            at += len(fixed[part])
        else:
            if between:
                yield between
            yield part
            between, at = b"", at + struct.calcsize("=" + _WRITTEN[part])
    if between:
        yield between


def _offsets(kinds: "Sequence[str]", values: "Sequence[str]") -> "Iterator[int]":
    at = _ALIGNED
    for kind, letters in zip(kinds, values, strict=True):
        if kind in OPAQUE:
            at += -at % _ALIGNED
        yield at
        at += _size(letters)


def _spaced(kinds: "Sequence[str]", values: "Sequence[str]", offsets: "Sequence[int]") -> "Iterator[str]":
    at = _ALIGNED
    for _kind, letters, offset in zip(kinds, values, offsets, strict=True):
        if offset > at:
            yield f"{offset - at}x"
        yield letters
        at = offset + _size(letters)


def _size(letters: str) -> int:
    return struct.calcsize("=" + letters)


def _attribute_bytes(call: "LaunchCall", attributes: "Sequence[tuple[int, tuple[int, ...]]]") -> "Any":
    layout = call.attribute
    if layout is None:
        return ctypes.create_string_buffer(1)
    room = ctypes.create_string_buffer(layout["bytes"] * max(1, len(attributes)))
    for at, (number, value) in enumerate(attributes):
        struct.pack_into("=i", room, at * layout["bytes"] + layout["id"], number)
        struct.pack_into("=3I", room, at * layout["bytes"] + layout["value"], *value)
    return room
