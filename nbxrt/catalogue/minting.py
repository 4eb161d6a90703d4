"""Whether addresses that stand for objects without one stay ours: neither the host nor the vendor is told of them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from nbxrt.catalogue.diagnostics import listed, quoted
from nbxrt.catalogue.sequences import sequences
from nbxrt.catalogue.verbs import Use, verb_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nbxrt.catalogue.diagnostics import Diagnostic, Related
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject

Form = TypeVar("Form")

#: Groups of operations on other memory than what is allocated on a device, and a parameter that is the host's.
OTHER_MEMORY, HOSTS = ("pinned", "managed", "virtual_memory"), ("room",)
#: Verbs by which a name reaches the vendor.
TELLING = ("call", "send")


@attrs.frozen(eq=False)
class Minting:
    """A step that gives an object an address of its own, on devices of a model or (empty) on all."""

    path: Path
    step: Mapping[str, Any]
    model: str


def _mintings(subject: Subject) -> list[Minting]:
    return [
        Minting((*sequence.path, index), step, _model_of(subject, sequence.path[:-1]))
        for sequence in sequences(subject)
        for index, step in enumerate(sequence.steps)
        if "track" in step and "as" in step and "aligned" not in step
    ]


def _model_of(subject: Subject, path: Path) -> str:
    form = subject.document.at(path)
    return str(form.get("model", "")) if isinstance(form, dict) else ""


def check_kinds(subject: Subject) -> Iterator[Diagnostic]:
    """An address that stands for an object without one is the device's alone, and no pointer."""
    for minting in _sound(subject):
        if subject.value("handles") != "object":
            message = f"{quoted(minting.step['as'])} stands for an object, and the file's handles are pointers"
            hint = "add `handles: object`"
            yield subject.diagnostic((*minting.path, "as"), "wrong-handles", message, hint=hint)
        kind = minting.step.get("memory", "device")
        if kind != "device":
            message = f"{quoted(minting.step['as'])} is an address that the host cannot use, and no {kind} memory"
            hint = "bind the address where the host sees it, and `track` that with its `object`"
            yield subject.diagnostic((*minting.path, "memory"), "wrong-handles", message, hint=hint)


def check_transfers(subject: Subject) -> Iterator[Diagnostic]:
    """What the host does not see is read and written."""
    given = subject.mapping("policies", "transfers")
    mintings = _sound(subject)[:1]
    missing = [part for part in ("read", "write") if part not in given]
    if given and (missing if mintings else len(missing) == 1):
        message = f"the host does not see what this file allocates: `transfers` needs {listed(missing)}"
        related = _made_by(subject, mintings[0]) if mintings else ()
        yield subject.diagnostic(("policies", "transfers"), "wrong-policy", message, at="key", related=related)


def check_vendor_is_not_told(subject: Subject) -> Iterator[Diagnostic]:
    """Whatever takes an address goes through the table, since the vendor does not know addresses of ours."""
    for model, minting in {each.model: each for each in _sound(subject)}.items():
        for path, name in (*_told_by_operations(subject, model), *_told_by_kernels(subject, model)):
            message = f"this call passes {quoted(name)}, which may be an address that the vendor does not know"
            hint = "`locate` it and pass the object, or `untrack` it with `object`"
            related = _made_by(subject, minting)
            yield subject.diagnostic(path, "wrong-handles", message, hint=hint, related=related)


def _sound(subject: Subject) -> list[Minting]:
    if any(path[:1] in (("operations",), ("policies",)) for path in subject.broken):
        return []
    return _mintings(subject)


def _made_by(subject: Subject, minting: Minting) -> tuple[Related, ...]:
    return (subject.related(minting.path, "an object gets an address of its own"),)


def _told_by_operations(subject: Subject, model: str) -> Iterator[tuple[Path, str]]:
    """Where an operation on such devices passes an address on: the path, and the parameter."""
    for operation, variants in groupby(subject.variants(), key=lambda variant: variant.operation):
        taken = [each.name for each in operation.takes if each.type == "address" and each.name not in HOSTS]
        if operation.group in OTHER_MEMORY or not taken:
            continue
        for variant in _for_model(list(variants), lambda variant: variant.spec, model):
            told = [(path, name.name) for path, _argument, name in variant.named()] if variant.is_call else []
            told += _told_by_steps((*variant.path, "steps"), variant.spec.get("steps", ()))
            yield from [(path, name) for path, name in told if name in taken][:1]


def _told_by_kernels(subject: Subject, model: str) -> Iterator[tuple[Path, str]]:
    """Where a kernel's argument is set by its address, and not by an object that it lies in."""
    kernels = subject.mapping("policies", "kernels")
    objects, addresses = (
        _for_model(list(subject.entries(("policies", "kernels", part), kernels[part])), lambda form: form[1], model)
        if part in kernels
        else []
        for part in ("set_buffer", "set_pointer")
    )
    for path, form in () if objects else addresses:
        told = _told_by_steps((*path, "steps"), form["steps"])
        yield from [(where, name) for where, name in told if name == "address"][:1]


def _for_model(forms: list[Form], spec: Callable[[Form], Mapping[str, Any]], model: str) -> list[Form]:
    """The forms that count for a model: its own, or where there are none those for all."""
    own = [form for form in forms if model and spec(form).get("model") == model]
    return own or [form for form in forms if not spec(form).get("model")]


def _told_by_steps(path: Path, steps: Any) -> Iterator[tuple[Path, str]]:
    """The names that calls and messages pass, in steps inside of steps too."""
    for index, step in enumerate(steps):
        where, verb = (*path, index), verb_of(step)
        if verb is not None and verb.head in TELLING:
            yield from (((*where, *name.path), name.name) for name in verb.names_in(step) if isinstance(name, Use))
        for key in ("steps", "undo", "finally"):
            yield from _told_by_steps((*where, key), step.get(key, ()))


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    check_kinds,
    check_transfers,
    check_vendor_is_not_told,
)
