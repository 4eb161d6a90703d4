"""Operations as generated Python functions: one frame a call, arguments checked, the status tested inside.

The source of each function is given to linecache as `<nbxrt cuda.malloc>`, so tracebacks and debuggers show it. Values
reach it through its globals, never by pasting text; internal names begin with an underscore, as no contract word does.
Cells for out-parameters are pooled: a call takes a slot from a list and gives it back, which is safe between threads
and when a finalizer makes the same call in between (a slot shared by all calls is torn).
"""

import ctypes

from nbxrt import errors
from nbxrt.binding import arguments as accept
from nbxrt.binding.forms import ARGUMENTS, finished, returned
from nbxrt.binding.parameters import signature
from nbxrt.binding.source import Source, compiled, starting_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.library import Library

#: Rows that a list result has room for at first, and the most that it may grow to.
ROWS, MOST_ROWS = 64, 1 << 16


def call_function(binder: "Binder", operation: str, variant: "tuple[Any, ...]") -> "Callable[..., Any]":
    """The function of an operation that is one C call."""
    _form, _since, _before, _platforms, call, extra = variant
    symbols, role, arguments, returns, _usual = call
    library = binder.library(role)
    source = Source(binder, operation)
    parameters = signature(source)
    for argument in arguments:
        ARGUMENTS[argument[0]](source, argument)
    restype = returned(source, returns)
    for result, out, equals in extra:
        source.results[result] = f"({source.results.pop(out)} == {equals})"
    keep_gil = source.entry["never_waits"] and not library.can_enter
    function, symbol = binder.typed(library, operation, symbols, restype, source.types, keep_gil=keep_gil)
    source.globals["_call"] = function
    starting_first(source, library, "_call")
    lines = [f"def {operation}({parameters}):", *prologue(source)]
    body = slot(source) + source.before + _call_lines(source, library, symbol, returns[0]) + _answer(source)
    return compiled(source, lines + body)


def vendor_function(binder: "Binder", operation: str, symbol: str, variant: "tuple[Any, ...]") -> "Any":
    """The vendor's own function, typed as the operation's call describes it."""
    _symbols, role, arguments, returns, _usual = variant[4]
    source = Source(binder, operation)
    signature(source)
    for argument in arguments:
        ARGUMENTS[argument[0]](source, argument)
    restype = returned(source, returns)
    return binder.library(role).function((symbol,), restype, source.types)[0]


def prologue(source: Source) -> "list[str]":
    """Checks of the arguments, and what happens when there is nothing to do."""
    lines = []
    if source.checked:
        source.globals["_check"] = accept.Checks(source.operation, tuple(source.checked))
        targets = ", ".join(source.names[name] for name, _zero, _check in source.checked)
        given = ", ".join(name for name, _zero, _check in source.checked)
        lines += [f"if not ({' and '.join(source.checks)}):", f"    {targets}, = _check({given})"]
    if source.operation == "set_device":  # whoever trusted the device that was current must ask again
        source.globals["_current"] = source.binder.current
        lines.append("_current.index = None")
    nothing = [name for name, zero, _check in source.checked if zero == "skips"]
    if nothing:
        zeros = ", ".join("0" for _result in source.entry["gives"])
        lines.append(f"if not {nothing[0]}: return {zeros}".rstrip())
    return lines


def slot(source: Source) -> "list[str]":
    """Take a slot of cells from the pool, or make one."""
    if not source.cells:
        return []
    pool: list[Any] = []
    kinds = tuple(source.cells)

    def fresh() -> "tuple[Any, ...]":
        made = [kind() for kind in kinds]
        return tuple(made + [ctypes.addressof(cell) for cell in made])

    source.globals |= {"_take": pool.pop, "_give": pool.append, "_fresh": fresh, "_Empty": IndexError}
    numbers = range(len(kinds))
    names = ", ".join([f"_c{number}" for number in numbers] + [f"_a{number}" for number in numbers])
    return ["try: _slot = _take()", "except _Empty: _slot = _fresh()", f"{names} = _slot"]


def _call_lines(source: Source, library: "Library", symbol: str, returns: str) -> "list[str]":
    call = f"_call({', '.join(source.call)})"
    if source.rows:
        return _rows_lines(source, library, symbol, call)
    if source.status:
        return [f"_value = {call}", f"_code = {source.status}", *_status_lines(source, library, symbol, "")]
    if returns == "status":
        return [f"_code = {call}", *_status_lines(source, library, symbol, call)]
    if returns == "pointer":
        return [f"_value = {call}", "if _value is None:", f"    raise {_failure(source, library, symbol, True)}"]
    if returns in ("ignored", "nothing"):
        return [call]
    return [f"_value = {call}"]


def _status_lines(source: Source, library: "Library", symbol: str, again: str) -> "list[str]":
    """What happens for a status that is not success."""
    entry = source.entry
    source.globals["_clear"] = library.clear
    lines = []
    entering = library.codes("invalid_context") if again and library.can_enter else ()
    if entering:
        source.globals["_enter"] = library.enter
        lines.append(f"    if _code in {entering!r} and _enter(): _code = {again}")
    for kind, answer in [(entry["done"], "False"), (entry["zero_on"], "0")]:
        if kind and (codes := library.codes(kind)):
            lines += [f"    if _code in {codes!r}:", "        _clear()", f"        return {answer}"]
    tolerated = tuple(code for kind in entry["tolerates"] for code in library.codes(kind))
    if tolerated:
        lines += [f"    if _code in {tolerated!r}:", "        _clear()", "        return"]
    refusal = f"raise {_failure(source, library, symbol, False)}"
    failed = f"_code != {library.success}" if library.success else "_code"
    lines.append(f"    if {failed}: {refusal}" if entering else f"    {refusal}")
    return [f"if {failed}:", *lines]


def _failure(source: Source, library: "Library", symbol: str, null: bool) -> str:
    source.globals["_fail"] = source.binder.failures.failing(library, source.operation, symbol)
    code = repr((library.codes("out_of_memory") or (0,))[0]) if null else "_code"
    given = ", ".join(f"{name!r}: {name}" for name, _kind, _zero, _default in source.entry["takes"])
    return f"_fail({code}, {{{given}}})"


def _rows_lines(source: Source, library: "Library", symbol: str, call: str) -> "list[str]":
    """A list result: the call is repeated with more room while the room does not do."""
    cell = source.globals.pop("_count_cell")
    result, rows = source.rows  # type: ignore[misc]
    source.results[result] = rows
    short = library.codes("insufficient_size")
    return [
        f"_room = {ROWS}",
        "while True:",
        "    _array = (_row * _room)()",
        f"    _c{cell}.value = _room",
        f"    _code = {call}",
        f"    if _code not in {short!r} or _room >= {MOST_ROWS}: break",
        f"    _room = min(max(2 * _room, _c{cell}.value), {MOST_ROWS})",
        *_status_lines(source, library, symbol, ""),
        f"_count = min(_c{cell}.value, _room)",
    ]


def _answer(source: Source) -> "list[str]":
    """Read the results, give the slot back, return."""
    gives = source.entry["gives"]
    lines = []
    values = []
    for result, kind in gives:
        if source.entry["done"] and result not in source.results:
            values.append("True")
            continue
        lines.append(f"_result_{result} = {finished(source, result, kind, source.results[result])}")
        values.append(f"_result_{result}")
    if source.cells:
        lines.append("_give(_slot)")
    if len(gives) == 1 and len(lines) == 1 and not source.cells:
        return [f"return {lines[0].split(' = ', 1)[1]}"]
    return [*lines, f"return {', '.join(values)}"] if values else lines


def fixed_function(binder: "Binder", operation: str, value: "Any") -> "Callable[..., Any]":
    """An operation that calls nothing: a constant, success, or (`same`) the argument given back."""
    source = Source(binder, operation)
    parameters = signature(source)
    kinds = [kind for _result, kind in source.entry["gives"]]
    source.globals["_value"] = bool(value) if kinds == ["boolean"] else value
    answer = [] if value == "success" else ["return _value"]
    return compiled(source, [f"def {operation}({parameters}):", *prologue(source), *answer])


def same_function(binder: "Binder", operation: str, parameter: str) -> "Callable[..., Any]":
    """An operation that gives an argument back."""
    source = Source(binder, operation)
    parameters = signature(source)
    lines = [f"def {operation}({parameters}):", *prologue(source), f"return {source.names[parameter]}"]
    return compiled(source, lines)


def policy_function(binder: "Binder", operation: str, action: "Callable[..., Any]") -> "Callable[..., Any]":
    """An operation that a policy does, behind the same checks as all others."""
    source = Source(binder, operation)
    parameters = signature(source)
    source.globals["_action"] = action
    given = ", ".join(source.names[name] for name, _kind, _zero, _default in source.entry["takes"])
    lines = [f"return _action({given})"]
    if binder.description["policies"]:  # what its parts call may fail: the operation is what the caller knows
        source.globals |= {"_DeviceError": errors.DeviceError, "_of_operation": binder.failures.of_operation}
        raising = f"    raise _of_operation(_error, {operation!r}) from _error.__cause__"
        lines = ["try:", f"    {lines[0]}", "except _DeviceError as _error:", raising]
    return compiled(source, [f"def {operation}({parameters}):", *prologue(source), *lines])
