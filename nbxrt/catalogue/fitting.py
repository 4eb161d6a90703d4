"""Whether what is passed fits into the C type that it is passed as: ctypes would cut it without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.diagnostics import quoted
from nbxrt.catalogue.forms import CONSTANTS
from nbxrt.catalogue.layouts import SIZES, struct_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.diagnostics import Diagnostic, Related
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject, Variant

#: The least and the greatest number of each C type of whole numbers.
RANGES = {**CONSTANTS, "pointer": CONSTANTS["size"], "uint8": (0, 2**8 - 1), "uint16": (0, 2**16 - 1)}
_PCI_BITS = 64


def check_struct_constants(subject: Subject) -> Iterator[Diagnostic]:
    """What is written into a field before every call is a number of the field's type."""
    for _name, path, layout in struct_entries(subject):
        for field, number in layout.get("constants", {}).items():
            if field in layout.get("fields", {}):
                there = subject.related((*path, "fields", field, 1), "its type stands")
                kind = layout["fields"][field][1]
                yield from _out_of_range(subject, (*path, "constants", field), number, kind, there)


def check_arrays(subject: Subject) -> Iterator[Diagnostic]:
    """The numbers in an array are of its type."""
    for variant in subject.invocations():
        for path, argument in _own_arguments(variant):
            for index, item in enumerate(argument.get("array", ())):
                if isinstance(item, int):
                    there = subject.related((*path, "type"), "its type stands")
                    yield from _out_of_range(subject, (*path, "array", index), item, argument["type"], there)


def _own_arguments(variant: Variant) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The arguments that the file writes as mappings; the contract's own are right."""
    if "args" in variant.spec:
        yield from ((path, each) for path, each in variant.arguments() if isinstance(each, dict))


def _out_of_range(subject: Subject, path: Path, number: int, kind: str, there: Related) -> Iterator[Diagnostic]:
    if kind in ("float", "double"):
        return
    least, greatest = RANGES.get(kind, (0, -1))  # no number is a text or bytes
    if not least <= number <= greatest:
        message = f"the number {number} is out of range for `{kind}`"
        label = f"{least} to {greatest}" if kind in RANGES else ""
        yield subject.diagnostic(path, "out-of-range", message, label=label, related=(there,))


def check_addresses(subject: Subject) -> Iterator[Diagnostic]:
    """An address is passed, and comes back, as a type that holds all of it."""
    for role, library in subject.section("libraries").items():
        if "address" in library.get("types", {}):
            yield from _cut(subject, ("libraries", role, "types", "address"), "address", library["types"]["address"])
    for variant in subject.calls():
        types = {each.name: each.type for each in (*variant.operation.takes, *variant.operation.gives)}
        for path, name, kind in _retyped(variant):
            if types.get(name) == "address":
                yield from _cut(subject, path, name, kind)


def _retyped(variant: Variant) -> Iterator[tuple[Path, str, str]]:
    """Each parameter and result that a call gives a C type of its own, and where."""
    for path, argument in _own_arguments(variant):
        if "type" in argument:
            names = [argument.get(key) for key in ("param", "again", "pointer_to", "out")]
            names += [item for item in argument.get("array", ()) if argument["type"] != "bytes"]
            yield from (((*path, "type"), name, argument["type"]) for name in names if isinstance(name, str))
    returns = variant.returns
    if isinstance(returns, dict) and "type" in returns:
        yield (*variant.path, "returns", "type"), returns["result"], returns["type"]


def _cut(subject: Subject, path: Path, name: str, kind: str) -> Iterator[Diagnostic]:
    if SIZES.get(kind, SIZES["pointer"]) < SIZES["pointer"]:
        message = f"`{name}` is an address of {SIZES['pointer']} bytes, and `{kind}` has {SIZES[kind]}"
        yield subject.diagnostic(path, "wrong-parameter-type", message, hint="write `uint64` or `pointer`")


def check_fields(subject: Subject) -> Iterator[Diagnostic]:
    """What goes into a field of a structure, or comes from one, is of the field's kind, and an address fits."""
    found: dict[tuple[str, str], dict[str, Path]] = {}
    for struct, path, layout in struct_entries(subject):
        for field, spec in layout.get("fields", {}).items():
            found.setdefault((struct, field), {}).setdefault(spec[1], (*path, "fields", field, 1))
    for variant in subject.calls():
        types = {each.name: each.type for each in (*variant.operation.takes, *variant.operation.gives)}
        for path, name, field, struct in _through_fields(variant):
            for kind, where in found.get((struct, field), {}).items():
                fault = _field_fault(subject, "out" in path, name, types.get(name, ""), kind)
                if fault:
                    related = (subject.related(where, "its type stands"),)
                    yield subject.diagnostic(path, "wrong-parameter-type", fault, related=related)


def _through_fields(variant: Variant) -> Iterator[tuple[Path, str, str, str]]:
    """Path, parameter or result, field and structure of each that goes through a field."""
    for path, argument in _own_arguments(variant):
        struct = argument.get("struct", "")
        for key in ("by_pointer", "by_value"):
            given = argument.get(key)
            for field, name in given.items() if isinstance(given, dict) else ():
                if isinstance(name, str):
                    yield (*path, key, field), name, field, struct
        out = argument.get("out")
        for name, field in out.items() if struct and isinstance(out, dict) else ():
            yield (*path, "out", name), name, field, struct


def _field_fault(subject: Subject, is_out: bool, name: str, contract_type: str, kind: str) -> str:
    """Why a parameter or a result does not go through a field of a type; empty when it does."""
    known = subject.contract.types.get(contract_type)
    c_type = known.c if known is not None else "int"
    if not is_out and c_type in ("text", "bytes"):
        contract_type = c_type = "address"  # as which it goes in
    if contract_type == "address" and SIZES.get(kind, 0) < SIZES["pointer"]:
        return (
            f"{quoted(name)} goes through by an address of {SIZES['pointer']} bytes, and the field is of type `{kind}`"
        )
    if _kind(kind) != _kind(c_type):
        return f"{quoted(name)} is of type `{contract_type}`, and the field of type `{kind}`"
    return ""


def _kind(c_type: str) -> str:
    """Text, bytes, a float, or a whole number."""
    return {"text": "text", "bytes": "bytes", "float": "float", "double": "float"}.get(c_type, "integer")


def check_pci(subject: Subject) -> Iterator[Diagnostic]:
    """The parts of a place on PCI go into one integer of 64 bits."""
    for variant in subject.calls():
        for path, argument in _own_arguments(variant):
            if "pci" in argument and sum(argument["bits"]) > _PCI_BITS:
                message = f"the bits are {sum(argument['bits'])} together, and the integer has {_PCI_BITS}"
                widths = tuple(
                    subject.related((*path, "bits", index), "these") for index in range(len(argument["bits"]))
                )
                yield subject.diagnostic((*path, "bits"), "out-of-range", message, related=widths)


def check_architecture(subject: Subject) -> Iterator[Diagnostic]:
    """What tells the architecture is two factors, or functions whose text lies inside of their structures."""
    told = subject.value("triton", "architecture") or ()
    factors = [each for each in told if isinstance(each, int)]
    if (factors and len(told) != 2) or (len(factors) == 1 and len(told) == 2):
        message = "the architecture is told by two factors, or by functions"
        yield subject.diagnostic(("triton", "architecture"), "wrong-length", message)
    for index, each in enumerate(told):
        if isinstance(each, dict) and each["at"] >= each["bytes"]:
            message = f"the text begins at byte {each['at']}, and the structure has {each['bytes']} bytes"
            path = ("triton", "architecture", index)
            related = (subject.related((*path, "bytes"), "the size stands"),)
            yield subject.diagnostic((*path, "at"), "field-outside-struct", message, related=related)


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    check_struct_constants,
    check_arrays,
    check_addresses,
    check_fields,
    check_pci,
    check_architecture,
)
