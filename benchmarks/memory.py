"""What pools cost and waste: real allocation traces replayed on every policy of nbxrt and on the peers that are here.

    python benchmarks/memory.py [--simulate BACKEND] [--only NAME,…] [--traces NAME,…] [--handles MIB,…] [--plot FILE]
                                [--rounds N] [--replays-only] [--json FILE]

Each replay runs in a process of its own. Cold is the first pass over the trace, in which the pool grows; warm is the
median of three more. The ratio is the peak of what was reserved in the cold pass over the peak of what was live. With
several rounds every other one goes through the allocators backwards, and each time is the median of its rounds.
`--handles` replays `expandable` with other largest pieces of physical memory: the trade between time and waste, which
`--plot` draws. A simulation's time is not the driver's, so its picture has the pieces of the first pass in its place.

Then the hot path, in one process and in turn: allocating and freeing 1 MiB from a warm pool, and beside a million live
blocks. What a plain dict of as many addresses costs more than an empty one is the control.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curves import drawn
from measuring import environment, in_turn, median, nanoseconds, show
from peers import is_installed

from nbxrt.cli.pictures import as_png, as_svg

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.cli.pictures import Picture

    Peer = tuple[Callable[[int], Any], Callable[[Any], object], Callable[[], int]]

TRACES = Path(__file__).parent / "traces"
NAMES = ("train_gpt2", "serve_llama", "vision_resnet")
OURS = ("expandable", "caching", "stream_ordered")
#: Peer to the module that it needs.
PEERS = {
    "PyTorch expandable": "torch",
    "PyTorch native": "torch",
    "CuPy": "cupy",
    "cudaMallocAsync": "ctypes",
    "RMM": "rmm",
}
#: Numbers of a pool's attributes in the driver's header.
RELEASE_THRESHOLD, RESERVED_HIGH = 4, 6
#: What is drawn over the largest piece, and its figure.
FIGURES = {
    "peak reserved over peak live, first pass": "ratio",
    "the same after four passes": "later_ratio",
    "pieces taken in the first pass": "pieces",
    "cold, ns an event": "cold_ns",
    "warm, ns an event": "warm_ns",
}
WARM_PASSES = 3
HELD = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description="Pools on real traces.")
    parser.add_argument("--simulate", metavar="BACKEND", help="measure on a simulation of this backend, without peers")
    parser.add_argument("--only", help="policies and peers, separated by commas")
    parser.add_argument("--traces", default=",".join(NAMES))
    parser.add_argument("--handles", default="", help="largest pieces of `expandable` to try as well, in MiB")
    parser.add_argument("--plot", type=Path, help="draw ratio and times over the largest piece there, as SVG or PNG")
    parser.add_argument("--rounds", type=int, default=1, help="how often everything is replayed")
    parser.add_argument("--replays-only", action="store_true", help="leave the hot path out")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--replay", nargs=2, metavar=("NAME", "TRACE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.replay:
        print(json.dumps(replayed(*asked.replay, asked.simulate)))
        return
    started = time.monotonic()
    names = (
        asked.only.split(",")
        if asked.only
        else [*OURS, *(peer for peer, module in PEERS.items() if is_installed(module))]
    )
    if asked.simulate:  # its streams stand still, so the driver's own pool never gets anything back
        names = [name for name in names if name in OURS and name != "stream_ordered"]
    names += [f"expandable:{mib}" for mib in filter(None, asked.handles.split(","))]
    rows = _rounds(names, asked.traces.split(","), asked.simulate, asked.rounds)
    _table(rows)
    if asked.plot:
        picture = _curves(rows, list(FIGURES.items())[: 3 if asked.simulate else None])
        asked.plot.write_bytes(as_png(picture) if asked.plot.suffix == ".png" else as_svg(picture))
    hot = {} if asked.replays_only else hot_path(asked.simulate)
    for title, figures in hot.items():
        show(title, figures, "ns", 0)
    print(f"\n{time.monotonic() - started:.0f} s")
    if asked.json:
        asked.json.write_text(json.dumps({"replays": rows, "hot": hot}, indent=1), "utf-8")


def _rounds(names: list[str], traces: list[str], simulate: str | None, rounds: int) -> list[dict[str, Any]]:
    """The figures of each allocator on each trace; times are medians."""
    seen: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for turn in range(rounds):
        for trace in traces:
            for name in names[::-1] if turn % 2 else names:
                row = _in_process(name, trace, simulate)
                if row:
                    seen.setdefault((trace, name), []).append(row)
    order = [(trace, name) for trace in traces for name in names if (trace, name) in seen]
    return [
        seen[key][0] | {figure: median([row[figure] for row in seen[key]]) for figure in ("cold_ns", "warm_ns")}
        for key in order
    ]


def _in_process(name: str, trace: str, simulate: str | None) -> dict[str, Any]:
    changes = {"NBXRT_BENCHMARK": name}
    if name == "PyTorch expandable":
        changes |= dict.fromkeys(("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"), "expandable_segments:True")
    command = [sys.executable, __file__, "--replay", name, trace]
    command += ["--simulate", simulate] if simulate else []
    done = subprocess.run(command, env=environment(**changes), capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name} on {trace} failed: {(done.stderr.strip().splitlines() or [''])[-1][:200]}")
        return {}
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def _table(rows: list[dict[str, Any]]) -> None:
    print(f"{'trace':<14} {'allocator':<20} {'cold ns':>8} {'warm ns':>8} {'ratio':>7} {'later':>7} {'pieces':>7}")
    for row in rows:
        print(
            f"{row['trace']:<14} {row['name']:<20} {row['cold_ns']:>8.0f} {row['warm_ns']:>8.0f} "
            f"{row['ratio']:>7.4f} {row['later_ratio']:>7.4f} {row['pieces'] or '':>7}"
        )


def _curves(rows: list[dict[str, Any]], figures: list[tuple[str, str]]) -> Picture:
    """Figures of `expandable` over its largest piece, by trace."""
    from nbxrt.descriptions import load

    default = load("cuda")["expandable"]["piece"] >> 20
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        kind, _colon, mib = row["name"].partition(":")
        if kind != "expandable":
            continue
        size = float(mib or default)
        for title, figure in figures:
            panels.setdefault(title, {}).setdefault(row["trace"], []).append((size, row[figure]))
    return drawn(panels, "largest piece of physical memory, MiB")


# Replaying


def load(trace: str) -> tuple[list[tuple[int, int]], int]:
    """The events of a trace, (id, bytes) or (id, -1) for a free, and the peak of what is live."""
    events: list[tuple[int, int]] = []
    sizes: dict[int, int] = {}
    live = peak = 0
    with gzip.open(TRACES / f"{trace}.trace.gz", "rt") as file:
        for line in file:
            what, number, *size = line.split()
            block = int(number)
            if what == "a":
                sizes[block] = int(size[0])
                live += sizes[block]
                peak = max(peak, live)
                events.append((block, sizes[block]))
            else:
                live -= sizes[block]
                events.append((block, -1))
    return events, peak


def one_pass(events: list[tuple[int, int]], alloc: Callable[[int], Any], free: Callable[[Any], object]) -> float:
    """Nanoseconds an event; what the trace leaves is freed after the clock has stopped."""
    held: dict[int, Any] = {}
    start = time.perf_counter_ns()
    for block, nbytes in events:
        if nbytes >= 0:
            held[block] = alloc(nbytes)
        else:
            free(held.pop(block))
    taken = (time.perf_counter_ns() - start) / len(events)
    while held:
        free(held.popitem()[1])
    return taken


def replayed(name: str, trace: str, simulate: str | None) -> dict[str, Any]:
    """The figures of one allocator on one trace."""
    events, peak = load(trace)
    taken: list[int] = []
    is_ours = name.split(":", maxsplit=1)[0] in OURS
    alloc, free, peak_reserved = _ours(name, simulate, taken) if is_ours else _PEERS[name]()
    cold = one_pass(events, alloc, free)
    ratio, pieces = peak_reserved() / peak, sum(nbytes > 0 for nbytes in taken)
    warm = [one_pass(events, alloc, free) for _pass in range(WARM_PASSES)]
    return {
        "name": name,
        "trace": trace,
        "cold_ns": cold,
        "warm_ns": statistics.median(warm),
        "ratio": ratio,
        "later_ratio": peak_reserved() / peak,
        "pieces": pieces,
    }


def _runtime(simulate: str | None) -> Any:
    import nbxrt

    if not simulate:
        return nbxrt.open()
    from nbxrt.simulation import build

    return build(simulate, tempfile.mkdtemp(), devices=1, memory=141 << 30).open()


def _account(policy: str, runtime: Any) -> Any:
    import nbxrt

    kind, _colon, handle = policy.partition(":")
    if handle:
        sizes = {**runtime.description["expandable"], "piece": int(handle) << 20}
        runtime.description = {**runtime.description, "expandable": sizes}
    account = nbxrt.DeviceAllocator(runtime, kind)
    account.policy(0)  # its trial is part of the start, as the peers' own
    if account.stats(0)["policy"] != kind:
        raise SystemExit(account.stats(0)["why"])
    return account


def _ours(name: str, simulate: str | None, taken: list[int]) -> Peer:
    """An account, which notes what it takes from the device."""
    account = _account(name, _runtime(simulate))
    account.watch(lambda _device, _address, nbytes: taken.append(nbytes))
    return account.malloc, account.free, lambda: account.peak_memory_reserved(0)


def _torch() -> Peer:
    import torch  # type: ignore[import-not-found,unused-ignore]

    torch.cuda.init()
    torch.empty(1, device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    alloc, free = torch._C._cuda_cudaCachingAllocator_raw_alloc, torch._C._cuda_cudaCachingAllocator_raw_delete  # noqa: SLF001
    return lambda nbytes: alloc(nbytes, 0), free, torch.cuda.max_memory_reserved


def _cupy() -> Peer:
    import cupy  # type: ignore[import-not-found,unused-ignore]

    pool = cupy.cuda.MemoryPool()
    # The pool never shrinks by itself, so what it has at the end is its peak.
    return pool.malloc, lambda _block: None, pool.total_bytes


def _async() -> Peer:
    """The driver's own pool, by bare ctypes."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, pool, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()

    def check(status: int) -> None:
        if status:
            raise MemoryError(f"the driver answered {status}")

    check(driver.cuInit(0))
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(driver.cuCtxSetCurrent(context))
    check(driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0))
    check(driver.cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, ctypes.byref(ctypes.c_uint64(2**64 - 1))))
    allocate, release, there = driver.cuMemAllocAsync, driver.cuMemFreeAsync, ctypes.byref(address)
    allocate.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    release.argtypes = (ctypes.c_uint64, ctypes.c_void_p)

    def alloc(nbytes: int) -> int:
        status = allocate(there, nbytes, None)
        if status:
            check(status)
        return address.value

    def reserved() -> int:
        most = ctypes.c_uint64()
        check(driver.cuMemPoolGetAttribute(pool, RESERVED_HIGH, ctypes.byref(most)))
        return most.value

    return alloc, lambda ptr: release(ptr, None), reserved


def _rmm() -> Peer:
    import rmm  # type: ignore[import-not-found,unused-ignore]
    from rmm.pylibrmm.stream import DEFAULT_STREAM  # type: ignore[import-not-found,unused-ignore]

    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=1 << 20)

    def alloc(nbytes: int) -> tuple[int, int]:
        return pool.allocate(nbytes, DEFAULT_STREAM), nbytes

    return alloc, lambda block: pool.deallocate(*block, DEFAULT_STREAM), pool.pool_size


_PEERS: dict[str, Callable[[], Peer]] = {
    "PyTorch expandable": _torch,
    "PyTorch native": _torch,
    "CuPy": _cupy,
    "cudaMallocAsync": _async,
    "RMM": _rmm,
}


# The hot path


def hot_path(simulate: str | None) -> dict[str, dict[str, float]]:
    """Allocating and freeing 1 MiB from warm pools, and of an account that holds a million blocks, with a control."""
    runtime = _runtime(simulate)
    account, full = _account("expandable", runtime), _account("expandable", runtime)
    calls = {"nbxrt": _pair(account.malloc, account.free), **({} if simulate else _peer_pairs())}
    held = [full.malloc(512) for _block in range(HELD)]
    blocks = {"none": calls["nbxrt"], f"{HELD} live blocks": _pair(full.malloc, full.free)}
    keys = {"empty": _keyed({}, held[0] - 512), f"of {HELD}": _keyed(dict.fromkeys(held), held[0] - 512)}
    found = {
        "malloc + free of 1 MiB, warm": _medians(calls),
        "the same beside other blocks": _medians(blocks),
        "control: adding an address to a dict and removing it": _medians(keys),
    }
    for ptr in held:
        full.free(ptr)
    return found


def _medians(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    timed = {name: (lambda call=call: nanoseconds(call, 20_000)) for name, call in calls.items()}  # type: ignore[misc]
    return {name: median(values) for name, values in in_turn(timed, 11).items()}


def _keyed(table: dict[int, Any], key: int) -> Callable[[], object]:
    def pair() -> None:
        table[key] = None
        table.pop(key)

    return pair


def _pair(alloc: Callable[[int], Any], free: Callable[[Any], object]) -> Callable[[], object]:
    free(alloc(1 << 20))
    return lambda: free(alloc(1 << 20))


def _peer_pairs() -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    for name, make in (("CuPy", _cupy_pair), ("cuda.core", _core_pair), ("PyTorch", _torch_pair)):
        try:
            found[name] = make()
        except Exception as error:  # noqa: BLE001  # a peer that does not work is no fault of ours
            print(f"{name} is not measured: {type(error).__name__}: {error}")
    return found


def _cupy_pair() -> Callable[[], object]:
    import cupy  # type: ignore[import-not-found,unused-ignore]

    malloc = cupy.cuda.MemoryPool().malloc
    return _pair(malloc, lambda _block: None)


def _core_pair() -> Callable[[], object]:
    from cuda.core import Device  # type: ignore[import-not-found,unused-ignore]

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    return _pair(lambda nbytes: device.allocate(nbytes, stream=stream), lambda buffer: buffer.close())


def _torch_pair() -> Callable[[], object]:
    import torch  # type: ignore[import-not-found,unused-ignore]

    return _pair(torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
