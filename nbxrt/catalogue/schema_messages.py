"""The part of the schema that describes messages: the selectors of each class, with the types that travel."""

from __future__ import annotations

from nbxrt.catalogue.schema_extends import optional
from nbxrt.catalogue.schema_parts import ENCODING, SELECTOR, STRUCT_NAME, Schema, either, keyed, string

_ENCODING = """What the method returns, then its arguments, as Objective-C encodes types; receiver and selector are \
left out.

`@` object, `Q` 64-bit unsigned, `q` signed, `I` and `i` 32-bit, `C` byte, `B` BOOL, `d` double, `f` float, \
`^v` pointer, `*` text, `v` nothing, `{Name=QQ}` structure"""


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
