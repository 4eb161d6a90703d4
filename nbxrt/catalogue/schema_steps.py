"""The part of the schema that describes APIs of objects: steps, what a runtime keeps, its devices, and policies' parts.

The verbs are those of verbs.py; a call in steps takes the arguments of schema_calls.py, with names bound by steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import schema_messages
from nbxrt.catalogue.policies import POLICIES
from nbxrt.catalogue.schema_parts import (
    CODES,
    NAME,
    NOT_BLANK,
    Schema,
    chain,
    choice,
    either,
    integer,
    keyed,
    reference,
    string,
    versioned,
)
from nbxrt.catalogue.verbs import MEMORY, VERBS

if TYPE_CHECKING:
    from collections.abc import Callable

#: A name bound by steps, or an entry of what is kept: `state.queue`.
STEP_NAME = "^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)?$"

#: Steps are straight lists that a person reads; real ones have ten.
MOST_STEPS = 64

RETURNS = {
    "status": "A status code.",
    "ignored": "A value of no interest.",
    "nothing": "Nothing (void).",
}


def steps_form(where: Schema, ignores: Schema) -> Schema:
    """An operation that is several calls."""
    return keyed(
        "a `steps` operation",
        "Several calls, one after the other.",
        {
            **_steps_keys(where),
            "ignores": ignores,
            "only_default": {**ignores, "description": "Parameters of which no other value than the default works."},
        },
        ["steps"],
    )


def for_model() -> Schema:
    """The model of device that a form is for."""
    return string(NAME, "The model of device that this is for, of `devices.models`.", "shared")


def _steps_keys(where: Schema) -> Schema:
    return {
        "steps": reference("steps"),
        "model": for_model(),
        "library": reference("library"),
        "result": reference("results"),
        **where,
    }


def step_definitions(argument: Callable[[Schema, Schema], Schema], where: Schema) -> Schema:
    """The definitions of steps; `argument` makes the schema of a C argument, given those of its names."""
    value, bound = reference("step_value"), reference("step_name")
    return {
        "step_value": string(
            STEP_NAME, "A parameter, a name bound by an earlier step, or an entry of what is kept.", "state.context"
        ),
        "step_name": string(NAME, "The name that later steps use.", "buffer"),
        "step_argument": argument(value, bound),
        "step_returns": _returns(),
        **schema_messages.definitions(),
        "steps": {
            "description": "Steps, done in this order.",
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_STEPS,
            "items": reference("step"),
        },
        "step": _step(_forms(is_inner=False)),
        "inner_steps": {
            "description": "Steps inside a step: each a call, or one at the address table and the like.",
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_STEPS,
            "items": reference("inner_step"),
        },
        "inner_step": _step(_forms(is_inner=True)),
        "part": _part(where),
    }


def _forms(*, is_inner: bool) -> Schema:
    """The forms of a step by verb; a step inside another has no steps of its own."""
    modifiers = {
        "undo": {**reference("inner_steps"), "description": "Steps that undo this one when a later step fails."},
        "finally": {**reference("inner_steps"), "description": "Steps that follow in the end, whatever happens."},
    }
    return {
        verb.head: keyed(
            f"{'an' if verb.head[0] in 'aeiou' else 'a'} `{verb.head}` step",
            verb.says,
            {
                **{key: _KINDS[rule.kind](rule.says) for key, rule in verb.keys.items()},
                **({} if is_inner else modifiers),
            },
            verb.needed,
        )
        for verb in VERBS.values()
        if not (is_inner and "steps" in verb.keys)
    }


def _step(forms: Schema) -> Schema:
    """The form of the verb; where there is none, every key of a verb is known, so that one mistake is one fault."""
    known = dict.fromkeys((*forms, *(key for form in forms.values() for key in form["properties"])))
    none = {"title": "a step", "propertyNames": {"enum": list(known)}, "required": ["call"]}
    return {"description": "One step, told by its verb.", "type": "object", **chain(forms, none)}


def _one_or_several(says: str, definition: str) -> Schema:
    return {
        "description": says,
        "type": ["string", "array"],
        "minItems": 2,
        "maxItems": 4,
        "items": reference(definition),
        "if": {"type": "string"},
        "then": reference(definition),
    }


_KINDS: dict[str, Callable[[str], Schema]] = {
    "use": lambda says: {"description": says, **reference("step_value")},
    "bind": lambda says: {"description": says, **reference("step_name")},
    "uses": lambda says: _one_or_several(says, "step_value"),
    "binds": lambda says: _one_or_several(says, "step_name"),
    "symbols": lambda says: {"description": says, **reference("symbols")},
    "args": lambda says: {
        "description": says, "type": "array", "items": reference("step_argument"), "maxItems": MOST_STEPS,
    },
    "returns": lambda _says: reference("step_returns"),
    "library": lambda _says: reference("library"),
    "memory": lambda says: {"description": says, "enum": list(MEMORY)},
    "multiple": lambda says: integer(says, 2, 1 << 20, 256),
    "pair": lambda says: {
        "description": says, "type": "array", "minItems": 2, "maxItems": 2, "items": reference("step_name"),
        "examples": [["buffer", "offset"]],
    },
    **schema_messages.KINDS,
    "set": lambda says: {"description": says, "enum": ["streams"]},
    "device": lambda says: {"description": says, **reference("step_name")},
    "steps": lambda says: {"description": says, **reference("inner_steps")},
    "empty": lambda says: {"description": says, "enum": ["done"]},
}  # fmt: skip


def _returns() -> Schema:
    pointer = {
        "description": "The value is bound to this name, and null means out of memory.",
        **reference("step_name"),
    }
    result = {"description": "The value is bound to this name.", **reference("step_name")}
    forms = chain(
        {"pointer": keyed("`returns`", "A pointer.", {"pointer": pointer})},
        keyed("`returns`", "A result.", {"result": result, "type": reference("c_type")}, ["result"]),
    )
    says = "What the function returns; `status` when left out."
    return either(says, choice(RETURNS, says), forms)


def _part(where: Schema) -> Schema:
    part = keyed("a part", "Steps of a policy.", _steps_keys(where), ["steps"])
    says = "Steps that a policy does; of several forms the first that applies is taken."
    return {
        "description": says,
        "type": ["object", "array"],
        "minItems": 1,
        "items": part,
        "if": {"type": "object"},
        "then": part,
    }


_APART = (
    "The level of whose handles each has memory of its own, of which the others know nothing: "
    "what names memory goes to its device, and a copy between two goes through the host."
)


def top_level() -> Schema:
    """The sections of a file about devices, what is kept of them, and the parts of policies."""
    return {
        "devices": keyed(
            "`devices`",
            "How an API without ordinals lists its devices.",
            {"levels": _levels(), "default": _default(), "gpu": _probe("Tells the devices that are GPUs."),
             "models": _models(), "functions": _functions(), "apart": string(NAME, _APART, "handle")},
            ["levels"],
        ),
        "state": {
            "title": "`state`",
            "description": "What is kept of a device: each entry is made by steps at its first use, once.",
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": NAME},
            "additionalProperties": _entry(),
        },
        "policies": keyed(
            "`policies`",
            "What the policies of nbxrt need from this vendor.",
            {name: _policy(name) for name, policy in POLICIES.items() if policy.parts or policy.values},
        ),
    }  # fmt: skip


def _levels() -> Schema:
    level = {
        "as": string(NAME, "The name of a handle of this level.", "handle"),
        "call": reference("symbols"),
        "args": {
            "description": "Its arguments; `{room: …}`, `{list: …}` and `{found: …}` are the list's.",
            "type": "array",
            "items": _level_argument(),
            "maxItems": 16,
        },
        "library": reference("library"),
        "listing": {**reference("steps"), "description": "Steps that bind `list`, which the others use."},
        "count": {**reference("steps"), "description": "Steps that bind `count`, the number of handles."},
        "at": {**reference("steps"), "description": "Steps that bind the handle at `index`."},
        "listed": {**reference("steps"), "description": "Steps that give up `list`, once the handles are there."},
        "release": {**reference("steps"), "description": "Steps that give up a handle, when the runtime is closed."},
    }
    filled = keyed("a level", "A call that counts and fills a list.",
                   {key: level[key] for key in ("as", "call", "args", "library")}, ["as", "args"])  # fmt: skip
    asked = keyed("a level", "Steps that count, and steps that give one.",
                  {key: each for key, each in level.items() if key not in ("call", "args", "library")},
                  ["as", "count", "at"])  # fmt: skip
    return {
        "description": "How handles are listed: of the devices, or of what has devices and then of those.",
        "type": "array",
        "minItems": 1,
        "maxItems": 2,
        "items": {"description": "One level.", "type": "object", **chain({"call": filled}, asked)},
    }


def _level_argument() -> Schema:
    forms = {
        key: {"description": says, **reference("c_type")}
        for key, says in (("room", "The room."), ("list", "The list."), ("found", "The number found, by its address."))
    }
    special = keyed("a list argument", "Part of a list.", forms, minProperties=1, maxProperties=1)
    return {"if": {"type": "object", "propertyNames": {"enum": list(forms)}}, "then": special,
            "else": reference("step_argument")}  # fmt: skip


def _default() -> Schema:
    keys = {
        "steps": {**reference("steps"), "description": "Steps that bind the handle of the default device; 0: none."},
        "identity": {
            **reference("steps"),
            "description": "Steps that bind `identity`, a number that two handles of one device share.",
        },
    }
    return keyed("`default`", "The device that comes first, be it in the list or not.", keys, ["steps", "identity"])


def _probe(says: str, more: Schema | None = None) -> Schema:
    keys = {
        "call": reference("symbols"),
        "args": {"description": "Its arguments.", "type": "array", "items": reference("step_argument"), "maxItems": 16},
        "library": reference("library"),
        "bits": integer("It holds when all of these bits are set.", 1, CODES[1], 4),
        "equals": integer("It holds when the number is this.", *CODES, 1),
        "has": string(NOT_BLANK, "It holds when the text has this word.", "vendor_extension"),
        **(more or {}),
    }
    judged = {"if": {"required": ["bits"]}, "else": {"if": {"required": ["equals"]}, "else": {"required": ["has"]}}}
    return keyed("a device probe", says, keys, ["call", "args"], **judged)


def _models() -> Schema:
    why = "Why such devices do not have what others have: lowercase, no full stop."
    return {
        "title": "`models`",
        "description": "Kinds of device that are called differently; a device that is none of them is left out.",
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": NAME},
        "additionalProperties": _probe(
            "Tells the devices of this model; the first that holds counts.",
            {"says": string(NOT_BLANK, why, "their memory is objects, which the host does not see")},
        ),
    }


def _functions() -> Schema:
    keys = {
        "call": reference("symbols"),
        "args": {"description": "Its arguments; `symbol` is the name.", "type": "array",
                 "items": reference("step_argument"), "maxItems": 8},
        "library": reference("library"),
    }  # fmt: skip
    return keyed("`functions`", "Gives the address of a function that the library does not export.", keys,
                 ["call", "args"])  # fmt: skip


def _entry() -> Schema:
    keys: dict[str, Any] = {
        "steps": {**reference("steps"), "description": "Steps that make it, and bind its name."},
        "release": {**reference("steps"), "description": "Steps that release it, when the runtime is closed."},
        "scope": string(NAME, "The level that it is kept for; each device when left out.", "platform"),
    }
    return keyed("an entry", "One thing that is kept.", keys, ["steps"])


def _policy(name: str) -> Schema:
    policy = POLICIES[name]
    parts = {part: {"description": each.says, **reference("part")} for part, each in policy.parts.items()}
    needed = [part for part, each in policy.parts.items() if each.required]
    return keyed(f"`{name}`", policy.says, {**parts, **{key: _VALUES[kind] for key, kind in policy.values.items()}},
                 needed)  # fmt: skip


_NUMBERS = {"type": "array", "minItems": 1, "items": integer("A number.", *CODES, 0)}
_VALUES: dict[str, Schema] = {
    "number": integer("A number.", *CODES, 0),
    "count": integer("A number, 1 or more.", 1, CODES[1], 1),
    "numbers": {"description": "Numbers.", **_NUMBERS},
    "bytes": {"description": "Numbers.", **_NUMBERS},
    "sizes": {
        "description": "Bytes by the name of a type.",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": integer("Bytes.", 1, 4096, 4),
    },
    "nanoseconds": integer("Nanoseconds of one tick.", 1, 1 << 30, 1),
}


def part_where(platforms: Schema) -> Schema:
    """The conditions under which a form of steps is taken."""
    return {**versioned(), "platform": platforms}
