"""What functions of APIs of objects do by themselves, beside the contract's operations: the core has these too.

Several calls together are an operation there, and each is less than one: it makes a mark, sets one argument of a
kernel, gives an object up.
"""

from __future__ import annotations

from typing import Any


def _entry(
    group: str, takes: dict[str, str], gives: dict[str, str] | None = None, done: str | None = None
) -> dict[str, Any]:
    return {
        "group": group, "done": done,
        "takes": tuple((name, kind, None, ()) for name, kind in takes.items()),
        "gives": tuple((gives or {}).items()),
    }  # fmt: skip


_AXES = {f"{what}_{axis}": "uint" for what in ("groups", "block", "threads") for axis in "xyz"}

PRIMITIVES: dict[str, dict[str, Any]] = {
    "object_create": _entry("device", {"sort": "uint"}, {"object": "uint64"}),
    "object_destroy": _entry("device", {"sort": "uint", "object": "uint64"}),
    "device_facts": _entry("device", {"device": "device"}, {"name": "text", "uuid": "bytes"}),
    "memory_release": _entry("memory", {"address": "address"}),
    "mark_create": _entry("event", {}, {"event": "event"}),
    "mark_record": _entry("event", {"event": "event", "stream": "stream"}),
    "mark_time": _entry("event", {"event": "event"}, {"time": "uint64"}),
    "function_set_argument": _entry(
        "module", {"function": "function", "index": "uint", "nbytes": "nbytes", "at": "bytes"}
    ),
    "function_set_block": _entry("module", {"function": "function", **{f"block_{axis}": "uint" for axis in "xyz"}}),
    "function_run": _entry("module", {"function": "function", "stream": "stream", **_AXES}),
    "function_release": _entry("module", {"function": "function"}),
}
