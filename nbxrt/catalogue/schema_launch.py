"""The part of the schema that says how a kernel is launched by a configuration in memory."""

from __future__ import annotations

from nbxrt.catalogue.schema_parts import SYMBOL, Schema, choice, integer, keyed, string, version

#: What a launch can ask for beside its extents, in the order in which it is given to the vendor.
LAUNCH_ATTRIBUTES = {
    "oversized_shared_memory": "More shared memory than usual devices have; `above` says from how many bytes on.",
    "programmatic": "It may begin before the kernel in front of it in the stream has ended.",
    "cooperative": "All its blocks run at the same time.",
    "cluster": "Blocks run in clusters; the value is the cluster's extent.",
    "cluster_scheduling": "How clusters are spread over the device; goes with `cluster`.",
}

#: The parts of the configuration, and those of an attribute.
CONFIGURATION = {
    "grid": "Three `uint`: blocks along x, y and z.",
    "block": "Three `uint`: threads along x, y and z.",
    "shared_memory": "A `uint`: bytes of dynamic shared memory.",
    "stream": "The stream's handle.",
    "attributes": "The address of the attributes.",
    "attribute_count": "A `uint`: how many there are.",
}
ATTRIBUTE = {"id": "An `int`: which it is.", "value": "Its value: a `uint`, or three of them."}

_MOST_BYTES = 4096


def launch_rule() -> Schema:
    """The rule of the section `launch`."""
    return keyed(
        "`launch`",
        "The function that takes a configuration in memory, the kernel, the addresses of its arguments, and null; "
        "without it kernels are launched by the operation `launch_kernel`.",
        {
            "call": string(SYMBOL, "The function, which returns a status.", "vendorLaunchKernelEx"),
            "library": choice({"runtime": "", "driver": ""}, "The role that has it; `driver` when left out."),
            "only": choice(
                {"attributes": "Launches that ask for nothing are by `launch_kernel`."}, "Which launches it is for."
            ),
            "configuration": _layout(
                "The configuration: the byte at which each part begins.",
                CONFIGURATION,
            ),
            "attribute": _layout(
                "One attribute: the byte at which each part begins.",
                ATTRIBUTE,
            ),
            "attributes": keyed(
                "`attributes`",
                "The vendor's numbers of what a launch can ask for.",
                {word: _attribute(says) for word, says in LAUNCH_ATTRIBUTES.items()},
            ),
            "parameters": string(
                SYMBOL,
                "A function of (kernel, index, address for the offset, address for the size), all of 64 bits; it "
                "refuses an index beyond the last. Where the library does not export it, parameters are not checked.",
                "vendorFuncGetParamInfo",
            ),
            "small_tensors": keyed(
                "`small_tensors`",
                "A bit in the description of a small tensor that some drivers set, and that must not be set.",
                {
                    "driver_before": version("The first driver that does it right."),
                    "nbytes": integer("Tensors of fewer bytes are small.", 1, 2**31 - 1, 131072),
                    "clears": integer("The bit, counted from the lowest of the first byte.", 0, 1023, 85),
                },
                required=["driver_before", "nbytes", "clears"],
            ),
        },
        required=["call", "configuration", "attribute", "attributes"],
    )


def architecture_rule() -> Schema:
    """The rule of how Triton's name of a device's architecture is known."""
    asked = keyed(
        "a function that tells the architecture",
        "A function of (structure, device): the text in the structure, up to a colon.",
        {
            "call": string(SYMBOL, "The function, which returns a status.", "vendorGetProperties"),
            "bytes": integer("The size of the structure.", 1, 1 << 16, 1472),
            "at": integer("The byte where the text begins.", 0, 1 << 16, 1160),
        },
        required=["call", "bytes", "at"],
    )
    factor = {"type": "integer", "minimum": 1, "maximum": 1000}
    return {
        "description": (
            "Two factors: the target is the compute capability's numbers times these, summed. Or functions that tell "
            "it, of which the first is called that the library exports."
        ),
        "type": "array",
        "minItems": 1,
        "items": {
            "description": "A factor, or a function.",
            "type": ["integer", "object"],
            "if": {"type": "object"},
            "then": asked,
            "else": factor,
            "examples": [10],
        },
        "examples": [[10, 1]],
    }


def _layout(says: str, parts: dict[str, str]) -> Schema:
    offsets = {name: integer(part, 0, _MOST_BYTES) for name, part in parts.items()}
    size = {"bytes": integer("The size of the structure.", 1, _MOST_BYTES, 64)}
    return keyed("a layout", says, {**size, **offsets}, required=["bytes", *parts])


def _attribute(says: str) -> Schema:
    return keyed(
        "an attribute",
        says,
        {
            "id": integer("The vendor's number.", 0, 2**31 - 1),
            "value": integer("What it is set to; 1 when left out.", 0, 2**31 - 1, 1),
            "above": integer("Asked for when a launch wants more bytes of shared memory than this.", 0, 2**31 - 1),
        },
        required=["id"],
    )
