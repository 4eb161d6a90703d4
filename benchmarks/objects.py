"""What the objects cost, as ratios to the peers that are installed, measured in turns in one process.

    python benchmarks/objects.py [BACKEND] [--rounds N] [--json FILE]

Host costs: the device context manager, `Event.record`, DLPack export and import, making an array, replaying a graph of
100 copies. Bandwidth: host to device and back from pinned memory, device to device, and between two devices where there
are two. A peer that is not installed is left out. Every round goes through all variants, every other one backwards.
Figures are medians over the rounds. A ratio is the median of those within each round, whose variants see the same
clock, and not the ratio of the figures beside it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bare import Call
from measuring import in_turn, median, nanoseconds, ratio

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    Variants = dict[str, Callable[[], float]]

#: Calls in a row for a host cost: fewer than what fills a device's queue.
TIMES = 500
#: Bytes of a bandwidth's copy.
LARGE = 1 << 30
#: Copies in a row for a bandwidth, so that what a call costs the host is hidden behind the copy before.
COPIES = 8
PEERS = ("cuda.core", "torch", "cupy")


def installed() -> dict[str, Any]:
    """The peers that are here and have a device."""
    found = {}
    for name in PEERS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if name == "torch" and not module.cuda.is_available():
            continue
        found[name] = module
    return found


def _host(call: Callable[[], object], after: Callable[[], object] = lambda: None) -> Callable[[], float]:
    def measure() -> float:
        found = nanoseconds(call, TIMES)
        after()
        return found

    return measure


def context_manager(device: nbxrt.Device, peers: dict[str, Any]) -> Variants:
    """`with device:` on a warm cache, beside two calls of `set_current`."""

    def ours() -> None:
        with device:
            pass

    variants = {"nbxrt `with device:`": _host(ours)}
    if "cuda.core" in peers:
        theirs = peers["cuda.core"].Device(device.index)
        theirs.set_current()

        def pair() -> None:
            theirs.set_current()
            theirs.set_current()

        variants["cuda.core `set_current` twice"] = _host(pair)
    if "torch" in peers:
        guard = peers["torch"].cuda.device(device.index)

        def guarded() -> None:
            with guard:
                pass

        variants["torch `with torch.cuda.device:`"] = _host(guarded)
    return variants


def event_record(device: nbxrt.Device, peers: dict[str, Any]) -> Variants:
    """Recording an event without timing in a stream."""
    event, stream = nbxrt.Event(device, timing=False), nbxrt.Stream(device)
    raw, handle, at = device.runtime.event_record, event.handle, stream.handle
    variants = {
        **_bare_record(device.runtime, handle, at, stream.sync),
        "nbxrt Event.record": _host(lambda: event.record(stream), stream.sync),
        "nbxrt runtime.event_record": _host(lambda: raw(handle, at), stream.sync),
    }
    if "cuda.core" in peers:
        core = peers["cuda.core"].Device(device.index)
        core.set_current()
        their_stream = core.create_stream()
        their_event = their_stream.record()
        variants["cuda.core Stream.record"] = _host(lambda: their_stream.record(their_event), their_stream.sync)
    if "torch" in peers:
        torch_stream = peers["torch"].cuda.Stream(device.index)
        torch_event = peers["torch"].cuda.Event()
        variants["torch Event.record"] = _host(lambda: torch_event.record(torch_stream), torch_stream.synchronize)
    return variants


def _bare_record(runtime: nbxrt.Runtime, event: int, stream: int, after: Callable[[], object]) -> Variants:
    """The vendor's function by ctypes: typed, with arguments that ctypes has made, and with the interpreter's lock."""
    if runtime.kind == "cpu":
        return {}
    call = Call(runtime, "event_record")
    if call.out is not None or not call.library.path:
        return {}
    typed, made, keeping = (
        getattr(library(call.library.path), call.symbols[0]) for library in (ctypes.CDLL, ctypes.CDLL, ctypes.PyDLL)
    )
    typed.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    objects = ctypes.c_void_p(event), ctypes.c_void_p(stream)
    arguments = ctypes.c_void_p.from_param(event), ctypes.c_void_p.from_param(stream)
    return {
        "ctypes, typed": _host(lambda: typed(event, stream), after),
        "ctypes, objects": _host(lambda: made(*objects), after),
        "ctypes, prebuilt arguments": _host(lambda: made(*arguments), after),
        "ctypes, prebuilt, with the lock": _host(lambda: keeping(*arguments), after),
    }


def making(device: nbxrt.Device, peers: dict[str, Any]) -> Variants:
    """A new array of a size that a pool has."""
    variants = {"nbxrt.empty": _host(lambda: nbxrt.empty((64, 64), device=device))}
    if "torch" in peers:
        torch = peers["torch"]
        variants["torch.empty"] = _host(lambda: torch.empty((64, 64), device=f"cuda:{device.index}"))
    if "cupy" in peers:
        cupy = peers["cupy"]
        variants["cupy.empty"] = _host(lambda: cupy.empty((64, 64), "float32"))
    return variants


def _each(make: Callable[[], Any], take: Callable[[Any], Any]) -> Callable[[], float]:
    """The time of taking alone: what is taken is made before."""

    def measure() -> float:
        given = [make() for _each in range(TIMES)]
        start = time.perf_counter_ns()
        kept = [take(each) for each in given]
        found = (time.perf_counter_ns() - start) / TIMES
        del kept
        return found

    return measure


def export(device: nbxrt.Device, peers: dict[str, Any]) -> Variants:
    """A capsule of an array, without an order of streams; what is kept is dropped outside the time."""
    array = nbxrt.empty((64, 64), device=device)
    variants = {
        "nbxrt __dlpack__": _each(lambda: None, lambda _n: array.__dlpack__(stream=-1, max_version=(1, 0))),
        "nbxrt __dlpack__ of a new array": _each(
            lambda: nbxrt.empty((64, 64), device=device), lambda new: new.__dlpack__(stream=-1, max_version=(1, 0))
        ),
    }
    if "torch" in peers:
        tensor = peers["torch"].empty((64, 64), device=f"cuda:{device.index}")
        variants["torch __dlpack__"] = _each(lambda: None, lambda _n: tensor.__dlpack__(stream=-1, max_version=(1, 0)))
    if "cupy" in peers:
        theirs = peers["cupy"].empty((64, 64), "float32")
        variants["cupy __dlpack__"] = _each(lambda: None, lambda _n: theirs.__dlpack__(stream=-1, max_version=(1, 0)))
    return variants


def take(device: nbxrt.Device, peers: dict[str, Any]) -> Variants:
    """An array of a capsule."""
    array = nbxrt.empty((64, 64), device=device)

    def make() -> Any:
        return array.__dlpack__(stream=-1, max_version=(1, 0))

    variants = {"nbxrt.from_dlpack": _each(make, nbxrt.from_dlpack)}
    if "torch" in peers:
        variants["torch.from_dlpack"] = _each(
            lambda: array.__dlpack__(stream=-1), peers["torch"].utils.dlpack.from_dlpack
        )
    return variants


def replay(device: nbxrt.Device, _peers: dict[str, Any]) -> Variants:
    """The host's part of launching a graph of 100 copies, beside the vendor's function by bare ctypes."""
    runtime = device.runtime
    if not runtime.supports("graph_launch"):
        return {}
    stream = nbxrt.Stream(device)
    one, other = nbxrt.Buffer(4096, device, stream=stream), nbxrt.Buffer(4096, device, stream=stream)
    with stream.capture() as graph:
        for _each_of in range(100):
            other.copy_from(one, stream=stream)
    graph.launch(stream)
    stream.sync()
    bare = getattr(ctypes.CDLL(str(runtime.library().path)), str(runtime.table()["graph_launch"]))
    executable, handle = ctypes.c_void_p(graph.executable), ctypes.c_void_p(stream.handle)

    def timed(call: Callable[[], object]) -> Callable[[], float]:
        def measure() -> float:
            found = nanoseconds(call, 20)
            stream.sync()
            return found

        return measure

    return {
        "nbxrt Graph.launch": timed(lambda: graph.launch(stream)),
        "bare ctypes": timed(lambda: bare(executable, handle)),
    }


def _rate(copy: Callable[[], object], wait: Callable[[], object], nbytes: int) -> Callable[[], float]:
    """GB/s, as a cost that is smaller when it is better: the time of a byte, of several copies one after the other."""

    def measure() -> float:
        wait()
        start = time.perf_counter_ns()
        for _each_of in range(COPIES):
            copy()
        wait()
        return (time.perf_counter_ns() - start) / nbytes / COPIES * 1000

    return measure


def bandwidths(device: nbxrt.Device, peers: dict[str, Any], nbytes: int) -> dict[str, Variants]:
    """Copies from and to pinned memory, and on the device; picoseconds of a byte."""
    stream = nbxrt.Stream(device)
    pinned = nbxrt.Buffer(nbytes, device, kind="pinned")
    one, other = nbxrt.Buffer(nbytes, device), nbxrt.Buffer(nbytes, device)
    found: dict[str, Variants] = {
        "host to device": {"nbxrt": _rate(lambda: one.copy_from(pinned, stream=stream), stream.sync, nbytes)},
        "device to host": {"nbxrt": _rate(lambda: one.copy_to(pinned, stream=stream), stream.sync, nbytes)},
        "device to device": {"nbxrt": _rate(lambda: other.copy_from(one, stream=stream), stream.sync, nbytes)},
    }
    if "torch" in peers:
        torch = peers["torch"]
        where = f"cuda:{device.index}"
        host = torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)
        first, second = (torch.empty(nbytes, dtype=torch.uint8, device=where) for _each_of in range(2))

        def wait() -> None:
            torch.cuda.synchronize(where)

        found["host to device"]["torch"] = _rate(lambda: first.copy_(host, non_blocking=True), wait, nbytes)
        found["device to host"]["torch"] = _rate(lambda: host.copy_(first, non_blocking=True), wait, nbytes)
        found["device to device"]["torch"] = _rate(lambda: second.copy_(first), wait, nbytes)
    if len(nbxrt.devices()) > 1:
        there = nbxrt.Buffer(nbytes, nbxrt.Device(1))
        way = device.copy_path(1)
        found[f"device 0 to device 1 ({way})"] = {
            "nbxrt": _rate(lambda: there.copy_from(one, stream=stream), stream.sync, nbytes)
        }
        if "torch" in peers:
            far = peers["torch"].empty(nbytes, dtype=peers["torch"].uint8, device="cuda:1")
            found[f"device 0 to device 1 ({way})"]["torch"] = _rate(lambda: far.copy_(first), wait, nbytes)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("backend", nargs="?", help="by default the best one that is here")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--nbytes", type=int, default=LARGE, help="of a bandwidth's copy")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    runtime = nbxrt.open(given.backend)
    peers = installed() if runtime.kind == "gpu" else {}
    device = nbxrt.Device(0)
    device.set_current()
    print(f"{runtime.title}, {device.name}; peers: {', '.join(peers) or 'none'}; {given.rounds} rounds, medians")
    results: dict[str, dict[str, dict[str, float]]] = {}
    for part in (context_manager, event_record, making, export, take, replay):
        results[part.__name__] = _measured(part.__name__, part(device, peers), given.rounds, "ns")
    for name, variants in bandwidths(device, peers, given.nbytes).items():
        results[name] = _measured(name, variants, min(given.rounds, 6), "ps/byte")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1), "utf-8")


def _measured(title: str, variants: Variants, rounds: int, unit: str) -> dict[str, dict[str, float]]:
    """The median of each variant, and what part of it nbxrt's first one is round by round; printed too."""
    if not variants:
        return {}
    found = in_turn(variants, rounds)
    ours = next(values for name, values in found.items() if name.startswith("nbxrt"))
    results = {name: {"median": median(values), "ratio": ratio(ours, values)} for name, values in found.items()}
    print(f"\n{title.replace('_', ' ')}")
    for name, result in results.items():
        rate = f"   {1000 / result['median']:8.1f} GB/s" if unit == "ps/byte" else ""
        print(f"  {name:<36} {result['median']:10.1f} {unit}   nbxrt is {result['ratio']:5.2f} of it{rate}")
    return results


if __name__ == "__main__":
    main()
