"""The forms of an argument of a C call, and which parameters and results each of them names.

One table serves the contract's own `c` lists, the schema and the meaning checks: a new form is added here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# The C types that a file may name, in the order in which the documentation lists them.
C_TYPES = ("int", "uint", "int64", "uint64", "size", "pointer", "float", "double", "uint8", "uint16")

# Types that only fields of structures have, with a size of their own.
SIZED_TYPES = ("text", "bytes")

# Typed constants and the numbers that fit.
CONSTANTS = {
    "uint": (0, 2**32 - 1),
    "int": (-(2**31), 2**31 - 1),
    "uint64": (0, 2**64 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "size": (0, 2**64 - 1),
}


@attrs.frozen
class Name:
    """A name that an argument carries, the path to it inside the argument, and what that name is."""

    role: str  # parameter, mention (named, but its value is not passed), result, flags or struct
    name: str
    path: tuple[str | int, ...] = ()
    types: tuple[str, ...] = ()  # the contract types that this use is meant for; empty means any


@attrs.frozen
class Form:
    """A form of an argument: the key that tells it, what it passes, and the names in it."""

    head: str
    says: str
    names: Callable[[Mapping[str, Any]], Iterator[Name]]


def names_in(argument: object) -> Iterator[Name]:
    """Every name that an argument carries; a malformed argument has none."""
    if isinstance(argument, str):
        yield Name("parameter", argument)
    elif isinstance(argument, dict):
        form = form_of(argument)
        if form is not None:
            yield from (name for name in form.names(argument) if isinstance(name.name, str))


def form_of(argument: Mapping[str, Any]) -> Form | None:
    """The form of an argument that is written as a mapping; None when no key of it tells one."""
    return next((form for head, form in FORMS.items() if head in argument), None)


def _single(role: str, head: str, *types: str) -> Callable[[Mapping[str, Any]], Iterator[Name]]:
    def names(argument: Mapping[str, Any]) -> Iterator[Name]:
        yield Name(role, argument[head], (head,), types)

    return names


def _no_names(_argument: Mapping[str, Any]) -> Iterator[Name]:
    return iter(())


def _rows(argument: Mapping[str, Any]) -> Iterator[Name]:
    yield Name("struct", argument["rows"], ("rows",))
    yield Name("result", argument.get("as", None), ("as",), ("processes",))


def _item(item: object, path: tuple[str | int, ...]) -> Iterator[Name]:
    """The name in an item of an array or a field of a structure, which may be a number."""
    if isinstance(item, str):
        yield Name("parameter", item, path)
    elif isinstance(item, dict):
        yield Name("mention", item.get("length", ""), (*path, "length"), ("bytes", "text"))


def _array(argument: Mapping[str, Any]) -> Iterator[Name]:
    yield from (each for index, item in enumerate(argument["array"]) for each in _item(item, ("array", index)))


def _structure(argument: Mapping[str, Any]) -> Iterator[Name]:
    yield Name("struct", argument["struct"], ("struct",))
    for key in ("by_pointer", "by_value"):
        given = argument.get(key)
        if isinstance(given, str):
            yield Name("parameter", given, (key,), ("bytes",))
        elif isinstance(given, dict):
            yield from (each for field, item in given.items() for each in _item(item, (key, field)))
    out = argument.get("out")
    if isinstance(out, str):
        yield Name("result", out, ("out",), ("bytes",))
    elif isinstance(out, dict):
        yield from (Name("result", name, ("out", name)) for name in out)


# `struct` comes first, since a structure that carries results also has the key `out`.
FORMS: dict[str, Form] = {
    form.head: form
    for form in (
        Form("struct", "A structure of the file's `structs`, by its address or by value.", _structure),
        Form("out", "The address of a zeroed cell that a result is read from.", _single("result", "out")),
        *(Form(head, f"A constant of C type {head}.", _no_names) for head in CONSTANTS),
        Form("param", "A parameter, passed as another C type.", _single("parameter", "param")),
        Form("again", "A parameter that is passed in another place too.", _single("mention", "again")),
        Form(
            "buffer",
            "The address of zeroed memory; the result is its text or its bytes.",
            _single("result", "buffer", "text", "bytes"),
        ),
        Form("length", "The size of a parameter that holds bytes.", _single("mention", "length", "bytes", "text")),
        Form("flags", "The bits of the boolean parameters.", _single("flags", "flags")),
        Form("axes", "The extents along x, y and z: three arguments.", _single("parameter", "axes", "dim3")),
        Form("packed", "An array of the kernel's arguments.", _single("parameter", "packed", "arguments")),
        Form("pointer_to", "The address of a cell that holds a parameter.", _single("parameter", "pointer_to")),
        Form("current_device", "The number of the current device, by the address of a cell or by value.", _no_names),
        Form("error", "The address of a cell that the status is read from.", _no_names),
        Form("literal", "A text.", _no_names),
        Form("padded", "A size, with some bytes more.", _single("parameter", "padded", "nbytes")),
        Form("array", "The address of an array of numbers, parameters and sizes.", _array),
        Form("rows", "The address of an array of structures; the result is a list of their fields.", _rows),
        Form("count", "The address of the number of rows: room on the way in, rows on the way out.", _no_names),
        Form("pci", "A place on PCI as one integer.", _single("parameter", "pci", "text")),
    )
}
