"""What functions of APIs of objects do by themselves, beside the contract's operations: the core has these too.

Several calls together are an operation there, and each is less than one: it makes a mark, sets one argument of a
kernel, gives an object up.
"""

from __future__ import annotations

from typing import Any


def _entry(
    group: str, takes: dict[str, str], gives: dict[str, str] | None = None, *, part_of: str = ""
) -> dict[str, Any]:
    """One; `part_of` is the operation whose heart it is: by that name it fails on request, and stands in the log."""
    return {
        "group": group, "done": None, "part_of": part_of,
        "takes": tuple((name, kind, None, ()) for name, kind in takes.items()),
        "gives": tuple((gives or {}).items()),
    }  # fmt: skip


def known_as(operation: str) -> str:
    """The contract's word for what a function does, where it is the heart of an operation; else its own."""
    return PRIMITIVES.get(operation, {}).get("part_of") or operation


_AXES = {f"{what}_{axis}": "uint" for what in ("groups", "block", "threads") for axis in "xyz"}
_SOURCE = {"source": "address", "source_offset": "nbytes"}
_TARGET = {"target": "address", "target_offset": "nbytes"}

PRIMITIVES: dict[str, dict[str, Any]] = {
    "object_create": _entry("device", {"sort": "uint", "is_of_device": "uint"}, {"object": "uint64"}),
    "object_destroy": _entry("device", {"sort": "uint", "object": "uint64"}),
    "level_count": _entry("device", {"is_of_devices": "uint"}, {"count": "uint"}, part_of="device_count"),
    "level_at": _entry(
        "device", {"is_of_devices": "uint", "index": "uint"}, {"handle": "uint64"}, part_of="device_count"
    ),
    "level_release": _entry("device", {"device": "device"}),
    "device_facts": _entry("device", {"device": "device"}, {"name": "text", "uuid": "bytes"}),
    "memory_release": _entry("memory", {"address": "address"}, part_of="free"),
    "memory_free": _entry("memory", {"address": "address"}, part_of="free"),
    "memcpy_and_wait": _entry(
        "memory", {"dst": "address", "src": "address", "nbytes": "nbytes", "stream": "stream"}, part_of="memcpy"
    ),
    "buffer_create": _entry("memory", {"nbytes": "nbytes"}, {"address": "address"}, part_of="malloc"),
    "buffer_contents": _entry("memory", {"buffer": "address"}, {"address": "address"}),
    "buffer_slice": _entry(
        "memory", {"buffer": "address", "offset": "nbytes", "nbytes": "nbytes"}, {"address": "address"}
    ),
    "buffer_alignment": _entry("memory", {}, {"bits": "uint"}),
    "buffer_copy": _entry(
        "memory", {**_SOURCE, **_TARGET, "nbytes": "nbytes", "stream": "stream"}, part_of="memcpy_async"
    ),
    "buffer_fill": _entry(
        "memory",
        {"target": "address", "offset": "nbytes", "nbytes": "nbytes", "value": "int", "stream": "stream"},
        part_of="memset_async",
    ),
    "buffer_read": _entry(
        "memory", {**_SOURCE, "address": "address", "nbytes": "nbytes", "stream": "stream"}, part_of="memcpy_async"
    ),
    "buffer_write": _entry(
        "memory", {**_TARGET, "address": "address", "nbytes": "nbytes", "stream": "stream"}, part_of="memcpy_async"
    ),
    "stream_flush": _entry("stream", {"stream": "stream"}),
    "mark_create": _entry("event", {}, {"event": "event"}),
    "mark_record": _entry("event", {"event": "event", "stream": "stream"}, part_of="event_record"),
    "mark_make": _entry("event", {"stream": "stream"}, {"event": "event"}, part_of="event_record"),
    "mark_time": _entry("event", {"event": "event"}, {"time": "uint64"}, part_of="event_elapsed"),
    "module_create": _entry("module", {"image": "bytes"}, {"module": "module"}, part_of="module_load"),
    "module_build": _entry("module", {"module": "module"}),
    "module_log": _entry("module", {"module": "module"}, {"log": "text"}),
    "function_create": _entry(
        "module", {"module": "module", "name": "text"}, {"function": "function"}, part_of="module_get_function"
    ),
    "function_count": _entry("module", {"function": "function"}, {"count": "uint"}),
    "function_kind": _entry("module", {"function": "function", "index": "uint"}, {"kind": "uint"}),
    "function_type": _entry("module", {"function": "function", "index": "uint"}, {"type_name": "text"}),
    "function_set_argument": _entry(
        "module", {"function": "function", "index": "uint", "nbytes": "nbytes", "at": "bytes"}
    ),
    "function_set_pointer": _entry("module", {"function": "function", "index": "uint", "address": "address"}),
    "function_set_buffer": _entry("module", {"function": "function", "index": "uint", "buffer": "address"}),
    "function_set_local": _entry("module", {"function": "function", "index": "uint", "nbytes": "nbytes"}),
    "function_set_block": _entry("module", {"function": "function", **{f"block_{axis}": "uint" for axis in "xyz"}}),
    "function_run": _entry("module", {"function": "function", "stream": "stream", **_AXES}, part_of="launch_kernel"),
    "function_release": _entry("module", {"function": "function"}),
}

#: The parts of policies, those first whose calls others use too: what the call does that the part is about.
PARTS = {
    "marks.release": "event_destroy",
    "queues.release": "event_destroy",
    "marks.record": "mark_record",
    "marks.pass": "stream_wait_event",
    "marks.status": "event_query",
    "marks.wait": "event_sync",
    "marks.time": "mark_time",
    "marks.clock": "device_facts",
    "queues.create": "stream_create",
    "queues.destroy": "stream_destroy",
    "queues.wait": "stream_sync",
    "queues.status": "event_query",
    "budget.total": "mem_get_info",
    "kernels.load": "module_load",
    "kernels.load_intermediate": "module_load",
    "kernels.build": "module_build",
    "kernels.log": "module_log",
    "kernels.unload": "module_unload",
    "kernels.function": "function_create",
    "kernels.release": "function_release",
    "kernels.count": "function_count",
    "kernels.kind": "function_kind",
    "kernels.type_name": "function_type",
    "kernels.attribute": "function_get_attribute",
    "kernels.set_value": "function_set_argument",
    "kernels.set_pointer": "function_set_pointer",
    "kernels.set_local": "function_set_local",
    "kernels.set_buffer": "function_set_buffer",
    "kernels.slice": "buffer_slice",
    "kernels.unslice": "memory_release",
    "kernels.slice_alignment": "buffer_alignment",
    "transfers.copy": "buffer_copy",
    "transfers.fill": "buffer_fill",
    "transfers.read": "buffer_read",
    "transfers.write": "buffer_write",
    "kernels.run": "function_run",
}
#: What the calls of a level's steps do.
LEVELS = {
    "listing": "object_create",
    "count": "level_count",
    "at": "level_at",
    "listed": "object_destroy",
    "release": "level_release",
}
#: What other calls of a part with the part's own names do.
BESIDE = {"kernels.run": "function_set_block"}
#: What a call does that makes the thing, or waits, where the operation has other calls for it.
ALONE = {"mark_record": "mark_make", "memcpy": "memcpy_and_wait"}
#: Ticks of a simulated device are nanoseconds, and do not begin anew.
CLOCK = {"tick": 1, "bits": 64}
#: Names of parts whose things the core knows by other names.
RENAMED = {"queue": "stream", "mark": "event", "work": "event", "slice": "address"}
