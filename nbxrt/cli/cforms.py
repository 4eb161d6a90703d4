"""The operations of a description in C's own words: `int vendorMalloc(void **address, size_t nbytes)`.

Reads the tuples that nbxrt/catalogue/compiling.py documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.binding.layout import as_tuple
from nbxrt.cli.console import TIED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The format's C types as C spells them.
SPELLINGS = {
    "pointer": "void *",
    "size": "size_t",
    "int": "int",
    "uint": "unsigned int",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "float": "float",
    "double": "double",
    "text": "const char *",
    "bytes": "const void *",
}


def _declared(c_type: str, name: str, pointers: int = 0) -> str:
    """`void *address`, or with one pointer more `void **address`."""
    spelt = SPELLINGS[c_type]
    spelt = spelt if spelt.endswith("*") else spelt + " "
    return f"{spelt}{'*' * pointers}{name}".rstrip()


def _given(c_type: str, what: Any, pointers: int = 0) -> str:
    """An argument that is no parameter: `unsigned int = 0`."""
    return f"{_declared(c_type, '', pointers)} = {what}"


def _fields(pairs: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(name for name, _other in pairs)


def _item(item: Any) -> str:
    """An item of an array: a number, a parameter, or the length of one."""
    return f"length of {item[1]}" if isinstance(item, tuple) else str(item)


#: How an argument's form is written; each takes what stands behind the form in its tuple.
_ARGUMENTS: dict[str, Callable[..., str]] = {
    "param": lambda name, c_type: _declared(c_type, name),
    "out": lambda name, c_type: _declared(c_type, name, 1),
    "const": _given,
    "null": lambda: "void * = NULL",
    "buffer": lambda result, nbytes: f"char {result}[{nbytes}]",
    "length": lambda name, c_type: _given(c_type, f"length of {name}"),
    "flags": lambda words, c_type: _given(c_type, f"bits of {words}"),
    "packed": lambda name, how: f"void ** = {name} as {how}",
    "pointer_to": lambda name, c_type: _declared(c_type, name, 1),
    "current_device": lambda c_type: _given(c_type, "current device", 1),
    "current_device_itself": lambda c_type: _given(c_type, "current device"),
    "error": lambda c_type: _given(c_type, "status", 1),
    "literal": lambda text: _given("text", f'"{text}"'),
    "padded": lambda name, by, c_type: _given(c_type, f"{name} + {by}"),
    "array": lambda items, c_type: f"{_declared(c_type, '', 1)} = {{{', '.join(map(_item, items))}}}",
    "pci": lambda name, _widths: _given("uint64", f"bits of {name}"),
    "struct_in": lambda struct, pairs: f"{struct} * = {{{_fields(pairs)}}}",
    "struct_value": lambda struct, pairs: f"{struct} = {{{_fields(pairs)}}}",
    "struct_bytes": lambda struct, name: f"{struct} {name}",
    "struct_out": lambda struct, pairs: f"{struct} * for {_fields(pairs)}",
    "struct_whole": lambda struct, result: f"{struct} *{result}",
    "rows": lambda struct, result, _fields: f"{struct} *{result}",
    "count": lambda c_type: _given(c_type, "number of rows", 1),
}

#: What a function returns, in C, and what more is to say of it.
_RETURNS: dict[str, Callable[..., tuple[str, str]]] = {
    "status": lambda: ("int ", ""),
    "code": lambda _result: ("int ", ""),
    "ignored": lambda: ("int ", "what it returns is ignored"),
    "nothing": lambda: ("void ", ""),
    "text": lambda _result: ("const char *", ""),
    "result": lambda _name, c_type: (_declared(c_type, "x")[:-1], ""),
    "pointer": lambda _name: ("void *", "null means out of memory"),
}


def prototype(call: tuple[Any, ...]) -> tuple[str, str]:
    """A call as a C declaration, and what C cannot say of it."""
    symbols, _role, arguments, returns, _usual = call
    spelt, note = _RETURNS[returns[0]](*returns[1:])
    first, *others = [argument for form, *rest in arguments for argument in _argument(form, *rest)] or ["void"]
    given = ", ".join([first, *(argument.replace(" ", TIED) for argument in others)])
    older = f"or {', '.join(symbols[1:])} where it is not exported" if len(symbols) > 1 else ""
    return f"{spelt}{symbols[0]}({given})", "; ".join(filter(None, (older, note)))


def _argument(form: str, *rest: Any) -> list[str]:
    """What an argument's form stands for in C: one argument, but three for axes."""
    if form == "axes":
        return [_declared("uint", f"{rest[0]}.{axis}") for axis in "xyz"]
    return [_ARGUMENTS[form](*rest)]


def variants(operation: tuple[Any, ...], usual_role: str) -> Iterator[str]:
    """Each way to do an operation, one a line, with the conditions under which it is taken."""
    for form, since, before, platforms, what, results in operation[1]:
        said, note = _FORMS[form](what)
        role = f"in `{what[1]}`" if form == "call" and what[1] != usual_role else ""
        read = ", ".join(f"{result} is {out} == {equals}" for result, out, equals in results)
        notes = "; ".join(filter(None, (*_conditions(since, before, platforms), role, note, read)))
        yield f"{said}  ({notes})" if notes else said


def span(since: Any, before: Any) -> str:
    """A range of versions in words; empty when it has no bounds."""
    bounds = [("since", since), ("before", before)]
    return " ".join(f"{word} {as_tuple(version)}" for word, version in bounds if version)


def _conditions(since: Any, before: Any, platforms: Any) -> Iterator[str]:
    yield span(since, before)
    if platforms:
        yield f"on {', '.join(platforms)}"


def _value(value: Any) -> tuple[str, str]:
    return ("no call: success", "") if value == "success" else (f"no call: {value!r}", "")


def _steps(what: tuple[Any, ...]) -> tuple[str, str]:
    """The steps by their functions, selectors or verbs, in order."""
    model, _role, steps, _only_default = what
    shown = {"call": lambda payload: payload[0][0], "send": lambda payload: payload[0]}
    names = [shown[verb](payload) if verb in shown else verb for verb, payload, _undo, _finally in steps]
    return f"steps: {', '.join(names)}", _of_model(model)


def _of_model(model: str) -> str:
    return f"devices of the model {model}" if model else ""


#: What each form of a variant says, and a note on it.
_FORMS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "call": prototype,
    "value": _value,
    "same": lambda parameter: (f"no call: gives {parameter} back", ""),
    "policy": lambda what: (f"policy {what[1]}", _of_model(what[0])),
    "steps": _steps,
}
