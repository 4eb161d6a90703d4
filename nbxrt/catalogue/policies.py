"""The vendor-neutral policies that a file may choose by name: what each does, and what it needs from the vendor.

A policy's parts are steps that the file gives under `policies`; binding/policies.py has the policies themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping


@attrs.frozen
class Part:
    """Steps that a policy does: the names that are bound before them, and those that they bind."""

    says: str
    takes: Mapping[str, str] = attrs.field(factory=dict)
    gives: Mapping[str, str] = attrs.field(factory=dict)
    required: bool = True


@attrs.frozen
class Policy:
    """A policy, the operations that it does (by name or by group), its parts, and the kinds of its other values.

    `asks` says which parts an operation or another part needs, one of them at least; for "" they are always needed.
    """

    says: str
    operations: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    parts: Mapping[str, Part] = attrs.field(factory=dict)
    values: Mapping[str, str] = attrs.field(factory=dict)
    asks: tuple[tuple[str, tuple[str, ...]], ...] = ()


_ARGUMENT = {"function": "pointer", "encoder": "pointer", "index": "uint"}
_LAUNCH = {
    "function": "pointer",
    "encoder": "pointer",
    **{f"{what}_{axis}": "size" for what in ("groups", "block", "threads") for axis in "xyz"},
    "shared_memory": "uint",
}

#: The contract's words for facts of a kernel and of a device, which may each be a part.
FUNCTION_ATTRIBUTES = (
    "max_threads_per_block", "shared_memory", "local_memory", "registers", "max_dynamic_shared_memory",
    "preferred_shared_memory", "non_portable_clusters",
)  # fmt: skip
DEVICE_ATTRIBUTES = (
    "max_threads_per_block", "max_shared_memory_per_block", "max_shared_memory_per_block_optin",
    "max_shared_memory_per_multiprocessor", "max_registers_per_block", "warp_size", "multiprocessor_count",
    "compute_capability_major", "compute_capability_minor", "integrated", "can_map_host_memory", "unified_addressing",
    "managed_memory", "concurrent_managed_access", "pageable_memory_access", "memory_pools_supported",
    "virtual_memory_supported", "pci_bus", "pci_device", "pci_domain", "clock_rate", "l2_cache_size",
    "max_grid_x", "max_grid_y", "max_grid_z",
)  # fmt: skip

POLICIES = {
    "current_device": Policy("The device is kept per thread by nbxrt.", ("set_device", "get_device")),
    "listed_devices": Policy(
        "Devices as `devices` lists them; the current one is kept per thread by nbxrt.",
        ("device_count", "set_device", "get_device"),
    ),
    "system_memory": Policy("The operating system's free and total memory.", ("mem_get_info",)),
    "budget": Policy(
        "Free memory is the total less what this process has allocated on the device.",
        ("mem_get_info",),
        parts={"total": Part("Gives the device's memory.", gives={"total": "size"})},
    ),
    "facts": Policy(
        "Facts of a device, each by steps of its own.",
        ("device_attribute",),
        parts={
            word: Part("Gives this fact of the device.", gives={"value": "uint64"}, required=False)
            for word in DEVICE_ATTRIBUTES
        },
        asks=(("device_attribute", DEVICE_ATTRIBUTES),),
    ),
    "address_table": Policy("What nbxrt itself knows of an address.", ("pointer_attributes",)),
    "synchronous": Policy(
        "Streams, and events by the host's clock, of a backend whose every call has finished when it returns.",
        groups=("stream", "event"),
    ),
    "queues": Policy(
        "Streams that are the vendor's queues, with the work in flight on each.",
        ("stream_create", "stream_create_flags", "stream_destroy", "stream_sync", "stream_query", "sync"),
        parts={
            "create": Part("Makes a queue on the device.", gives={"queue": "pointer"}),
            "destroy": Part("Releases a queue in which nothing is left to do.", {"queue": "pointer"}),
            "wait": Part("Waits until a queue has nothing left to do; each work in flight is waited for when left out.",
                         {"queue": "pointer"}, required=False),
            "keep": Part("Makes one owner more of the handle of work.", {"work": "pointer"}, required=False),
            "status": Part("Gives how far work is.", {"work": "pointer"}, {"status": "int"}, required=False),
            "finish": Part("Waits until work is done.", {"work": "pointer"}, required=False),
            "release": Part("Gives up the handle of work.", {"work": "pointer"}, required=False),
            "error": Part(
                "Gives the code of work that has failed; its status when left out.",
                {"work": "pointer"},
                {"code": "int"},
                required=False,
            ),
            "idle": Part(
                "Gives whether a queue has nothing left to do, where no work is kept.",
                {"queue": "pointer"},
                {"status": "int"},
                required=False,
            ),
        },
        values={"complete": "number", "busy": "numbers", "window": "count"},
        asks=(("", ("wait", "finish")), ("stream_query", ("status", "idle"))),
    ),
    "marks": Policy(
        "Events that are marks in queues: handles made when one is recorded, or values of a queue's counter.",
        ("stream_wait_event",),
        ("event",),
        parts={
            "record": Part("Puts a mark into a queue.", {"queue": "pointer"}, {"mark": "pointer"}, required=False),
            "make": Part("Makes a counter, which tells marks apart.", gives={"counter": "pointer"}, required=False),
            "drop": Part("Gives a counter up.", {"counter": "pointer"}, required=False),
            "raise": Part(
                "Raises a counter when the work before it in a queue is done, in place of `record`.",
                {"queue": "pointer", "counter": "pointer", "value": "uint64"}, {"mark": "pointer"}, required=False,
            ),
            "hold": Part(
                "Lets later work of a queue wait for a value of a counter, and gives the work that waits.",
                {"queue": "pointer", "counter": "pointer", "value": "uint64"}, {"work": "pointer"}, required=False,
            ),
            "status": Part("Gives whether a mark was passed.", {"mark": "pointer"}, {"status": "int"}),
            "wait": Part("Waits until a mark was passed.", {"mark": "pointer"}),
            "pass": Part(
                "Lets later work of a queue wait for a mark.", {"queue": "pointer", "mark": "pointer"}, required=False
            ),
            "time": Part("Gives the ticks at which a mark was passed.", {"mark": "pointer"}, {"time": "uint64"},
                         required=False),
            "release": Part("Gives up a mark.", {"mark": "pointer"}),
            "clock": Part(
                "Gives the nanoseconds of a tick, and after how many bits ticks begin anew.",
                gives={"tick": "uint64", "bits": "uint"},
                required=False,
            ),
        },
        values={"complete": "number", "busy": "numbers", "tick": "nanoseconds"},
        asks=(("event_elapsed", ("time",)),),
    ),
    "transfers": Policy(
        "Copies and fills of objects' memory: by the device where it can, else by the host, which waits for it.",
        ("memcpy", "memcpy_async", "memset", "memset_async", "host_register", "host_unregister"),
        parts={
            "copy": Part(
                "Copies inside device memory, ordered on the stream.",
                {"source": "pointer", "source_offset": "size", "target": "pointer", "target_offset": "size",
                 "nbytes": "size", "stream": "pointer"},
            ),
            "fill": Part(
                "Fills device memory with a byte, ordered on the stream.",
                {"target": "pointer", "offset": "size", "nbytes": "size", "value": "int", "stream": "pointer"},
            ),
            "read": Part("Copies device memory to the host's, where the host does not see it.",
                         {"source": "pointer", "source_offset": "size", "address": "pointer", "nbytes": "size",
                          "stream": "pointer"}, required=False),
            "write": Part("Copies memory of the host's to the device's, where the host does not see it.",
                          {"address": "pointer", "target": "pointer", "target_offset": "size", "nbytes": "size",
                           "stream": "pointer"}, required=False),
            "wrap": Part("Makes an object of the whole pages around memory of the caller's.",
                         {"start": "pointer", "length": "size"}, {"object": "pointer"}, required=False),
            "unwrap": Part("Gives the object up; the pages stay.", {"object": "pointer"}, required=False),
        },
        values={"alignment": "count"},
        asks=(("host_register", ("wrap",)), ("host_unregister", ("unwrap",)), ("wrap", ("unwrap",))),
    ),
    "kernels": Policy(
        "Code and launches, where arguments are given one by one.",
        ("module_load", "module_unload", "module_get_function", "launch_kernel", "function_get_attribute"),
        parts={
            "load": Part("Makes a module of an image.", {"image": "bytes"}, {"module": "pointer"}),
            "load_intermediate": Part(
                "The same for an image that begins with the bytes of `intermediate`.",
                {"image": "bytes"}, {"module": "pointer"}, required=False,
            ),
            "build": Part("Makes a module ready to run.", {"module": "pointer"}, required=False),
            "log": Part("Gives what a failed build said.", {"module": "pointer"}, {"log": "bytes"}, required=False),
            "words": Part("Gives what an error object says, where one comes for what was not made.",
                          {"error": "pointer"}, {"words": "text"}, required=False),
            "unload": Part("Releases a module.", {"module": "pointer"}),
            "function": Part(
                "Gives the kernel of a name.", {"module": "pointer", "name": "text"}, {"function": "pointer"}
            ),
            "release": Part("Releases a kernel.", {"function": "pointer"}, required=False),
            "count": Part(
                "Gives how many arguments a kernel takes.", {"function": "pointer"}, {"count": "uint"}, required=False
            ),
            "kind": Part(
                "Gives what an argument is, as a number.",
                {"function": "pointer", "index": "uint"}, {"kind": "uint"}, required=False,
            ),
            "type_name": Part(
                "Gives the name of an argument's type, whose size `sizes` has: so arguments may be packed before.",
                {"function": "pointer", "index": "uint"}, {"type_name": "text"}, required=False,
            ),
            "attribute": Part(
                "Gives a fact of a kernel.",
                {"function": "pointer", "attribute": "function_attribute"}, {"value": "int"}, required=False,
            ),
            "begin": Part(
                "Begins a launch: the work, and what its parts are encoded into.",
                {"function": "pointer", "queue": "pointer"}, {"work": "pointer", "encoder": "pointer"}, required=False,
            ),
            "abandon": Part(
                "Ends a launch that failed.", {"work": "pointer", "encoder": "pointer"}, required=False
            ),
            "end": Part(
                "Ends a launch that was begun, and gives the work to the device.",
                {"work": "pointer", "encoder": "pointer"}, required=False,
            ),
            "set_value": Part("Sets an argument that is a value.", {**_ARGUMENT, "nbytes": "size", "at": "pointer"}),
            "set_pointer": Part(
                "Sets an argument that is an address.", {**_ARGUMENT, "address": "pointer"}, required=False
            ),
            "set_buffer": Part(
                "Sets an argument that is an object and an offset.",
                {**_ARGUMENT, "buffer": "pointer", "offset": "size"}, required=False,
            ),
            "slice": Part(
                "Makes an object of a part of another one, for the time of a launch, where arguments have no offset.",
                {"buffer": "pointer", "offset": "size", "nbytes": "size"}, {"slice": "pointer"}, required=False,
            ),
            "unslice": Part("Gives that object up.", {"slice": "pointer"}, required=False),
            "slice_alignment": Part(
                "Gives of how many bits the offset of such a part is a multiple.", gives={"bits": "uint"},
                required=False,
            ),
            "set_local": Part(
                "Sets an argument that is memory of a block, by its size.", {**_ARGUMENT, "nbytes": "size"},
                required=False,
            ),
            "set_shared": Part(
                "Sets the size of the memory of a block that a launch asks for, where it asks for some.",
                {"function": "pointer", "encoder": "pointer", "nbytes": "size"}, required=False,
            ),
            "run": Part("Runs a kernel, ordered on the stream.", {**_LAUNCH, "stream": "pointer"}),
            **{word: Part("Gives this fact of a kernel, in place of `attribute`.", {"function": "pointer"},
                          {"value": "uint64"}, required=False) for word in FUNCTION_ATTRIBUTES},
        },
        values={"intermediate": "bytes", "pointers": "numbers", "local": "numbers", "sizes": "sizes"},
        asks=(
            ("function_get_attribute", ("attribute", *FUNCTION_ATTRIBUTES)),
            *(("begin", (part,)) for part in ("end", "abandon")),
            *(("slice", (part,)) for part in ("unslice", "slice_alignment", "set_buffer")),
        ),
    ),
}  # fmt: skip

#: The values of each policy that are numbers of the vendor's.
NUMBERED = {
    name: words
    for name, policy in POLICIES.items()
    if (words := tuple(word for word, kind in policy.values.items() if kind in ("number", "numbers")))
}
