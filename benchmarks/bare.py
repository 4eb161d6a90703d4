"""One C call of a backend by hand-written ctypes: what a generated operation is compared with.

It is made of the backend's description, so that it calls the same function of the same file with the same types.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

from nbxrt.binding.layout import C_TYPES, CELL_TYPES
from nbxrt.binding.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable

    import nbxrt


class Call:
    """The C call of an operation here: its symbol, its library, its arguments in order, and what it returns."""

    def __init__(self, runtime: nbxrt.Runtime, operation: str) -> None:
        system = Machine().system
        _line, variants = runtime.description["operations"][operation]
        calls = [variant[4] for variant in variants if variant[0] == "call" and system in (variant[3] or (system,))]
        self.symbols, role, self.arguments, self.returns, _usual = calls[0]
        self.library = runtime.library(role)
        self.takes = [row[0] for row in runtime.contract["operations"][operation]["takes"]]
        self.out = next((argument for argument in self.arguments if argument[0] == "out"), None)

    def function(self) -> Any:
        """The C function, typed."""
        handle = ctypes.CDLL(self.library.path if self.library.path.startswith("/") else None)
        symbol = next(name for name in self.symbols if hasattr(handle, name))
        function = handle[symbol]
        function.argtypes = [self._type(argument) for argument in self.arguments]
        function.restype = ctypes.c_int if self.returns[0] == "status" else None
        return function

    def _type(self, argument: tuple[Any, ...]) -> Any:
        if argument[0] == "param":
            return C_TYPES[argument[2]]
        return C_TYPES[argument[1]] if argument[0] == "const" else ctypes.c_void_p

    def source(self, slot: str) -> str:
        """The call's arguments as text, with this text where the result comes out."""
        texts = {
            "param": lambda a: a[1],
            "const": lambda a: str(int(a[2])),
            "out": lambda _a: slot,
            "null": lambda _a: "None",
        }
        return ", ".join(texts[argument[0]](argument) for argument in self.arguments)

    @property
    def cell(self) -> Any:
        """The ctypes class of the result."""
        return CELL_TYPES[self.out[2]] if self.out else None


FRESH = """
def call({takes}):
    slot = cell()
    status = function({arguments})
    if status: raise RuntimeError(status)
    return slot.value
"""
KEPT = """
def call({takes}):
    try: slot, address = local.slot
    except AttributeError:
        slot = cell()
        address = addressof(slot)
        local.slot = slot, address
    slot.value = 0
    status = function({arguments})
    if status: raise RuntimeError(status)
    return slot.value
"""
PLAIN = """
def call({takes}):
    status = function({arguments})
    if status: raise RuntimeError(status)
"""


def with_fresh_slot(call: Call) -> Callable[..., Any]:
    """A new cell each call, as ctypes programs are usually written."""
    return _made(FRESH if call.out else PLAIN, call, "byref(slot)")


def with_thread_local_slot(call: Call) -> Callable[..., Any]:
    """A cell that each thread keeps."""
    return _made(KEPT if call.out else PLAIN, call, "address")


def _made(template: str, call: Call, slot: str) -> Callable[..., Any]:
    names = {
        "function": call.function(),
        "cell": call.cell,
        "byref": ctypes.byref,
        "addressof": ctypes.addressof,
        "local": threading.local(),
    }
    exec(template.format(takes=", ".join(call.takes), arguments=call.source(slot)), names)  # noqa: S102
    made: Callable[..., Any] = names["call"]
    return made


def generic(call: Call) -> Callable[..., Any]:
    """A closure that serves every operation alike: `*args`, each made a ctypes object, results in fresh cells."""
    function = call.function()
    constants = [C_TYPES[argument[1]](argument[2]) if argument[0] == "const" else None for argument in call.arguments]
    given = [
        (place, C_TYPES[argument[2]], call.takes.index(argument[1]))
        for place, argument in enumerate(call.arguments)
        if argument[0] == "param"
    ]
    results = [
        (place, CELL_TYPES[argument[2]]) for place, argument in enumerate(call.arguments) if argument[0] == "out"
    ]

    def bound(*args: Any) -> Any:
        values: list[Any] = constants.copy()
        for place, kind, at in given:
            values[place] = kind(args[at])
        cells = [kind() for _place, kind in results]
        for (place, _kind), cell in zip(results, cells, strict=True):
            values[place] = ctypes.byref(cell)
        status = function(*values)
        if status:
            raise RuntimeError(status)
        return cells[0].value if len(cells) == 1 else tuple(cell.value for cell in cells)

    return bound
