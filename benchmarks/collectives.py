"""Collectives between the devices of this machine: bandwidth, latency and host cost, beside PyTorch's and bare ctypes.

    python benchmarks/collectives.py [--ranks N] [--json FILE] [--largest BYTES] [--repeat N] [--simulated]

Each device has a process. In it nbxrt and torch.distributed, where torch is installed, use one copy of the vendor's
library and the same device, and are measured in turn. Bus bandwidth is the bytes over the time, times 2 (n - 1) / n.
`--simulated` runs on a simulated vendor, whose bandwidth means nothing and whose host cost does.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring import ROOT, environment, in_turn, median, nanoseconds

import nbxrt
import nbxrt.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30)
#: Calls that are given before anybody waits: fewer than what fills a queue.
BURST = 32


class Rank:
    """One device's process."""

    def __init__(self, rank: int, size: int, folder: Path) -> None:
        self.rank, self.size, self.folder = rank, size, folder
        self.runtime = nbxrt.open(os.environ["BENCH_BACKEND"])
        self.runtime.set_device(rank)
        self.torch = _torch(rank, size, folder) if os.environ["BENCH_TORCH"] == "1" else None
        self.comm = self._join()
        self.stream = self.runtime.stream_create_flags(non_blocking=True)

    def _join(self) -> dist.Communicator:
        """A communicator, whose identity goes by a file."""
        file = self.folder / "identity"
        if self.rank == 0:
            fresh = file.with_suffix(".new")
            fresh.write_bytes(self.runtime.comm_unique_id())
            fresh.replace(file)
        while not file.exists():
            time.sleep(0.01)
        start = time.perf_counter()
        comm = dist.join(file.read_bytes(), self.rank, self.size, timeout=120)
        self.start_ms = 1e3 * (time.perf_counter() - start)
        return comm

    # what is measured

    def bandwidth(self, nbytes: int) -> dict[str, Any]:
        """Seconds of one all-reduce of so many bytes, by nbxrt and by torch."""
        array = nbxrt.empty(nbytes // 4, "float32", device=self.rank)
        array.buffer().fill(0)
        self.runtime.sync()
        times = max(3, min(200, (2 << 30) // nbytes))
        variants: dict[str, Callable[[], float]] = {"nbxrt": lambda: self._timed(self._reduce(array), times)}
        if self.torch is not None:
            tensor = self.torch.zeros(nbytes // 4, device=f"cuda:{self.rank}")
            variants["torch"] = lambda: self._timed(lambda: self.torch.distributed.all_reduce(tensor), times)
        for variant in variants.values():
            variant()
        measured = {name: median(values) for name, values in in_turn(variants, 5).items()}
        factor = 2 * (self.size - 1) / self.size
        return {
            "bytes": nbytes,
            **{f"{name} us": 1e6 * seconds for name, seconds in measured.items()},
            **{f"{name} GB/s": factor * nbytes / seconds / 1e9 for name, seconds in measured.items()},
        }

    def _reduce(self, array: Any) -> Callable[[], None]:
        stream = self.stream
        return lambda: self.comm.all_reduce(array, stream=stream)

    def _timed(self, call: Callable[[], Any], times: int) -> float:
        self.comm.barrier()
        call()
        self.runtime.sync()
        start = time.perf_counter()
        for _turn in range(times):
            call()
        self.runtime.sync()
        return (time.perf_counter() - start) / times

    def host_cost(self) -> dict[str, float]:
        """Nanoseconds that a call takes of the host, in bursts that never fill the queue."""
        array, raw = nbxrt.empty(256, "float32", device=self.rank), self._bare()
        address, handle, stream = array.ptr, self.comm.link.handle, self.stream
        event = self.runtime.event_create_flags(timing=False)
        record = self.runtime.prepared("event_record", event, stream)
        prepared = self.runtime.prepared("all_reduce", address, address, 256, "float32", "sum", handle, stream)
        variants: dict[str, Callable[[], float]] = {
            "bare ctypes": lambda: self._burst(lambda: raw(address, address, 256, 7, 0, handle, stream)),
            "nbxrt": lambda: self._burst(lambda: self.comm.all_reduce(array, stream=stream)),
            "nbxrt operation": lambda: self._burst(
                lambda: self.runtime.all_reduce(address, address, 256, "float32", "sum", handle, stream)
            ),
            "the same, prepared": lambda: self._burst(prepared),
            "prepared, with the vendor's record of an event": lambda: self._burst(lambda: (prepared(), record())),
        }
        if self.torch is not None:
            tensor = self.torch.zeros(256, device=f"cuda:{self.rank}")
            variants["torch"] = lambda: self._burst(lambda: self.torch.distributed.all_reduce(tensor))
        for variant in variants.values():
            variant()
        return {name: median(values) for name, values in in_turn(variants, 40).items()}

    def _bare(self) -> Any:
        """The vendor's function as a program without nbxrt would call it."""
        library = ctypes.CDLL(self.runtime.library("collectives").path)
        function = getattr(library, self.runtime.description["operations"]["all_reduce"][1][0][4][0][0])
        function.restype = ctypes.c_int
        pointer = ctypes.c_void_p
        function.argtypes = [pointer, pointer, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, pointer, pointer]
        return function

    def _burst(self, call: Callable[[], Any]) -> float:
        self.runtime.sync()
        self.comm.barrier()
        took = nanoseconds(call, BURST)
        self.runtime.sync()
        return took


def _torch(rank: int, size: int, folder: Path) -> Any:
    import torch

    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", f"file://{folder}/torch", world_size=size, rank=rank)
    torch.distributed.all_reduce(torch.ones(1, device=f"cuda:{rank}"))
    return torch


def one_rank(rank: int, size: int, folder: Path, largest: int, repeat: int) -> None:
    own = Rank(rank, size, folder)
    rows = [own.bandwidth(nbytes) for nbytes in SIZES if nbytes <= largest]
    cost = [own.host_cost() for _turn in range(repeat)]
    version = ".".join(map(str, own.runtime.version("collectives")))
    own.comm.close()
    if own.torch is not None:
        own.torch.distributed.destroy_process_group()
    if rank == 0:
        facts = {"ranks": size, "library": version, "join ms": own.start_ms, "all_reduce": rows, "host ns": cost}
        print(json.dumps(facts))


def peer_copies(nbytes: int) -> dict[str, float]:
    """GB/s of a copy from device 0 to device 1, before and after nbxrt has enabled access; it does so by itself."""
    runtime = nbxrt.open(os.environ["BENCH_BACKEND"])
    raw = []
    for device in (1, 0):  # of the runtime itself: what nbxrt has in its account may be open to peers already
        runtime.set_device(device)
        raw.append(runtime.malloc(nbytes))
    stream = nbxrt.Stream(0, non_blocking=True)

    def timed(call: Callable[[], Any]) -> float:
        call()
        stream.sync()
        start = time.perf_counter()
        for _turn in range(10):
            call()
        stream.sync()
        return 10 * nbytes / (time.perf_counter() - start) / 1e9

    bare = timed(lambda: runtime.memcpy_peer_async(raw[0], 1, raw[1], 0, nbytes, stream.handle))
    source, target = (nbxrt.Buffer(nbytes, device) for device in range(2))
    return {"before": bare, "nbxrt": timed(lambda: target.copy_from(source, stream=stream))}


# The process that starts the others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--repeat", type=int, default=1, help="how often the host cost is measured")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--peers", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one_rank(int(asked.one[0]), int(asked.one[1]), Path(asked.one[2]), asked.largest, asked.repeat)
    elif asked.peers:
        print(json.dumps(peer_copies(min(1 << 30, asked.largest))))
    else:
        _all(asked)


def _all(asked: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        environ = _environment(asked, folder)
        size = asked.ranks or (2 if asked.simulated else nbxrt.open(environ["BENCH_BACKEND"]).device_count())
        command = [sys.executable, __file__, "--largest", str(asked.largest), "--repeat", str(asked.repeat)]
        ranks = [
            subprocess.Popen(
                [*command, "--one", str(rank), str(size), place], env=environ, stdout=subprocess.PIPE, text=True
            )
            for rank in range(size)
        ]
        facts = json.loads(ranks[0].communicate(timeout=300)[0].splitlines()[-1])
        for rank in ranks[1:]:
            rank.communicate(timeout=60)
        if size > 1:
            done = subprocess.run([*command, "--peers"], env=environ, stdout=subprocess.PIPE, text=True, check=True)
            facts["peer GB/s"] = json.loads(done.stdout.splitlines()[-1])
    _print(facts)
    if asked.json:
        asked.json.write_text(json.dumps(facts, indent=2) + "\n", "utf-8")


def _environment(asked: argparse.Namespace, folder: Path) -> dict[str, str]:
    if asked.simulated:
        from nbxrt.simulation import build

        settings = build("cuda", folder / "simulated", devices=asked.ranks or 2).environment()
        return environment(BENCH_BACKEND="cuda", BENCH_TORCH="0", **settings)
    try:
        import torch

        has_torch = torch.cuda.is_available() and torch.distributed.is_nccl_available()
    except ImportError:
        has_torch = False
    return environment(BENCH_BACKEND=nbxrt.gpu_backend(), BENCH_TORCH=str(int(has_torch)))


def _print(facts: dict[str, Any]) -> None:
    print(f"{facts['ranks']} ranks, library {facts['library']}, joined in {facts['join ms']:.0f} ms\n")
    names = [name for name in facts["all_reduce"][0] if name != "bytes"]
    print("| all-reduce, bytes | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for row in facts["all_reduce"]:
        print(f"| {row['bytes']} | " + " | ".join(f"{row[name]:.1f}" for name in names) + " |")
    for costs in facts["host ns"]:
        print("\n| host cost of a call | ns | over bare ctypes |\n|---|---|---|")
        for name, cost in costs.items():
            print(f"| {name} | {cost:.0f} | {cost - costs['bare ctypes']:.0f} |")
    for name, speed in facts.get("peer GB/s", {}).items():
        print(f"\npeer copy, {name}: {speed:.1f} GB/s", end="")
    print()


if __name__ == "__main__":
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    main()
