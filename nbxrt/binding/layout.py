"""C types and C structures by name, as ctypes classes."""

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: C type of the format: what ctypes calls it. Pointers travel as integers, which is what a cell of one gives back.
C_TYPES = {
    "int": ctypes.c_int,
    "uint": ctypes.c_uint,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "size": ctypes.c_size_t,
    "pointer": ctypes.c_void_p,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "text": ctypes.c_char_p,
    "bytes": ctypes.c_char_p,
}

#: Cells that results are read from: a pointer's cell is an integer of its width, so that null reads as 0.
CELL_TYPES = {**C_TYPES, "pointer": ctypes.c_size_t}

#: Smallest and largest value of each integer type.
RANGES = {
    "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
    "size": (0, 2 ** (8 * ctypes.sizeof(ctypes.c_size_t)) - 1),
    "pointer": (0, 2 ** (8 * ctypes.sizeof(ctypes.c_void_p)) - 1),
    "uint8": (0, 255),
    "uint16": (0, 65535),
}


def structure(name: str, nbytes: int, fields: "Mapping[str, tuple[Any, ...]]") -> "type[ctypes.Structure]":
    """A ctypes structure of nbytes with the fields at their offsets.

    The natural layout is used where it gives these offsets, because a structure passed by value travels by its fields'
    alignment; otherwise the gaps are filled and the structure packed.
    """
    ordered = sorted(((member(name), spec) for name, spec in fields.items()), key=lambda item: item[1][0])
    members = [(field, _field_type(spec)) for field, spec in ordered]
    natural = type(name, (ctypes.Structure,), {"_fields_": members or [("opaque", ctypes.c_char * nbytes)]})
    offsets_agree = all(getattr(natural, field).offset == spec[0] for field, spec in ordered)
    if ctypes.sizeof(natural) == nbytes and offsets_agree:
        return natural
    return type(name, (ctypes.Structure,), {"_pack_": 1, "_layout_": "ms", "_fields_": _with_gaps(ordered, nbytes)})


def member(field: str) -> str:
    """The attribute of a field, which a vendor may have named by a keyword of Python."""
    return f"{field}_"


def _field_type(spec: "tuple[Any, ...]") -> "Any":
    if spec[1] in ("text", "bytes"):
        return ctypes.c_char * spec[2] if spec[1] == "text" else ctypes.c_ubyte * spec[2]
    return CELL_TYPES[spec[1]]


def _with_gaps(ordered: "list[tuple[str, tuple[Any, ...]]]", nbytes: int) -> "list[tuple[str, Any]]":
    members: list[tuple[str, Any]] = []
    at = 0
    for field, spec in ordered:
        if spec[0] > at:
            members.append((f"gap_{at}", ctypes.c_char * (spec[0] - at)))
        members.append((field, _field_type(spec)))
        at = spec[0] + ctypes.sizeof(members[-1][1])
    if nbytes > at:
        members.append((f"gap_{at}", ctypes.c_char * (nbytes - at)))
    return members


def as_tuple(version: "Any") -> str:
    """A version as people write it: (12, 9) is `12.9`."""
    return ".".join(map(str, version)) if version else "unknown"
