"""Calls whose arguments are checked and converted once, for callers that make the same call again and again.

A C call of eight arguments costs a third of what it does with plain values: nothing is left to do but the call.
"""

import ctypes

from nbxrt.binding.forms import ARGUMENTS, returned
from nbxrt.binding.generating import prologue
from nbxrt.binding.parameters import signature
from nbxrt.binding.source import Source, compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.library import Library


def preparing_function(
    binder: "Binder", operation: str, variant: "tuple[Any, ...]"
) -> "Callable[..., Callable[[], None]] | None":
    """What takes the operation's arguments and gives the call; None where it is not a plain call with a status."""
    if variant[0] != "call" or operation == "set_device":  # at each call of which nbxrt forgets the current device
        return None
    _form, _since, _before, _platforms, (symbols, role, arguments, returns, _usual), _extra = variant
    library = binder.library(role)
    source = Source(binder, operation)
    parameters = signature(source)
    for argument in arguments:
        ARGUMENTS[argument[0]](source, argument)
    restype = returned(source, returns)
    if not _is_plain(source, library, returns[0]):
        return None
    function, symbol = binder.typed(library, operation, symbols, restype, source.types, keep_gil=False)
    function.argtypes = None  # its arguments are ctypes' own: see nbxrt/binding/prebuilt.py
    fail = binder.failures.failing(library, operation, symbol)
    entering = library.codes("invalid_context") if library.can_enter else ()
    source.globals["_again"] = _again(function, source.types, library.success, fail, entering, library.enter)
    given = ", ".join(f"{name!r}: {name}" for name, _kind, _zero, _default in source.entry["takes"])
    body = [*prologue(source), f"return _again(({', '.join(source.call)},), {{{given}}})"]
    source.operation = f"prepare_{operation}"
    return compiled(source, [f"def {source.operation}({parameters}):", *body])


def _is_plain(source: Source, library: "Library", returns: str) -> bool:
    """Whether the call takes simple values, and its status alone says how it went."""
    entry = source.entry
    more = source.cells or source.before or source.rows or source.status
    other = entry["done"] or entry["zero_on"] or entry["tolerates"] or entry["gives"]
    if more or other or returns != "status" or library.needs_start:
        return False
    return all(issubclass(kind, ctypes._SimpleCData) for kind in source.types)  # noqa: SLF001


def _again(
    function: "Any", types: "Sequence[Any]", success: int, fail: "Callable[..., Exception]",
    entering: "Sequence[int]", enter: "Callable[[], bool]",
) -> "Callable[..., Callable[[], None]]":  # fmt: skip
    def again(values: "tuple[Any, ...]", given: "Mapping[str, Any]") -> "Callable[[], None]":
        converted = tuple([kind.from_param(value) for kind, value in zip(types, values, strict=True)])

        def call() -> None:
            code = function(*converted)
            if code != success:
                if code in entering and enter():
                    code = function(*converted)
                if code != success:
                    raise fail(code, given)

        return call

    return again
