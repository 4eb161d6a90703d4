"""The text of the function that launches one compiled kernel: it writes arguments of known kinds and calls the vendor.

What it is not sure of (another device, a value that does not fit, a refused launch) it leaves to the long way.
"""

import ctypes
import functools
import struct
import sys

from nbxrt.launch import generated, keys, signature, streams
from nbxrt.launch.packing import bfloat16

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from nbxrt.launch.launcher import Shape
    from nbxrt.runtime import Runtime


def can_send(shape: "Shape") -> bool:
    """Whether a launch of this shape is one pack and one call."""
    return not shape.needs_scratch and all(
        kind == signature.CONSTANT or signature.is_plain(kind) for kind in shape.kinds
    )


def sender(
    title: str,
    shape: "Shape",
    runtime: "Runtime",
    device: int,
    arguments: "Mapping[str, Any]",
    global_variables: "Sequence[tuple[str, Any, dict[str, Any]]]",
    names: "dict[str, Any]",
) -> "Callable[..., Any]":
    """The function: a grid as `kernel.grids` has it, and the kernel's arguments.

    `arguments` show what kinds come; `global_variables` are names, values and where they have to be found unchanged.
    Wanted in `names`: `_nbx_kernel`, what is returned; `_nbx_function`; `_nbx_slow`, `_nbx_failed` and `_nbx_changed`,
    the long ways.
    """
    arrays = _arrays(shape, arguments)
    names |= {
        "_nbx_pack": struct.Struct(shape.slots.format).pack_into,
        "_nbx_take": shape.slots.pool.pop,
        "_nbx_give": shape.slots.pool.append,
        "_nbx_fresh": shape.slots.fresh,
        "_nbx_call": shape.call.function,
        "_nbx_pointer": ctypes.c_void_p,
        **of_streams(runtime),
        "_nbx_note": functools.partial(streams.note_arguments, title, arrays),
        "_nbx_bfloat16": bfloat16,
        "_nbx_Empty": IndexError,
        "_nbx_Odd": (struct.error, OverflowError, TypeError, AttributeError, ValueError),
    }
    everything = ", ".join(["_nbx_grid", *arguments])
    slow = f"_nbx_slow({everything})"
    lines = [
        f"def {generated.NAME}({everything}):",
        *generated.globals_lines(global_variables, names, f"_nbx_changed({everything})"),
        *(generated.device_lines(device, slow) if runtime.device_count() > 1 else ()),
        *generated.stream_lines(device, slow),
        *generated.memory_lines(arrays),
        "    try: _nbx_slot = _nbx_take()",
        "    except _nbx_Empty: _nbx_slot = _nbx_fresh()",
        "    _nbx_buffer, _nbx_configuration, _nbx_arguments = _nbx_slot",
        *_pack_lines(shape, arguments, names, everything),
        *_call_lines(shape),
        "    _nbx_give(_nbx_slot)",
        f"    if _nbx_code: return _nbx_failed(_nbx_code, _nbx_s, {everything})",
        "    return _nbx_kernel",
    ]
    return generated.made("\n".join(lines), names, title)


def of_streams(runtime: "Runtime") -> "dict[str, Any]":
    """What the lines about devices and streams refer to."""
    return {
        "_nbx_current": runtime.current,
        "_nbx_entered": runtime.entered,
        "_nbx_torch": streams.torchs_own,
        "_nbx_modules": sys.modules,
    }


def _arrays(shape: "Shape", arguments: "Mapping[str, Any]") -> "list[str]":
    return [
        name
        for kind, (name, value) in zip(shape.kinds, arguments.items(), strict=True)
        if kind != signature.CONSTANT and kind.startswith("*") and hasattr(type(value), keys.ATTRIBUTE)
    ]


def _pack_lines(
    shape: "Shape", arguments: "Mapping[str, Any]", names: "dict[str, Any]", everything: str
) -> "list[str]":
    values = [
        _value_text(name, kind, value)
        for kind, (name, value) in zip(shape.kinds, arguments.items(), strict=True)
        if kind != signature.CONSTANT
    ]
    for at, part in enumerate(shape.slots.order):
        if part == "stream":
            values.append("_nbx_s")
        elif part == "grid":
            values.append("_nbx_grid[3]" if shape.clusters == 1 else "_nbx_spread(_nbx_grid)")
        else:
            names[f"_nbx_fixed{at}"] = part
            values.append(f"_nbx_fixed{at}")
    names["_nbx_spread"] = shape.grid_bytes
    if not values:
        return []
    return [
        f"    try: _nbx_pack(_nbx_buffer, {shape.slots.begin}, {', '.join(values)})",
        f"    except _nbx_Odd: return _nbx_slow({everything})",
    ]


def _value_text(name: str, kind: str, value: "Any") -> str:
    """The expression of what `struct` writes for an argument."""
    if kind.startswith("*"):
        if value.__class__ is int:
            return name
        return f"{name}.ptr" if hasattr(type(value), keys.ATTRIBUTE) else f"{name}.data_ptr()"
    return f"_nbx_bfloat16({name})" if kind == "bf16" else name


def _call_lines(shape: "Shape") -> "list[str]":
    if shape.slots.layout is not None:
        return ["    _nbx_code = _nbx_call(_nbx_configuration, _nbx_function, _nbx_arguments, None)"]
    return [
        "    _nbx_x, _nbx_y, _nbx_z, _nbx_bytes = _nbx_grid",
        f"    _nbx_code = _nbx_call(_nbx_function, _nbx_x * {shape.clusters}, _nbx_y, _nbx_z, {shape.threads}, 1, 1,"
        f" {shape.shared}, _nbx_pointer(_nbx_s) if _nbx_s else None, _nbx_arguments, None)",
    ]
