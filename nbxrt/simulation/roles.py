"""What the roles themselves are in C: tables of codes, and functions that only they call (`version`, `init` …)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.simulation.decoding import C_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nbxrt.simulation.plan import Function, Plan

#: Before every function that the library shows to the loader.
EXPORT = '__attribute__((visibility("default")))'
#: What a library that has no code for it does not refuse.
_NO_ERROR = ("already_enabled", "not_enabled")
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


def role_tables(plan: Plan) -> Iterable[str]:
    """Each role's codes and names by kind of error, and the table of roles."""
    kinds = ["success", *plan.contract["errors"]]
    sayings = ["no error", *(row[3] for row in plan.contract["errors"].values())]
    yield f"static const char *const kind_texts[] = {{ {', '.join(map(_quoted, sayings))} }};"
    rows = []
    for role in plan.roles:
        status = plan.description["libraries"][role]["status"]
        codes = ", ".join(str(code_of(plan.contract, status, kind)) for kind in kinds)
        known = [_quoted(kind.upper()) if kind == "success" or kind in status["kinds"] else "NULL" for kind in kinds]
        yield f"static const int codes_of_{role}[] = {{ {codes} }};"
        yield f"static const char *const names_of_{role}[] = {{ {', '.join(known)} }};"
        rows.append(f"{{ {', '.join(_role_row(plan, role))} }}")
    yield f"const struct sim_role sim_roles[] = {{ {', '.join(rows)} }};"
    yield f"const int sim_role_count = {len(rows)};"
    _line, variants = plan.description["operations"].get("graph_instantiate", (0, ()))
    yield f"const int sim_captures_are_executable = {int(any(form == 'same' for form, *_rest in variants))};"
    can_fail = [*sorted(plan.operations), *(function.symbol for function in plan.functions)]
    yield f"const char *const sim_names[] = {{ {', '.join((*map(_quoted, can_fail), 'NULL'))} }};"
    yield f"const int sim_is_of_objects = {int(plan.description['devices'] is not None)};"
    scopes = {scope for _line, scope, *_steps in plan.description["state"].values()}
    yield f"const int sim_contexts_are_apart = {int(scopes == {''})};"
    models = [*map(_quoted, plan.models), "NULL"]
    yield f"const char *const sim_models[] = {{ {', '.join(models)} }};"
    sizes = plan.description["policies"].get("kernels", {"values": {}})["values"].get("sizes", {})
    types = [*(f"{{ {nbytes}, {_quoted(name)} }}" for name, nbytes in sizes.items()), "{ 0, NULL }"]
    yield f"const struct sim_type sim_types[] = {{ {', '.join(types)} }};"
    variables = [*map(_quoted, plan.description["visibility"]), "NULL"]
    yield f"const char *const sim_visibility[] = {{ {', '.join(variables)} }};"
    management = plan.description["libraries"].get("management", {})
    prefixes = [*map(_quoted, management.get("uuid_prefixes", ())), "NULL"]
    yield f"const char *const sim_uuid_prefixes[] = {{ {', '.join(prefixes)} }};"


def _role_row(plan: Plan, role: str) -> list[str]:
    data = plan.description["libraries"][role]
    facts = (data["status"]["clear"], data["init"], data["enter"])
    return [_quoted(role), f"codes_of_{role}", f"names_of_{role}", *(str(int(fact is not None)) for fact in facts)]


def code_of(contract: Mapping[str, Any], status: Mapping[str, Any], kind: str) -> int:
    """The role's first code of a kind, or of the nearest kind that it has a code for."""
    if kind == "success":
        return int(status["success"])
    kinds = status["kinds"]
    if kind in _NO_ERROR and kind not in kinds:
        return int(status["success"])
    near: str | None = kind
    while near and near not in kinds:
        near = contract["errors"][near][0] or _NEAR.get(near)
    found = kinds.get(near or "unknown")
    return int(found[0]) if found else _unnamed(kinds)


def _unnamed(kinds: Mapping[str, Any]) -> int:
    """A code of which the file says nothing: the next beyond those that it names."""
    codes = [0, *(int(code) for each in kinds.values() for code in each)]
    return max(codes) + 1 if max(codes) >= -min(codes) else min(codes) - 1


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Functions


def return_type(returns: tuple[Any, ...]) -> str:
    """The C type of what a function returns, with the space before its name."""
    if returns[0] == "result":
        declared = C_TYPES[returns[2]]
        return declared if declared.endswith("*") else declared + " "
    return {"nothing": "void ", "pointer": "void *", "text": "const char *"}.get(returns[0], "int ")


def role_function(plan: Plan, function: Function) -> list[str]:
    """The function of a call of its role."""
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
        body += ["sim_end(&call);", f"return {_words(plan, function, role, _code(arguments))};"]
    elif returns[0] == "code" and function.call in _VALUES:
        body += ["sim_end(&call);", f"return (int){_VALUES[function.call](plan, function, role, _code(arguments))};"]
    else:
        body.append("return sim_end(&call);" if returns[0] != "nothing" else "sim_end(&call);")
    head = f"{EXPORT} {return_type(returns)}{function.symbol}({', '.join(parameters) or 'void'})"
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
        elif form == "buffer":
            parameters.append(f"char *a{at}")
            lines.append(f"sim_expect(&call, a{at} != NULL);")
        else:
            parameters.append(f"void *a{at}")
            lines.append(f"sim_expect(&call, a{at} == NULL);")
    return parameters, lines


def _role_results(plan: Plan, function: Function, arguments: Any) -> list[str]:
    lines = []
    role = plan.roles.index(function.role)
    for at, argument in enumerate(arguments):
        if argument[0] == "out":
            value = _VALUES.get(function.call, _words)(plan, function, role, _code(arguments))
            if argument[1] == "flags":
                value = "0"
            lines.append(f"if (!call.kind) *a{at} = {value};")
        elif argument[0] == "buffer":
            words = _words(plan, function, role, _code(arguments))
            lines.append(f'if (!call.kind) snprintf(a{at}, {argument[2]}, "%s", {words});')
    return lines


def _code(arguments: Any) -> str:
    """The parameter that a call is about, in C: a status code, or a device."""
    return next((f"a{at}" for at, argument in enumerate(arguments) if argument[0] == "param"), "0")


def _words(_plan: Plan, function: Function, role: int, code: str) -> str:
    if function.call == "text":
        return f"sim_role_kind_text({role}, {code}, kind_texts)"
    return f"sim_role_kind_name({role}, {code})"


def _own_version(plan: Plan, function: Function, _role: int, _code: str) -> str:
    """The number that a library of this version answers, which the role's digits decode."""
    number = _number(plan, function.role, plan.description["libraries"][function.role]["digits"])
    return f"sim_version_of_driver({number})" if function.role == "driver" else str(number)


def _drivers_version(plan: Plan, function: Function, _role: int, _code: str) -> str:
    """The driver is as new as the library, unless a setting says otherwise."""
    digits = plan.description["libraries"][function.role]["driver_digits"]
    return f"sim_driver_version({_number(plan, function.role, digits)})"


def _number(plan: Plan, role: str, digits: tuple[int, ...]) -> int:
    return sum(part * digit for part, digit in zip(plan.versions[role], digits, strict=False))


def _context(_plan: Plan, _function: Function, _role: int, device: str) -> str:
    return f"sim_has_context({device})"


_VALUES: Mapping[str, Callable[[Plan, Function, int, str], str]] = {
    "version": _own_version,
    "driver_version": _drivers_version,
    "has_context": _context,
}
