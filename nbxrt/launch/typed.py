"""Arguments of raw kernels: each says its type, since a bare number of Python does not say how wide it is."""

import ctypes
import struct

from nbxrt import errors
from nbxrt.launch.packing import FORMATS, converted
from nbxrt.launch.streams import demand_open
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.buffer import Buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.launch.module import Function

_VALUES = (ctypes._SimpleCData, ctypes.Structure, ctypes.Array)  # noqa: SLF001  # ctypes has no public name for it

#: Kinds of NumPy's scalars whose bytes a kernel reads as they are: numbers, and structures of them.
_NUMBERS = "biufcV"


def listed(args: "Any") -> "Any":
    """The arguments of a launch as what is iterated over. Raises: ArgumentTypeError."""
    if isinstance(args, (str, bytes, dict, DeviceArray, Buffer)) or not hasattr(type(args), "__iter__"):
        raise errors.ArgumentTypeError(
            f"`launch` takes a list of arguments, not {type(args).__name__} {errors.shown(args)}",
            hint="write `[]` where there are none" if args is None else "write `[argument]` for one",
            parameter="args",
            value=args,
        )
    return args


def typed(function: "Function", place: int, value: "Any", stream: "Any") -> "Any":
    """One argument as a ctypes value."""
    where = f"argument {place} of `{function.name}`"
    if isinstance(value, (DeviceArray, Buffer)):
        if value.runtime is not function.module.runtime or value.device is not function.module.device:
            raise errors.ArgumentValueError(f"{where} is on {value.device}, and the kernel on {function.module.device}")
        demand_open(where, value)
        value.memory.used_on(stream)
        return ctypes.c_void_p(value.ptr)
    if isinstance(value, _VALUES) and not isinstance(value, ctypes.py_object):
        return value
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        is_memory = value[0].startswith("*") and isinstance(value[1], (DeviceArray, Buffer))
        return typed(function, place, value[1], stream) if is_memory else _pair(where, *value)
    kind = getattr(value, "dtype", None)
    if kind is not None and getattr(value, "shape", None) == () and kind.kind in _NUMBERS:
        return (ctypes.c_char * kind.itemsize).from_buffer_copy(value.tobytes())
    if value is None:
        return ctypes.c_void_p(None)
    if getattr(value, "shape", ()):
        raise errors.ArgumentTypeError(
            f"{where} is {type(value).__name__}, and an array on the device is wanted",
            hint="`nbxrt.asarray` makes one",
            value=value,
        )
    raise errors.ArgumentTypeError(
        f"{where} is {type(value).__name__} {errors.shown(value)}, which does not say its type",
        hint="say it: `('i32', 5)`, `ctypes.c_int32(5)` or `numpy.int32(5)`; `nbxrt.asarray` makes arrays",
        value=value,
    )


def _pair(where: str, kind: str, value: "Any") -> "Any":
    if kind.startswith("*") and (value is None or value.__class__ is int):
        if value and not 0 <= value < 1 << 64:
            raise errors.ArgumentValueError(f"{where}: {errors.shown(value)} is no address of 64 bits", value=value)
        return ctypes.c_void_p(value)
    if kind not in FORMATS:
        hint = "an address is an integer, and an array its own" if kind[:1] == "*" else f"known: {', '.join(FORMATS)}"
        raise errors.ArgumentTypeError(f"{where}: `{kind}` is no type of {errors.shown(value)}", hint=hint)
    try:
        content = struct.pack("=" + FORMATS[kind], converted(kind, value)) if fits(kind, value) else b""
    except (TypeError, AttributeError, OverflowError, struct.error):
        content = b""
    if not content:
        raise errors.ArgumentTypeError(f"{where} is passed as `{kind}`, and {errors.shown(value)} is none", value=value)
    return (ctypes.c_char * len(content)).from_buffer_copy(content)


def fits(kind: str, value: "Any") -> bool:
    """Whether a value has no more bits than its type; of a float there is nothing to ask. Raises: AttributeError."""
    if kind[0] not in "iu":
        return True
    bits = int(kind[1:])
    number: int = value.__index__()
    return -(1 << bits - 1) <= number < 1 << bits
