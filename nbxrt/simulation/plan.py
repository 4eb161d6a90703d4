"""What a simulated library has: its file names, each role's version, the functions behind its symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt import descriptions, errors
from nbxrt.binding.library import applies
from nbxrt.simulation.calls import called, told_apart
from nbxrt.simulation.primitives import known_as
from nbxrt.simulation.stepping import stepped
from nbxrt.versions import by_role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    Description = Mapping[str, Any]
    Version = tuple[int, ...]


@attrs.frozen
class Case:
    """One operation that a function does: the variant of the backend file that applies to the simulated version."""

    operation: str
    arguments: tuple[Any, ...]
    returns: tuple[Any, ...]
    extras: tuple[Any, ...] = ()
    values: tuple[tuple[str, int], ...] = ()  # parameters that no argument gives
    fixed: tuple[tuple[str, int | str], ...] = ()  # what results are that the core does not give
    models: frozenset[str] = frozenset()  # of the devices that it is for; empty: all
    written: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())  # of a call in steps: as the file has it
    serves: tuple[str, ...] = ()  # other operations that it does

    @property
    def stated(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arguments and what is returned, as the file states them."""
        return self.written if self.written[1] else (self.arguments, self.returns)

    @property
    def constants(self) -> tuple[tuple[int, Any], ...]:
        """The positions of the constants and their values: what tells the operations of one function apart."""
        return told_apart(self.arguments)

    def is_wider(self, other: Case) -> bool:
        """Whether what another case asks for is asked for here, too."""
        return set(self.constants) < set(other.constants)


@attrs.frozen
class Function:
    """A function of the library: the operations that it does, or which call of its role it is (`version`, `init` …).

    The call `launch` is the launch by a configuration in memory, `parameters` tells what a kernel takes, `architecture`
    what code a device takes, `list` which devices there are, `address` where a function is that is not exported.
    """

    symbol: str
    role: str
    cases: tuple[Case, ...] = ()
    call: str = ""
    spec: tuple[Any, ...] = ()


@attrs.frozen
class Plan:
    """A library of one backend in one version. `files` are its names by role, `versions` what each role answers."""

    description: Description
    contract: Mapping[str, Any]
    files: Mapping[str, tuple[str, ...]]
    versions: Mapping[str, Version]
    functions: tuple[Function, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The models of devices that are called differently."""
        return tuple((self.description["devices"] or {}).get("models") or ())

    @property
    def operations(self) -> frozenset[str]:
        """The operations that are calls: in an API of objects, those whose heart is a call."""
        if self.description["devices"] is None:
            return frozenset(self.contract["operations"])
        cases = [case for function in self.functions for case in function.cases]
        told = {name for case in cases for name in (known_as(case.operation), *case.serves)}
        return frozenset(told & {*self.contract["operations"]}) | {"device_count"}

    def is_exported(self, function: Function) -> bool:
        """Whether the library exports a function. One of an extension is asked for by its name.

        An extension is a model of device that is told by a text, where the file says how functions are asked for.
        """
        devices = self.description["devices"]
        if not devices or devices["functions"] is None or not function.cases:
            return True
        extensions = {model for model, (_call, how, *_rest) in (devices["models"] or {}).items() if how == "has"}
        return not all(case.models and case.models <= extensions for case in function.cases)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles with a library of their own."""
        return tuple(self.versions)

    def role(self, name: str) -> str:
        """The role whose library serves a role."""
        return served_by(self.description, name)

    def words(self, enum: str, role: str) -> Mapping[str, int] | None:
        """The vendor's numbers of an enum or a set of flags in the simulated version; None when the file has none."""
        entries = self.description["enums"].get(enum, ())
        return next((words for since, before, words in entries if applies(self.versions[role], since, before)), None)

    def layout(self, struct: str, role: str) -> tuple[int, Mapping[str, tuple[Any, ...]], Mapping[str, int]]:
        """Bytes, fields and constants of a structure in the simulated version."""
        for since, before, nbytes, fields, constants in self.description["structs"][struct]:
            if applies(self.versions[role], since, before):
                return nbytes, fields, constants
        raise errors.UntestedVersionError(f"structure `{struct}` has no layout for version {self.versions[role]}")


def served_by(description: Description, role: str) -> str:
    """The role whose library serves a role."""
    served: str = description["libraries"].get(role, {}).get("same_as", role)
    return served


def make_plan(
    description: Description,
    contract: Mapping[str, Any],
    system: str,
    version: str | Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> Plan:
    """The plan for a version of the runtime, or for versions by role; the best that the file lists when none is given.

    Raises: CapabilityError for a backend that has no C library to stand in for; ArgumentValueError.
    """
    _refuse_what_is_no_library(description)
    versions = by_role(description, version)
    files = {role: _files(description, role, versions, system) for role in description["libraries"]}
    plan = Plan(description, contract, files, versions, ())
    functions = _functions(plan, system)
    _refuse_what_is_untold(description, functions)
    unknown = set(without) - set(plan_symbols(functions))
    if unknown:
        said = ", ".join(sorted(unknown))
        raise errors.ArgumentValueError(f"`without` names what {description['title']} does not have here: {said}")
    return attrs.evolve(plan, functions=tuple(each for each in functions if each.symbol not in without))


def is_made_from_file(description: Description) -> bool:
    """Whether what each function does can be told from a backend's file."""
    try:
        make_plan(description, descriptions.contract(), "linux")
    except errors.CapabilityError:
        return False
    return True


def plan_symbols(functions: Collection[Function]) -> list[str]:
    """The symbols of functions."""
    return [function.symbol for function in functions]


def _refuse_what_is_no_library(description: Description) -> None:
    searches = [step for role in description["libraries"].values() for step, *_rest in role.get("search", ())]
    if description["abi"] != "c":
        reason = "its ABI is not C"
    elif "process" in searches:
        reason = "its functions are the process's own"
    else:
        return
    raise errors.CapabilityError(f"{description['title']} cannot be simulated: {reason}", backend=description["name"])


def _refuse_what_is_untold(description: Description, functions: Collection[Function]) -> None:
    """A library without a function that the backend calls would fail as no real one does."""
    told = set(plan_symbols(functions))
    for operation, symbol in called(description):
        if symbol not in told:
            raise errors.CapabilityError(
                f"{description['title']} cannot be simulated: what `{symbol}` does, which `{operation}` calls, is not "
                "told by its steps",
                backend=description["name"],
            )


def _files(description: Description, role: str, versions: Mapping[str, Version], system: str) -> tuple[str, ...]:
    served = served_by(description, role)
    major = (versions[served] or (None,))[0]
    names = description["libraries"][served]["names"]
    exact = [files[system] for number, files in names if number == major and system in files]
    return tuple(exact or [files[system] for number, files in names if number is None and system in files])


# Functions


def _functions(plan: Plan, system: str) -> list[Function]:
    """Every function of the library: those of operations, then those that only the roles themselves call."""
    found: dict[str, Function] = {}
    for symbol, role, case in _cases(plan, system):
        known = found.setdefault(symbol, Function(symbol, role))
        _refuse_two_signatures(symbol, known, case)
        if not any(_is_told_already(case, other) for other in known.cases):
            found[symbol] = attrs.evolve(known, cases=(*known.cases, case))
    for symbol, role, spec in _lists(plan):
        found[symbol] = Function(symbol, role, call="list", spec=spec)
    for symbol, role, call, spec in _role_calls(plan):
        found.setdefault(symbol, Function(symbol, role, call=call, spec=spec))
    if launch := plan.description["launch"]:
        role = plan.role(launch["library"])
        found.setdefault(launch["call"], Function(launch["call"], role, call="launch"))
        if launch["parameters"]:
            found.setdefault(launch["parameters"], Function(launch["parameters"], role, call="parameters"))
    for each in plan.description["triton_architecture"]:
        if isinstance(each, tuple):
            found.setdefault(each[0], Function(each[0], "runtime", call="architecture", spec=each))
    if plan.description["devices"] and (asking := plan.description["devices"]["functions"]):
        symbols, role, *_rest = asking
        found |= {symbol: Function(symbol, plan.role(role), call="address", spec=asking) for symbol in symbols}
    return [_with_wider_models(function) for function in found.values()]


def _with_wider_models(function: Function) -> Function:
    """A call that a wider case would answer is answered for the models of both."""
    cases = []
    for case in function.cases:
        wider = [other.models for other in function.cases if other.is_wider(case)]
        models = frozenset().union(case.models, *wider) if all(wider) else frozenset[str]()
        cases.append(attrs.evolve(case, models=models if case.models else case.models))
    return attrs.evolve(function, cases=tuple(cases))


def _cases(plan: Plan, system: str) -> Iterator[tuple[str, str, Case]]:
    for operation, (_line, variants) in plan.description["operations"].items():
        for form, since, before, platforms, what, extras in variants:
            if form != "call" or (platforms is not None and system not in platforms):
                continue
            symbols, role, arguments, returns, _usual = what
            served = plan.role(role)
            if applies(plan.versions[served], since, before):
                for symbol in symbols:
                    yield symbol, served, Case(operation, arguments, returns, extras)
    every = frozenset(plan.models)
    for each in stepped(plan.description, plan.contract):
        models = each.models if each.models != every else frozenset()
        case = Case(
            each.operation, each.arguments, each.returns, (), each.values, each.fixed, models, each.written, each.serves
        )  # fmt: skip
        for symbol in each.symbols:
            yield symbol, plan.role(each.role), case


def _lists(plan: Plan) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """(symbol, role, (whether devices are listed, arguments)) of the functions that list devices, level by level."""
    levels = plan.description["devices"]["levels"] if plan.description["devices"] else ()
    for at, (form, _name, listed) in enumerate(levels):
        symbols, role, arguments, _returns = listed if form == "fill" else ((), "", (), ())
        for symbol in symbols:
            yield symbol, plan.role(role), (at == len(levels) - 1, arguments)


def _is_told_already(case: Case, other: Case) -> bool:
    """Whether a call cannot be told from another: the same operation twice, or arguments that say the same.

    Calls in steps are told apart where they are read.
    """
    is_same = case.operation == other.operation and not case.written[1]
    return is_same or case.arguments == other.arguments


def _refuse_two_signatures(symbol: str, known: Function, case: Case) -> None:
    for other in known.cases:
        if signature(other) != signature(case):
            raise errors.ArgumentValueError(
                f"`{symbol}` has one signature for `{other.operation}` and another for `{case.operation}`",
                symbol=symbol,
            )


def signature(case: Case) -> tuple[Any, ...]:
    """What the compiler sees of a function: the types of its arguments and of what it returns."""
    return (tuple(map(_seen, case.arguments)), case.returns[0] in ("status", "ignored"), case.returns[2:])


def _seen(argument: tuple[Any, ...]) -> Any:
    form = argument[0]
    if form in ("struct_value", "struct_bytes"):
        return argument[1]
    types = {"param": 2, "const": 1, "length": 2, "flags": 2, "padded": 3}
    return argument[types[form]] if form in types else {"axes": "axes", "pci": "uint64"}.get(form, "pointer")


def _role_calls(plan: Plan) -> Iterator[tuple[str, str, str, tuple[Any, ...]]]:
    """(symbol, role, which call, how it is described) of what a role is asked and told apart from operations."""
    for role in plan.roles:
        data = plan.description["libraries"][role]
        calls = {key: data[key] for key in ("version", "driver_version", "init", "enter", "has_context", "close")}
        calls |= {key: data["status"][key] for key in ("clear", "name", "text")}
        for call, spec in calls.items():
            for symbol in spec[0] if spec else ():
                yield symbol, plan.role((spec[1] if call == "enter" else None) or role), call, spec
