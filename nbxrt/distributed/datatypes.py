"""Element types of collectives, by the contract's words: their sizes, and how arrays of other libraries name them."""

from __future__ import annotations

from typing import Any

from nbxrt import errors

#: Bytes of an element.
NBYTES = {
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "float8_e4m3": 1,
    "float8_e5m2": 1,
}
#: Ways to combine elements.
REDUCTIONS = frozenset({"sum", "prod", "max", "min", "avg"})
#: What the array interfaces call them, without the byte order.
_TYPESTRS = {
    "i1": "int8",
    "u1": "uint8",
    "i4": "int32",
    "u4": "uint32",
    "i8": "int64",
    "u8": "uint64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
}
#: Names of other libraries.
_ALIASES = {"float8_e4m3fn": "float8_e4m3", "half": "float16", "float": "float32", "double": "float64"}
_known: dict[Any, str] = {}


def datatype_of(dtype: Any) -> str:
    """The contract's word for a type object (`torch.float32`, a NumPy dtype) or a name of one.

    Raises: ArgumentTypeError.
    """
    try:
        return _known[dtype]
    except (KeyError, TypeError):
        pass
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    name = _ALIASES.get(name, name)
    if name not in NBYTES:
        raise unknown(name)
    _known[dtype] = name
    return name


def datatype_of_typestr(typestr: str) -> str:
    """The contract's word for the type of an array interface.

    Raises: ArgumentTypeError.
    """
    word = _TYPESTRS.get(typestr[1:])
    if word is None or typestr[0] == ">":
        raise unknown(typestr)
    return word


def unknown(name: str) -> errors.ArgumentTypeError:
    """The error for a type that no collective takes."""
    return errors.ArgumentTypeError(
        f"`{name}` is no element type of collectives", hint=f"they take {', '.join(NBYTES)}", value=name
    )
