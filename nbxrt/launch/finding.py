"""The text of the function that a kernel's launches go through: it finds by the arguments what launches them.

It looks twice. First by the values themselves with their types, since that costs the least; what launches equal values
launches these. Then by what Triton tells apart in them, which many values have in common.
"""

import struct

from nbxrt.launch import generated, keys
from nbxrt.launch.direct import FIELDS
from nbxrt.launch.packing import BEGIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Sequence
    from typing import Any

    from nbxrt.launch.direct import Plan

#: Combinations of values that are remembered for one kernel and its options.
_MOST_SEEN = 4096


class Table:
    """What launches with the same options: by Triton's distinctions (`entries`), and by values that were `seen`."""

    __slots__ = ("entries", "seen")

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}
        self.seen: dict[Any, Any] = {}

    def remember(self, values: "tuple[Any, ...]", how: "Any") -> None:
        """How these values are launched: a function, or what a plan keeps for them."""
        if len(self.seen) >= _MOST_SEEN:
            self.seen.clear()
        self.seen[values] = how


class Part:
    """How one argument takes part: `seen` among the values, `key` among what Triton tells apart.

    `holds` is the test that equal values mean equal keys; empty where `seen` is the key itself.
    """

    def __init__(self, seen: str, key: str, holds: str = "") -> None:
        self.seen, self.key, self.holds = seen, key, holds


def part(name: str, value: "Any", is_constant: bool) -> Part:
    """The part of an argument of which one value is known; others that come later need not be of its kind."""
    kind = value.__class__
    if is_constant:
        key = keys.CONSTANT.format(n=name)
        return Part(f"{name}, _type({name})", key, f"_type({name}) in _plain") if kind in keys.PLAIN else Part(key, key)
    if kind is int:
        return Part(f"{name}, _type({name})", keys.INTEGER.format(n=name), f"_type({name}) is _int")
    if value is None:
        return Part(f"_type({name})", f"_key({name})", f"{name} is None")
    if kind is float:
        return Part(f"_type({name})", f"_key({name})", f"_type({name}) is _float")
    if hasattr(kind, keys.ATTRIBUTE) and hasattr(value, "data_ptr"):
        return Part(f"{name}.{keys.ATTRIBUTE}", f"{name}.{keys.ATTRIBUTE}")
    return Part(f"_key({name})", f"_key({name})")


def finder(
    title: str,
    parameters: "Sequence[inspect.Parameter]",
    parts: "Sequence[Part]",
    plan: "Plan | None",
    lines_before: "Sequence[str]",
    names: "dict[str, Any]",
) -> "Callable[..., Any]":
    """The function: a grid as `kernel.grids` has it, the kernel's parameters, options. `names` are what it refers to.

    Where there is a `plan` it launches by itself what was seen, after `lines_before`, which bind `_nbx_s`.
    Wanted in `names`: `_nbx_table`, `_nbx_variant`, `_nbx_miss`, `_nbx_odd`, `_nbx_ask_device`; what says that a thing
    out of the ordinary may be set, `_nbx_enter`, `_nbx_exit`, `_nbx_hooks`, `_nbx_runtime`, `_nbx_compilation`; with a
    plan `_nbx_call`, `_nbx_long` and `_nbx_refused`.
    """
    if not any(each.key.endswith(f".{keys.ATTRIBUTE}") for each in parts):
        parts = [*parts, Part("_nbx_ask_device()", "_nbx_ask_device()")]
    given = ", ".join(parameter.name for parameter in parameters)
    everything = f"_nbx_grid, ({given}{',' * bool(given)}), _nbx_options"
    seen = ", ".join(each.seen for each in parts)
    key = ", ".join(each.key for each in parts)
    holds = " and ".join(each.holds for each in parts if each.holds) or "True"
    found = "_nbx_go" if plan is None else ", ".join([*(f"_nbx_{each}" for each in FIELDS), *plan.names])
    how = "_nbx_entry.launch" if plan is None else f"_nbx_entry.kept(({given}{',' * bool(given)}))"
    lines = [
        f"def {generated.NAME}(_nbx_grid, /, {declared(parameters)}**_nbx_options):",
        "    if _nbx_enter or _nbx_exit or _nbx_hooks or _nbx_runtime or _nbx_compilation:",
        f"        _nbx_done = _nbx_odd({everything})",
        "        if _nbx_done: return _nbx_done[0]",
        f"    try: {found} = (_nbx_variant(_nbx_options).seen if _nbx_options else _nbx_seen)[{seen},]",
        "    except _nbx_Unseen:",
        "        try:",
        "            _nbx_here = _nbx_variant(_nbx_options) if _nbx_options else _nbx_table",
        f"            _nbx_entry = _nbx_here.entries[{key},]",
        f"        except _nbx_Unseen: return _nbx_miss({everything})",
        f"        if {holds}: _nbx_here.remember(({seen},), {how})",
        f"        return _nbx_entry.launch(_nbx_grid, {given})",
        *([f"    return _nbx_go(_nbx_grid, {given})"] if plan is None else _launch_lines(plan, lines_before, given)),
    ]
    names |= {
        "_int": int,
        "_float": float,
        "_type": type,
        "_integer": keys.integer,
        "_key": keys.of,
        "_constant": keys.constant,
        "_plain": keys.PLAIN,
        "_Empty": IndexError,
        "_Odd": (struct.error, OverflowError, TypeError, AttributeError, ValueError),
        "_nbx_seen": names["_nbx_table"].seen,
        "_nbx_Unseen": (KeyError, AttributeError, TypeError, keys.UnknownKindError),
    }
    return generated.made("\n".join(lines), with_defaults(parameters, names), title)


def _launch_lines(plan: "Plan", lines_before: "Sequence[str]", given: str) -> "list[str]":
    everything = f"_nbx_grid, ({given}{',' * bool(given)}), _nbx_options"
    return [
        f"    if _nbx_take is None: return _nbx_kernel(_nbx_grid, {given})",
        *lines_before,
        *generated.memory_lines(plan.arrays),
        "    try: _nbx_slot = _nbx_take()",
        "    except _Empty: _nbx_slot = _nbx_fresh()",
        "    _nbx_buffer, _nbx_configuration, _nbx_arguments = _nbx_slot",
        f"    try: _nbx_pack(_nbx_buffer, {BEGIN}, {', '.join(plan.written)})",
        f"    except _Odd: return _nbx_long({everything})",
        "    _nbx_code = _nbx_call(_nbx_configuration, _nbx_function, _nbx_arguments, None)",
        "    _nbx_give(_nbx_slot)",
        f"    if _nbx_code: return _nbx_refused(_nbx_code, _nbx_s, {everything})",
        "    return _nbx_kernel",
    ]


def finder_of_grids(
    title: str, parameters: "Sequence[inspect.Parameter]", names: "dict[str, Any]"
) -> "Callable[..., Any]":
    """The same for a grid that is a function of the arguments.

    Wanted in `names`: `_nbx_grids`, what launches on a grid that was seen, and `_nbx_bound`, which makes it.
    """
    by_name = "{" + ", ".join(f"{each.name!r}: {each.name}" for each in parameters) + "}"
    given = "".join(
        f"{each.name}={each.name}, " if each.kind is each.KEYWORD_ONLY else f"{each.name}, " for each in parameters
    )
    lines = [
        f"def {generated.NAME}(_nbx_grid, /, {declared(parameters)}**_nbx_options):",
        f"    _nbx_extents = _nbx_grid({by_name})",
        "    try: _nbx_on = _nbx_grids[_nbx_extents]",
        "    except (KeyError, TypeError): _nbx_on = _nbx_bound(_nbx_extents)",
        f"    return _nbx_on({given}**_nbx_options)",
    ]
    return generated.made("\n".join(lines), with_defaults(parameters, names), title)


def declared(parameters: "Sequence[inspect.Parameter]") -> str:
    """The parameters as a function declares them, each followed by a comma."""
    said, is_keyword_only = "", False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            said += "*, "
            is_keyword_only = True
        said += parameter.name
        said += f"=_nbx_default_{parameter.name}, " if parameter.default is not parameter.empty else ", "
    return said


def with_defaults(parameters: "Sequence[inspect.Parameter]", names: "dict[str, Any]") -> "dict[str, Any]":
    """The names, and the defaults that `declared` refers to."""
    return names | {f"_nbx_default_{each.name}": each.default for each in parameters if each.default is not each.empty}
