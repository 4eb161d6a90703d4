"""The part of the schema about files that extend another: what they may leave out, change in a list, or turn off.

One set of rules serves both kinds of file. It takes `null` and changed lists where layers.py does, and `whole_file`
refuses them again, and asks for what is missing, where a file extends no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.catalogue.schema_parts import NAME, PLATFORMS, Schema, chain, keyed, reference, string

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Lists that a file may change instead of replacing them, by the name of their definition.
CHANGES = ("prepend", "append", "remove")
#: Sections whose entries are replaced one by one; in `libraries` the keys of each role are.
SECTIONS = ("presence", "libraries", "structs", "messages", "enums", "needs", "operations", "absent", "headers")
#: How much such a list holds: its items are compared with each other.
MOST_ITEMS = 64

#: What has to be in a file that extends no other.
REQUIRED = ("name", "title", "abi", "platforms", "priority", "libraries", "operations")

_EXTENDS = """The name of the backend that this file changes; it then states only what differs.

Replaced as a whole, never in part: each key at the top, each entry of `presence`, `structs`, `messages`, `enums`, \
`needs`, `operations`, `absent` and `headers`, and of a library each key (`names`, `search`, `version`, `status` \
and so on).
A list replaces the list, or changes `platforms`, `visibility`, `names` or `search` by \
`{prepend: […], append: […], remove: […]}`.
`null` takes out what may be left out: an operation, which is then absent because this file says so, or any entry.
A library with a `version` of its own inherits nothing that differs by version.
Without `name`, the file takes the place of the backend that it extends."""


def extends() -> Schema:
    """The schema of the key itself."""
    return string(NAME, _EXTENDS, "cuda")


def optional(rule: Schema, says: str | None = None) -> Schema:
    """A unit that `null` takes out of what is extended."""
    rest = {key: value for key, value in rule.items() if key != "description"}
    told = says or rule.get("description")
    return {**({"description": told} if told else {}), "if": {"type": "null"}, "else": rest}


def changeable(says: str, definition: str) -> Schema:
    """A list, or a change to the one that is extended; `definition` is the list's, `change_of_…` the change's."""
    change, replaced = reference(f"change_of_{definition}"), reference(definition)
    forms = chain(dict.fromkeys(CHANGES, change), replaced)
    return {"description": says, "if": {"type": "object"}, "then": forms, "else": replaced}


def list_definitions(name: str, rule: Schema) -> Schema:
    """The definitions of a list that may be changed: itself, and its change."""
    items = {"type": "array", "minItems": 1, "maxItems": MOST_ITEMS, "uniqueItems": True, "items": rule["items"]}
    says = {
        "prepend": "Put before the list, in this order; what is in it already moves.",
        "append": "Put after the list, in this order; what is in it already moves.",
        "remove": "Taken out of the list, which has to hold it.",
    }
    parts = {change: {"description": says[change], **items} for change in CHANGES}
    change = keyed("a change to a list", "A change to the list that is extended.", parts, minProperties=1)
    return {name: {**rule, "maxItems": MOST_ITEMS}, f"change_of_{name}": change}


def whole_file(completeness: Iterable[Schema]) -> Schema:
    """What holds of a file that extends no other: nothing is missing, and there is nothing to change or turn off."""
    role = {
        "type": "object",
        "properties": {key: _given(kind) for key, kind in _ROLE_KEYS.items()},
        "additionalProperties": _given("string", "object", "array"),
        "if": {"required": ["same_as"]},
        "else": {"title": "a library", "required": ["search"], **_named()},
    }
    platforms = dict.fromkeys(PLATFORMS, _given("string", "object"))
    return {
        "required": list(REQUIRED),
        "properties": {
            "platforms": _given("array"),
            **{key: _given("string") for key in ("kind", "handles")},
            **{
                key: _given("object")
                for key in ("triton", "interop", "expandable", "launch", "binaries", "devices", "state", "policies")
            },
            "presence": {
                "properties": {"required": _given("boolean"), "visibility": _given("array"), **platforms},
            },
            "libraries": {"title": "`libraries`", "required": ["runtime"], "additionalProperties": role},
            **{key: {"additionalProperties": _given("object", "array")} for key in ("structs", "messages", "enums")},
            **{key: {"additionalProperties": _given("string")} for key in ("needs", "absent")},
            "operations": {"additionalProperties": _given("string", "object", "array")},
        },
        "allOf": list(completeness),
    }


_ROLE_KEYS = {
    **dict.fromkeys(("names", "search", "telling", "uuid_prefixes"), "array"),
    **dict.fromkeys(("hint", "mode", "beside"), "string"),
    **dict.fromkeys(
        ("identity", "types", "version", "driver_version", "init", "enter", "has_context", "close", "status"), "object"
    ),
    "loads_first": "object",
}


def _given(*types: str) -> Schema:
    """Anything but null, for which the error names the types; other wrong types are told by the unit's own rule.

    A list is a list, since a change to one is a mapping.
    """
    if types == ("array",):
        return {"type": "array"}
    return {"if": {"type": "null"}, "then": {"type": types[0] if len(types) == 1 else list(types)}}


def _named() -> Schema:
    """A library has names, unless the process itself is searched."""
    by_process = {"required": ["search"], "properties": {"search": {"contains": {"const": "process"}}}}
    return {"if": by_process, "else": {"title": "a library", "required": ["names"]}}
