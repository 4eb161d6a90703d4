"""Whether calls fit their operations: every name known, every parameter used, every result given, once.

A parameter that a call leaves out, or passes in another's place, is how a signature goes wrong without a crash.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import did_you_mean, listed, quoted
from nbxrt.catalogue.forms import Name
from nbxrt.catalogue.policies import POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.contract import Operation
    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject, Variant


def reads_status(variant: Variant) -> bool:
    """Whether the call's success is told by a status code."""
    if variant.operation.answers is not None:
        return False
    by_cell = any(isinstance(each, dict) and "error" in each for _path, each in variant.arguments())
    return by_cell or variant.returns == "status"


def answers_by_status(variant: Variant) -> bool:
    """Whether the operation's result is a status that the contract names, as `done: not_ready` does."""
    return variant.operation.done is not None and reads_status(variant) and not variant.spec.get("result")


def check_names(subject: Subject) -> Iterator[Diagnostic]:
    """Every name in a call is a parameter or a result of its operation."""
    for variant in subject.variants():
        for path, name in _strangers(variant):
            yield _unknown_name(subject, variant.operation, path, name)
        for name, rule in variant.spec.get("result", {}).items() if variant.is_call else ():
            cells = [each.name for _path, _argument, each in variant.named() if each.role == "result"]
            cells += _returned(variant)
            if rule["of"] not in cells:
                message = f"`{variant.operation.name}` has nothing that gives {quoted(rule['of'])}"
                path, hint = (*variant.path, "result", name, "of"), did_you_mean(rule["of"], cells)
                yield subject.diagnostic(path, "unknown-name", message, hint=hint)


def _strangers(variant: Variant) -> list[tuple[Path, Name]]:
    """The names in a variant that its operation does not have."""
    known = {role: {each.name for each in getattr(variant.operation, side)} for role, side in _SIDES.items()}
    found = [
        ((*path, *name.path), name) for path, argument, name in variant.named() if not _is_cell(variant, argument, name)
    ]
    return [
        (path, name)
        for path, name in (*found, *_other_names(variant))
        if name.name not in known.get(name.role, {name.name})
    ]


_SIDES = {"parameter": "takes", "mention": "takes", "result": "gives"}


def _is_cell(variant: Variant, argument: Any, name: Name) -> bool:
    """Whether what comes out need not be a result: a result is made of it, or it has a type and is not wanted."""
    if name.role != "result" or name.path[:1] != ("out",):
        return False
    return name.name in _made_of(variant) if "struct" in argument else "type" in argument


def _is_returned_cell(variant: Variant) -> bool:
    """Whether what the function returns need not be a result: a result is made of it, and its type is given."""
    return "type" in variant.returns and variant.returns["result"] in _made_of(variant)


def _returned(variant: Variant) -> list[str]:
    """The name that the function's own value has, if it has one."""
    returns = variant.returns if isinstance(variant.returns, dict) else {}
    return [returns[key] for key in ("result", "pointer") if key in returns]


def _made_of(variant: Variant) -> set[str]:
    return {rule["of"] for rule in variant.spec.get("result", {}).values()}


def _other_names(variant: Variant) -> Iterator[tuple[Path, Name]]:
    """The names in a variant that stand outside its arguments."""
    spec, path = variant.spec, variant.path
    if "same" in spec:
        yield (*path, "same"), Name("parameter", spec["same"])
    for index, name in enumerate(spec.get("ignores", ())):
        yield (*path, "ignores", index), Name("mention", name)
    for key in ("result", "pointer"):
        if isinstance(variant.returns, dict) and key in variant.returns and not _is_returned_cell(variant):
            yield (*path, "returns", key), Name("result", variant.returns[key])
    for name in spec.get("result", ()):
        yield (*path, "result", name), Name("result", name)


def _unknown_name(subject: Subject, operation: Operation, path: Path, name: Name) -> Diagnostic:
    what, side = ("result", "gives") if name.role == "result" else ("parameter", "takes")
    known = [each.name for each in getattr(operation, side)]
    label = f"it {side} {listed(known)}" if known else f"it {side} nothing"
    is_cell = name.role == "result" and (path[-1] == "out" or path[-2:] == ("returns", "result"))
    hint = did_you_mean(name.name, known) or ("what is no result needs a `type`" if is_cell else "")
    message = f"`{operation.name}` has no {what} {quoted(name.name)}"
    at = "key" if path[-1] == name.name else "value"  # `result: {NAME: …}` and `out: {NAME: FIELD}`
    return subject.diagnostic(path, "unknown-name", message, at=at, label=label, hint=hint)


def check_types(subject: Subject) -> Iterator[Diagnostic]:
    """A form of argument suits the type of what it names."""
    for variant in subject.calls():
        operation = variant.operation
        types = {each.name: each.type for each in (*operation.takes, *operation.gives)}
        for path, argument, name in variant.named():
            kind = types.get(name.name, "")
            if name.types and kind and kind not in name.types:
                message = f"`{name.name}` is of type `{kind}`, and this passes {listed(name.types, 'or')}"
                yield subject.diagnostic((*path, *name.path), "wrong-parameter-type", message)
            elif isinstance(argument, str) and kind == "dim3":
                message = f"`{name.name}` has three extents, and a name passes one value"
                hint = f"write `{{axes: {name.name}}}`"
                yield subject.diagnostic(path, "wrong-parameter-type", message, hint=hint)


def check_ignores(subject: Subject) -> Iterator[Diagnostic]:
    """What a call ignores it does not pass."""
    for variant in subject.calls():
        used = _used_parameters(subject, variant)
        for index, name in enumerate(variant.spec.get("ignores", ())):
            if name in used:
                message = f"`{variant.operation.name}` ignores `{name}`, and passes it to `{variant.symbol}`"
                related = tuple(
                    subject.related(path, "passed") for path, _it, each in variant.named() if each.name == name
                )
                yield subject.diagnostic(
                    (*variant.path, "ignores", index), "ignored-and-used", message, related=related
                )


def check_parameters(subject: Subject) -> Iterator[Diagnostic]:
    """Every parameter is passed, or named as ignored."""
    for variant in subject.calls():
        used = _used_parameters(subject, variant) | set(variant.spec.get("ignores", ()))
        left_out = [each.name for each in variant.operation.takes if each.name not in used]
        if left_out and not _has_stranger(variant, "takes"):
            message = f"`{variant.operation.name}` calls `{variant.symbol}` without {listed(left_out)}"
            them = "it" if len(left_out) == 1 else "them"
            hint = f"pass {them}, or name {them} under `ignores`"
            yield _at_arguments(subject, variant, "unused-parameter", message, hint)


def check_results(subject: Subject) -> Iterator[Diagnostic]:
    """Every result comes from somewhere, and from one place."""
    for variant in subject.calls():
        given = Counter(_given_results(variant))
        nowhere = [each.name for each in variant.operation.gives if each.name not in given]
        if nowhere and not _has_stranger(variant, "gives"):
            message = f"`{variant.operation.name}` calls `{variant.symbol}`, and nothing gives {listed(nowhere)}"
            hint = f"`{{out: {nowhere[0]}}}` among `args`, or `returns: {{result: {nowhere[0]}}}`"
            yield _at_arguments(subject, variant, "unbound-result", message, hint)
        for name in (name for name, times in given.items() if times > 1 and variant.operation.result(name)):
            message = f"`{variant.operation.name}` calls `{variant.symbol}`, and `{name}` is given more than once"
            yield _at_arguments(subject, variant, "bound-twice", message)


def _has_stranger(variant: Variant, side: str) -> bool:
    """Whether a name on that side is unknown: what it was meant to be is not missing."""
    return any(_SIDES[name.role] == side for _path, name in _strangers(variant))


def check_repeated(subject: Subject) -> Iterator[Diagnostic]:
    """A parameter passed twice, in what is otherwise the contract's usual order, is one argument too many."""
    for variant in subject.calls():
        arguments = [argument for _path, argument in variant.arguments()]
        is_plain = all(
            isinstance(each, str) or (isinstance(each, dict) and each.keys() <= {"out"}) for each in arguments
        )
        if variant.operation.c is None or not is_plain:
            continue
        for name, times in Counter(each for each in arguments if isinstance(each, str)).items():
            if times > 1:
                message = f"`{variant.operation.name}` passes `{name}` to `{variant.symbol}` more than once"
                yield _at_arguments(subject, variant, "extra-argument", message)


def _at_arguments(subject: Subject, variant: Variant, reference: str, message: str, hint: str = "") -> Diagnostic:
    """A fault of a call as a whole, which says how many arguments it has and how many are usual."""
    path = (*variant.path, "args") if "args" in variant.spec else variant.path
    usual = variant.operation.c
    notes: tuple[str, ...] = ()
    if usual is not None and "args" in variant.spec:
        count = len(variant.spec["args"])
        notes = (f"{count} argument{'s' * (count != 1)} declared, {len(usual)} in the contract's usual order",)
    return subject.diagnostic(path, reference, message, at="key", notes=notes, hint=hint)


def _used_parameters(subject: Subject, variant: Variant) -> set[str]:
    used: set[str] = set()
    for _path, _argument, name in variant.named():
        if name.role == "parameter":
            used.add(name.name)
        elif name.role == "flags" and name.name in subject.contract.flags:
            used.update(subject.contract.flags[name.name].words)
    return used


def _given_results(variant: Variant) -> Iterator[str]:
    operation, returns = variant.operation, variant.returns
    made_of = _made_of(variant)
    for _path, _argument, name in variant.named():
        if name.role == "result" and name.name not in made_of:
            yield name.name
    yield from variant.spec.get("result", ())
    if isinstance(returns, dict):
        yield from (name for name in _returned(variant) if name not in made_of)
    elif returns in ("code", "text") and operation.gives:
        yield operation.gives[0].name
    elif operation.answers is not None and returns == "status":
        yield operation.answers
    if answers_by_status(variant):
        yield operation.gives[0].name


def check_enums(subject: Subject) -> Iterator[Diagnostic]:
    """A word that a call passes needs the vendor's number."""
    if ("enums",) in subject.broken:
        return
    enums = subject.mapping("enums")
    users: dict[str, list[tuple[Path, str]]] = {}
    for variant in subject.calls():
        types = {each.name: each.type for each in variant.operation.takes}
        for path, _argument, name in variant.named():
            enum = name.name if name.role == "flags" else types.get(name.name, "")
            is_enum = enum in subject.contract.enums or enum in subject.contract.flags
            if is_enum and name.role in ("flags", "parameter") and enum not in enums:
                users.setdefault(enum, []).append((path, variant.operation.name))
    for enum, found in users.items():
        says = f"the file has no `enums.{enum}`, of which USERS pass(es) a word"
        facts = subject.lacking(found, says, of=("enums",))
        yield subject.diagnostic(found[0][0], "missing-enum", **facts)


def check_constants(subject: Subject) -> Iterator[Diagnostic]:
    """A constant suits the operation's result."""
    for variant in subject.variants():
        if "value" not in variant.spec:
            continue
        fault = _constant_fault(variant.operation, variant.spec["value"])
        if fault:
            message = f"`{variant.operation.name}` {fault}"
            yield subject.diagnostic((*variant.path, "value"), "wrong-constant", message)


def _constant_fault(operation: Operation, value: Any) -> str:
    if not operation.gives:
        return "" if value == "success" else "has no result: its constant is `success`"
    if len(operation.gives) > 1:
        return f"gives {listed([each.name for each in operation.gives])}: one constant cannot be all of them"
    result = operation.gives[0]
    expected = {"text": str, "boolean": bool, "bytes": None, "processes": None}.get(result.type, int)
    is_right = expected is not None and isinstance(value, expected) and isinstance(value, bool) == (expected is bool)
    return "" if is_right else f"gives `{result.name}` of type `{result.type}`"


def check_policies(subject: Subject) -> Iterator[Diagnostic]:
    """A policy does the operations that it is made for; `same` gives back one result."""
    for variant in subject.variants():
        operation = variant.operation
        policy = POLICIES.get(variant.spec.get("policy", ""))
        if policy is not None and operation.name not in policy.operations and operation.group not in policy.groups:
            message = f"the policy `{variant.spec['policy']}` does not do `{operation.name}`"
            yield subject.diagnostic((*variant.path, "policy"), "wrong-policy", message)
        if "same" in variant.spec and len(operation.gives) != 1:
            message = f"`{operation.name}` does not have one result that an argument could be"
            yield subject.diagnostic((*variant.path, "same"), "wrong-constant", message)


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    check_names,
    check_types,
    check_ignores,
    check_parameters,
    check_results,
    check_repeated,
    check_enums,
    check_constants,
    check_policies,
)
