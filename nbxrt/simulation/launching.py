"""C functions beside operations: the launch by a configuration in memory, and what code a device takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


#: What writes the functions that are neither an operation's nor a role's, by their call.
OTHERS: dict[str, Callable[[Plan, Function], list[str]]] = {
    "launch": launch_function,
    "architecture": architecture_function,
}
