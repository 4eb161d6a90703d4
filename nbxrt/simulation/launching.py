"""C functions beside operations: the launch by a configuration in memory, what code devices take, and their lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.simulation.decoding import C_TYPES
from nbxrt.simulation.roles import EXPORT

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation.plan import Function, Plan


def launch_function(plan: Plan, function: Function) -> list[str]:
    """Take the configuration apart and do the operation `launch_kernel`, with the attributes beside it."""
    layout = plan.description["launch"]["configuration"]
    attribute = plan.description["launch"]["attribute"]
    role = plan.roles.index(function.role)
    sizes = f"{attribute['bytes']}, {attribute['id']}, {attribute['value']}"
    body = [
        "struct sim_call call;",
        f'sim_begin(&call, {role}, OP_LAUNCH_KERNEL, "launch_kernel", "{function.symbol}");',
        "sim_expect(&call, config != NULL && extra == NULL);",
        "const char *at = config;",
        "unsigned grid[3], block[3], shared, count;",
        "void *stream, *attributes;",
        "if (!call.kind) {",
        f"    memcpy(grid, at + {layout['grid']}, sizeof grid);",
        f"    memcpy(block, at + {layout['block']}, sizeof block);",
        f"    memcpy(&shared, at + {layout['shared_memory']}, sizeof shared);",
        f"    memcpy(&stream, at + {layout['stream']}, sizeof stream);",
        f"    memcpy(&attributes, at + {layout['attributes']}, sizeof attributes);",
        f"    memcpy(&count, at + {layout['attribute_count']}, sizeof count);",
        "    call.kind = sim_launch_with((uint64_t)(uintptr_t)function, grid, block, shared,",
        "                                (uint64_t)(uintptr_t)stream, arguments, attributes, count,",
        f"                                (size_t[]){{ {sizes} }});",
        "}",
        "return sim_end(&call);",
    ]
    head = f"{EXPORT} int {function.symbol}(const void *config, void *function, void **arguments, void **extra)"
    return [head, "{", *(f"    {line}" for line in body), "}"]


def parameters_function(plan: Plan, function: Function) -> list[str]:
    """Tell where a parameter of a kernel begins and how large it is."""
    role = plan.roles.index(function.role)
    body = [
        "struct sim_call call;",
        f'sim_begin(&call, {role}, -1, "{function.role}.parameters", "{function.symbol}");',
        "sim_expect(&call, offset != NULL && size != NULL);",
        "if (!call.kind)",
        "    call.kind = sim_function_parameter((uint64_t)(uintptr_t)function, index, offset, size);",
        "return sim_end(&call);",
    ]
    head = f"{EXPORT} int {function.symbol}(void *function, size_t index, size_t *offset, size_t *size)"
    return [head, "{", *(f"    {line}" for line in body), "}"]


def architecture_function(plan: Plan, function: Function) -> list[str]:
    """Fill the structure with zeros and the text that a test has set."""
    _symbol, nbytes, at = function.spec
    role = plan.roles.index(function.role)
    body = [
        "struct sim_call call;",
        f'sim_begin(&call, {role}, -1, "{function.role}.architecture", "{function.symbol}");',
        "sim_expect(&call, properties != NULL && device >= 0 && device < sim_device_count_visible());",
        "if (!call.kind) {",
        f"    memset(properties, 0, {nbytes});",
        f"    strncpy((char *)properties + {at}, sim_architecture, {min(255, nbytes - at - 1)});",
        "}",
        "return sim_end(&call);",
    ]
    return [
        f"{EXPORT} int {function.symbol}(void *properties, int device)",
        "{",
        *(f"    {line}" for line in body),
        "}",
    ]


def list_function(plan: Plan, function: Function) -> list[str]:
    """Count the devices, or what is above them, and fill in their handles."""
    is_of_devices, arguments = function.spec
    role = plan.roles.index(function.role)
    parameters, lines, room = [], [], "*found"
    for at, argument in enumerate(arguments):
        declared, line = _LISTED[argument[0]](at, argument)
        parameters.append(declared)
        lines += line
        room = f"a{at}" if argument[0] == "room" else room
    body = [
        "struct sim_call call;",
        f'sim_begin(&call, {role}, OP_DEVICE_COUNT, "device_count", "{function.symbol}");',
        *lines,
        "sim_ready(&call);",
        f"sim_list(&call, {int(is_of_devices)}, found ? (unsigned){room} : 0, list, found);",
        "return sim_end(&call);",
    ]
    head = f"{EXPORT} int {function.symbol}({', '.join(parameters)})"
    return [head, "{", *(f"    {line}" for line in body), "}"]


#: The parameter and the lines of an argument of a list, by its form.
_LISTED: dict[str, Callable[[int, tuple[Any, ...]], tuple[str, list[str]]]] = {
    "room": lambda at, _argument: (f"unsigned a{at}", []),
    "list": lambda _at, _argument: ("void **list", []),
    "found": lambda _at, _argument: ("unsigned *found", []),
    "param": lambda at, _argument: (f"void *a{at}", [f"sim_expect_level(&call, a{at});"]),
    "const": lambda at, given: (
        f"{C_TYPES[given[1]]} a{at}", [f"sim_expect(&call, a{at} == ({C_TYPES[given[1]]}){given[2]}ll);"],
    ),
}  # fmt: skip


def address_function(plan: Plan, function: Function) -> list[str]:
    """Tell the address of a function that is not exported, by its name."""
    _symbols, _role, arguments, _returns = function.spec
    role = plan.roles.index(function.role)
    parameters, lines, name = [], [], "NULL"
    for at, argument in enumerate(arguments):
        is_name = argument[1] == "symbol"
        parameters.append(f"const char *a{at}" if is_name else f"void *a{at}")
        lines.append(f"sim_expect(&call, a{at} != NULL);" if is_name else f"sim_expect_level(&call, a{at});")
        name = f"a{at}" if is_name else name
    lines.append(f'sim_note_text(&call, "symbol", {name});')
    body = [
        "struct sim_call call;",
        f'sim_begin(&call, {role}, -1, "{function.role}.address", "{function.symbol}");',
        *lines,
        "void *found = NULL;",
    ]
    hidden = [each.symbol for each in plan.functions if not plan.is_exported(each)]
    body += [f'if (!call.kind && !strcmp({name}, "{each}")) found = (void *){each};' for each in hidden]
    body += ["sim_end(&call);", "return found;"]
    head = f"{EXPORT} void *{function.symbol}({', '.join(parameters)})"
    return [head, "{", *(f"    {line}" for line in body), "}"]


#: What writes the functions that are neither an operation's nor a role's, by their call.
OTHERS: dict[str, Callable[[Plan, Function], list[str]]] = {
    "launch": launch_function,
    "parameters": parameters_function,
    "architecture": architecture_function,
    "list": list_function,
    "address": address_function,
}
