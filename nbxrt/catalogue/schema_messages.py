"""The part of the schema about messages: the selectors of each class, with the types that travel, and sending one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.catalogue.forms import C_TYPES, CONSTANTS
from nbxrt.catalogue.schema_extends import optional
from nbxrt.catalogue.schema_parts import (
    ENCODING,
    NAME,
    SELECTOR,
    STRUCT_NAME,
    Schema,
    chain,
    either,
    integer,
    keyed,
    reference,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_ENCODING = """What the method returns, then its arguments, as Objective-C encodes types; receiver and selector are \
left out.

`@` object, `Q` 64-bit unsigned, `q` signed, `I` and `i` 32-bit, `C` byte, `B` BOOL, `d` double, `f` float, \
`^v` pointer, `*` text, `v` nothing, `{Name=QQ}` structure"""

_MOST_ARGUMENTS = 16


def messages() -> Schema:
    """The schema of the section."""
    return {
        "title": "`messages`",
        "description": "The messages that steps send: class or protocol, selector, type encoding.",
        "type": "object",
        "propertyNames": {"pattern": STRUCT_NAME},
        "additionalProperties": optional(
            {
                "title": "the messages of a class",
                "description": "The messages of a class or protocol: `selector: encoding`.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": SELECTOR},
                "additionalProperties": _message(),
            }
        ),
    }


def _message() -> Schema:
    encoding = string(ENCODING, _ENCODING, "@QQ")
    parts = {
        "encoding": encoding,
        "optional": {
            "description": "True: objects of older systems do not answer it; sending it there is a named error.",
            "type": "boolean",
        },
    }
    says = "A message: its encoding, and whether objects may not answer it."
    return either(says, encoding, keyed("a message", says, parts, ["encoding"]))


def definitions() -> Schema:
    """The definitions that a `send` step uses."""
    return {"send_argument": _argument()}


def _argument() -> Schema:
    value, bound = reference("step_value"), reference("step_name")
    c_type = {"description": "Type of the cell.", "enum": list(C_TYPES)}
    forms: dict[str, tuple[str, Schema, list[str]]] = {
        "out": ("The address of a zeroed cell that is bound to the name.", {"out": bound, "type": c_type}, ["type"]),
        "error": (
            "The address of a cell for an error object, whose words become those of our error.",
            {"error": {"description": "An object.", "enum": ["object"]}},
            [],
        ),
        "length": ("The size of a value that holds bytes.", {"length": value}, []),
        "axes": ("Three extents as one structure.", {"axes": value}, []),
        "fields": (
            "A structure by value, its fields in order.",
            {"fields": {"description": "The fields.", "type": "array", "minItems": 1, "maxItems": 8, "items": value}},
            [],
        ),
        "rounded": ("A size rounded up.", {"rounded": value, "to": _multiple()}, ["to"]),
    }
    constants = {head: integer(f"A constant of C type {head}.", *bounds, 0) for head, bounds in CONSTANTS.items()}
    constant = keyed("a constant", "A typed constant.", constants, minProperties=1, maxProperties=1)
    rest: Schema = {"title": "an argument", "propertyNames": {"enum": [*forms, *CONSTANTS]}, "minProperties": 1}
    rest = chain(dict.fromkeys(CONSTANTS, constant), rest)
    named = {head: keyed(f"an argument of the form `{head}`", says, keys, needed)
             for head, (says, keys, needed) in forms.items()}  # fmt: skip
    return {
        "description": "An argument of a message: a name, a constant, `null`, or a form.",
        "type": ["string", "null", "object"],
        "if": {"type": "object"},
        "then": chain(named, rest),
        "else": {"if": {"type": "string"}, "then": value},
        "examples": ["nbytes", {"uint64": 0}, None, {"fields": ["offset", "nbytes"]}],
    }


def _multiple() -> Schema:
    says = "The number that it becomes a multiple of; `page` is the size of a page of memory."
    return {
        "description": says,
        "type": ["string", "integer"],
        "if": {"type": "string"},
        "then": {"enum": ["page"]},
        "else": {"minimum": 2, "maximum": 1 << 20},
        "examples": ["page", 256],
    }


def _names(says: str) -> Schema:
    name = reference("step_name")
    return {
        "description": says,
        "type": ["string", "array"],
        "if": {"type": "array"},
        "then": {"minItems": 1, "maxItems": 8, "items": name},
        "else": name,
    }


#: The kinds of keys that only `send` has.
KINDS: dict[str, Callable[[str], Schema]] = {
    "selector": lambda says: string(SELECTOR, says),
    "class": lambda says: string(STRUCT_NAME, says, "NSString"),
    "send_args": lambda says: {
        "description": says, "type": "array", "maxItems": _MOST_ARGUMENTS, "items": reference("send_argument"),
    },
    "binds": _names,
    "truth": lambda says: {"description": says, "type": "boolean"},
    "nil": lambda says: string(NAME, says, "out_of_memory"),
}  # fmt: skip
