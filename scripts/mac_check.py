"""Check the `metal` backend on a Mac, and print what was seen; nothing but Python 3.10 is needed.

    python3 scripts/mac_check.py [--device N] [--json FILE]

It compares every message of the backend's file with the live classes, runs the conformance suite, then facts that only
Metal can tell. Exit status 1 when anything is wrong. Set MTL_DEBUG_LAYER=1 to have Metal validate every call as well.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

import nbxrt  # noqa: E402  # the one beside this script
from nbxrt import conformance, errors  # noqa: E402
from nbxrt.cli.doctor.messages import compared  # noqa: E402
from nbxrt.conformance.bench import Bench, host_read, host_write  # noqa: E402
from nbxrt.conformance.checking import Check, check, expect, expect_bytes, expect_that, pattern  # noqa: E402
from nbxrt.conformance.suite import judged  # noqa: E402

BACKEND = "metal"
#: More command buffers than a queue holds.
MANY = 300


@check("fact")
def the_live_classes_answer_every_message_with_the_types_of_the_file(bench: Bench) -> str:
    """A difference would be a call with wrong arguments."""
    found = compared(bench.runtime)
    expect(found["differences"], [], "differences")
    return f"{found['compared']} messages"


@check("fact", ("malloc", "free", "memset_async", "stream_create", "stream_sync"))
def more_work_than_a_queue_holds_does_not_hang(bench: Bench) -> str:
    """A queue that is full makes the next command buffer wait for ever, unless the ones before it are let go."""
    stream, address = bench.stream(), bench.memory(4096)
    start = time.perf_counter()
    for number in range(MANY):
        bench.runtime.memset_async(address, number, 4096, stream)
    bench.runtime.stream_sync(stream)
    expect_bytes(bench.read(address, 4096), bytes([(MANY - 1) % 256]) * 4096, "memory after many fills")
    return f"{MANY} fills, {1e6 * (time.perf_counter() - start) / MANY:.1f} us each"


@check("fact", ("malloc", "free", "memset_async", "memcpy_async", "stream_create", "stream_sync"))
def sizes_and_offsets_that_are_no_multiple_of_four_are_exact(bench: Bench) -> None:
    """The device's own fills and copies want multiples of 4."""
    stream, one, other = bench.stream(), bench.memory(8192), bench.memory(8192)
    for offset, size in ((0, 1), (1, 2), (3, 5), (2, 1023), (5, 4096)):
        bench.runtime.memset_async(one, 0x11, 8192, stream)
        bench.runtime.memset_async(one + offset, 0x22, size, stream)
        bench.runtime.memcpy_async(other + 1, one, 8000, "device_to_device", stream)
        bench.runtime.stream_sync(stream)
        expected = (b"\x11" * offset + b"\x22" * size + b"\x11" * 8192)[:8000]
        expect_bytes(bench.read(other + 1, 8000), expected, f"a fill of {size} bytes at {offset}, then a copy")


@check("fact", ("host_register", "host_unregister", "malloc", "free", "memcpy_async", "stream_sync"))
def registered_memory_is_copied_by_the_device_in_both_directions(bench: Bench) -> str:
    """It begins and ends inside pages, as memory of malloc does."""
    size = 5 * mmap.PAGESIZE + 64
    host, device = bench.host(size, 16) + 16, bench.memory(size)
    size -= 16
    bench.runtime.host_register(host, size)
    try:
        host_write(host, pattern(size))
        bench.runtime.memcpy_async(device, host, size, "host_to_device", 0)
        bench.runtime.stream_sync(0)
        host_write(host, bytes(size))
        bench.runtime.memcpy_async(host, device, size, "device_to_host", 0)
        bench.runtime.stream_sync(0)
        expect_bytes(host_read(host, size), pattern(size), "registered memory after a round trip")
    finally:
        bench.runtime.host_unregister(host)
    return f"{size} bytes, pages of {mmap.PAGESIZE}"


@check("fact", ("mem_get_info", "malloc", "free"))
def free_memory_comes_back(bench: Bench) -> str:
    """A hundred allocations of 16 MiB leave the free memory as it was."""
    before = bench.runtime.mem_get_info()
    for _turn in range(100):
        bench.runtime.free(bench.runtime.malloc(16 << 20))
    after = bench.runtime.mem_get_info()
    expect_that(abs(before[0] - after[0]) < 64 << 20, f"free memory before and after: {before[0]}, {after[0]}")
    return f"{after[0] / 2**30:.2f} of {after[1] / 2**30:.2f} GiB"


FACTS = tuple(value for value in vars().values() if isinstance(value, Check))


def main() -> int:
    """Check, print, and say by the exit status whether all is well."""
    asked = _parser().parse_args()
    start = time.perf_counter()
    try:
        runtime = nbxrt.open(BACKEND)
        if not runtime.device_count():
            print("Metal has no device here", file=sys.stderr)
            return 1
        image = conformance.ModuleImage((HERE.parent / "images" / f"{BACKEND}.msl").read_bytes())
        report = conformance.run(runtime, device=asked.device, module_image=image)
    except errors.NbxrtError as error:
        print(f"error[{error.reference}]: {error}", file=sys.stderr)
        return 2
    rows = [*report.rows, *(_row(runtime, report.device, fact) for fact in FACTS)]
    machine = _machine(runtime, report, time.perf_counter() - start)
    for key, value in machine.items():
        print(f"{key:10} {value}")
    for row in rows:
        detail = "; ".join(row.detail.splitlines())
        print(f"{row.outcome!s:8} {row.group:14} {row.check}" + (f": {detail}" if detail else ""))
    counts = {outcome.value: sum(row.outcome is outcome for row in rows) for outcome in conformance.Outcome}
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if asked.json:
        plain = [{**vars(row), "outcome": row.outcome.value} for row in rows]
        asked.json.write_text(
            json.dumps({"machine": machine, "counts": counts, "rows": plain}, indent=2) + "\n", "utf-8"
        )
    return 1 if counts["wrong"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Check the metal backend on a Mac.")
    parser.add_argument("--device", type=int, help="which device; the default one when left out")
    parser.add_argument("--json", type=Path, help="also write everything into this file")
    return parser


def _row(runtime: nbxrt.Runtime, device: int, fact: Check) -> conformance.Row:
    start = time.perf_counter()
    outcome, detail = judged(fact, Bench(runtime, device, runtime.device_count(), None))
    return conformance.Row(fact.group, fact.name, fact.needs, outcome, detail, time.perf_counter() - start)


def _machine(runtime: nbxrt.Runtime, report: conformance.Report, seconds: float) -> dict[str, Any]:
    return {
        "device": f"{report.device} of {runtime.device_count()}: {report.device_name}",
        "system": f"{platform.platform()}, {platform.machine()}",
        "Python": platform.python_version(),
        "nbxrt": nbxrt.__version__,
        "validation": os.environ.get("MTL_DEBUG_LAYER", "off"),
        "seconds": f"{seconds:.1f}",
    }


if __name__ == "__main__":
    sys.exit(main())
