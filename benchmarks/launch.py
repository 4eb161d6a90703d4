"""What the host pays for one launch of a Triton kernel: nbxrt, Triton's own way, cuda.core, and the bare call.

    python benchmarks/launch.py [BACKEND] [--rounds N] [--burst N] [--without WAY]
    python benchmarks/launch.py --stub              no device: a function that does nothing in the driver's place

On a device, launches come in bursts that are short enough that the queue never fills, on the default stream, every
way in turn and in both orders (the first of two variants that are measured looks slower). A ratio is the median over
the rounds of the ratio in each, since hosts were seen whose clock changes by almost a factor of two. All ways launch
the same kernel with 5 arguments (3 pointers, an integer, a constant), and one with 15 (matmul); nbxrt the first also
with an array, or three, that were made before the burst and never launched. `bare` is the vendor's launch function
called through ctypes with prebuilt objects, one by one, and nothing packed. Triton's own way needs torch on Triton up
to 3.7, and is left out where that is not installed. Prints JSON.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import functools
import json
import operator
import os
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Launch to its call; and launch to way to what one took in each round, in nanoseconds.
    Launches = dict[str, Callable[[], Any]]
    Times = dict[str, dict[str, list[float]]]

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

NOTHING = "int nothing(void *a, void *b, void *c, void *d) { return 0; }"
SHAPE = {"BM": 64, "BN": 64, "BK": 32}
#: Launches in a row on a stub, which has no queue.
STUB_BURST = 1000
#: Launches before a way is measured, and bursts of it in a round, of which the middle one counts.
WARM, BURSTS = 8, 3


def burst(call: Callable[[], object], count: int, sync: Callable[[], object]) -> float:
    """Nanoseconds of one of `count` calls in a row, the queue empty before."""
    sync()
    start = time.perf_counter_ns()
    for _each in range(count):
        call()
    taken = (time.perf_counter_ns() - start) / count
    sync()
    return taken


def interpreter() -> dict[str, float]:
    """How fast Python itself is there and then, since what nbxrt adds is Python: nanoseconds of a call that adds."""

    def added(a: int, b: int, c: int, d: int, e: int) -> int:
        return a + b + c + d + e

    taken = [burst(lambda: added(1, 2, 3, 4, 5), 1000, lambda: None) for _each in range(50)]
    return {"median": round(statistics.median(taken), 1), "min": round(min(taken), 1)}


def pointers(arrays: Any) -> list[int]:
    return [array.data_ptr() for array in arrays]


def launches(kernels: Any, vectors: Any, matrices: Any) -> Launches:
    """The two launches, as a user writes them."""
    x, y, out = vectors
    a, b, c = matrices
    add, multiply = kernels.add, kernels.product
    return {
        "5 arguments": lambda: add[(1,)](x, y, out, 1024, BLOCK=1024),
        "15 arguments": lambda: multiply[(1,)](a, b, c, 64, 64, 64, 64, 1, 64, 1, 64, 1, **SHAPE),
    }


def bare(compiled: Any, device: nbxrt.Device, values: list[int]) -> Callable[[], object]:
    """The vendor's launch of a compiled kernel, everything prebuilt; answers its code."""
    shape = compiled.run.shape
    slots = shape.slots
    slot = slots.fresh()
    parts = {"grid": shape.grid_bytes((1, 1, 1)), "stream": 0}
    rest = [parts.get(each, each) for each in slots.order]
    struct.pack_into(slots.format, slot[0], slots.begin, *values, *rest)
    module = nbxrt.Module(compiled.kernel, device)  # uninstalling unloads Triton's
    function, call = ctypes.c_void_p(module.get_function(compiled.name).handle), shape.call.function
    kept = module, slot  # whose code and memory the launch uses
    if slot[1] is None:
        block, shared = shape.threads, shape.shared
        return lambda _kept=kept: call(function, 1, 1, 1, block, 1, 1, shared, None, slot[2], None)
    configuration, arguments = slot[1], slot[2]
    return lambda _kept=kept: call(configuration, function, arguments, None)


class Unseen:
    """Arrays that were never launched, each taken once: views, which are arrays like those just made to a launch."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.made: list[Any] = []
        self.take = self.made.pop

    def make(self, count: int) -> None:
        """Have so many there."""
        self.made += [self.array[:] for _each in range(count - len(self.made))]


class Ways:
    """Each way of launching, by name, as its launches; and why one is not here."""

    def __init__(self, runtime: nbxrt.Runtime, kernels: Any) -> None:
        self.runtime, self.kernels = runtime, kernels
        self.device = device = nbxrt.Device(0, runtime=runtime)
        self.vectors = [nbxrt.zeros(1024, device=device) for _each in range(3)]
        self.matrices = [nbxrt.zeros((64, 64), "float16", device=device) for _each in range(3)]
        self.unseen = Unseen(self.vectors[2])
        self.skipped: dict[str, str] = {}
        self._installed = True

    def settle(self, count: int) -> None:
        """Have the queue empty, and what so many launches take."""
        self.runtime.sync()
        self.unseen.make(3 * count)

    def use(self, way: str) -> None:
        """Let launches go this way; the two that launch binaries do not care."""
        wanted = {"nbxrt": True, "triton": False}.get(way, self._installed)
        if wanted and not self._installed:
            nbxrt.triton.install(self.runtime)
        elif self._installed and not wanted:
            nbxrt.triton.uninstall()
        self._installed = wanted

    def all(self) -> dict[str, Launches]:
        made = {}
        for way, make in {
            "bare": self.bare,
            "nbxrt": self.nbxrt,
            "cuda.core": self.core,
            "triton": self.triton,
        }.items():
            if way in self.skipped:
                continue
            self.use("triton" if way == "triton" else "nbxrt")
            try:
                made[way] = make()
                self.settle(WARM)
                for call in made[way].values():
                    call()
            except Exception as failure:  # noqa: BLE001  # the other ways still tell something
                self.skipped[way] = f"{type(failure).__name__}: {failure}"
                made.pop(way, None)
        return made

    def nbxrt(self) -> Launches:
        add, (x, y, _out), new = self.kernels.add, self.vectors, self.unseen.take
        return launches(self.kernels, self.vectors, self.matrices) | {
            "5 arguments, a new array": lambda: add[(1,)](x, y, new(), 1024, BLOCK=1024),
            "5 arguments, three new arrays": lambda: add[(1,)](new(), new(), new(), 1024, BLOCK=1024),
        }

    def bare(self) -> Launches:
        made = launches(self.kernels, self.vectors, self.matrices)
        a = [*pointers(self.vectors), 1024]
        b = [*pointers(self.matrices), 64, 64, 64, 64, 64, 64]  # strides of 1 are no arguments
        given = {"5 arguments": a, "15 arguments": b}
        return {name: bare(call(), self.device, given[name]) for name, call in made.items()}

    def triton(self) -> Launches:
        """Triton as it is, on torch's tensors. Raises: ImportError without torch."""
        import torch

        vectors = [torch.zeros(1024, device="cuda") for _each in range(3)]
        matrices = [torch.zeros((64, 64), device="cuda", dtype=torch.float16) for _each in range(3)]
        made = launches(self.kernels, vectors, matrices)
        compiled = made["5 arguments"]()
        x, y, out = vectors
        made["5 arguments, compiled kernel"] = lambda: compiled[(1, 1, 1)](x, y, out, 1024, 1024)
        return made

    def core(self) -> Launches:
        """cuda.core's launch of the same binary. Raises: ImportError without it."""
        from cuda.core import Device, LaunchConfig, ObjectCode, launch

        compiled = self.nbxrt()["5 arguments"]()
        device = Device(0)
        device.set_current()
        stream = device.default_stream
        kernel = ObjectCode.from_cubin(compiled.kernel).get_kernel(compiled.name)
        shape = compiled.run.shape
        config = LaunchConfig(grid=1, block=shape.threads, shmem_size=shape.shared)
        x, y, out = pointers(self.vectors)
        n, null = ctypes.c_int(1024), ctypes.c_uint64(0)
        return {"5 arguments": lambda: launch(stream, config, kernel, x, y, out, n, null, null)}


def on_a_device(backend: str | None, rounds: int, count: int, without: list[str]) -> dict[str, Any]:
    runtime = nbxrt.open(backend)
    nbxrt.triton.install(runtime)
    import triton
    import triton_kernels as kernels

    ways = Ways(runtime, kernels)
    ways.skipped |= dict.fromkeys(without, "it was not asked for")
    times = in_rounds(ways, ways.all(), rounds, count)
    facts = {"device": runtime.device_name(0), "triton": triton.__version__, "burst": count, "rounds": rounds}
    return (
        facts
        | _told(times)
        | {
            "skipped": ways.skipped,
            "fallbacks": nbxrt.triton.stats()["fallbacks"],
            "interpreter": interpreter(),
            "torch": "torch" in sys.modules,
        }
    )


def in_rounds(ways: Ways, made: dict[str, Launches], rounds: int, count: int) -> Times:
    """What each launch took, round by round, every other round backwards."""
    times: Times = {}
    settle = functools.partial(ways.settle, max(WARM, count))
    for turn in range(rounds):
        for way in made if turn % 2 else reversed(made):
            ways.use(way)
            for what, call in made[way].items():
                burst(call, WARM, settle)
                taken = statistics.median(burst(call, count, settle) for _each in range(BURSTS))
                note(times, way, what, taken)
    if any(call() for call in made.get("bare", {}).values()):
        raise SystemExit("the bare launch was refused: its figures mean nothing")
    return times


def note(times: Times, way: str, what: str, taken: float) -> None:
    launch, _comma, how = what.partition(", ")
    times.setdefault(launch, {}).setdefault(f"{way} {how}".strip(), []).append(taken)


def _told(times: Times) -> dict[str, Any]:
    """Medians, and the median over the rounds of the ratio in each: what is measured close together is compared."""
    told: dict[str, Any] = {"nanoseconds": {}, "ratios": {}}
    for what, by_way in times.items():
        told["nanoseconds"][what] = {
            way: {"median": round(statistics.median(taken)), "min": round(min(taken))} for way, taken in by_way.items()
        }
        told["ratios"][what] = {
            f"nbxrt / {way}": round(statistics.median(map(operator.truediv, by_way["nbxrt"], taken)), 3)
            for way, taken in by_way.items()
            if way != "nbxrt"
        }
    return told


def on_a_stub(rounds: int) -> dict[str, Any]:
    """The launcher's own cost: the vendor's function is one that does nothing."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "launch"))
    import binaries

    from nbxrt.simulation import build

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "nothing.c").write_text(NOTHING)
    library = folder / "nothing.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, folder / "nothing.c"], check=True)  # noqa: S607
    simulation = build("cuda", folder / "cuda")
    simulation.on_image(binaries.module_text)
    simulation.set_attribute("compute_capability_major", 9)
    simulation.set_attribute("compute_capability_minor", 0)
    runtime = simulation.open()
    nbxrt.triton.install(runtime)
    import triton
    import triton_kernels as kernels

    call, _attributes = runtime.launches.of({})
    nothing = ctypes.CDLL(str(library)).nothing
    call.function = nothing
    ways = Ways(runtime, kernels)
    made = {"nbxrt": ways.nbxrt(), "bare": ways.bare()}
    settle = functools.partial(ways.settle, STUB_BURST)
    times: Times = {}
    for _turn in range(rounds):
        for way, calls in made.items():
            for what, each in calls.items():
                burst(each, 1, settle)
                note(times, way, what, burst(each, STUB_BURST, settle))
    return {"device": "none: a stub", "triton": triton.__version__} | _told(times) | {"stats": nbxrt.triton.stats()}


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("backend", nargs="?")
    given.add_argument("--rounds", type=int, default=40)
    given.add_argument("--burst", type=int, default=64)
    given.add_argument("--stub", action="store_true")
    given.add_argument("--without", action="append", default=[], metavar="WAY", help="such as triton, and so torch")
    arguments = given.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    facts = (
        on_a_stub(arguments.rounds)
        if arguments.stub
        else on_a_device(arguments.backend, arguments.rounds, arguments.burst, arguments.without)
    )
    print(json.dumps({"python": platform.python_version(), **facts}, indent=1))


if __name__ == "__main__":
    main()
