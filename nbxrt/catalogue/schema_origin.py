"""The part of the schema about where a library comes from: whose it is, what its folder tells, what it belongs with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.catalogue.schema_parts import (
    DISTRIBUTION,
    NOT_BLANK,
    ROOT,
    STEM,
    SYMBOL,
    VARIABLE,
    Schema,
    choice,
    keyed,
    reference,
    string,
    strings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def origin_keys(roles: Iterable[str]) -> Schema:
    """The keys of a library that say where it has to come from."""
    return {
        "identity": reference("role_identity"),
        "telling": _telling(),
        "beside": choice(
            dict.fromkeys(roles, "That role's library."),
            "The library that this one belongs with: copies from the same place come first.",
        ),
    }


def identity() -> Schema:
    """The definition of what tells a vendor's library from another's of the same file name."""
    probe = {
        "call": reference("symbols"),
        "args": {"description": "The arguments, in C order.", "type": "array", "items": reference("probe_argument")},
        "returns": choice(
            {"status": "What the `out` argument holds counts.", "code": "An integer.", "text": "A C string."},
            "What is compared; `status` when left out.",
        ),
        "equals": {
            "description": "The answer of this vendor's library.",
            "type": ["integer", "string"],
            "examples": [1],
        },
    }
    rules = {
        "exports": strings(SYMBOL, "It exports all of these symbols.", ["cudaGetDeviceCount"]),
        "lacks": strings(SYMBOL, "It exports none of these symbols."),
        "linked_to": strings(STEM, "It is linked to one of these libraries, named without version.", ["libmusart"]),
        "not_linked_to": strings(
            STEM, "It is linked to none of these libraries, named without version.", ["libmusart"]
        ),
        "not_under": strings(
            ROOT, "It lies below none of these folders; `$NAME` is the value of a variable.", ["/opt/dtk", "$DTK_ROOT"]
        ),
        "probe": keyed("a probe", "A call that answers so, made once it is loaded.", probe, ["call", "equals"]),
    }
    says = "What tells this vendor's library from another's of the same file name."
    return keyed("`identity`", says, rules, minProperties=1)


def _telling() -> Schema:
    entry = {
        "folder": string(STEM, "The name of a folder on the way to the library.", "stubs"),
        "says": string(NOT_BLANK, "What a library in it is, as people read it.", "a stub of the toolkit"),
        "last": {"description": "True: it is taken only when there is no other copy.", "type": "boolean"},
    }
    says = "Folders whose name says what a library in them is."
    item = keyed("a telling folder", "What a folder says of a library in it.", entry, ["folder", "says"])
    return {"description": says, "type": "array", "minItems": 1, "items": item}


def finder_step(folder: Schema, package: str) -> dict[str, Schema]:
    """The steps that are about installed Python packages, by their head."""
    found = {
        "finder": string(package, "A pip package that is asked when nothing else has the library.", "cuda.pathfinder"),
        "call": string(VARIABLE, "Its function.", "load_nvidia_dynamic_lib"),
        "of": string(NOT_BLANK, "What the function is asked for.", "cudart"),
        "answer": string(
            VARIABLE, "The attribute of its answer that is the path; the answer itself when left out.", "path"
        ),
    }
    inside = {
        "package": string(package, "A pip package, found and never imported.", "nvidia.cu13"),
        **folder,
        "distribution": string(
            DISTRIBUTION,
            "The distribution that fits; `{major}` is that of the library `beside` which this one belongs.",
            "nvidia-nccl-cu{major}",
        ),
    }
    return {
        "package": keyed("a `package` step", "Inside an installed package.", inside),
        "finder": keyed("a `finder` step", "Asks an installed package.", found, ["call", "of"]),
    }
