"""The C side of a generated function: one function for each form that an argument can have, and what comes out.

The forms are those that catalogue/compiling.py lists.
"""

import ctypes

from nbxrt.binding import arguments as accept
from nbxrt.binding.layout import C_TYPES, CELL_TYPES, RANGES, member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.binding.source import Source


def _param(source: "Source", argument: "tuple[Any, ...]") -> None:
    source.call.append(source.names[argument[1]])
    source.types.append(C_TYPES[argument[2]])


def _const(source: "Source", argument: "tuple[Any, ...]") -> None:
    source.call.append(repr(int(argument[2])))
    source.types.append(C_TYPES[argument[1]])


def _null(source: "Source", _argument: "tuple[Any, ...]") -> None:
    source.call.append("None")
    source.types.append(ctypes.c_void_p)


def _address_of(source: "Source", number: str) -> None:
    source.call.append(f"_a{number}")
    source.types.append(ctypes.c_void_p)


def _out(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = source.cell(CELL_TYPES[argument[2]])
    source.before.append(f"_c{number}.value = {0.0 if argument[2] in ('float', 'double') else 0}")
    _address_of(source, number)
    source.results[argument[1]] = f"_c{number}.value"


def _buffer(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = source.cell(ctypes.c_char * argument[2])
    source.globals["_fill"] = ctypes.memset
    source.before.append(f"_fill(_a{number}, 0, {argument[2]})")
    _address_of(source, number)
    source.results[argument[1]] = f"_c{number}.raw"


def _length(source: "Source", argument: "tuple[Any, ...]") -> None:
    source.call.append(f"len({source.names[argument[1]]})")
    source.types.append(C_TYPES[argument[2]])


def _flags(source: "Source", argument: "tuple[Any, ...]") -> None:
    bits = source.binder.variants.enum(argument[1], source.operation)
    terms = []
    for word in source.binder.contract["flags"][argument[1]]:
        if word not in source.names:
            continue
        if word in bits or f"not_{word}" in bits:
            terms.append(f"({bits.get(word, 0)} if {word} else {bits.get('not_' + word, 0)})")
        else:
            source.globals["_lacks"] = source.binder.failures.lacks_flag
            source.before.append(f"if {word}: raise _lacks({source.operation!r}, {word!r})")
    source.call.append(" | ".join(terms) or "0")
    source.types.append(C_TYPES[argument[2]])


def _axes(source: "Source", argument: "tuple[Any, ...]") -> None:
    for axis in range(3):
        source.call.append(f"{source.names[argument[1]]}[{axis}]")
        source.types.append(ctypes.c_uint)


def _packed(source: "Source", argument: "tuple[Any, ...]") -> None:
    source.call.append(source.names[argument[1]])
    source.types.append(ctypes.c_void_p)


def _pointer_to(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = source.cell(CELL_TYPES[argument[2]])
    source.before.append(f"_c{number}.value = {source.names[argument[1]]}")
    _address_of(source, number)


def _padded(source: "Source", argument: "tuple[Any, ...]") -> None:
    _form, name, more, kind = argument
    value, most = source.names[name], RANGES[kind][1]
    source.call.append(f"({value} + {more} if {value} <= {most - more} else {most})")  # ctypes would wrap around
    source.types.append(C_TYPES[kind])


def _literal(source: "Source", argument: "tuple[Any, ...]") -> None:
    source.call.append(repr(argument[1].encode()))
    source.types.append(ctypes.c_char_p)


def _array(source: "Source", argument: "tuple[Any, ...]") -> None:
    items, kind = argument[1], C_TYPES[argument[2]]
    number = source.cell(kind * len(items))
    for index, item in enumerate(items):
        source.before.append(f"_c{number}[{index}] = {_item(source, item)}")
    _address_of(source, number)


def _item(source: "Source", item: "Any") -> str:
    if isinstance(item, tuple):
        if item[0] == "address":
            source.globals["_address_of"] = address_of
            return f"_address_of({source.names[item[1]]})"
        return f"len({source.names[item[1]]})"
    return source.names[item] if isinstance(item, str) else repr(int(item))


def _current_device(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = source.cell(CELL_TYPES[argument[1]])
    source.globals["_current_device"] = source.binder.own("get_device")
    source.before.append(f"_c{number}.value = _current_device()")
    _address_of(source, number)


def _current_device_itself(source: "Source", argument: "tuple[Any, ...]") -> None:
    source.globals["_current_device"] = source.binder.own("get_device")
    source.call.append("_current_device()")
    source.types.append(C_TYPES[argument[1]])


def _error(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = source.cell(CELL_TYPES[argument[1]])
    source.before.append(f"_c{number}.value = 0")
    _address_of(source, number)
    source.status = f"_c{number}.value"


def _pci(source: "Source", argument: "tuple[Any, ...]") -> None:
    name = argument[1]
    source.globals[f"_pci_{name}"] = accept.Checks(source.operation, ((name, None, accept.pci_number(argument[2])),))
    source.before.append(f"(_pci,) = _pci_{name}({name})")
    source.call.append("_pci")
    source.types.append(ctypes.c_uint64)


def _struct_in(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = _structure_cell(source, argument[1])
    for field, item in argument[2]:
        source.before.append(f"_c{number}.{member(field)} = {_item(source, item)}")
    _address_of(source, number)


def _struct_value(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = _structure_cell(source, argument[1])
    for field, item in argument[2]:
        source.before.append(f"_c{number}.{member(field)} = {_item(source, item)}")
    source.call.append(f"_c{number}")
    source.types.append(source.cells[int(number)])


def _struct_bytes(source: "Source", argument: "tuple[Any, ...]") -> None:
    kind, _template = source.binder.variants.structure(argument[1], source.operation)
    name, nbytes = argument[2], ctypes.sizeof(kind)
    source.globals[f"_struct_{name}"] = kind.from_buffer_copy
    source.globals["_wrong_size"] = source.binder.failures.wrong_size
    given = source.names[name]
    source.before.append(
        f"if len({given}) != {nbytes}: raise _wrong_size({source.operation!r}, {name!r}, len({given}), {nbytes})"
    )
    source.call.append(f"_struct_{name}({given})")
    source.types.append(kind)


def _struct_out(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = _structure_cell(source, argument[1], is_out=True)
    _address_of(source, number)
    for result, field in argument[2]:
        source.results[result] = f"_c{number}.{member(field)}"


def _struct_whole(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = _structure_cell(source, argument[1], is_out=True)
    _address_of(source, number)
    source.results[argument[2]] = f"_c{number}"


def _structure_cell(source: "Source", name: str, *, is_out: bool = False) -> str:
    """A cell of the structure that is set to its constants, all else zero, before the call."""
    kind, template = source.binder.variants.structure(name, source.operation, is_out=is_out)
    number = source.cell(kind)
    source.globals[f"_template{number}"] = template
    source.globals["_copy"] = ctypes.memmove
    source.before.append(f"_copy(_a{number}, _template{number}, {len(template)})")
    return number


def _rows(source: "Source", argument: "tuple[Any, ...]") -> None:
    kind, _template = source.binder.variants.structure(argument[1], source.operation)
    source.globals["_row"] = kind
    source.call.append("_array")
    source.types.append(ctypes.c_void_p)
    fields = ", ".join(f"_entry.{member(field)}" for field in argument[3])
    source.rows = (argument[2], f"[({fields}) for _entry in _array[:_count]]")


def _count(source: "Source", argument: "tuple[Any, ...]") -> None:
    number = source.cell(CELL_TYPES[argument[1]])
    _address_of(source, number)
    source.globals["_count_cell"] = number


ARGUMENTS: "dict[str, Callable[[Source, tuple[Any, ...]], None]]" = {
    "param": _param,
    "const": _const,
    "null": _null,
    "out": _out,
    "buffer": _buffer,
    "length": _length,
    "flags": _flags,
    "axes": _axes,
    "packed": _packed,
    "pointer_to": _pointer_to,
    "current_device": _current_device,
    "current_device_itself": _current_device_itself,
    "error": _error,
    "pci": _pci,
    "array": _array,
    "literal": _literal,
    "padded": _padded,
    "struct_in": _struct_in,
    "struct_value": _struct_value,
    "struct_bytes": _struct_bytes,
    "struct_out": _struct_out,
    "struct_whole": _struct_whole,
    "rows": _rows,
    "count": _count,
}


def finished(source: "Source", result: str, kind: str, raw: str) -> str:
    """The expression that turns what came out into the contract's result."""
    if kind == "boolean" and not raw.startswith("("):
        return f"{raw} != 0"
    if kind == "text":
        source.globals["_as_text"] = as_text
        return f"_as_text({raw})"
    if kind == "bytes":
        source.globals["_bytes"] = bytes
        return f"_bytes({raw})"
    if kind in source.binder.contract["enums"]:
        words = {number: word for word, number in source.binder.variants.enum(kind, source.operation).items()}
        source.globals[f"_word_{result}"] = words.get
        return f"_word_{result}({raw}, {raw})"
    return raw


def address_of(value: bytes) -> int:
    """Where bytes are, which stays so while the caller keeps them."""
    return ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p).value or 0


def as_text(value: "bytes | None") -> str:
    """The text of a C buffer, up to its first null character."""
    return (value or b"").split(b"\0", 1)[0].decode(errors="replace")


def returned(source: "Source", spec: "tuple[Any, ...]") -> "Any":
    """Take the function's own value where it is a result; the ctypes class that it returns."""
    kind = spec[0]
    if kind in ("code", "text"):
        source.results[spec[1]] = "_value"
        return ctypes.c_int if kind == "code" else ctypes.c_char_p
    if kind == "result":
        source.results[spec[1]] = "_value"
        return CELL_TYPES[spec[2]]
    if kind == "pointer":
        source.results[spec[1]] = "_value"
        return ctypes.c_void_p
    return ctypes.c_int if kind == "status" else None
