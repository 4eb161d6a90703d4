"""The part of the schema that describes data: C structures, and the vendor's numbers of the contract's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.catalogue.forms import C_TYPES, SIZED_TYPES
from nbxrt.catalogue.schema_parts import CODES, STRUCT_NAME, Schema, integer, keyed, reference, versioned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbxrt.catalogue.contract import Contract, Words

# Ranges of versions of one thing; the questions about them compare each with each.
MOST_RANGES = 64


def layout_definitions(contract: Contract) -> Schema:
    """The definitions that `structs` and `enums` use."""
    return {"struct": _struct(), "field": _field(), **dict(_words(contract))}


def _struct() -> Schema:
    constant = {"description": "Number that is written before every call.", "type": "integer", "examples": [1]}
    layout = {
        "bytes": integer("Size of the structure.", 1, 1 << 20, 64),
        "fields": {
            "title": "`fields`",
            "description": "Fields that calls use: `name: [offset, type]`.",
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": STRUCT_NAME},
            "additionalProperties": reference("field"),
        },
        "constants": {
            "title": "`constants`",
            "description": "Fields that are written before every call.",
            "type": "object",
            "propertyNames": {"pattern": STRUCT_NAME},
            "additionalProperties": constant,
        },
    }
    says = "A C structure: its size, and the fields that calls use."
    return {
        "description": says,
        "type": ["object", "array"],
        "minItems": 1,
        "maxItems": MOST_RANGES,
        "items": keyed("a structure in one range of versions", says, {**versioned(), **layout}, ["bytes"]),
        "if": {"type": "object"},
        "then": keyed("a structure", says, layout, ["bytes"]),
    }


def _field() -> Schema:
    # An editor that knows draft-07 skips `prefixItems`: it must then say less, and never refuse what is right.
    sized = {"enum": list(SIZED_TYPES)}
    return {
        "title": "a field",
        "description": "Offset and C type; `text` and `bytes` with their size.",
        "type": "array",
        "minItems": 2,
        "prefixItems": [
            integer("Offset in bytes.", 0, 1 << 20, 0),
            {"description": "Type of the field.", "enum": [*C_TYPES, *SIZED_TYPES]},
            integer("Size in bytes.", 1, 1 << 20, 16),
        ],
        "if": {"maxItems": 2},
        "then": {"prefixItems": [True, {"enum": list(C_TYPES)}]},
        "else": {"maxItems": 3, "prefixItems": [True, sized]},
        "examples": [[0, "int"], [8, "pointer"], [16, "bytes", 16]],
    }


def enum_rules(contract: Contract) -> Schema:
    """Each enum and set of flags: words, or a list of ranges of versions."""
    return dict(_enums(contract))


def _enums(contract: Contract) -> Iterator[tuple[str, Schema]]:
    for name, enum in (*contract.enums.items(), *contract.flags.items()):
        words = reference(f"words_{name}")
        title, says = f"a range of `{name}`", "The words of one range of versions."
        yield (
            name,
            {
                "description": enum.says,
                "type": ["object", "array"],
                "minItems": 1,
                "maxItems": MOST_RANGES,
                "items": keyed(title, says, {**versioned(), "words": words}, ["words"]),
                "if": {"type": "object"},
                "then": words,
            },
        )


def _words(contract: Contract) -> Iterator[tuple[str, Schema]]:
    for name, enum in contract.enums.items():
        yield f"words_{name}", _numbers(enum, enum.words)
    for name, flags in contract.flags.items():
        negated = {f"not_{word}": f"Set when this is false: {says}" for word, says in flags.words.items()}
        yield f"words_{name}", _numbers(flags, {**flags.words, **negated})


def _numbers(enum: Words, words: Mapping[str, str]) -> Schema:
    numbers = {word: integer(says, *CODES) for word, says in words.items()}
    return keyed(f"the words of `{enum.name}`", enum.says, numbers)
