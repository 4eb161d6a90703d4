"""Whether a function's declaration is the one that a backend file states: its parameters one by one, and its result.

Of a parameter its size and kind count: pointer, floating point number, structure, or integer with its sign. An
enumeration passes as an integer of either sign. Where the file says what a pointer points to, that counts too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.forms import C_TYPES
from nbxrt.catalogue.layouts import SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Layouts = Callable[[str], int]


@attrs.frozen
class Type:
    """A C type as the file states it; `to` is what a pointer points to, None when the file does not say."""

    kind: str  # pointer, float, struct, integer, void, any
    nbytes: int = 0
    is_signed: bool = False
    to: Type | None = None

    def __str__(self) -> str:
        if self.kind == "pointer":
            return "a pointer" if self.to is None else f"a pointer to {self.to}"
        return _said(self.kind, self.nbytes, self.is_signed)


ANY = Type("any")
_POINTER = Type("pointer", 8)


def scalar(c_type: str) -> Type:
    """A C type of the format."""
    if c_type in ("pointer", "text", "bytes"):
        return _POINTER
    kind = "float" if c_type in ("float", "double") else "integer"
    return Type(kind, SIZES[c_type], c_type.startswith("int"))


def to(target: Type) -> Type:
    """A pointer to a type."""
    return Type("pointer", 8, to=target)


def parameters(arguments: Iterable[tuple[Any, ...]], layouts: Layouts) -> list[Type]:
    """The types of a function's parameters, from the arguments of a compiled call; `layouts` tells sizes."""
    return [kind for argument in arguments for kind in _FORMS[argument[0]](argument, layouts)]


def _one(make: Callable[[tuple[Any, ...], Layouts], Type]) -> Callable[[tuple[Any, ...], Layouts], list[Type]]:
    return lambda argument, layouts: [make(argument, layouts)]


def _struct(argument: tuple[Any, ...], layouts: Layouts) -> Type:
    return Type("struct", layouts(argument[1]))


#: The types that an argument passes, by its form; catalogue/compiling.py lists the forms.
_FORMS: Mapping[str, Callable[[tuple[Any, ...], Layouts], list[Type]]] = {
    "param": _one(lambda a, _l: scalar(a[2])),
    "const": _one(lambda a, _l: scalar(a[1])),
    "null": _one(lambda _a, _l: _POINTER),
    "out": _one(lambda a, _l: to(scalar(a[2]))),
    "buffer": _one(lambda a, _l: to(Type("buffer", a[2]))),
    "length": _one(lambda a, _l: scalar(a[2])),
    "flags": _one(lambda a, _l: scalar(a[2])),
    "axes": lambda _a, _l: [scalar("uint")] * 3,
    "packed": _one(lambda _a, _l: _POINTER),
    "pointer_to": _one(lambda a, _l: to(scalar(a[2]))),
    "current_device": _one(lambda a, _l: to(scalar(a[1]))),
    "current_device_itself": _one(lambda a, _l: scalar(a[1])),
    "error": _one(lambda a, _l: to(scalar(a[1]))),
    "padded": _one(lambda a, _l: scalar(a[3])),
    "literal": _one(lambda _a, _l: to(Type("buffer", 1))),
    "room": _one(lambda a, _l: scalar(a[1])),
    "list": _one(lambda a, _l: to(scalar(a[1]))),
    "found": _one(lambda a, _l: to(scalar(a[1]))),
    "array": _one(lambda a, _l: to(scalar(a[2]))),
    "pci": _one(lambda _a, _l: Type("struct", 8)),
    "struct_in": _one(lambda a, layouts: to(_struct(a, layouts))),
    "struct_value": _one(_struct),
    "struct_bytes": _one(_struct),
    "struct_out": _one(lambda a, layouts: to(_struct(a, layouts))),
    "struct_whole": _one(lambda a, layouts: to(_struct(a, layouts))),
    "rows": _one(lambda a, layouts: to(_struct(a, layouts))),
    "count": _one(lambda a, _l: to(scalar(a[1]))),
}


def returned(returns: tuple[Any, ...]) -> Type:
    """The type of what a function returns."""
    if returns[0] == "result":
        return scalar(returns[2])
    return {
        "status": scalar("int"), "code": scalar("int"), "ignored": ANY, "nothing": Type("void"),
        "text": to(Type("buffer", 1)), "pointer": _POINTER,
    }[returns[0]]  # fmt: skip


def differences(answer: Mapping[str, Any], takes: list[Type], returns: Type) -> Iterator[str]:
    """Each point in which a declaration differs from what the file states."""
    if answer["kind"] != "function":
        yield "is a data object in the header, not a function: name the function's own symbol"
        return
    given = answer["takes"]
    if len(given) != len(takes):
        yield f"takes {_counted(len(given))} in the header, and {len(takes)} in the file"
    else:
        for at, (declared, stated) in enumerate(zip(given, takes, strict=True), 1):
            if not agrees(declared, stated):
                here = f"{stated} in the file{_mend(declared, stated)}"
                yield f"parameter {at} is {said(declared)} in the header, and {here}"
    if not agrees(answer["returns"], returns):
        yield f"returns {said(answer['returns'])} in the header, and {returns} in the file"


def _mend(declared: Mapping[str, Any], stated: Type) -> str:
    """What says the declared type in the file, where it is a number, or both are pointers to numbers."""
    if declared["kind"] == stated.kind == "pointer" and stated.to is not None:
        return _mend(declared["to"], stated.to)
    is_value = stated.kind in ("integer", "float") or (stated.kind == "pointer" and stated.to is None)
    meant = (name for name in C_TYPES if is_value and name != "pointer" and agrees(declared, scalar(name)))
    return next((f"; it is `type: {name}`" for name in meant), "")


def agrees(declared: Mapping[str, Any], stated: Type) -> bool:
    """Whether a declared type passes what the file states."""
    return _AGREE[stated.kind](declared, stated)


def _pointer(declared: Mapping[str, Any], stated: Type) -> bool:
    if declared["kind"] != "pointer":
        return False
    target = declared["to"]
    if stated.to is None or target["kind"] in ("void", "function") or not target["bytes"]:
        return True
    return agrees(target, stated.to)


def _integer(declared: Mapping[str, Any], stated: Type) -> bool:
    if declared["bytes"] != stated.nbytes:
        return False
    is_integer = declared["kind"] == "integer" and declared["signed"] == stated.is_signed
    return bool(is_integer or declared["kind"] == "enum")


def _same(declared: Mapping[str, Any], stated: Type) -> bool:
    return bool(declared["kind"] == stated.kind and declared["bytes"] == stated.nbytes)


_AGREE: Mapping[str, Callable[[Mapping[str, Any], Type], bool]] = {
    "any": lambda _declared, _stated: True,
    "void": lambda declared, _stated: declared["kind"] == "void",
    "pointer": _pointer,
    "integer": _integer,
    "float": _same,
    "struct": _same,
    # room for characters, or for a structure that is read as bytes
    "buffer": lambda declared, stated: declared["bytes"] <= stated.nbytes,
}


def said(declared: Mapping[str, Any]) -> str:
    """A declared type in words."""
    if declared["kind"] == "pointer":
        return f"a pointer to {said(declared['to'])}"
    return _said(declared["kind"], declared["bytes"], declared["signed"])


def _said(kind: str, nbytes: int, is_signed: bool) -> str:
    if kind in ("void", "any", "function"):
        return {"void": "nothing", "any": "anything", "function": "a function"}[kind]
    if not nbytes:
        return f"an incomplete {kind}"
    bits = f"{8 * nbytes}-bit"
    if kind == "integer":
        return f"a {bits} {'signed' if is_signed else 'unsigned'} integer"
    names = {"float": f"a {bits} floating point number", "enum": f"an enumeration of {nbytes} bytes"}
    return names.get(kind, f"a {kind} of {nbytes} bytes")


def _counted(number: int) -> str:
    return "1 parameter" if number == 1 else f"{number} parameters"
