"""Listing the devices of an API without ordinals, and asking what they are: calls and steps that run once.

They are not hot, so calls are interpreted. What becomes of the handles is in states.py.
"""

import ctypes

from nbxrt.binding import sequence
from nbxrt.binding.layout import C_TYPES, CELL_TYPES, member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.states import State


def ask(binder: "Binder", call: "tuple[Any, ...]", names: "dict[str, Any]") -> "Any":
    """What comes out of a call: its own value, or that of its only cell; None when its status is a failure."""
    symbols, role, arguments, returns = call
    library = binder.library(role)
    function, _symbol = library.function(symbols, _RETURNED.get(returns[0], ctypes.c_void_p), ())
    read: list[Callable[[], Any]] = []
    prepared = [_prepared(binder, argument, names, read) for argument in arguments]
    function.argtypes = [kind for kind, _value in prepared]
    answer = function(*(value for _kind, value in prepared))
    if returns[0] in ("result", "pointer"):
        return answer
    return read[0]() if answer == library.success else None


_RETURNED = {"status": ctypes.c_int, "ignored": ctypes.c_int, "nothing": None}


def _prepared(
    binder: "Binder", argument: "tuple[Any, ...]", names: "dict[str, Any]", read: "list[Callable[[], Any]]"
) -> "tuple[Any, Any]":
    """(C type, value) of an argument; what comes out of it is read by what is added to `read`, which keeps it alive."""
    form = argument[0]
    if form == "const":
        return C_TYPES[argument[1]], argument[2]
    if form == "param":
        return C_TYPES[argument[2]], names[argument[1]]
    if form == "null":
        return ctypes.c_void_p, None
    cell, reading = _CELLS[form](binder, argument)
    read.append(reading)
    return ctypes.c_void_p, ctypes.addressof(cell)


def _out_cell(_binder: "Binder", argument: "tuple[Any, ...]") -> "tuple[Any, Callable[[], Any]]":
    cell: Any = CELL_TYPES[argument[2]]()
    return cell, lambda: cell.value


def _buffer_cell(_binder: "Binder", argument: "tuple[Any, ...]") -> "tuple[Any, Callable[[], Any]]":
    cell: Any = (ctypes.c_char * argument[2])()
    return cell, lambda: cell.raw


def _struct_cell(binder: "Binder", argument: "tuple[Any, ...]") -> "tuple[Any, Callable[[], Any]]":
    kind, template = binder.variants.structure(argument[1], "devices", is_out=True)
    cell = kind.from_buffer_copy(template)
    (_result, field), *_others = argument[2]
    return cell, lambda: getattr(cell, member(field))


#: Arguments by which something comes out of a call that lists or probes.
_CELLS: "dict[str, Callable[[Binder, tuple[Any, ...]], tuple[Any, Callable[[], Any]]]]" = {
    "out": _out_cell,
    "buffer": _buffer_cell,
    "struct_out": _struct_cell,
}


def _filled(binder: "Binder", above: "State", level: "tuple[Any, ...]", _levels: "Sequence[str]") -> "list[int]":
    """The handles of a level: counted with no room, then filled in."""
    symbols, role, arguments, _returns = level[2]
    library = binder.library(role)
    kinds = {each[0]: each[1] for each in arguments if each[0] in ("room", "list", "found")}
    found: Any = CELL_TYPES[kinds["found"]](0)
    function, symbol = library.function(symbols, ctypes.c_int, ())

    def call(handles: "Any") -> int:
        room = len(handles) if handles else 0
        values = {"room": room, "list": handles and ctypes.addressof(handles), "found": ctypes.addressof(found)}
        types = {"room": C_TYPES[kinds.get("room", "uint")], "list": ctypes.c_void_p, "found": ctypes.c_void_p}
        prepared = [
            (types[each[0]], values[each[0]]) if each[0] in values else _prepared(binder, each, vars(above), [])
            for each in arguments
        ]
        function.argtypes = [kind for kind, _value in prepared]
        return int(function(*(value for _kind, value in prepared)))

    handles: Any = None
    for _turn in range(2):
        found.value = len(handles) if handles else 0
        status = call(handles)
        if status != library.success:
            raise library.failure(status, "the list of devices", symbol)
        if not found.value:
            return []
        handles = handles or (CELL_TYPES[kinds["list"]] * found.value)()
    return list(handles[: min(found.value, len(handles))])


def _asked(binder: "Binder", above: "State", level: "tuple[Any, ...]", levels: "Sequence[str]") -> "list[int]":
    """The handles of a level: counted by steps, and given one by one by steps."""
    _form, name, steps = level
    known = [key for key in vars(above) if key in levels]
    values = [vars(above)[key] for key in known]
    if steps["listing"]:
        values = [
            *values,
            sequence.part_function(binder, f"list.{name}", steps["listing"], known, ("list",))(above, *values),
        ]
        known = [*known, "list"]
    try:
        number = sequence.part_function(binder, f"count.{name}", steps["count"], known, ("count",))
        one = sequence.part_function(binder, f"at.{name}", steps["at"], ("index", *known), (name,))
        return [one(above, index, *values) for index in range(number(above, *values))]
    finally:
        if steps["listed"]:
            sequence.part_function(binder, f"listed.{name}", steps["listed"], known, ())(above, *values)


#: What lists the handles of a level, by how the file says it.
LISTS: "dict[str, Callable[[Binder, State, tuple[Any, ...], Sequence[str]], list[int]]]" = {
    "fill": _filled,
    "ask": _asked,
}
