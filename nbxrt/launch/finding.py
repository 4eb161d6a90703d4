"""The text of the function that a kernel's launches go through: it finds by the arguments what launches them.

It looks three times. First whether they are those of the last launch on this grid, which costs the least. Then by the
values themselves with their types; what launches equal values launches these. Then by what Triton tells apart in them,
which many values have in common.
"""

import struct

from nbxrt.launch import generated, keys
from nbxrt.launch.packing import BEGIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Container, Mapping, Sequence
    from typing import Any

    from nbxrt.launch.direct import Plan
    from nbxrt.launch.kernel import Grid

#: Combinations of values and grids that are remembered for one kernel and its options.
_MOST_SEEN = 4096

#: What a parameter is that a launch has not given.
ABSENT = object()


#: The key of options in a kernel's `variants`, where all their values are plain.
KEY_OF_OPTIONS = "*_nbx_options.items(), *_nbx_map(_nbx_type, _nbx_options.values())"


def key_of_options(options: "Mapping[str, Any]") -> "tuple[Any, ...]":
    """The same as a value."""
    return (*options.items(), *map(type, options.values()))


class Site:
    """One grid of a kernel, and what its last launch without options is known by and launched with.

    `optional` is what the last one with options had as these, and the same of it.
    """

    __slots__ = ("grid", "last", "optional")

    def __init__(self, grid: "Grid", last: "tuple[Any, ...]") -> None:
        self.grid = grid
        self.forget(last)

    def forget(self, last: "tuple[Any, ...]") -> None:
        """Have no launch but `last`, which is like no other: what was launched is not kept by who holds the grid."""
        self.last = last
        self.optional: tuple[Any, tuple[Any, ...]] = (None, last)


class Table:
    """What launches with the same options: by Triton's distinctions (`entries`), and by values that were `seen`."""

    __slots__ = ("entries", "seen")

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}
        self.seen: dict[Any, Any] = {}

    def remember(self, values: "tuple[Any, ...]", how: "tuple[Any, ...]") -> None:
        """What these values, of which the first is the site, are known by and launched with."""
        if len(self.seen) >= _MOST_SEEN:
            self.seen.clear()
        self.seen[values] = how


class Part:
    """How one argument takes part: `seen` among the values, `key` among what Triton tells apart.

    `holds` is the test that equal values mean equal keys; empty where `seen` is the key itself. `same` is the test that
    it is as at the last launch, of which `kept` was kept, `{last}` in the test; nothing where that is empty. `asked` is
    a statement that comes before; `array` the name of what keeps its key itself.
    """

    def __init__(self, seen: str, key: str, holds: str, kept: str, same: str, asked: str = "", array: str = "") -> None:
        self.seen, self.key, self.holds, self.kept, self.same, self.asked = seen, key, holds, kept, same, asked
        self.array = array


def _asked(name: str, key: str) -> Part:
    """The part of what is known by its key alone, which is asked for once."""
    return Part(name, name, "", name, f"{name} == {{last}}", f"{name} = {key}")


def parts(arguments: "Mapping[str, Any]", constants: "Container[str]") -> "list[Part]":
    """The parts of all arguments, and the current device where no array says which one."""
    found = [_part(name, value, name in constants) for name, value in arguments.items()]
    if any(each.array for each in found):
        return found
    return [*found, _asked("_nbx_here_device", "_nbx_ask_device()")]


def _part(name: str, value: "Any", is_constant: bool) -> Part:
    """The part of an argument of which one value is known; others that come later need not be of its kind."""
    kind = value.__class__
    with_type = f"{name}, _nbx_type({name})"
    if is_constant:
        key = keys.CONSTANT.format(n=name)
        same = f"({name} is {{last}} or _nbx_type({name}) is _nbx_type({{last}}) and {name} == {{last}})"
        if kind in keys.PLAIN:
            return Part(with_type, key, f"_nbx_type({name}) in _nbx_plain", name, same)
        return _asked(f"_nbx_key_{name}", key)
    if kind is int:
        same = f"({name} is {{last}} or _nbx_type({name}) is _nbx_int and {name} == {{last}})"
        return Part(with_type, keys.INTEGER.format(n=name), f"_nbx_type({name}) is _nbx_int", name, same)
    if value is None:
        return Part(f"_nbx_type({name})", f"_nbx_key({name})", f"{name} is None", "", f"{name} is None")
    if kind is float:
        is_float = f"_nbx_type({name}) is _nbx_float"
        return Part(f"_nbx_type({name})", f"_nbx_key({name})", is_float, "", is_float)
    if hasattr(kind, keys.ATTRIBUTE) and hasattr(value, "data_ptr"):
        key = f"{name}.{keys.ATTRIBUTE}"
        return Part(key, key, "", key, f"{key} is {{last}}", array=name)  # keys.py has each key once
    return _asked(f"_nbx_key_{name}", f"_nbx_key({name})")


def nothing(parts: "Sequence[Part]", plan: "Plan | None") -> "tuple[Any, ...]":
    """The last launch of a site that had none: like no other."""
    return (object(),) * len(_bound(parts, plan))


def _bound(parts: "Sequence[Part]", plan: "Plan | None") -> "list[str]":
    """The names of what is known of a launch: what it is known by, and what it is launched with."""
    known = [f"_nbx_last{at}" for at, each in enumerate(parts) if each.kept]
    return [*known, *(f"_nbx_{each}" for each in (plan.fields if plan else ("go",)))]


def finder(
    title: str,
    parameters: "Sequence[inspect.Parameter]",
    parts: "Sequence[Part]",
    plan: "Plan | None",
    lines_before: "Sequence[str]",
    names: "dict[str, Any]",
) -> "Callable[..., Any]":
    """The function: a site, the kernel's parameters, options. `names` are what it refers to.

    Where there is a `plan` it launches by itself what was seen, after `lines_before`, which bind `_nbx_s`.
    Wanted in `names`: `_nbx_table`, `_nbx_variants`, `_nbx_variant`, `_nbx_miss`, `_nbx_odd`, `_nbx_ask_device`,
    `_nbx_key`; what says that a thing out of the ordinary may be set, `_nbx_enter`, `_nbx_exit`, `_nbx_hooks`,
    `_nbx_runtime`, `_nbx_compilation`; with a plan `_nbx_call`, `_nbx_long` and `_nbx_refused`.
    """
    given = ", ".join(parameter.name for parameter in parameters)
    values = f"({given}{',' * bool(given)})"
    launching = [f"    return _nbx_go(_nbx_site.grid, {given})"]
    lines = [
        f"def {generated.NAME}(_nbx_site, /, {declared(parameters)}**_nbx_options):",
        "    if _nbx_more or _nbx_enter or _nbx_exit or _nbx_hooks or _nbx_runtime or _nbx_compilation:",
        f"        _nbx_done = _nbx_odd(_nbx_site.grid, {values}, _nbx_options, _nbx_more)",
        "        if _nbx_done: return _nbx_done[0]",
        *_look_up_lines(parts, plan, given, values),
        *(launching if plan is None else _launch_lines(plan, lines_before, given, values)),
    ]
    names |= {
        "_nbx_int": int,
        "_nbx_float": float,
        "_nbx_type": type,
        "_nbx_map": map,
        "_nbx_integer": keys.integer,
        "_nbx_keyed": keys.give,
        "_nbx_constant": keys.constant,
        "_nbx_plain": keys.PLAIN,
        "_nbx_Empty": IndexError,
        "_nbx_Odd": (struct.error, OverflowError, TypeError, AttributeError, ValueError),
        "_nbx_nothing": nothing(parts, plan),
        "_nbx_Unseen": (KeyError, AttributeError, TypeError, keys.UnknownKindError, UnboundLocalError),
    }
    return generated.made("\n".join(lines), with_defaults(parameters, names), title)


def _look_up_lines(parts: "Sequence[Part]", plan: "Plan | None", given: str, values: str) -> "list[str]":
    """They bind what is known of the launch; one that was not seen goes another way."""
    bound = ", ".join(_bound(parts, plan)) + ","
    same = " and ".join(each.same.format(last=f"_nbx_last{at}") for at, each in enumerate(parts))
    seen = ", ".join(each.seen for each in parts)
    key = ", ".join(each.key for each in parts)
    holds = " and ".join(each.holds for each in parts if each.holds) or "True"
    kept = "".join(f"{each.kept}, " for each in parts if each.kept)
    arrays = [each.array for each in parts if each.array]
    lacking = " or ".join(f"{array}.{keys.ATTRIBUTE} is None" for array in arrays)
    # arrays that were never launched have no keys; with keys, all may be as before
    after = f" and not (({lacking}) and _nbx_keyed({', '.join(arrays)}) and ({same}))" if arrays else ""
    how = "_nbx_entry.launch," if plan is None else f"*_nbx_entry.kept({values}, _nbx_site.grid)"
    return [
        "    try:",
        *(f"        {each.asked}" for each in parts if each.asked),
        "        _nbx_known = _nbx_site.last",
        "        if _nbx_options:",
        # types first, so that values are compared with those of their own type alone
        "            _nbx_asked = [*_nbx_options, *_nbx_map(_nbx_type, _nbx_options.values())], _nbx_options",
        "            _nbx_former, _nbx_known = _nbx_site.optional",
        "            if _nbx_asked != _nbx_former: _nbx_known = _nbx_nothing",
        f"        {bound} = _nbx_known",
        f"        if not ({same}){after}:",
        f"            _nbx_here = _nbx_variants[{KEY_OF_OPTIONS}] if _nbx_options else _nbx_table",
        f"            {bound} = _nbx_known = _nbx_here.seen[_nbx_site, {seen}]",
        "            if _nbx_options: _nbx_site.optional = _nbx_asked, _nbx_known",
        "            else: _nbx_site.last = _nbx_known",
        "    except _nbx_Unseen:",
        "        try:",
        "            _nbx_here = _nbx_variant(_nbx_options) if _nbx_options else _nbx_table",
        f"            _nbx_entry = _nbx_here.entries[{key},]",
        f"        except _nbx_Unseen: return _nbx_miss(_nbx_site.grid, {values}, _nbx_options)",
        f"        if {holds}: _nbx_here.remember((_nbx_site, {seen}), ({kept}{how}))",
        f"        return _nbx_entry.launch(_nbx_site.grid, {given})",
    ]


def _launch_lines(plan: "Plan", lines_before: "Sequence[str]", given: str, values: str) -> "list[str]":
    return [
        f"    if _nbx_take is None: return _nbx_kernel(_nbx_site.grid, {given})",
        *lines_before,
        *generated.memory_lines(plan.arrays),
        "    try: _nbx_slot = _nbx_take()",
        "    except _nbx_Empty: _nbx_slot = _nbx_fresh()",
        "    _nbx_buffer, _nbx_arguments = _nbx_slot",
        f"    try: _nbx_pack(_nbx_buffer, {BEGIN}, {', '.join(plan.written)})",
        f"    except _nbx_Odd: return _nbx_long(_nbx_site.grid, {values}, _nbx_options)",
        "    _nbx_code = _nbx_call(*_nbx_arguments)",
        "    _nbx_give(_nbx_slot)",
        f"    if _nbx_code: return _nbx_refused(_nbx_code, _nbx_s, _nbx_site.grid, {values}, _nbx_options)",
        "    return _nbx_kernel",
    ]


def finder_of_grids(
    title: str, parameters: "Sequence[inspect.Parameter]", names: "dict[str, Any]"
) -> "Callable[..., Any]":
    """The same for a grid that is a function of the arguments.

    Wanted in `names`: `_nbx_grids`, what launches on a grid that was seen, and `_nbx_bound`, which makes it;
    `_nbx_demand`, which refuses values of which one is absent, or more than the parameters.
    """
    by_name = "{" + ", ".join(f"{each.name!r}: {each.name}" for each in parameters) + "}"
    given = "".join(
        f"{each.name}={each.name}, " if each.kind is each.KEYWORD_ONLY else f"{each.name}, " for each in parameters
    )
    values = "".join(f"{each.name}, " for each in parameters)
    wanting = " or ".join(f"{each.name} is _nbx_absent" for each in parameters if each.default is each.empty)
    lines = [
        f"def {generated.NAME}(_nbx_grid, /, {declared(parameters)}**_nbx_options):",
        f"    if _nbx_more or {wanting or False}: _nbx_demand(({values}), _nbx_options, _nbx_more)",
        f"    _nbx_extents = _nbx_grid({by_name})",
        "    try: _nbx_on = _nbx_grids[_nbx_extents]",
        "    except (KeyError, TypeError): _nbx_on = _nbx_bound(_nbx_extents)",
        f"    return _nbx_on({given}**_nbx_options)",
    ]
    return generated.made("\n".join(lines), with_defaults(parameters, names), title)


def declared(parameters: "Sequence[inspect.Parameter]") -> str:
    """The parameters as a function declares them that takes any call and sees what it lacks, each with a comma.

    Python would not say it as nbxrt does. What is more than the parameters is `_nbx_more`.
    """
    said = {True: "", False: ""}
    for parameter in parameters:
        default = "_nbx_absent" if parameter.default is parameter.empty else f"_nbx_default_{parameter.name}"
        said[parameter.kind is parameter.KEYWORD_ONLY] += f"{parameter.name}={default}, "
    return f"{said[False]}*_nbx_more, {said[True]}"


def with_defaults(parameters: "Sequence[inspect.Parameter]", names: "dict[str, Any]") -> "dict[str, Any]":
    """The names, and the defaults that `declared` refers to."""
    defaults = {f"_nbx_default_{each.name}": each.default for each in parameters if each.default is not each.empty}
    return names | defaults | {"_nbx_absent": ABSENT}
