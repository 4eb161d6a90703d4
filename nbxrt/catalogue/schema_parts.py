"""The small parts that the schema is made of: texts, numbers, choices, mappings, forms told by a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Schema = dict[str, Any]

PLATFORMS = ("linux", "windows", "macos")

# Status codes and enum numbers: Ascend's codes have six digits, OpenCL's are negative.
CODES = (-(2**31), 2**32 - 1)

# Patterns, in the dialect that Python's and JavaScript's regular expressions share; translation.py has their sentences.
NAME = "^[a-z][a-z0-9_]*$"
STRUCT_NAME = "^[A-Za-z_][A-Za-z0-9_]*$"
SYMBOL = "^[A-Za-z_$][A-Za-z0-9_$]*$"
SELECTOR = "^[A-Za-z_][A-Za-z0-9_]*(:([A-Za-z_][A-Za-z0-9_]*:)*)?$"
ENCODING = "^\\S+$"
VARIABLE = "^[A-Za-z_][A-Za-z0-9_]*$"
CONSTANT = "^[A-Za-z_][A-Za-z0-9_]*( \\| [A-Za-z_][A-Za-z0-9_]*)*$"
PACKAGE = "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*$"
VERSION = "^(0|[1-9][0-9]{0,8})(\\.[0-9]{1,9})*$"
DISTRIBUTION = "^[a-z0-9]([-a-z0-9]|\\{major\\})*$"
ROOT = "^(/|\\$[A-Za-z_]|[A-Za-z]:)\\S*"
STEM = "^[^/ ]+$"
TARGET = "^[A-Za-z][A-Za-z_-]*$"
DEVICE_TARGET = "^[A-Za-z0-9_]*\\{major\\}[A-Za-z0-9_]*\\{minor\\}[A-Za-z0-9_]*$"
PROTOCOL = "^__[a-z][a-z0-9_]*__$"
MEMBER = "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*|\\[[0-9]+\\])*$"
MACRO = "^[A-Za-z_][A-Za-z0-9_]*(=\\S+)?$"
NOT_BLANK = "\\S"
C_TEXT = "^[^\\x00]+$"
RELATIVE = "^(?!.*[\\x00-\\x1f])(?![/\\\\]|[A-Za-z]:)(?=\\S)([^{}]|\\{machine\\})*$"
ABSOLUTE = "^(?!.*[\\x00-\\x1f])(/|[A-Za-z]:[/\\\\])"
LIBRARY_FILE = "^(?!.*[\\x00-\\x1f])(?=.*\\S)(/|(?!.*[/\\\\]))"


def reference(definition: str) -> Schema:
    """A use of a shared definition."""
    return {"$ref": f"#/$defs/{definition}"}


def string(pattern: str, says: str, example: str | None = None) -> Schema:
    """A text of a pattern."""
    return {"description": says, "type": "string", "pattern": pattern, **_examples(example or _USUAL.get(pattern))}


# What stands where no example of its own is given.
_USUAL = {
    NAME: "value",
    SYMBOL: "vendorMalloc",
    SELECTOR: "newThingWithLength:options:",
    VARIABLE: "value",  # also the pattern of structures and fields
    PACKAGE: "vendor.runtime",
    RELATIVE: "lib64",
    MEMBER: "location.type",
}


def strings(pattern: str, says: str, example: Sequence[str] | None = None) -> Schema:
    """A list of texts, at least one."""
    item = string(pattern, says, example[0] if example else None)
    listed = example or item.get("examples")
    return {
        "description": says, "type": "array", "minItems": 1, "uniqueItems": True, "items": item, **_examples(listed)
    }  # fmt: skip


def one_or_list(pattern: str, says: str, example: str | None = None) -> Schema:
    """A text, or a list of them; the pattern counts for both."""
    many = strings(pattern, says, [example] if example else None)
    return {**many, "type": ["string", "array"], "pattern": pattern, **_examples(example or _USUAL.get(pattern))}


def integer(says: str, least: int, greatest: int, example: int | None = None) -> Schema:
    """An integer within bounds."""
    shown = max(least, 0) if example is None else example
    return {"description": says, "type": "integer", "minimum": least, "maximum": greatest, "examples": [shown]}


def choice(words: Mapping[str, str], says: str) -> Schema:
    """One of some words; their sentences stand in the description."""
    meanings = "".join(f"\n- `{word}`: {meaning}" for word, meaning in words.items())
    return {"description": f"{says}\n{meanings}" if meanings else says, "enum": list(words)}


def keyed(title: str, says: str, properties: Schema, required: Sequence[str] | None = None, **more: Any) -> Schema:
    """A mapping with these keys and no others; messages call it by its title."""
    return {
        "title": title,
        "description": says,
        "type": "object",
        "properties": properties,
        "propertyNames": {"enum": list(properties)},
        **({"required": list(required)} if required else {}),
        **more,
    }


def either(says: str, word: Schema, mapping: Schema) -> Schema:
    """A word or a mapping; what is neither breaks one rule."""
    return {
        "description": says,
        "type": ["string", "object"],
        "if": {"type": "object"},
        "then": mapping,
        "else": {"if": {"type": "string"}, "then": word},
    }


def versioned() -> Schema:
    """The keys that bound a variant to a range of versions."""
    return {
        "since": version("First version, included."),
        "before": version("First version that is not included."),
    }


def version(says: str) -> Schema:
    """A version: numbers with dots as text, or the first number alone."""
    return {
        "description": says,
        "type": ["string", "integer"],
        "pattern": VERSION,
        "minimum": 0,
        "examples": ["12.0", 13],
    }


def _examples(example: Any) -> Schema:
    return {} if example is None else {"examples": [example]}


def chain(forms: Schema, rest: Schema) -> Schema:
    """The first form whose key is there; the rest of the rules where none is."""
    for head, form in reversed(forms.items()):
        rest = {"if": {"required": [head]}, "then": form, "else": rest}
    return rest
