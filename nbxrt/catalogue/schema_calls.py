"""The part of the schema that describes operations: what one is bound to, and the arguments of a C call.

A file has hundreds of arguments, so their rules are few and in the order of what is common.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nbxrt.catalogue.contract_checks import ROLES
from nbxrt.catalogue.forms import C_TYPES, CONSTANTS, FORMS
from nbxrt.catalogue.policies import POLICIES
from nbxrt.catalogue.schema_parts import (
    C_TEXT,
    NAME,
    STRUCT_NAME,
    SYMBOL,
    Schema,
    chain,
    choice,
    either,
    integer,
    keyed,
    one_or_list,
    reference,
    string,
    strings,
    versioned,
)
from nbxrt.catalogue.schema_steps import for_model, part_where, step_definitions, steps_form

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbxrt.catalogue.contract import Contract, Operation


RETURNS = {
    "status": "A status code.",
    "ignored": "A value of no interest.",
    "nothing": "Nothing (void).",
    "code": "The value is the result.",
    "text": "A C string, which is the result.",
}


def operation_rule(operation: Operation) -> Schema:
    """The schema of one operation: a symbol if the contract has a usual C form, a form, or a list of variants."""
    kind = "operation" if operation.c is not None else "operation_without_usual_form"
    # Twice, because yaml-language-server offers the one with the key and shows the first that it meets for a value.
    says = _explained(operation)
    return {"description": says, "allOf": [{"description": says}, reference(kind)]}


def call_definitions(contract: Contract) -> Schema:
    """The definitions that operations share."""
    parameters = _names(each.name for operation in contract.operations.values() for each in operation.takes)
    results = _names(each.name for operation in contract.operations.values() for each in operation.gives)
    return {
        "symbols": one_or_list(SYMBOL, "A symbol of the library, or several: the first exported one is called."),
        "c_type": {"description": "A C type.", "enum": list(C_TYPES)},
        "parameter": {"title": "a parameter", "description": "A parameter of the operation.", "enum": parameters},
        "result": {"title": "a result", "description": "A result of the operation.", "enum": results},
        "operation": {
            **_list_of("symbol_or_variant"),
            "type": ["string", "object", "array"],
            "pattern": SYMBOL,
            "minItems": 1,
            "if": {"type": "object"},
            "then": reference("variant"),
        },
        "symbol_or_variant": {
            "description": _ONE_WAY,
            "type": ["string", "object"],
            "pattern": SYMBOL,
            "if": {"type": "object"},
            "then": reference("variant"),
        },
        "operation_without_usual_form": {
            **_list_of("variant_without_usual_form"),
            "type": ["object", "array"],
            "minItems": 1,
            "if": {"type": "object"},
            "then": reference("variant_without_usual_form"),
        },
        "variant": _variant([]),
        "variant_without_usual_form": {"description": _ONE_WAY, **_variant(["args"])},
        "returns": _returns(),
        "results": _results(),
        "argument": _argument(contract, reference("parameter"), reference("result")),
        **step_definitions(lambda value, bound: _argument(contract, value, bound), part_where(_platforms())),
        "library": {"description": "The role whose library has the symbol.", "enum": list(ROLES)},
    }


_ONE_WAY = "One way to do the operation; of several the first that applies is taken."


def _explained(operation: Operation) -> str:
    """What an editor shows for an operation."""
    takes = ", ".join(f"{each.name}: {each.type}" for each in operation.takes) or "nothing"
    gives = ", ".join(f"{each.name}: {each.type}" for each in operation.gives) or "nothing"
    usual = "" if operation.c is None else f"\nUsual C arguments: {json.dumps(list(operation.c))}."
    return f"{operation.says}\n\nTakes {takes}.\nGives {gives}.{usual}"


def _names(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


def _variant(needed: list[str]) -> Schema:
    where = {**versioned(), "platform": _platforms()}
    ignores = {
        "description": "Parameters that the call does not use.",
        "type": "array",
        "items": reference("parameter"),
        "minItems": 1,
        "uniqueItems": True,
    }
    call = {
        "call": reference("symbols"),
        "args": {**_list_of("argument"), "description": "The arguments, in C order."},
        "library": reference("library"),
        "returns": reference("returns"),
        "result": reference("results"),
        "ignores": ignores,
        **where,
    }
    value = {
        "description": "The result, or `success` for an operation without one.",
        "type": ["integer", "string", "boolean"],
        "examples": ["success", 1],
    }
    policies = choice(
        {name: each.says for name, each in POLICIES.items() if each.operations or each.groups}, "A policy."
    )
    forms = {
        "value": keyed("a constant operation", "No call: a constant result.", {"value": value, **where}),
        "same": keyed(
            "a `same` operation", "No call: an argument given back.", {"same": reference("parameter"), **where}
        ),
        "policy": keyed(
            "a policy operation", "A policy of nbxrt.", {"policy": policies, "model": for_model(), **where}
        ),
        "steps": steps_form(where, ignores),
    }
    others = [key for key in call if key != "call"]
    none = {"title": "an operation", "propertyNames": {"enum": ["call", *forms, *others]}, "required": ["call"]}
    called = keyed("a call", "A call of a C function.", call, needed)
    return {"type": "object", **chain({"call": called, **forms}, none)}


def _list_of(definition: str) -> Schema:
    """A list, of a length that C functions and their versions stay far below."""
    return {"type": "array", "items": reference(definition), "maxItems": 64}


def _platforms() -> Schema:
    says = "The systems that this variant is for."
    return {
        "description": says,
        "type": ["string", "array"],
        "minItems": 1,
        "items": reference("platform"),
        "if": {"type": "string"},
        "then": reference("platform"),
    }


def _returns() -> Schema:
    pointer = {"description": "The value is this result, and null means out of memory.", **reference("result")}
    result = string(NAME, "The value is this result, or what `result` makes one of.", "count")
    forms = chain(
        {"pointer": keyed("`returns`", "A pointer.", {"pointer": pointer})},
        keyed("`returns`", "A result.", {"result": result, "type": reference("c_type")}, ["result"]),
    )
    says = "What the function returns; `status` when left out."
    return either(says, choice(RETURNS, says), forms)


def _results() -> Schema:
    rule = keyed(
        "a made result",
        "True when what came out equals a number.",
        {
            "of": string(NAME, "What came out, by the name in `out`.", "state"),
            "equals": {"description": "The number that means true.", "type": "integer", "examples": [1]},
        },
        required=["of", "equals"],
    )
    return {
        "description": "Results made of what came out.",
        "type": "object",
        "minProperties": 1,
        "propertyNames": reference("result"),
        "additionalProperties": rule,
    }


def _argument(contract: Contract, parameter: Schema, result: Schema) -> Schema:
    """An argument of a C call, given the schemas of a name that it passes and of one that comes out."""
    forms = _argument_forms(contract, parameter, result)
    constants = {head: integer(FORMS[head].says, *bounds, 0) for head, bounds in CONSTANTS.items()}
    constant = keyed("a constant", "A typed constant.", constants, minProperties=1, maxProperties=1)
    rest: Schema = {"title": "an argument", "propertyNames": {"enum": list(FORMS)}, "minProperties": 1}
    rest = chain({head: form for head, form in forms.items() if head not in ("struct", "out")}, rest)
    rest = {"if": {"propertyNames": {"enum": list(CONSTANTS)}}, "then": constant, "else": rest}
    rest = chain({head: forms[head] for head in ("struct", "out")}, rest)
    return {
        "description": "A parameter by its name, `null` for a null pointer, or a form that its key tells.",
        "type": ["string", "null", "object"],
        "if": {"type": "object"},
        "then": rest,
        "else": {"if": {"type": "string"}, "then": parameter},
        "examples": [{"out": "address"}, "nbytes", {"uint": 0}, None],
    }


def _argument_forms(contract: Contract, parameter: Schema, result: Schema) -> Schema:
    c_type = reference("c_type")
    struct = string(STRUCT_NAME, "A structure of the file's `structs`.", "vendorMemory_t")
    size = integer("Size in bytes.", 1, 1 << 20, 256)
    bits = {"type": "array", "minItems": 4, "maxItems": 4, "items": integer("Width in bits.", 0, 64, 8)}
    cell = string(NAME, "A result, or a name that `result` uses.", "address")
    shapes: dict[str, tuple[Schema, list[str]]] = {
        "struct": ({"struct": struct, **_structure_uses(parameter, result)}, []),
        "out": ({"out": cell, "type": c_type}, []),
        "param": ({"param": parameter, "type": c_type}, ["type"]),
        "again": ({"again": parameter, "type": c_type}, []),
        "buffer": ({"buffer": result, "bytes": size}, ["bytes"]),
        "length": ({"length": parameter, "type": c_type}, []),
        "flags": ({"flags": {"description": "A set of flags.", "enum": list(contract.flags)}, "type": c_type}, []),
        "axes": ({"axes": parameter}, []),
        "packed": ({"packed": parameter, "as": {"description": "How they are packed.", "enum": ["pointers"]}}, ["as"]),
        "pointer_to": ({"pointer_to": parameter, "type": c_type}, ["type"]),
        "current_device": (
            {"current_device": c_type, "as": {"description": "Itself; in a cell when left out.", "enum": ["value"]}},
            [],
        ),
        "error": ({"error": c_type}, []),
        "literal": ({"literal": string(C_TEXT, "The text.", "-cl-kernel-arg-info")}, []),
        "padded": ({"padded": parameter, "by": integer("Bytes more.", 1, 1 << 20, 255)}, ["by"]),
        "array": (
            {"array": _items(parameter), "type": {"description": "Type of an item.", "enum": _ITEM_TYPES}},
            ["type"],
        ),
        "rows": ({"rows": struct, "as": result, "fields": _row_fields()}, ["as", "fields"]),
        "count": ({"count": c_type}, []),
        "pci": ({"pci": parameter, "bits": {"description": "Widths, function first.", **bits}}, ["bits"]),
    }
    forms = {head: keyed(_named(head), FORMS[head].says, keys, needed) for head, (keys, needed) in shapes.items()}
    forms["struct"] |= {"minProperties": 2, "maxProperties": 2}
    return forms


def _named(head: str) -> str:
    return f"{'an' if head[0] in 'aeiou' else 'a'} `{head}` argument"


_ITEM_TYPES = [*C_TYPES, "bytes"]


def _item(parameter: Schema) -> Schema:
    length = keyed("a size", "The size of a parameter that holds bytes.", {"length": parameter}, ["length"])
    return {
        "description": "A number, a parameter, or `{length: …}`.",
        "type": ["integer", "string", "object"],
        "if": {"type": "string"},
        "then": parameter,
        "else": {"if": {"type": "object"}, "then": length},
    }


def _items(parameter: Schema) -> Schema:
    return {
        "description": "The items.",
        "type": "array",
        "minItems": 1,
        "maxItems": 64,
        "items": _item(parameter),
    }


def _structure_uses(parameter: Schema, result: Schema) -> Schema:
    fields = {
        "type": "object",
        "propertyNames": {"pattern": STRUCT_NAME},
        "additionalProperties": _item(parameter),
    }
    return {
        "by_pointer": {"title": "`by_pointer`", "description": "Its address; fields by parameter.", **fields},
        "by_value": {
            "title": "`by_value`",
            "description": "By value: fields by parameter, or one parameter of type bytes.",
            **fields,
            "type": ["string", "object"],
            "if": {"type": "string"},
            "then": parameter,
        },
        "out": {
            "title": "`out`",
            "description": "Its address; results by field, or one result of type bytes.",
            "type": ["string", "object"],
            "minProperties": 1,
            "propertyNames": {"pattern": NAME},
            "additionalProperties": string(STRUCT_NAME, "A field.", "total"),
            "if": {"type": "string"},
            "then": result,
        },
    }


def _row_fields() -> Schema:
    return {
        **strings(STRUCT_NAME, "Fields of the structure, in the order of the result.", ["pid", "used"]),
        "maxItems": 8,
    }
