"""The part of the schema that describes libraries: where they are found, how they are asked, what they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.catalogue.forms import CONSTANTS, FORMS
from nbxrt.catalogue.schema_calls import RETURNS
from nbxrt.catalogue.schema_extends import changeable, list_definitions, optional
from nbxrt.catalogue.schema_origin import finder_step, identity, origin_keys
from nbxrt.catalogue.schema_parts import (
    ABSOLUTE,
    CODES,
    LIBRARY_FILE,
    NOT_BLANK,
    PACKAGE,
    PLATFORMS,
    RELATIVE,
    VARIABLE,
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
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nbxrt.catalogue.contract import Contract


ROLES = {
    "runtime": "The library of most operations.",
    "driver": "The library of virtual memory, modules and launches; `{same_as: runtime}` when it is the same.",
    "management": "The library that knows what a device does, beside any program.",
    "collectives": "The library of communication between ranks.",
}


def library_definitions(contract: Contract) -> Schema:
    """The definitions that `presence` and `libraries` use."""
    return {
        "presence": _presence(),
        "presence_on_platform": _presence_on_platform(),
        "role": _role(contract),
        "search_step": _search_step(),
        **list_definitions("names", _at_least_one(_library_name())),
        **list_definitions("search", _at_least_one(reference("search_step"))),
        **list_definitions("visibility", strings(VARIABLE, _VISIBILITY, ["CUDA_VISIBLE_DEVICES"])),
        "folder": _folder(),
        "role_identity": identity(),
        "role_argument": _role_argument(),
        "version_argument": _role_argument(out=["version"]),
        "words_argument": _role_argument(words=["code"], out=["text"], buffer=["text"]),
        "context_argument": _role_argument(words=["device"], out=["active"]),
        "probe_argument": _role_argument(out=["version", "text", "active"], buffer=["text"]),
        "role_call": _role_call("a call of a library", "A call that belongs to the library itself."),
        "role_words": _role_call("a call for words", "Who says in words what a code means.", "words_argument"),
        "role_version": _role_call(
            "a version call", "How a version is asked.", "version_argument", _digits(), ["digits"]
        ),
        "role_init": _role_call(
            "an `init` call", "Once a process, at the role's first use.", more=_tolerates(contract)
        ),
        "role_enter": _role_call("an `enter` call", "After `invalid_context`: this, then the call once more."),
        "role_has_context": _role_call("a `has_context` call", _HAS_CONTEXT, "context_argument"),
        "role_close": _role_call("a `close` call", "Ends the use of the library."),
        "role_status": _status(contract),
        "code": integer("A status code.", *CODES),
    }


def _at_least_one(item: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": item}


def _presence() -> Schema:
    here = {platform: optional(reference("presence_on_platform"), _PRESENCE) for platform in PLATFORMS}
    says = "True: the library is on every machine, so only a device names the backend."
    required = optional({"description": says, "type": "boolean"})
    visibility = optional(changeable(_VISIBILITY, "visibility"))
    return keyed(
        "`presence`",
        "How the operating system shows that a device is there; a platform that is left out counts as `ask`.",
        {"required": required, "visibility": visibility, **here},
    )


_PRESENCE = "What shows a device on this system; `ask` when only the runtime can tell."
_VISIBILITY = "Environment variables that hide devices."
_NODES_BESIDE = (
    "Device nodes, as glob patterns, that a process opens beside: errors name those that are closed or missing."
)
_NODE_HINT = "What a person can do where a card is there and no node, or one that is closed."
_NAMES = "File names of the library, best first."
_SEARCH = "Where the library is looked for, in this order."


def _presence_on_platform() -> Schema:
    pci = keyed(
        "a PCI rule",
        "The vendor's devices on PCI.",
        {
            "vendor": integer("Vendor number.", 0, 0xFFFF, 0x10DE),
            "classes": {
                "description": "Base classes: the same vendors make audio and USB functions.",
                "type": "array",
                "minItems": 1,
                "items": integer("Base class, the highest byte of the class.", 0, 0xFF, 3),
            },
        },
        required=["vendor", "classes"],
    )
    rules = {
        "pci": pci,
        "nodes": strings(ABSOLUTE, "Device nodes, as glob patterns: one must exist.", ["/dev/nvidia[0-9]*"]),
        "also": strings(ABSOLUTE, _NODES_BESIDE, ["/dev/nvidia-uvm"]),
        "ask": strings(ABSOLUTE, "Where one of these exists, only the runtime can tell.", ["/dev/dxg"]),
        "hint": string(NOT_BLANK, _NODE_HINT, "load the kernel module `nvidia`"),
    }
    rule = keyed("a presence rule", "What shows a device on this system.", rules, minProperties=1)
    return either(_PRESENCE, {"enum": ["ask"]}, rule)


def _role(contract: Contract) -> Schema:
    same = {"same_as": choice(ROLES, "The role whose library and status this one shares.")}
    types = [*contract.types, *contract.enums]
    properties = {
        "names": optional(changeable(_NAMES, "names")),
        "search": changeable(_SEARCH, "search"),
        "hint": optional(
            string(NOT_BLANK, "What a person can do when it is not found.", "`pip install nvidia-cuda-runtime`")
        ),
        "mode": optional(
            choice(
                {"local": "RTLD_LOCAL.", "global": "RTLD_GLOBAL."},
                "Scope of the library's symbols; `local` when left out.",
            )
        ),
        "types": optional(
            keyed(
                "`types`",
                "Contract types that this library passes as another C type.",
                dict.fromkeys(types, reference("c_type")),
            )
        ),
        **{key: optional(reference(f"role_{key}"), says) for key, says in _CALLS.items()},
        "driver_version": optional(reference("role_version"), _DRIVER_VERSION),
        "uuid_prefixes": optional(strings(NOT_BLANK, _UUID_PREFIXES, ["GPU-"])),
        "loads_first": optional(
            keyed(
                "`loads_first`",
                _LOADS_FIRST,
                {system: strings(LIBRARY_FILE, _LOADS_FIRST, [file]) for system, file in _FILES.items()},
                minProperties=1,
            )
        ),
        **{key: optional(rule) for key, rule in origin_keys(ROLES).items()},
    }
    full = keyed("a library", "Everything about one library.", properties)
    return {
        "type": "object",
        "if": {"required": ["same_as"]},
        "then": keyed("a library that is another one", "Another role's library serves this one.", same),
        "else": full,
    }


_DRIVER_VERSION = "How this library is asked for the version of the driver below it, which 0 says is not there."
_LOADS_FIRST = "Libraries that are loaded before this one, where they are here, by system."
_UUID_PREFIXES = "What this library writes before a UUID, for each kind of device that it knows by UUID."

_HAS_CONTEXT = "How a device is asked whether it has a context, without making one: `active` is not 0 then."

_CALLS = {
    "version": "How the library's version is asked.",
    "init": "Once a process, at the role's first use.",
    "enter": "After `invalid_context`: this, then the call once more.",
    "has_context": _HAS_CONTEXT,
    "close": "Ends the use of the library.",
    "status": "What the library's status codes mean, and who says so in words.",
}


# How file names look on each system.
_FILES = {"linux": "libvendorrt.so.2", "windows": "vendorrt64_2.dll", "macos": "libvendorrt.dylib"}


def _library_name() -> Schema:
    files = {platform: string(LIBRARY_FILE, f"File name on {platform}.", file) for platform, file in _FILES.items()}
    major = integer("Major version that this name stands for; left out when the name does not say.", 0, 2**31 - 1, 12)
    name = keyed("a library name", "One version of the library: its file name by system.", {"major": major, **files})
    return {**name, "if": {"required": ["major"]}, "then": {"minProperties": 2}, "else": {"minProperties": 1}}


def _search_step() -> Schema:
    words = {
        "loaded": "A copy that this process has mapped already.",
        "conda": "$CONDA_PREFIX, or the conda environment that Python runs in.",
        "system": "The system's loader.",
        "process": "The symbols of the process itself.",
    }
    folder = {"folder": reference("folder")}
    environment = {
        "environment": strings(VARIABLE, "Variables that hold a root.", ["CUDA_PATH", "CUDA_HOME"]),
        **folder,
    }
    says = "A folder of this machine; with a `*` at its end, every version of it, the newest first."
    root = {"root": string(ABSOLUTE, says, "/usr/local/cuda"), **folder}
    forms = {
        **finder_step(folder, PACKAGE),
        "environment": keyed("an `environment` step", "Below the value of a variable.", environment),
    }
    rest = keyed("a search step", "Below a folder of this machine.", root, ["root"])
    return either("One place to look.", choice(words, "One place to look."), chain(forms, rest))


def _folder() -> Schema:
    paths = one_or_list(RELATIVE, "Folders below that place; `{machine}` is the processor's name.", "lib64")
    by_platform = keyed("folders by system", "Folders by system.", dict.fromkeys(PLATFORMS, paths), minProperties=1)
    return {**paths, "type": ["string", "array", "object"], "if": {"type": "object"}, "then": by_platform}


def _role_call(
    title: str, says: str, argument: str = "role_argument", more: Schema | None = None, needed: Iterable[str] = ()
) -> Schema:
    properties = {
        "call": reference("symbols"),
        "args": {"description": "The arguments, in C order.", "type": "array", "items": reference(argument)},
        "library": reference("library"),
        "returns": choice(RETURNS, "What the function returns; `status` when left out."),
        **(more or {}),
    }
    return keyed(title, says, properties, ["call", *needed])


def _digits() -> Schema:
    return {
        "type": {"description": "Type of the number; `int` when left out.", "enum": [*CONSTANTS]},
        "digits": {
            "description": "Divisors of the parts, the largest first: with [1000, 10], 12090 is 12.9.",
            "type": "array",
            "minItems": 1,
            "items": integer("A divisor.", 1, 2**63 - 1, 1000),
            "examples": [[1000, 10]],
        },
    }


def _tolerates(contract: Contract) -> Schema:
    says = "These statuses are success."
    return {"tolerates": {"description": says, "type": "array", "minItems": 1, "items": _error(contract)}}


def _error(contract: Contract) -> Schema:
    return choice({name: kind.says for name, kind in contract.errors.items()}, "What a status means.")


def _role_argument(words: Sequence[str] = (), out: Sequence[str] = (), buffer: Sequence[str] = ()) -> Schema:
    """An argument of a library's own call: the words that it may pass, and what may come out by which form."""
    constants = {head: integer(FORMS[head].says, *bounds, 0) for head, bounds in CONSTANTS.items()}
    constant = keyed("a constant", "A typed constant.", constants, minProperties=1, maxProperties=1)
    says = "What comes out; `flags` is what nobody reads."
    cell = {"out": {"description": says, "enum": [*out, "flags"]}, "type": reference("c_type")}
    forms = {"out": keyed("an `out` argument", FORMS["out"].says, cell)}
    if buffer:
        room = {
            "buffer": {"description": "What comes out.", "enum": list(buffer)},
            "bytes": integer("Size.", 1, 1 << 20, 256),
        }
        forms["buffer"] = keyed("a `buffer` argument", FORMS["buffer"].says, room, ["bytes"])
    passed = "".join(f"`{word}` is {_PASSED[word]}; " for word in words)
    return {
        "description": f"{passed}`null` is a null pointer; else a form by its key.",
        "type": [*(["string"] if words else []), "null", "object"],
        "if": {"type": "object"},
        "then": chain(forms, constant),
        **({"else": {"if": {"type": "string"}, "then": {"enum": list(words)}}} if words else {}),
    }


_PASSED = {"code": "the status code", "device": "the ordinal of the device"}


def _status(contract: Contract) -> Schema:
    codes = {
        "description": "The code that means this, or several.",
        "type": ["integer", "array"],
        "minItems": 1,
        "items": reference("code"),
        "minimum": CODES[0],
        "maximum": CODES[1],
    }
    kinds = {name: {**codes, "description": kind.says} for name, kind in contract.errors.items()}
    properties = {
        "success": reference("code"),
        "negated": {"description": "Codes may come back with the opposite sign.", "type": "boolean"},
        "clear": reference("role_call"),
        "name": reference("role_words"),
        "text": reference("role_words"),
        "kinds": keyed("`kinds`", "What the codes mean, in the contract's words.", kinds),
        "explains": optional(_explains()),
    }
    return keyed("`status`", "What the library's status codes mean, and who says so in words.", properties, ["success"])


def _explains() -> Schema:
    says = "What codes mean beyond the library's own words; the first entry that fits is taken."
    driver = {
        "missing": "There is no driver, as `driver_version` tells.",
        "older": "The driver's version is below the library's.",
    }
    code = {
        "description": "The code, or several.",
        "type": ["integer", "array"],
        "minItems": 1,
        "items": reference("code"),
        "minimum": CODES[0],
        "maximum": CODES[1],
    }
    text = "`{version}` stands for the library's version, and `{driver}` for the driver's."
    entry = {
        "code": code,
        "driver": choice(driver, "Only for such a driver."),
        "says": string(NOT_BLANK, f"What the code means; {text}", "no driver is loaded"),
        "hint": string(NOT_BLANK, f"What a person can do; {text}", "install the driver"),
    }
    item = keyed("an explanation", "What a code means.", entry, ["code", "says"])
    return {"description": says, "type": "array", "minItems": 1, "items": item}
