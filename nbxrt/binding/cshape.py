"""C-shaped functions by operation, for callers by symbol where there is no single vendor function to hand out.

The adapter takes the contract's `c` arguments (pointers for what comes out) and returns a status: 0, or a code of the
runtime library that means what happened.
"""

import ctypes

from nbxrt import errors
from nbxrt.binding.layout import CELL_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nbxrt.binding.binder import Binder

#: The status of a failure that no code of the library stands for.
UNKNOWN = 999


def adapter(binder: "Binder", operation: str, function: "Callable[..., Any]") -> "Callable[..., int]":
    """`function` (the operation in the contract's form) as the contract's C function."""
    entry = binder.contract["operations"][operation]
    shape = entry["c"] if entry["c"] is not None else _plain_shape(entry)
    taken = [name for name, *_rest in entry["takes"]]
    given = [name for name, _kind in entry["gives"]]
    kinds = dict(entry["gives"])

    def call(*values: "Any") -> int:
        if len(values) != len(shape):
            raise errors.ArgumentTypeError(
                f"{call.__name__} takes {len(shape)} arguments ({', '.join(map(_said, shape))}), not {len(values)}"
            )
        arguments, cells = _sorted_out(binder, entry, shape, values)
        try:
            answer = function(*[arguments[name] for name in taken if name in arguments])
        except errors.DeviceError as error:
            return error.code or UNKNOWN
        except (errors.NbxrtError, OSError):
            return _code(binder, "invalid_value")
        results = answer if len(given) > 1 else (answer,)
        if entry["answers"]:
            return int(answer)
        if entry["done"]:
            return 0 if answer else _code(binder, entry["done"])
        for name, value in zip(given, results, strict=False):
            _store(cells[name], binder.contract["types"].get(kinds[name], ("int",))[0], value)
        return 0

    call.__name__ = call.__qualname__ = f"c_{operation}"
    call.__doc__ = f"{entry['says']} C-shaped: ({', '.join(map(_said, shape))}), returns a status."
    return call


def _plain_shape(entry: "Mapping[str, Any]") -> "tuple[Any, ...]":
    """Parameters, then results: for an operation to which the contract gives no C order."""
    outs = tuple((("out", name),) for name, _kind in entry["gives"])
    return tuple(name for name, *_rest in entry["takes"]) + outs


def _said(argument: "Any") -> str:
    if argument is None or isinstance(argument, str):
        return str(argument)
    key, value = argument[0]
    return f"*{value}" if key in ("out", "buffer") else str(value)


def _sorted_out(
    binder: "Binder", entry: "Mapping[str, Any]", shape: "tuple[Any, ...]", values: "tuple[Any, ...]"
) -> "tuple[dict[str, Any], dict[str, Any]]":
    """Values by parameter, and the places of results."""
    arguments: dict[str, Any] = {}
    cells: dict[str, Any] = {}
    for argument, value in zip(shape, values, strict=False):
        if isinstance(argument, str):
            arguments[argument] = _plain(value)
        elif argument is not None:
            key, name = argument[0]
            if key in ("out", "buffer"):
                cells[name] = value
            elif key == "flags":
                arguments |= _booleans(binder, entry, name, _plain(value))
    return arguments, cells


def _booleans(binder: "Binder", entry: "Mapping[str, Any]", flags: str, bits: int) -> "dict[str, bool]":
    """The booleans that flag bits stand for; a backend without numbers for them takes the defaults."""
    numbers: Mapping[str, int] = next((words for _s, _b, words in binder.description["enums"].get(flags, ())), {})
    named = {name: default[0] for name, kind, _zero, default in entry["takes"] if kind == "boolean" and default}
    for word in named:
        if word in numbers:
            named[word] = bool(bits & numbers[word])
        elif f"not_{word}" in numbers:
            named[word] = not bits & numbers[f"not_{word}"]
    return named


def _plain(value: "Any") -> "Any":
    """The Python value of what a C caller hands over."""
    if isinstance(value, ctypes._SimpleCData):  # noqa: SLF001
        return value.value or 0
    return 0 if value is None else value


def _store(cell: "Any", c_type: str, value: "Any") -> None:
    """Write a result where the caller wants it: byref(x), a pointer, a ctypes value or an address."""
    if isinstance(value, (str, bytes)):
        text = value.encode() + b"\0" if isinstance(value, str) else value
        ctypes.memmove(cell, text, len(text))
        return
    target = getattr(cell, "_obj", cell)
    if isinstance(target, ctypes._SimpleCData):  # noqa: SLF001
        target.value = value
        return
    address = target if isinstance(target, int) else ctypes.cast(target, ctypes.c_void_p).value or 0
    cell_at: Any = CELL_TYPES[c_type].from_address(address)
    cell_at.value = value


def _code(binder: "Binder", kind: str) -> int:
    codes = binder.library("runtime").codes(kind)
    return codes[0] if codes else UNKNOWN
