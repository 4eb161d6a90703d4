"""Messages of Objective-C as lines of generated code: one function for each form that an argument can have."""

import ctypes
import mmap

from nbxrt.binding.layout import CELL_TYPES
from nbxrt.binding.objc import c_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nbxrt.binding.sequence import Script


def send(
    script: "Script",
    selector: str,
    receiver: "str | None",
    owner: "str | None",
    arguments: "tuple[Any, ...]",
    names: "tuple[str, ...]",
    signature: "tuple[Any, tuple[Any, ...]]",
    optional: bool,
    _owned: bool,
    kept: bool,
    nil: str,
    settled: "str | None",
) -> "list[str]":
    """The lines of one message, and what happens when it gives nothing."""
    binder = script.source.binder
    messages = binder.messages
    to = script.value(receiver) if receiver else script.share("class", binder.named_class(str(owner), script.operation))
    cells: list[str] = []
    before: list[str] = []
    passed = [
        _ARGUMENTS[argument[0]](script, argument, kind, before, cells)
        for argument, kind in zip(arguments, signature[1], strict=True)
    ]
    function, name = (
        script.share("send", messages.function(signature)),
        script.share("selector", messages.selector(selector)),
    )
    call = f"{function}({', '.join((to, name, *passed))})"
    lines = before
    if optional and not script.ignoring:
        answers = script.share("answers", messages.responds)
        lacking = script.share("lacking", binder.failures.does_not_answer)
        lines.append(f"if not {answers}({to}, {selector!r}): raise {lacking}({script.operation!r}, {selector!r})")
    lines += script.settling("undo", settled)
    if not names:
        return [*lines, call]
    if isinstance(signature[0], tuple):
        fields = [f"{script.bind(each)} = _value.f{number}" for number, each in enumerate(names)]
        return [*lines, f"_value = {call}", *fields]
    return lines + _bound(script, script.bind(names[0]), call, signature[0], selector, kept, nil, cells)


def _bound(
    script: "Script", variable: str, call: str, kind: "Any", selector: str, kept: bool, nil: str, cells: "Sequence[str]"
) -> "list[str]":
    """The result of a message in a variable, judged where it is an object."""
    if kind not in ("object", "pointer"):
        return [f"{variable} = {call}"]
    if nil == "allowed" or script.ignoring or kind == "pointer":
        return [f"{variable} = {call} or 0"]
    fail = script.share("nil", script.source.binder.failures.nil_failure(script.operation, selector, nil))
    given = ", ".join(f"{name!r}: {name}" for name, *_rest in script.source.entry["takes"])
    words = f", {cells[0]}.value" if cells else ""
    lines = [f"{variable} = {call}", f"if {variable} is None: raise {fail}({{{given}}}{words})"]
    return [*lines, f"{script.messages('retain')}({variable})"] if kept else lines


# arguments: (script, the compiled argument, its type, lines before the call, cells of error objects) to an expression


def _param(script: "Script", argument: "tuple[Any, ...]", *_rest: "Any") -> str:
    return script.value(argument[1])


def _const(_script: "Script", argument: "tuple[Any, ...]", *_rest: "Any") -> str:
    return repr(int(argument[1]))


def _null(*_all: "Any") -> str:
    return "None"


def _out(script: "Script", argument: "tuple[Any, ...]", _kind: "Any", before: "list[str]", *_rest: "Any") -> str:
    number = script.source.cell(CELL_TYPES[argument[2]])
    before.append(f"_c{number}.value = 0")
    script.names[argument[1]] = f"_c{number}.value"
    return f"_a{number}"


def _error(
    script: "Script", _argument: "tuple[Any, ...]", _kind: "Any", before: "list[str]", cells: "list[str]"
) -> str:
    number = script.source.cell(CELL_TYPES["pointer"])
    before.append(f"_c{number}.value = 0")
    cells.append(f"_c{number}")
    return f"_a{number}"


def _length(script: "Script", argument: "tuple[Any, ...]", *_rest: "Any") -> str:
    return f"len({script.value(argument[1])})"


def _axes(script: "Script", argument: "tuple[Any, ...]", kind: "Any", *_rest: "Any") -> str:
    return f"{script.share('structure', c_type(kind))}(*{script.value(argument[1])})"


def _fields(script: "Script", argument: "tuple[Any, ...]", kind: "Any", *_rest: "Any") -> str:
    return f"{script.share('structure', c_type(kind))}({', '.join(map(script.value, argument[1]))})"


def _rounded(script: "Script", argument: "tuple[Any, ...]", *_rest: "Any") -> str:
    multiple = mmap.PAGESIZE if argument[2] == "page" else argument[2]
    most = (1 << 8 * ctypes.sizeof(ctypes.c_size_t)) - multiple  # what does not fit cannot be allocated either
    return f"min(-(-{script.value(argument[1])} // {multiple}) * {multiple}, {most})"


_ARGUMENTS: "dict[str, Callable[..., str]]" = {
    "param": _param,
    "const": _const,
    "null": _null,
    "out": _out,
    "error": _error,
    "length": _length,
    "axes": _axes,
    "fields": _fields,
    "rounded": _rounded,
}
