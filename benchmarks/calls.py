"""What one call costs the host: nbxrt's generated operations beside three ways to write the same call with ctypes.

    python benchmarks/calls.py [BACKEND | --simulate BACKEND] [--rounds N] [--no-peers]

generic       a closure for all operations: `*args`, each made a ctypes object, results in fresh cells
fresh slot    written by hand for this call, with a new cell for the result
kept slot     written by hand for this call, with a cell that each thread keeps
nbxrt         the generated operation, which also checks every argument

All call the same function of the same file. The peers that are installed are measured in the same turns, on a GPU.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring import in_turn, median, nanoseconds, show

if TYPE_CHECKING:
    from collections.abc import Callable

    import nbxrt

WAYS = ("generic", "fresh slot", "kept slot", "nbxrt")
COPY = 4096


@dataclass(frozen=True)
class Workload:
    """Operations that are called in a row, how, and how often before the queue of the device is full."""

    name: str
    operations: tuple[str, ...]
    #: Makes the call that is measured of the bound operations and of what they work at.
    make: Callable[[dict[str, Any], dict[str, Any]], Callable[[], object]]
    times: int = 20000


def _allocation(bound: dict[str, Any], _things: dict[str, Any]) -> Callable[[], object]:
    malloc, free = bound["malloc"], bound["free"]
    return lambda: free(malloc(COPY))


def _from_pool(bound: dict[str, Any], things: dict[str, Any]) -> Callable[[], object]:
    malloc, free, stream = bound["malloc_async"], bound["free_async"], things["stream"]
    return lambda: free(malloc(1 << 20, stream), stream)


def _copy(bound: dict[str, Any], things: dict[str, Any]) -> Callable[[], object]:
    copy, dst, src, kind, stream = bound["memcpy_async"], *(things[name] for name in ("dst", "src", "kind", "stream"))
    return lambda: copy(dst, src, COPY, kind, stream)


def _record(bound: dict[str, Any], things: dict[str, Any]) -> Callable[[], object]:
    record, event, stream = bound["event_record"], things["event"], things["stream"]
    return lambda: record(event, stream)


def _set(bound: dict[str, Any], _things: dict[str, Any]) -> Callable[[], object]:
    set_device = bound["set_device"]
    return lambda: set_device(0)


WORKLOADS = (
    Workload("get_device", ("get_device",), lambda bound, _things: bound["get_device"]),
    Workload("set_device", ("set_device",), _set),
    Workload("event_record", ("event_record",), _record, 500),
    Workload("malloc_async + free_async", ("malloc_async", "free_async"), _from_pool, 500),
    Workload("memcpy_async 4 KiB", ("memcpy_async",), _copy, 500),
    Workload("malloc + free 4 KiB", ("malloc", "free"), _allocation, 200),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of one call.")
    parser.add_argument("backend", nargs="?", help="the best that is here if left out")
    parser.add_argument("--simulate", metavar="BACKEND", help="build a simulation of this backend and measure on it")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--no-peers", action="store_true")
    asked = parser.parse_args()
    import nbxrt

    if asked.simulate:
        with tempfile.TemporaryDirectory() as folder:
            measure_all(_simulated(asked.simulate, Path(folder)), asked.rounds, {})
        return
    runtime = nbxrt.open(asked.backend)
    measure_all(runtime, asked.rounds, {} if asked.no_peers or runtime.kind == "cpu" else _peers())


def _peers() -> dict[str, dict[str, Callable[[], Any]]]:
    from peers import hot_calls

    return hot_calls()


def _simulated(backend: str, folder: Path) -> nbxrt.Runtime:
    from nbxrt import descriptions, simulation

    runtime: nbxrt.Runtime = simulation.build(descriptions.load(backend), folder).open()
    return runtime


def measure_all(runtime: nbxrt.Runtime, rounds: int, peers: dict[str, dict[str, Callable[[], Any]]]) -> None:
    """Measure every workload whose operations are C calls here."""
    print(f"{runtime.title}: {runtime.library().path}")
    for workload in (*_alone(runtime), *WORKLOADS):
        target = runtime if isinstance(workload, Workload) else workload[0]
        measure(target, workload if isinstance(workload, Workload) else workload[1], rounds, peers)


def _alone(runtime: nbxrt.Runtime) -> tuple[tuple[nbxrt.Runtime, Workload], ...]:
    """On the host no operation is an out-parameter and little else: `getcpu` of the C library stands for one."""
    from nbxrt import Runtime
    from nbxrt.binding.machine import Machine

    if runtime.kind != "cpu" or Machine().system != "linux":
        return ()
    call = (("getcpu",), "runtime", (("out", "device", "int"), ("null",)), ("status",), False)
    operation = (0, (("call", None, None, None, call, ()),))
    operations = {**runtime.description["operations"], "get_device": operation}
    changed = Runtime({**runtime.description, "operations": operations}, runtime.contract)
    return ((changed, Workload("an out-parameter alone (getcpu)", ("get_device",), lambda b, _t: b["get_device"])),)


def measure(
    runtime: nbxrt.Runtime, workload: Workload, rounds: int, peers: dict[str, dict[str, Callable[[], Any]]]
) -> None:
    """Measure one workload every way, in turn, and print the figures with their ratios."""
    if not all(_is_call(runtime, operation) for operation in workload.operations):
        return
    variants = {
        name: _timed(runtime, call, workload.times)
        for name, call in (_ways(runtime, workload) | peers.get(workload.name, {})).items()
    }
    rows = {name: median(values) for name, values in in_turn(variants, rounds).items()}
    show(f"{workload.name}, median of {rounds}", rows, "ns", 0)
    ours = rows["nbxrt"]
    print(
        "  => nbxrt is " + ", ".join(f"{ours / value:.2f} x {name}" for name, value in rows.items() if name != "nbxrt")
    )


def _is_call(runtime: nbxrt.Runtime, operation: str) -> bool:
    if not runtime.supports(operation):
        return False
    _line, variants = runtime.description["operations"][operation]
    return bool(variants[0][0] == "call")


def _timed(runtime: nbxrt.Runtime, call: Callable[[], object], times: int) -> Callable[[], float]:
    def timed() -> float:
        runtime.sync()
        return nanoseconds(call, times)

    return timed


def _ways(runtime: nbxrt.Runtime, workload: Workload) -> dict[str, Callable[[], object]]:
    from bare import Call, generic, with_fresh_slot, with_thread_local_slot

    calls = {operation: Call(runtime, operation) for operation in workload.operations}
    ours, theirs = _things(runtime, "device_to_device"), _things(runtime, _number(runtime, "device_to_device"))
    bound = {
        "generic": {operation: generic(call) for operation, call in calls.items()},
        "fresh slot": {operation: with_fresh_slot(call) for operation, call in calls.items()},
        "kept slot": {operation: with_thread_local_slot(call) for operation, call in calls.items()},
        "nbxrt": {operation: getattr(runtime, operation) for operation in calls},
    }
    return {way: workload.make(bound[way], ours if way == "nbxrt" else theirs) for way in WAYS}


def _things(runtime: nbxrt.Runtime, kind: str | int) -> dict[str, Any]:
    """What the calls work at: a stream, an event, two pieces of memory."""
    stream, event = runtime.stream_create_flags(non_blocking=True), runtime.event_create_flags(timing=False)
    runtime.event_record(event, stream)
    return {"stream": stream, "event": event, "dst": runtime.malloc(COPY), "src": runtime.malloc(COPY), "kind": kind}


def _number(runtime: nbxrt.Runtime, word: str) -> int:
    for _since, _before, words in runtime.description["enums"].get("memcpy_kind", ()):
        return int(words[word])
    return 0


if __name__ == "__main__":
    main()
