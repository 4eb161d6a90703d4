"""What each form of an argument adds to a simulated function: the C lines that read the argument, or fill it.

The forms are those that catalogue/compiling.py lists, read in the other direction. A wrong constant, an unknown number
or bit and a null pointer refuse the call, as a vendor's library would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.simulation.decoding import C_TYPES, SIGNED, Decoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation.plan import Case, Plan


def decoded(plan: Plan, role: str, case: Case) -> Decoder:
    """The C lines of one case of a function, with those of all its arguments."""
    to = Decoder(plan, role, case)
    for argument in case.arguments:
        if argument[0] in _HANDLES:
            _HANDLES[argument[0]](to, argument, to.new("void *"))
        else:
            _FORMS[argument[0]](to, argument)
    return to


def _stored(c_type: str, value: str) -> str:
    return f"(void *)(uintptr_t)({value})" if c_type == "pointer" else f"({C_TYPES[c_type]})({value})"


def _param(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, name, c_type = argument
    given = to.new(C_TYPES[c_type])
    to.take(name, c_type, given)
    if to.takes[name] == "bytes":
        to.decode.append(f"sim_expect(&call, {given} != NULL);")


def _const(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, c_type, value = argument
    at = len(to.parameters)
    name = to.new(C_TYPES[c_type])
    signed = "signed" if c_type in SIGNED else "unsigned"
    to.decode.append(f'sim_note_{signed}(&call, "argument{at}", {name});')
    suffix = "ull" if int(value) >> 63 > 0 else "ll"
    to.decode.append(f"sim_expect(&call, {name} == ({C_TYPES[c_type]}){int(value)}{suffix});")


def _null(to: Decoder, _argument: tuple[Any, ...]) -> None:
    name = to.new("void *")
    to.decode.append(f"sim_expect(&call, {name} == NULL);")


def _out(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, result, c_type = argument
    cell = to.new_pointer(f"{C_TYPES[c_type]} *" if c_type != "pointer" else "void **")
    if result == "event" and result not in to.gives:  # which is passed when the work of the call is done
        made = f"uint64_t mark = 0; sim_mark_make((uint64_t)(uintptr_t){to.stream}, &mark);"
        to.store.append(f"{{ {made} *{cell} = {_stored(c_type, 'mark')}; }}")
        return
    to.store.append(f"*{cell} = {_stored(c_type, to.result(result))};")


def _buffer(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, result, nbytes = argument
    cell = to.new_pointer("char *")
    fixed = dict(to.case.fixed).get(result)
    if fixed is not None:
        to.store.append(f"strncpy({cell}, {fixed}, {nbytes - 1}); {cell}[{nbytes - 1}] = 0;")
    elif to.gives[result] == "text":
        to.store.append(f"strncpy({cell}, r_{result}.text, {nbytes - 1}); {cell}[{nbytes - 1}] = 0;")
    else:
        to.store.append(_copied(cell, result, nbytes))


def _copied(cell: str, result: str, nbytes: int) -> str:
    length = f"r_{result}.nbytes < {nbytes} ? r_{result}.nbytes : {nbytes}"
    return f"memset({cell}, 0, {nbytes}); memcpy({cell}, r_{result}.data, {length});"


def _length(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, name, c_type = argument
    to.decode.append(f"p_{name}_nbytes = (size_t){to.new(C_TYPES[c_type])};")


def _padded(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, name, _by, c_type = argument
    to.take(name, c_type, to.new(C_TYPES[c_type]))


def _literal(to: Decoder, argument: tuple[Any, ...]) -> None:
    text = argument[1].replace("\\", "\\\\").replace('"', '\\"')
    given = to.new_pointer("const char *")
    to.decode.append(f'sim_expect(&call, {given} && !strcmp({given}, "{text}"));')


def _flags(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, flags, c_type = argument
    given = to.new(C_TYPES[c_type])
    bits = to.plan.words(flags, to.role) or {}
    mask = 0
    to.decode.append(f'sim_note_unsigned(&call, "{flags}", {given});')
    for word in to.plan.contract["flags"][flags]:
        yes, no = bits.get(word, 0), bits.get(f"not_{word}", 0)
        if word in to.takes and (yes or no):
            mask |= yes | no
            told = f"({given} & {yes & ~no}) != 0" if yes & ~no else f"({given} & {no & ~yes}) == 0"
            to.decode.append(f"p_{word} = {told};")
    to.decode.append(f"sim_expect(&call, ({given} & ~({C_TYPES[c_type]}){mask}) == 0);")


def _axes(to: Decoder, argument: tuple[Any, ...]) -> None:
    name = argument[1]
    for place, (axis, given) in enumerate(zip("xyz", to.new_axes(), strict=True)):
        to.decode.append(f'v_{name}[{place}] = {given}; sim_note_unsigned(&call, "{name}_{axis}", {given});')


def _packed(to: Decoder, argument: tuple[Any, ...]) -> None:
    to.take(argument[1], "pointer", to.new("void **"))


def _pointer_to(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, name, c_type = argument
    cell = to.new_pointer(f"const {C_TYPES[c_type]} *")
    to.take(name, c_type, f"({cell} ? *{cell} : 0)")


def _current_device(to: Decoder, argument: tuple[Any, ...]) -> None:
    cell = to.new_pointer(f"const {C_TYPES[argument[1]]} *")
    to.decode.append(f"int current = -1; sim_get_device(&current); sim_expect(&call, {cell} && *{cell} == current);")


def _current_device_itself(to: Decoder, argument: tuple[Any, ...]) -> None:
    """The device that the function works on: the vendor may know no other current one."""
    device = to.new(C_TYPES[argument[1]])
    to.decode.append(f"if (!call.kind) call.kind = sim_set_device((int){device});")


def _error(to: Decoder, argument: tuple[Any, ...]) -> None:
    cell = to.new_pointer(f"{C_TYPES[argument[1]]} *")
    to.always.append(f"if ({cell}) *{cell} = call.code;")


def _pci(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, name, widths = argument
    given = to.new("uint64_t")
    shift, parts = 0, []
    for width in widths:
        parts.append(f"(unsigned)({given} >> {shift} & {hex((1 << width) - 1)})")
        shift += width
    function, device, bus, domain = parts
    to.decode.append(f"char s_{name}[32];")
    to.decode.append(
        f'snprintf(s_{name}, sizeof s_{name}, "%04x:%02x:%02x.%x", {domain}, {bus}, {device}, {function});'
    )
    to.take(name, "text", f"s_{name}")


# Structures


def _struct_in(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, struct, pairs = argument
    given = to.new_pointer("const void *")
    _read(to, struct, pairs, f"(const char *){given}", guard=f"if ({given}) ")


def _struct_value(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, struct, pairs = argument
    given = to.new(_by_value(to, struct))
    _read(to, struct, pairs, f"(const char *)&{given}", guard="")


def _read(to: Decoder, struct: str, pairs: Any, base: str, guard: str) -> None:
    """Check a structure's constants, and take its fields as parameters."""
    _nbytes, fields, constants = to.plan.layout(struct, to.role)
    for field, value in constants.items():
        cell = _field(to, base, fields[field], guard)
        to.decode.append(f"sim_expect(&call, {cell} == {value});")
    for field, given in pairs:
        cell = _field(to, base, fields[field], guard)
        if isinstance(given, str):
            to.take(given, fields[field][1], cell)
        else:
            _read_other(to, given, cell)


def _read_other(to: Decoder, given: Any, cell: str) -> None:
    """A field that is one of some numbers, the size of a parameter, or its address."""
    if not isinstance(given, tuple) or isinstance(given[0], int):
        numbers = given if isinstance(given, tuple) else (given,)
        to.decode.append(f"sim_expect(&call, {' || '.join(f'{cell} == {number}' for number in numbers)});")
    elif given[0] == "length":
        to.decode.append(f"p_{given[1]}_nbytes = (size_t){cell};")
    else:
        to.decode.append(f"sim_expect(&call, {cell} != NULL);")
        to.take(given[1], "bytes" if to.takes[given[1]] == "bytes" else "text", cell)


def _field(to: Decoder, base: str, spec: tuple[Any, ...], guard: str) -> str:
    """A C variable with the bytes of a field."""
    cell = f"f{len(to.decode)}"
    offset, c_type = spec[:2]
    to.decode.append(f"{C_TYPES[c_type]} {cell} = 0; {guard}memcpy(&{cell}, {base} + {offset}, sizeof {cell});")
    return cell


def _by_value(to: Decoder, struct: str) -> str:
    """The C type of a structure that is passed by value: its fields where they decide the registers, else its bytes."""
    nbytes, fields, _constants = to.plan.layout(struct, to.role)
    ordered = sorted(fields.values())
    members = " ".join(f"{C_TYPES[spec[1]]} f{at};" for at, spec in enumerate(ordered))
    if nbytes > 16 or not fields:
        members = f"unsigned char bytes[{nbytes}];"
    to.types[struct] = f"struct s_{struct} {{ {members} }};"
    to.types[f"{struct} size"] = f'_Static_assert(sizeof(struct s_{struct}) == {nbytes}, "{struct}");'
    return f"struct s_{struct}"


def _struct_bytes(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, struct, name = argument
    given = to.new(_by_value(to, struct))
    to.decode.append(f"p_{name} = &{given}; p_{name}_nbytes = sizeof {given};")


def _struct_out(to: Decoder, argument: tuple[Any, ...]) -> None:
    """Results in a structure: nothing is written behind its true size."""
    _form, struct, pairs = argument
    given = to.new_pointer()
    nbytes, fields, constants = to.plan.layout(struct, to.role)
    for field, value in constants.items():
        cell = _field(to, f"(const char *){given}", fields[field], f"if ({given}) ")
        to.decode.append(f"sim_expect(&call, {cell} == {value});")
    filled = {field: to.result(result) for result, field in pairs}
    if not constants and len(filled) > 1:
        to.store.append(f"memset({given}, 0, {nbytes});")
    for field, answer in filled.items():
        to.store.append(_stored_in(given, fields[field], answer))


def _stored_in(given: str, spec: tuple[Any, ...], answer: str) -> str:
    """A result in a field of the structure at an address: text and bytes as they are, numbers by their type."""
    offset, c_type = spec[:2]
    place = f"(char *){given} + {offset}"
    if c_type == "text":
        return f"strncpy({place}, {answer}.text, {spec[2] - 1}); ({place})[{spec[2] - 1}] = 0;"
    if c_type == "bytes":
        return f"memcpy({place}, {answer}.data, {spec[2]});"
    cell = f"{C_TYPES[c_type]} cell = {_stored(c_type, answer)};"
    return f"{{ {cell} memcpy({place}, &cell, sizeof cell); }}"


def _struct_whole(to: Decoder, argument: tuple[Any, ...]) -> None:
    _form, struct, result = argument
    given = to.new_pointer()
    to.store.append(_copied(given, result, to.plan.layout(struct, to.role)[0]))


def _rows(to: Decoder, argument: tuple[Any, ...]) -> None:
    """An array of structures, in the room that the caller's count gives."""
    _form, struct, result, fields = argument
    given = to.new("void *")
    nbytes, layout, _constants = to.plan.layout(struct, to.role)
    to.refuse.append(f"sim_expect(&call, {given} != NULL || r_{result}.count == 0);")
    to.store.append(
        f"for (size_t i = 0; i < r_{result}.count; i++) {{ memset((char *){given} + i * {nbytes}, 0, {nbytes});"
    )
    for field, member in zip(fields, ("pid", "used"), strict=True):
        offset, c_type = layout[field][:2]
        cell = f"{C_TYPES[c_type]} cell = ({C_TYPES[c_type]})r_{result}.row[i].{member};"
        to.store.append(f"    {{ {cell} memcpy((char *){given} + i * {nbytes} + {offset}, &cell, sizeof cell); }}")
    to.store.append("}")


def _count(to: Decoder, argument: tuple[Any, ...]) -> None:
    cell = to.new_pointer(f"{C_TYPES[argument[1]]} *")
    result = next(name for name, kind in to.entry["gives"] if kind == "processes")
    short = f"if (!call.kind && *{cell} < r_{result}.count) call.kind = KIND_INSUFFICIENT_SIZE;"
    tell = f"if (!call.kind || call.kind == KIND_INSUFFICIENT_SIZE) *{cell} = ({C_TYPES[argument[1]]})r_{result}.count;"
    to.convert += [short, tell]


# Handles of APIs of objects: each by what it is, and the C expression that gives it


def _object(to: Decoder, argument: tuple[Any, ...], given: str) -> None:
    to.decode.append(f"sim_expect_object(&call, {argument[1]}, {given});")


def _level(to: Decoder, _argument: tuple[Any, ...], given: str) -> None:
    to.decode.append(f"sim_expect_level(&call, {given});")


def _here(to: Decoder, _argument: tuple[Any, ...], given: str) -> None:
    to.decode.append(f"sim_enter_device(&call, {given});")


def _ordinal(to: Decoder, argument: tuple[Any, ...], given: str) -> None:
    name = argument[1]
    to.decode.append(f'p_{name} = sim_ordinal_behind(&call, "{name}", {given});')
    to.known.add(name)


def _stream(to: Decoder, argument: tuple[Any, ...], given: str) -> None:
    entered = f"sim_enter_stream(&call, {given});"
    to.stream = given
    to.decode.append(f"p_stream = {entered}" if argument[1] else entered)


def _cells(to: Decoder, argument: tuple[Any, ...]) -> None:
    """An array of parameters, sizes and handles."""
    _form, parts, c_type = argument
    declared = {"pointer": "void *const *", "bytes": "const char *const *"}.get(c_type, f"const {C_TYPES[c_type]} *")
    cells = to.new_pointer(declared)
    for at, part in enumerate(parts):
        given = f"({cells} ? {cells}[{at}] : 0)"
        if part[0] in _HANDLES:
            _HANDLES[part[0]](to, part, given)
        elif part[0] == "length":
            to.decode.append(f"p_{part[1]}_nbytes = (size_t){given};")
        elif part[0] == "const":
            to.decode.append(f"sim_expect(&call, {given} == {part[2]});")
        else:
            to.take(part[1], c_type, given)


def _array(to: Decoder, argument: tuple[Any, ...]) -> None:
    """An array of numbers."""
    _form, numbers, c_type = argument
    cells = to.new_pointer(f"{C_TYPES[c_type]} *")
    for at, number in enumerate(numbers):
        to.decode.append(f"sim_expect(&call, {cells} && {cells}[{at}] == {number});")


_HANDLES: dict[str, Callable[[Decoder, tuple[Any, ...], str], None]] = {
    "object": _object,
    "level": _level,
    "here": _here,
    "ordinal": _ordinal,
    "stream": _stream,
}
#: The forms of arguments by which a call says what device it is about.
HANDLES = (*_HANDLES, "cells")
_FORMS: dict[str, Callable[[Decoder, tuple[Any, ...]], None]] = {
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
    "struct_in": _struct_in,
    "struct_value": _struct_value,
    "struct_bytes": _struct_bytes,
    "struct_out": _struct_out,
    "struct_whole": _struct_whole,
    "rows": _rows,
    "count": _count,
    "cells": _cells,
    "array": _array,
    "padded": _padded,
    "literal": _literal,
}
