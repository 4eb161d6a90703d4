"""The C source of a simulated library: the vendor's symbols and signatures in front of the simulator's core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.simulation import header
from nbxrt.simulation.argument_forms import HANDLES, decoded
from nbxrt.simulation.launching import OTHERS
from nbxrt.simulation.primitives import known_as
from nbxrt.simulation.roles import EXPORT, return_type, role_function, role_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nbxrt.simulation.decoding import Decoder
    from nbxrt.simulation.plan import Function, Plan


def wrapper_source(plan: Plan) -> str:
    """The text of the library's own C file; it goes with the core and the contract's header."""
    tables: dict[str, str] = {}
    bodies: list[str] = []
    for function in plan.functions:
        if function.call in OTHERS:
            bodies += OTHERS[function.call](plan, function)
        else:
            bodies += role_function(plan, function) if function.call else _function(plan, function, tables)
    lines = [
        f"/* Written by nbxrt.simulation from {plan.description['file']}: {_said(plan.versions)}. */",
        '#include <stdio.h>\n#include "core.h"',
        *role_tables(plan),
        *tables.values(),
        *bodies,
    ]
    return "\n".join(lines) + "\n"


def _said(versions: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{role} {'.'.join(map(str, version)) or 'of no version'}" for role, version in versions.items())


def _function(plan: Plan, function: Function, tables: dict[str, str]) -> list[str]:
    """A function for each case, and the exported one that tells them apart by their constants."""
    decoders = [decoded(plan, function.role, case) for case in function.cases]
    for decoder in decoders:
        tables |= decoder.types | decoder.tables
    groups = _by_constants(decoders)
    linkage = EXPORT if plan.is_exported(function) else ""
    if len(groups) == 1:
        return _case(plan, function, groups[0], linkage, function.symbol)
    lines: list[str] = []
    for at, group in enumerate(groups):
        lines += _case(plan, function, group, "static", f"case_{at}_of_{function.symbol}")
    return lines + _dispatch(function, groups, linkage)


def _by_constants(decoders: list[Decoder]) -> list[list[Decoder]]:
    groups: dict[Any, list[Decoder]] = {}
    for decoder in decoders:
        groups.setdefault(decoder.case.constants, []).append(decoder)
    if not decoders[0].case.written[1]:  # of plain operations the later one counts: it takes what the other does, too
        return list(groups.values())
    return sorted(groups.values(), key=lambda group: len(group[0].case.constants))


def _dispatch(function: Function, groups: list[list[Decoder]], linkage: str) -> list[str]:
    """The function itself: the last case whose constants are all there, else the first of all, which refuses."""
    first = groups[0][0]
    given = ", ".join(f"a{at}" for at in range(len(first.parameters)))
    declared = [
        _common({decoder.parameters[at] for (decoder, *_rest) in groups}) for at in range(len(first.parameters))
    ]
    head = f"{linkage} {return_type(first.case.returns)}{function.symbol}({', '.join(declared) or 'void'})"
    lines = [head.lstrip(), "{"]
    for at, group in reversed(list(enumerate(groups))):
        equal = ((place, "NULL" if value is None else value) for place, value in group[0].case.constants)
        holds = " && ".join(f"a{place} == {value}" for place, value in equal)
        condition = f"if ({holds}) " if at and holds else ""
        lines.append(f"    {condition}return case_{at}_of_{function.symbol}({given});")
    return [*lines, "}"]


def _common(declared: set[str]) -> str:
    """A parameter that the cases declare so: pointers to different things are pointers to anything."""
    if len(declared) == 1:
        return next(iter(declared))
    return "void *" + next(iter(declared)).rpartition("*")[2]


def _signature(decoder: Decoder, name: str) -> str:
    return f"{return_type(decoder.case.returns)}{name}({', '.join(decoder.parameters) or 'void'})"


def _case(plan: Plan, function: Function, group: list[Decoder], linkage: str, name: str) -> list[str]:
    """One C function that does the operations of the group, one after the other: they take the same arguments."""
    first = group[0]
    operation = first.case.operation
    role = plan.roles.index(function.role)
    begin = f'sim_begin(&call, {role}, OP_{operation.upper()}, "{known_as(operation)}", "{function.symbol}");'
    body = ["struct sim_call call;", begin]
    for decoder in group:
        if decoder is not first:
            body.append(f'sim_also(&call, "{decoder.case.operation}");')
        inside = _operation(plan, decoder)
        body += ["{", *(f"    {line}" for line in inside), "}"] if decoder is not first or len(group) > 1 else inside
    body += _end(first)
    return [f"{linkage} {_signature(first, name)}".lstrip(), "{", *(f"    {line}" for line in body), "}"]


def _operation(plan: Plan, decoder: Decoder) -> list[str]:
    """Decode, do, encode."""
    case, entry = decoder.case, decoder.entry
    call = f"sim_{case.operation}({', '.join(_given(decoder))})"
    lines = [*_variables(plan, decoder), *decoder.decode, *_not_given(decoder)]
    if plan.description["devices"]:
        lines += ["sim_ready(&call);", *(f'sim_also(&call, "{other}");' for other in case.serves)]
    if case.models:
        bits = sum(1 << at for at, model in enumerate(plan.models) if model in case.models)
        lines.append(f"sim_expect_model(&call, {bits});")
    lines.append(f"if (!call.kind) call.kind = sim_{case.operation} ? {call} : KIND_NOT_SUPPORTED;")
    if decoder.tells_status:
        lines = [*lines[:-1], f"int told = call.kind ? call.kind : {call};"]
        lines.append("if (told == KIND_INVALID_HANDLE) call.kind = told;")
    elif decoder.tells_done:
        pending = f"KIND_{entry['done'].upper()}"
        lines += [f"int is_done = call.kind != {pending};", f"if (call.kind == {pending}) call.kind = KIND_SUCCESS;"]
    if decoder.convert or decoder.refuse:
        lines += ["if (!call.kind) {", *(f"    {line}" for line in decoder.convert + decoder.refuse), "}"]
        lines = _hoisted(lines)
    if decoder.store:
        lines += ["if (!call.kind) {", *(f"    {line}" for line in decoder.store), "}"]
    return lines


def _not_given(decoder: Decoder) -> Iterable[str]:
    """Parameters that no argument gives: those that the plan knows, and the device that the handles are of."""
    for name, value in decoder.case.values:
        yield f"p_{name} = {value};"
    if any(argument[0] in HANDLES for argument in decoder.case.arguments):
        for name, kind, _zero, _default in decoder.entry["takes"]:
            if kind == "device" and name not in decoder.known:
                yield f"p_{name} = sim_ordinal_here();"


def _hoisted(lines: list[str]) -> list[str]:
    """Converted numbers are declared before the block that computes them, since they are stored behind it."""
    declared = [line.strip() for line in lines if line.strip().startswith("int n_")]
    names = [line.split(" = ", 1)[0] + " = 0;" for line in declared]
    return names + [line.replace("int n_", "n_", 1) if line.strip() in declared else line for line in lines]


def _variables(plan: Plan, decoder: Decoder) -> Iterable[str]:
    """The contract's parameters with their defaults, and its results as zeros."""
    for name, kind, _zero, default in decoder.entry["takes"]:
        declared = header.parameter_type(kind, plan.contract)
        if kind == "dim3":
            yield f"unsigned v_{name}[3] = {{ 1, 1, 1 }};"
            yield f"const unsigned *p_{name} = v_{name};"
            continue
        value = _default(plan, kind, default)
        yield f"{declared}{'' if declared.endswith('*') else ' '}p_{name} = {value}; (void)p_{name};"
        if kind == "bytes":
            yield f"size_t p_{name}_nbytes = SIZE_MAX; (void)p_{name}_nbytes;"
    for name, kind in header.results(decoder.entry):
        declared = header.result_type(kind, plan.contract)
        yield f"{declared} r_{name}; memset(&r_{name}, 0, sizeof r_{name});"


def _default(plan: Plan, kind: str, default: tuple[Any, ...]) -> str:
    if kind in plan.contract["enums"]:
        words = plan.contract["enums"][kind][1]
        word = default[0] if default else "default" if "default" in words else words[0]
        return f"{kind.upper()}_{word.upper()}"
    return str(int(default[0])) if default else "0"


def _given(decoder: Decoder) -> Iterable[str]:
    for name, kind, _zero, _default in decoder.entry["takes"]:
        yield f"p_{name}"
        if kind == "bytes":
            yield f"p_{name}_nbytes"
    for name, _kind in header.results(decoder.entry):
        yield f"&r_{name}"


def _end(decoder: Decoder) -> list[str]:
    """What the function returns."""
    returns = decoder.case.returns
    if returns[0] in ("status", "ignored") and not decoder.always:
        return ["return sim_end(&call);"]
    lines = ["sim_end(&call);", *decoder.always]
    return lines + _RETURNS[returns[0]](decoder, returns)


def _returned_result(decoder: Decoder, returns: tuple[Any, ...]) -> list[str]:
    value = decoder.result(returns[1])
    kept = f"(void *)(uintptr_t){value}" if returns[0] == "pointer" or returns[2] == "pointer" else value
    return [f"return call.kind ? 0 : {kept};"]


def _returned_text(_decoder: Decoder, returns: tuple[Any, ...]) -> list[str]:
    return [
        "static _Thread_local struct sim_text said;",
        f"said = r_{returns[1]};",
        "return call.kind ? NULL : said.text;",
    ]


_RETURNS: dict[str, Callable[[Decoder, tuple[Any, ...]], list[str]]] = {
    "status": lambda _decoder, _returns: ["return call.code;"],
    "ignored": lambda _decoder, _returns: ["return call.code;"],
    "nothing": lambda _decoder, _returns: [],
    "code": lambda decoder, returns: [f"return call.kind ? call.code : {decoder.result(returns[1])};"],
    "text": _returned_text,
    "result": _returned_result,
    "pointer": _returned_result,
}
