"""The JSON Schema of a backend file, made from the contract: completeness, keys, words, and the form of every value.

    python -m nbxrt.catalogue.schema            write schema/backend.schema.json
    python -m nbxrt.catalogue.schema --check    exit 1 when it is not current

Forms are told apart by `if`/`then` on the key that the writer used, and unknown keys by `propertyNames`, because both
give one error for one mistake. Every node has a description, so that editors complete and explain. This file has the
file's sections, and schema_calls.py, schema_libraries.py and schema_layouts.py what stands in them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue.schema_calls import call_definitions, operation_rule
from nbxrt.catalogue.schema_evidence import evidence_rule, headers_rule
from nbxrt.catalogue.schema_extends import changeable, extends, list_definitions, optional, whole_file
from nbxrt.catalogue.schema_launch import architecture_rule, launch_rule
from nbxrt.catalogue.schema_layouts import enum_rules, layout_definitions
from nbxrt.catalogue.schema_libraries import ROLES, library_definitions
from nbxrt.catalogue.schema_messages import messages
from nbxrt.catalogue.schema_parts import (
    DEVICE_TARGET,
    NAME,
    NOT_BLANK,
    PLATFORMS,
    PROTOCOL,
    STRUCT_NAME,
    TARGET,
    VARIABLE,
    Schema,
    choice,
    integer,
    keyed,
    reference,
    string,
    strings,
)
from nbxrt.catalogue.schema_steps import top_level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbxrt.catalogue.contract import Contract

IDENTIFIER = "urn:nbxrt:schema:backend"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PRIORITIES = 2**31 - 1
_DLPACK_TYPES = 2**31 - 1
_BYTES = 2**40


def generate(contract: Contract) -> Schema:
    """The schema of files that are written for this contract or an earlier one."""
    return {
        "$schema": DIALECT,
        "$id": IDENTIFIER,
        "title": "a backend file",
        "description": "One vendor's device runtime for nbxrt; docs/format.md explains the format.",
        "type": "object",
        "required": ["contract"],
        "properties": _top_level(contract),
        "patternProperties": {"^x-": {"description": "For the file's own use; never read.", "examples": ["a note"]}},
        "additionalProperties": False,
        "if": {"required": ["extends"]},
        "else": whole_file(_completeness(contract)),
        "$defs": _definitions(contract),
    }


def shipped(contract: Contract) -> Schema:
    """The schema for readers that judge a merge key as a key, beside what it merges: yaml-language-server does.

    Here, and wherever else `<<` is merged before the schema is asked, it says the same as `generate`.
    """
    schema: Schema = _with_merge_keys(generate(contract))
    return schema


def _with_merge_keys(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_merge_keys(each) for each in node]
    if not isinstance(node, dict):
        return node
    own = {key: _with_merge_keys(value) for key, value in node.items()}
    if "propertyNames" in own:
        own["propertyNames"] = {"if": {"const": "<<"}, "else": own["propertyNames"]}
    return own


def rendered(contract: Contract) -> str:
    """The schema as the text that is committed."""
    return json.dumps(shipped(contract), indent=1, ensure_ascii=False) + "\n"


def _top_level(contract: Contract) -> Schema:
    return {
        "contract": {
            "description": "The number of the contract that the file was written for.",
            "type": "integer",
            "enum": list(range(1, contract.number + 1)),
        },
        "name": string(NAME, "The name that `open(name)` takes.", "musa"),
        "title": string(NOT_BLANK, "The name that people read.", "Moore Threads MUSA"),
        "abi": choice({"c": "C functions.", "objc": "Objective-C messages."}, "How the libraries are called."),
        "extends": extends(),
        "kind": optional(
            choice(
                {
                    "gpu": "A device beside the processor.",
                    "cpu": "The processor itself: never taken for a GPU, comes last.",
                },
                "What the devices are; `gpu` when left out.",
            )
        ),
        "platforms": changeable(_PLATFORMS, "platforms"),
        "priority": integer("Order of detection, lowest first.", 0, _PRIORITIES, 20),
        "handles": optional(
            choice(
                {"native": "Device pointers are addresses.", "object": "Addresses stand for buffer objects."},
                "What device memory is known by; `native` when left out.",
            )
        ),
        "triton": optional(
            keyed(
                "triton entry",
                "How Triton knows this vendor.",
                {
                    "keys": strings(NOT_BLANK, "Keys of Triton's registry of backends.", ["nvidia"]),
                    "target": string(NOT_BLANK, "The backend's name in Triton's targets.", "cuda"),
                    "architecture": architecture_rule(),
                },
                required=["keys"],
            )
        ),
        "interop": optional(
            keyed(
                "interop entry",
                "How other libraries know this vendor's memory and streams.",
                {
                    "dlpack": keyed(
                        "DLPack entry",
                        "DLPack's numbers of the kinds of memory; a kind that has none is not exchanged by DLPack.",
                        {
                            "device": integer("Of device memory.", 1, _DLPACK_TYPES, 2),
                            "pinned": integer("Of page-locked host memory.", 1, _DLPACK_TYPES, 3),
                            "managed": integer(
                                "Of memory that migrates between host and device.", 1, _DLPACK_TYPES, 13
                            ),
                        },
                        required=["device"],
                    ),
                    "streams": keyed(
                        "streams entry",
                        "Numbers of streams without a handle of their own; left out where consumers know no streams.",
                        {
                            "default": integer("Of the default stream.", 0, 2, 1),
                            "per_thread": integer(
                                "Of the default stream of each thread, for which it is the handle too.", 0, 2, 2
                            ),
                        },
                        required=["default"],
                    ),
                    "array_interface": string(
                        PROTOCOL, "The attribute by which arrays of this vendor describe themselves.", "__gpu_array__"
                    ),
                    "stream_protocol": string(
                        PROTOCOL, "The method by which streams of this vendor give their handle.", "__gpu_stream__"
                    ),
                },
                minProperties=1,
            )
        ),
        "expandable": optional(
            keyed(
                "expandable entry",
                "The pieces of physical memory that the policy `expandable` takes from a device. Each piece costs the "
                "driver about the same, and is given back only as a whole.",
                {
                    "piece": integer("Bytes of the largest piece; 24 MiB when left out.", 1, _BYTES, 25165824),
                    "split": integer(
                        "A growth that so many pieces do not make is made of that many larger ones; 24 when left out.",
                        1,
                        1 << 16,
                        24,
                    ),
                    "ahead": integer(
                        "Bytes that a heap grows by at least, as long as less than a 32nd of the device is reserved; "
                        "0 when left out.",
                        0,
                        _BYTES,
                        6291456,
                    ),
                    "keeps_handles": {
                        "description": "True: `mem_release` frees memory that is still mapped, so that a piece's "
                        "handle is kept until it is unmapped; the contract's meaning is that memory lives on.",
                        "type": "boolean",
                    },
                },
                minProperties=1,
            )
        ),
        "launch": optional(launch_rule()),
        "binaries": optional(
            keyed(
                "binaries entry",
                "What an error says of a module that holds no code for the device.",
                {
                    "targets": string(TARGET, "What the names of targets begin with in a module's bytes.", "sm_"),
                    "device": string(
                        DEVICE_TARGET,
                        "The device's target, by the numbers of its compute capability.",
                        "sm_{major}{minor}",
                    ),
                    "variables": strings(VARIABLE, "Variables by which a device passes for another.", ["SITE_TARGET"]),
                },
                minProperties=1,
            )
        ),
        "presence": reference("presence"),
        "libraries": keyed(
            "`libraries`",
            "The vendor's libraries by role.",
            {role: _role(role, says) for role, says in ROLES.items()},
        ),
        "structs": {
            "title": "`structs`",
            "description": "Layouts of the C structures that calls use.",
            "type": "object",
            "propertyNames": {"pattern": STRUCT_NAME},
            "additionalProperties": optional(reference("struct")),
        },
        "messages": messages(),
        "enums": keyed(
            "`enums`",
            "The vendor's numbers of the contract's words.",
            {name: optional(rule) for name, rule in enum_rules(contract).items()},
        ),
        "needs": keyed(
            "`needs`",
            "The device attribute that must not be 0 for an operation, or for a whole group.",
            dict.fromkeys((*contract.groups, *contract.operations), optional(reference("attribute"), _NEEDED)),
        ),
        **{key: optional(rule) for key, rule in top_level().items()},
        "operations": keyed("`operations`", "What each operation of the contract is.", dict(_operations(contract))),
        "absent": keyed(
            "`absent`",
            "Why an operation, or a whole group but for its bound operations, is not offered.",
            {
                **{name: _described(f"Group: {group.says}", "reason") for name, group in contract.groups.items()},
                **{
                    name: _described(operation.says, "reason")
                    for name, operation in contract.operations.items()
                    if not operation.required
                },
            },
        ),
        "headers": headers_rule(contract),
        "evidence": evidence_rule(contract),
        "override": {
            "description": "True: this file takes the place of another backend of the same name.",
            "type": "boolean",
        },
    }


_NEEDED = "The attribute that says whether a device can do it."
_PLATFORMS = "The systems that the file is written for."


def _described(says: str, definition: str) -> Schema:
    return optional(reference(definition), says)


def _role(role: str, says: str) -> Schema:
    rule = {"description": says, **reference("role")}
    return rule if role == "runtime" else optional(rule)


def _operations(contract: Contract) -> Iterator[tuple[str, Schema]]:
    for name, operation in contract.operations.items():
        yield name, operation_rule(operation) if operation.required else optional(operation_rule(operation))


def _completeness(contract: Contract) -> Iterator[Schema]:
    """Every required operation is bound, and every other one bound, or absent alone or by its group.

    The error stands at `operations` and names one. A group whose operations are all bound is passed by one look, which
    is most groups of most files.
    """
    required = [operation.name for operation in contract.operations.values() if operation.required]
    yield {"properties": {"operations": {"required": required}}}
    for group in contract.groups:
        operations = [each for each in contract.operations.values() if each.group == group]
        members = [operation for operation in operations if not operation.required]
        for since in sorted({operation.since for operation in members}):
            names = [operation.name for operation in members if operation.since == since]
            rule = {"if": _bound(names), "else": {"if": _absent(group), "else": {"allOf": list(map(_answered, names))}}}
            yield rule if since == 1 else {"if": _written_for(since), "then": rule}


def _bound(names: list[str]) -> Schema:
    return {"required": ["operations"], "properties": {"operations": {"required": names}}}


def _absent(name: str) -> Schema:
    return {"required": ["absent"], "properties": {"absent": {"required": [name]}}}


def _answered(name: str) -> Schema:
    return {"if": _absent(name), "else": {"properties": {"operations": {"required": [name]}}}}


def _written_for(number: int) -> Schema:
    return {"properties": {"contract": {"minimum": number}}}


def _definitions(contract: Contract) -> Schema:
    attributes = contract.enums["device_attribute"].words if "device_attribute" in contract.enums else {}
    return {
        "platform": {"description": "A system.", "enum": list(PLATFORMS)},
        **list_definitions(
            "platforms",
            {
                "type": "array",
                "items": reference("platform"),
                "minItems": 1,
                "uniqueItems": True,
                "examples": [["linux", "windows"]],
            },
        ),
        "reason": string(NOT_BLANK, "The reason, as a user reads it.", "the vendor has no such call"),
        "attribute": choice(attributes, _NEEDED),
        **library_definitions(contract),
        **layout_definitions(contract),
        **call_definitions(contract),
    }


def main(arguments: list[str]) -> int:
    """Write the committed schema, or with `--check` say whether it is current."""
    path = Path(__file__).resolve().parents[2] / "schema" / "backend.schema.json"
    text = rendered(contracts.load())
    is_current = path.exists() and path.read_text("utf-8") == text
    if "--check" in arguments:
        sys.stdout.write(f"{path.name}: {'current' if is_current else 'stale'}\n")
        return 0 if is_current else 1
    path.write_bytes(text.encode())
    sys.stdout.write(f"{path.name}: written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
