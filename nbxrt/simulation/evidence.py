"""What the vendor's headers say of the functions that a simulation is made of, where they were read and kept.

`nbxrt verify --record` keeps the signatures that headers declare, in `signatures/NAME.json` beside the backend file. A
simulation has these: a file that states another one is refused, instead of agreeing with its own mistake.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.simulation.launching import OTHERS
from nbxrt.verifying import comparing, recording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nbxrt.simulation.plan import Function, Plan
    from nbxrt.verifying.recording import Record

FOLDER = "signatures"


class SignatureError(errors.NbxrtError):
    """A backend file that states other signatures than the vendor's headers have."""

    reference = "signature"


def recorded(backend: str | os.PathLike[str], name: str) -> Record | None:
    """The signatures that were kept for a backend: beside its file, else those that ship for its name.

    Raises: RecordError.
    """
    from nbxrt.catalogue.sources import data_folder

    beside = Path(os.path.abspath(os.fspath(backend))).parent / FOLDER / f"{name}.json"
    shipped = data_folder("backends").joinpath(FOLDER).joinpath(f"{name}.json")
    for file in (beside, shipped):
        if file.is_file():
            return recording.load(file)
    return None


def compared(plan: Plan, at: Callable[[Mapping[str, str]], Plan], record: Record) -> frozenset[str]:
    """The symbols whose signatures are those of the vendor's header, in the release that is the nearest.

    `at` is the plan for versions by role: what the file states of another release only is not compared.
    Raises: SignatureError where the file states another signature.
    """
    release = record.nearest(plan.versions["runtime"])
    there = at({role: version for role, version in record.releases[release].versions.items() if version})
    stated_there = {function.symbol: _stated(there, function) for function in there.functions}
    told: set[str] = set()
    faults: list[str] = []
    for function in plan.functions:
        declared, stated = record.declared(function.symbol, release), _stated(plan, function)
        if declared is None or not stated or stated_there.get(function.symbol) != stated:
            continue
        told.add(function.symbol)
        for subject, takes, returns in stated:
            said = comparing.differences(declared, takes, returns)
            faults += [f"  `{subject}`: `{function.symbol}` {each}" for each in said]
    if faults:
        raise SignatureError(
            f"{plan.description['file']} is not as the header of {plan.description['title']} {release} has it\n"
            + "\n".join(dict.fromkeys(faults)),
            hint="mend the file; `nbxrt verify` compares with a header of yours, and --record keeps it for simulations",
        )
    return frozenset(told)


def _stated(plan: Plan, function: Function) -> list[tuple[str, list[comparing.Type], comparing.Type]]:
    """What the file states of a function: where, its parameters, its result."""
    found = [(f"operations.{case.operation}", *case.stated) for case in function.cases]
    if function.call and function.call not in OTHERS:
        _symbols, _role, arguments, returns, _usual = function.spec
        found.append((f"libraries.{function.role}.{function.call}", arguments, returns))
    if function.call == "address":
        found.append(("devices.functions", *function.spec[2:]))
    if function.call == "list":
        found.append(("devices.levels", tuple(map(_listed, function.spec[1])), ("status",)))
    sizes = _sizes(plan, function.role)
    return [
        (subject, comparing.parameters(arguments, sizes), comparing.returned(returns))
        for subject, arguments, returns in found
    ]


def _listed(argument: tuple[Any, ...]) -> tuple[Any, ...]:
    """An argument of a list of devices in the forms that all calls have."""
    as_others = {"room": ("const", *argument[1:], 0), "found": ("out", "found", *argument[1:]), "list": ("null",)}
    return as_others.get(argument[0], argument)


def _sizes(plan: Plan, role: str) -> Callable[[str], int]:
    return lambda struct: plan.layout(struct, role)[0]
