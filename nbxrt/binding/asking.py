"""Calls that belong to a library itself, made from their description: not hot, so they are interpreted."""

import ctypes

from nbxrt.binding.layout import C_TYPES, CELL_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: What a call returns to its C type; all others return nothing that is read.
_RETURNED = {"status": ctypes.c_int, "code": ctypes.c_int, "text": ctypes.c_char_p}


def ask(function: "Any", call: "tuple[Any, ...]", code: int = 0) -> "tuple[int, dict[str, Any]]":
    """Make the call with a function: (what it returned, or 0 when that is no status; results by name).

    Out cells are zeroed before. `code` is what the argument of that name passes.
    """
    _symbols, _role, arguments, returns, _usual = call
    cells: dict[str, Any] = {}
    prepared = [_prepare(argument, code, cells) for argument in arguments]
    function.restype = _RETURNED.get(returns[0])
    function.argtypes = [kind for kind, _value in prepared]
    answer = function(*(value for _kind, value in prepared))
    results = {name: cell.value for name, cell in cells.items()}
    if returns[0] in ("text", "code"):
        results[returns[0]] = answer
    return (answer if returns[0] in ("status", "code") else 0), results


def _prepare(argument: "tuple[Any, ...]", code: int, cells: "dict[str, Any]") -> "tuple[Any, Any]":
    form = argument[0]
    if form == "const":
        return C_TYPES[argument[1]], argument[2]
    if form == "param":
        return C_TYPES[argument[2]], code
    if form == "out":
        cells[argument[1]] = CELL_TYPES[argument[2]]()
        return ctypes.c_void_p, ctypes.addressof(cells[argument[1]])
    if form == "buffer":
        cells[argument[1]] = ctypes.create_string_buffer(argument[2])
        return ctypes.c_void_p, ctypes.addressof(cells[argument[1]])
    return ctypes.c_void_p, None


#: What ctypes raises for a symbol that a library lacks; the second where the library's path is not UTF-8, as its own
#: words hold the path.
LACKING = (AttributeError, UnicodeDecodeError)


def has(handle: ctypes.CDLL, symbol: str) -> bool:
    """Whether a loaded library exports the symbol."""
    try:
        handle[symbol]
    except LACKING:
        return False
    return True
