"""The part of the schema about what a file rests on: its evidence, and the names that headers have for its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.catalogue.contract_checks import ROLES
from nbxrt.catalogue.policies import NUMBERED
from nbxrt.catalogue.schema_extends import optional
from nbxrt.catalogue.schema_launch import ATTRIBUTE, CONFIGURATION, LAUNCH_ATTRIBUTES
from nbxrt.catalogue.schema_parts import (
    CONSTANT,
    MACRO,
    MEMBER,
    NOT_BLANK,
    STRUCT_NAME,
    SYMBOL,
    VARIABLE,
    Schema,
    choice,
    keyed,
    one_or_list,
    string,
    strings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbxrt.catalogue.contract import Contract

#: What a statement can rest on, the strongest first.
EVIDENCE = {
    "header": "Read in the vendor's own header.",
    "binary": "The symbol is exported by the vendor's own library; its signature is not known from there.",
    "call_site": "Seen where another project calls it, or declares it itself.",
    "inferred": "Follows from the rest, and nobody has seen it.",
}


def evidence_rule(contract: Contract) -> Schema:
    """The list of what the operations rest on."""
    names = [*contract.groups, *contract.operations]
    entry = keyed(
        "an entry of `evidence`",
        "What some operations rest on.",
        {
            "kind": choice(EVIDENCE, "How it is known."),
            "source": string(NOT_BLANK, "Where, with the version.", "vendor_runtime.h 2.1"),
            "for": {
                "description": "Operations and groups; all that no other entry names when left out.",
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"description": "An operation or a group.", "enum": names},
                "examples": [["memory", "stream_create"]],
            },
        },
        ["kind", "source"],
    )
    return {
        "description": "What is known of the operations, and from where; said of this file alone, never inherited.",
        "type": "array",
        "minItems": 1,
        "items": entry,
    }


def headers_rule(contract: Contract) -> Schema:
    """The names that the vendor's headers have for what the file gives numbers and places of."""
    constant = string(
        CONSTANT, "The name of the number in the vendor's headers; of several bits `one | other`.", "vendorHostToDevice"
    )
    enums = {
        name: optional(keyed(f"names of `{name}`", words.says, dict.fromkeys(_words(contract, name), constant)))
        for name, words in {**contract.enums, **contract.flags}.items()
    }
    kinds = dict.fromkeys(
        ("success", *contract.errors), one_or_list(VARIABLE, "Names of the codes, in their order.", "vendorErrorMemory")
    )
    codes = {
        role: keyed("names of codes", "Names of the role's status codes by what they mean.", kinds) for role in ROLES
    }
    number = one_or_list(CONSTANT, "Names of the numbers, in their order.", "VENDOR_QUEUED")
    policies = {
        policy: keyed(
            f"names of the numbers of `{policy}`", "Names of a policy's numbers.", dict.fromkeys(words, number)
        )
        for policy, words in NUMBERED.items()
    }
    member = one_or_list(MEMBER, "The member, or the path to it; several where versions differ.", "location.type")
    passed = one_or_list(CONSTANT, "Names of the numbers that the file gives it.", "VENDOR_DEVICE_NAME")
    structs = {
        "title": "members",
        "description": "Members by the file's name of the field, where the header has another.",
        "type": "object",
        "propertyNames": {"pattern": STRUCT_NAME},
        "additionalProperties": member,
    }
    return keyed(
        "`headers`",
        "Names in the vendor's headers, for `nbxrt verify`.",
        {
            "define": optional(strings(MACRO, "Macros that are defined before the headers.", ["VENDOR_C_ONLY"])),
            "enums": optional(keyed("names of words", "Names of the numbers of words and flags.", enums)),
            "codes": optional(keyed("names of codes by role", "Names of status codes by role.", codes)),
            "constants": optional(
                {
                    "title": "names of numbers in calls",
                    "description": "Names of the numbers that stand in calls, by the function or structure.",
                    "type": "object",
                    "propertyNames": {"pattern": SYMBOL},
                    "additionalProperties": passed,
                }
            ),
            "policies": optional(keyed("names of policies' numbers", "Names of the numbers of policies.", policies)),
            "launch": optional(_launch_names(constant)),
            "structs": optional(
                {
                    "title": "members of structures",
                    "description": "Members of structures that the header calls otherwise.",
                    "type": "object",
                    "propertyNames": {"pattern": STRUCT_NAME},
                    "additionalProperties": structs,
                }
            ),
        },
    )


def _launch_names(constant: Schema) -> Schema:
    """The names of what a launch by a configuration in memory is made of."""
    name = string(STRUCT_NAME, "The structure's name.", "vendorLaunchConfig")
    member = string(MEMBER, "The member that begins there.", "gridDimX")

    def structure(says: str, parts: Iterable[str]) -> Schema:
        return keyed("names of a structure", says, {"type": name, **dict.fromkeys(parts, member)}, required=["type"])

    return keyed(
        "names of the launch",
        "Names of the structures and attributes of `launch`.",
        {
            "configuration": structure("The structure of the configuration, and its members.", CONFIGURATION),
            "attribute": structure("The structure of one attribute, and its members.", ATTRIBUTE),
            "attributes": keyed(
                "names of attributes", "Names of the attributes.", dict.fromkeys(LAUNCH_ATTRIBUTES, constant)
            ),
        },
    )


def _words(contract: Contract, name: str) -> list[str]:
    if name in contract.enums:
        return list(contract.enums[name].words)
    return [form for word in contract.flags[name].words for form in (word, f"not_{word}")]
