"""The C source of a simulated library: the vendor's symbols and signatures in front of the simulator's core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.simulation import header
from nbxrt.simulation.decoding import C_TYPES, Decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nbxrt.simulation.plan import Function, Plan

#: What a library answers that has no code for a kind of error, nor for the wider kind that it counts as.
_NEAR = {
    "invalid_handle": "invalid_value",
    "invalid_device": "invalid_value",
    "not_found": "invalid_value",
    "no_binary": "invalid_value",
    "already_registered": "invalid_value",
    "not_registered": "invalid_value",
    "capture_unsupported": "not_supported",
    "peer_unsupported": "not_supported",
    "device_unavailable": "no_device",
}

_EXPORT = '__attribute__((visibility("default")))'


def wrapper_source(plan: Plan) -> str:
    """The text of the library's own C file; it goes with the core and the contract's header."""
    tables: dict[str, str] = {}
    bodies: list[str] = []
    for function in plan.functions:
        bodies += _role_function(plan, function) if function.call else _function(plan, function, tables)
    lines = [
        f"/* Written by nbxrt.simulation from {plan.description['file']}: {_said(plan.versions)}. */",
        '#include <stdio.h>\n#include "core.h"',
        *_roles(plan),
        *tables.values(),
        *bodies,
    ]
    return "\n".join(lines) + "\n"


def _said(versions: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{role} {'.'.join(map(str, version)) or 'of no version'}" for role, version in versions.items())


# Roles


def _roles(plan: Plan) -> Iterable[str]:
    """Each role's codes and names by kind of error, and the table of roles."""
    kinds = ["success", *plan.contract["errors"]]
    sayings = ["no error", *(row[3] for row in plan.contract["errors"].values())]
    yield f"static const char *const kind_texts[] = {{ {', '.join(map(_quoted, sayings))} }};"
    rows = []
    for role in plan.roles:
        status = plan.description["libraries"][role]["status"]
        codes = ", ".join(str(_code(plan, status, kind)) for kind in kinds)
        known = [_quoted(kind.upper()) if kind == "success" or kind in status["kinds"] else "NULL" for kind in kinds]
        yield f"static const int codes_of_{role}[] = {{ {codes} }};"
        yield f"static const char *const names_of_{role}[] = {{ {', '.join(known)} }};"
        rows.append(f"{{ {', '.join(_role_row(plan, role))} }}")
    yield f"const struct sim_role sim_roles[] = {{ {', '.join(rows)} }};"
    yield f"const int sim_role_count = {len(rows)};"
    variables = [*map(_quoted, plan.description["visibility"]), "NULL"]
    yield f"const char *const sim_visibility[] = {{ {', '.join(variables)} }};"


def _role_row(plan: Plan, role: str) -> list[str]:
    data = plan.description["libraries"][role]
    facts = (data["status"]["clear"], data["init"], data["enter"])
    return [_quoted(role), f"codes_of_{role}", f"names_of_{role}", *(str(int(fact is not None)) for fact in facts)]


def _code(plan: Plan, status: Mapping[str, Any], kind: str) -> int:
    """The role's first code of a kind, or of the nearest kind that it has a code for."""
    if kind == "success":
        return int(status["success"])
    kinds = status["kinds"]
    near: str | None = kind
    while near and near not in kinds:
        near = plan.contract["errors"][near][0] or _NEAR.get(near)
    found = kinds.get(near or "unknown") or next(iter(kinds.values()), (1,))
    return int(found[0])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Functions of operations


def _function(plan: Plan, function: Function, tables: dict[str, str]) -> list[str]:
    """A function for each case, and the exported one that tells them apart by their constants."""
    decoders = [Decoder(plan, function.role, case) for case in function.cases]
    for decoder in decoders:
        tables |= decoder.types | decoder.tables
    groups = _by_constants(decoders)
    if len(groups) == 1:
        return _case(plan, function, groups[0], _EXPORT, function.symbol)
    lines: list[str] = []
    for at, group in enumerate(groups):
        lines += _case(plan, function, group, "static", f"case_{at}_of_{function.symbol}")
    return lines + _dispatch(function, groups)


def _by_constants(decoders: list[Decoder]) -> list[list[Decoder]]:
    groups: dict[Any, list[Decoder]] = {}
    for decoder in decoders:
        groups.setdefault(decoder.case.constants, []).append(decoder)
    return list(groups.values())


def _dispatch(function: Function, groups: list[list[Decoder]]) -> list[str]:
    """The exported function: the first case whose constants are all there, else the first of all, which refuses."""
    first = groups[0][0]
    given = ", ".join(f"a{at}" for at in range(len(first.parameters)))
    lines = [f"{_EXPORT} {_signature(first, function.symbol)}", "{"]
    for at, group in reversed(list(enumerate(groups))):
        holds = " && ".join(f"a{place} == {value}" for place, value in group[0].case.constants)
        condition = f"if ({holds}) " if at and holds else ""
        lines.append(f"    {condition}return case_{at}_of_{function.symbol}({given});")
    return [*lines, "}"]


def _signature(decoder: Decoder, name: str) -> str:
    return f"{_return_type(decoder.case.returns)}{name}({', '.join(decoder.parameters) or 'void'})"


def _return_type(returns: tuple[Any, ...]) -> str:
    if returns[0] == "result":
        declared = C_TYPES[returns[2]]
        return declared if declared.endswith("*") else declared + " "
    return {"nothing": "void ", "pointer": "void *", "text": "const char *"}.get(returns[0], "int ")


def _case(plan: Plan, function: Function, group: list[Decoder], linkage: str, name: str) -> list[str]:
    """One C function that does the operations of the group, one after the other: they take the same arguments."""
    first = group[0]
    operation = first.case.operation
    role = plan.roles.index(function.role)
    begin = f'sim_begin(&call, {role}, OP_{operation.upper()}, "{operation}", "{function.symbol}");'
    body = ["struct sim_call call;", begin]
    for decoder in group:
        if decoder is not first:
            body.append(f'sim_also(&call, "{decoder.case.operation}");')
        inside = _operation(plan, decoder)
        body += ["{", *(f"    {line}" for line in inside), "}"] if decoder is not first or len(group) > 1 else inside
    body += _end(first)
    return [f"{linkage} {_signature(first, name)}", "{", *(f"    {line}" for line in body), "}"]


def _operation(plan: Plan, decoder: Decoder) -> list[str]:
    """Decode, do, encode."""
    case, entry = decoder.case, decoder.entry
    call = f"sim_{case.operation}({', '.join(_given(decoder))})"
    lines = [*_variables(plan, decoder), *decoder.decode]
    lines.append(f"if (!call.kind) call.kind = sim_{case.operation} ? {call} : KIND_NOT_SUPPORTED;")
    if entry["done"] and case.extras:  # the vendor tells by a result what the contract tells by the status
        pending = f"KIND_{entry['done'].upper()}"
        lines += [f"int is_done = call.kind != {pending};", f"if (call.kind == {pending}) call.kind = KIND_SUCCESS;"]
    if decoder.convert or decoder.refuse:
        lines += ["if (!call.kind) {", *(f"    {line}" for line in decoder.convert + decoder.refuse), "}"]
        lines = _hoisted(lines)
    if decoder.store:
        lines += ["if (!call.kind) {", *(f"    {line}" for line in decoder.store), "}"]
    return lines


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


# Functions that only the roles themselves call


def _role_function(plan: Plan, function: Function) -> list[str]:
    _symbols, _role, arguments, returns, _usual = function.spec
    role = plan.roles.index(function.role)
    parameters, lines = _role_arguments(arguments)
    body = [
        "struct sim_call call;",
        f'sim_begin(&call, {role}, -1, "{function.role}.{function.call}", "{function.symbol}");',
    ]
    body += lines
    if function.call in _ROLE_ACTIONS:
        body.append(f"if (!call.kind) call.kind = {_ROLE_ACTIONS[function.call].format(role=role)};")
    body += [f"    {line}" for line in _role_results(plan, function, arguments)]
    if returns[0] == "text":
        code = next(at for at, argument in enumerate(arguments) if argument[0] == "param")
        body += ["sim_end(&call);", f"return {_words(function.call, role, f'a{code}')};"]
    else:
        body.append("return sim_end(&call);" if returns[0] != "nothing" else "sim_end(&call);")
    head = f"{_EXPORT} {_return_type(returns)}{function.symbol}({', '.join(parameters) or 'void'})"
    return [head, "{", *(f"    {line}" for line in body), "}"]


_ROLE_ACTIONS = {
    "init": "sim_role_init({role})",
    "close": "sim_role_close({role})",
    "enter": "sim_role_enter({role})",
    "clear": "sim_role_clear()",
}


def _role_arguments(arguments: Any) -> tuple[list[str], list[str]]:
    parameters, lines = [], []
    for at, argument in enumerate(arguments):
        form = argument[0]
        if form == "const":
            parameters.append(f"{C_TYPES[argument[1]]} a{at}")
            lines.append(f"sim_expect(&call, a{at} == ({C_TYPES[argument[1]]}){int(argument[2])}ll);")
        elif form == "param":
            parameters.append(f"{C_TYPES[argument[2]]} a{at}")
            lines.append(f'sim_note_signed(&call, "code", a{at});')
        elif form == "out":
            parameters.append(f"{C_TYPES[argument[2]]} *a{at}")
            lines.append(f"sim_expect(&call, a{at} != NULL);")
        else:
            parameters.append(f"void *a{at}")
            lines.append(f"sim_expect(&call, a{at} == NULL);")
    return parameters, lines


def _role_results(plan: Plan, function: Function, arguments: Any) -> list[str]:
    lines = []
    role = plan.roles.index(function.role)
    code = next((f"a{at}" for at, argument in enumerate(arguments) if argument[0] == "param"), "0")
    for at, argument in enumerate(arguments):
        if argument[0] == "out":
            value = (
                str(_version_number(plan, function.role))
                if function.call == "version"
                else _words(function.call, role, code)
            )
            lines.append(f"if (!call.kind) *a{at} = {value};")
    return lines


def _words(call: str, role: int, code: str) -> str:
    if call == "text":
        return f"sim_role_kind_text({role}, {code}, kind_texts)"
    return f"sim_role_kind_name({role}, {code})"


def _version_number(plan: Plan, role: str) -> int:
    """The number that a library of this version answers, which the role's digits decode."""
    digits = plan.description["libraries"][role]["digits"]
    return sum(part * digit for part, digit in zip(plan.versions[role], digits, strict=False))
