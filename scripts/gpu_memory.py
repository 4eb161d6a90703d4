"""Use the account of memory on a real card, policy by policy, and check every byte of it.

    PYTHONPATH=. python scripts/gpu_memory.py [--backend NAME] [--policies NAME,…] [--seconds N] [--json FILE]

Blocks are filled with a pattern of their own and read back before they are freed, so that two owners of one byte, or
memory that was moved while it was in use, show. What the card has free is compared before and after. Nothing is
asserted by halves: the last line says how many checks failed, and the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import nbxrt

POLICIES = ("direct", "caching", "stream_ordered", "expandable")
MIB = 1 << 20
BOUND = 4 << 30

rows: list[dict[str, Any]] = []


def main() -> None:
    parser = argparse.ArgumentParser(description="The account of memory on a real card.")
    parser.add_argument("--backend")
    parser.add_argument("--seconds", type=float, default=3, help="of random use, for each policy")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    import nbxrt

    runtime = nbxrt.open(asked.backend)
    print(f"{runtime.title} {runtime.version()}: {runtime.device_name(0)}")
    for policy in asked.policies.split(","):
        account = nbxrt.DeviceAllocator(runtime, policy)
        got = account.stats(0)
        if got["policy"] != policy:
            row(policy, "is supported", False, got["why"])
            continue
        for check in (random_use, other_streams, out_of_memory, threads, pinned, captures, alone):
            attempt(policy, check, account, asked.seconds)
        attempt(policy, everything_back, account, asked.seconds)
    if runtime.device_count() > 1:
        attempt("expandable", peers, nbxrt.DeviceAllocator(runtime, "expandable"), asked.seconds)
    failed = [each for each in rows if not each["ok"]]
    print(f"{len(rows) - len(failed)} checks hold, {len(failed)} do not")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1), "utf-8")
    sys.exit(bool(failed))


def row(policy: str, check: str, ok: bool, seen: str) -> None:
    rows.append({"policy": policy, "check": check, "ok": ok, "seen": seen})
    print(f"{policy:<15} {check:<18} {'holds' if ok else 'FAILS':<6} {seen}", flush=True)


def attempt(
    policy: str, check: Callable[[nbxrt.DeviceAllocator, float], str], account: nbxrt.DeviceAllocator, seconds: float
) -> None:
    name = check.__name__.replace("_", " ")
    try:
        row(policy, name, True, check(account, seconds))
    except Exception as error:  # noqa: BLE001  # every check is told of
        row(policy, name, False, f"{type(error).__name__}: {error}".splitlines()[0])


def expect(holds: bool, said: str) -> None:
    if not holds:
        raise AssertionError(said)


class Blocks:
    """Blocks with a byte of their own at both ends, which is read back before they are freed."""

    def __init__(self, account: nbxrt.DeviceAllocator) -> None:
        self.account, self.runtime = account, account.runtime
        self.held: list[tuple[int, int, int]] = []
        self.byte = ctypes.create_string_buffer(2)

    def take(self, nbytes: int, mark: int) -> None:
        ptr = self.account.malloc(nbytes)
        self.runtime.memset_async(ptr, mark, nbytes, 0)
        self.held.append((ptr, nbytes, mark))

    def give(self, index: int) -> None:
        ptr, nbytes, mark = self.held.pop(index)
        place = ctypes.addressof(self.byte)
        self.runtime.memcpy(place, ptr, 1, "device_to_host")
        self.runtime.memcpy(place + 1, ptr + nbytes - 1, 1, "device_to_host")
        expect(self.byte.raw == bytes([mark, mark]), f"a block of {nbytes} bytes had {self.byte.raw!r}, not {mark}")
        self.account.free(ptr)


def random_use(account: nbxrt.DeviceAllocator, seconds: float) -> str:
    dice, blocks, live, turns = random.Random(7), Blocks(account), 0, 0  # noqa: S311
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        turns += 1
        nbytes = dice.choice((dice.randint(1, 4096), dice.randint(1, MIB), dice.randint(MIB, 200 * MIB)))
        while live + nbytes > BOUND:
            index = dice.randrange(len(blocks.held))
            live -= blocks.held[index][1]
            blocks.give(index)
        blocks.take(nbytes, turns % 251)
        live += nbytes
        if dice.random() < 0.002:
            account.trim(0)
    peak, reserved = account.peak_memory_allocated(0), account.peak_memory_reserved(0)
    while blocks.held:
        blocks.give(-1)
    return f"{turns} blocks, peak held {peak >> 20} MiB, reserved {reserved >> 20} MiB ({reserved / peak:.3f})"


def other_streams(account: nbxrt.DeviceAllocator, _seconds: float) -> str:
    runtime = account.runtime
    stream = runtime.stream_create_flags(non_blocking=True)
    nbytes, reused = 256 * MIB, 0
    for turn in range(30):
        ptr = account.malloc(nbytes)
        runtime.sync()
        for _again in range(20):  # long enough to be under way when the block is freed
            runtime.memset_async(ptr, 1, nbytes, stream)
        account.record_use(ptr, stream)
        account.free(ptr)
        following = account.malloc(nbytes)
        reused += following == ptr
        runtime.memset_async(following, 2, nbytes, 0)
        runtime.sync()
        byte = ctypes.create_string_buffer(1)
        runtime.memcpy(ctypes.addressof(byte), following + nbytes - 1, 1, "device_to_host")
        expect(byte.raw == b"\x02", f"turn {turn}: the other stream wrote into a block that was given out again")
        account.free(following)
    runtime.stream_destroy(stream)
    return f"30 turns, {reused} times the same block"


def out_of_memory(account: nbxrt.DeviceAllocator, _seconds: float) -> str:
    import nbxrt

    runtime = account.runtime
    _free, total = runtime.mem_get_info()
    held = account.malloc(64 * MIB)
    try:
        account.malloc(2 * total)
    except nbxrt.OutOfMemoryError as error:
        expect(error.requested >= 2 * total, f"requested is {error.requested}")
        expect(runtime.get_last_error() == 0, "the vendor's error is still stored")
        said = error.hint
    else:
        raise AssertionError("twice the card's memory was given")
    account.free(held)
    account.free(account.malloc(64 * MIB))
    return f"hint: {said}"


def threads(account: nbxrt.DeviceAllocator, seconds: float) -> str:
    faults: list[BaseException] = []
    counts: list[int] = []
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        try:
            account.runtime.set_device(0)
            dice, blocks, turns = random.Random(number), Blocks(account), 0  # noqa: S311
            while time.monotonic() < end:
                turns += 1
                blocks.take(dice.randint(1, 3 * MIB), (number * 16 + turns) % 251)
                if len(blocks.held) > 8:
                    blocks.give(dice.randrange(8))
                if turns % 200 == number:
                    account.trim(0)
            while blocks.held:
                blocks.give(-1)
            counts.append(turns)
        except BaseException as error:  # noqa: BLE001  # told by the main thread
            faults.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if faults:
        raise faults[0]
    return f"16 threads, {sum(counts)} blocks"


def pinned(account: nbxrt.DeviceAllocator, _seconds: float) -> str:
    runtime = account.runtime
    nbytes, device = 64 * MIB, account.malloc(64 * MIB)
    stream = runtime.stream_create_flags(non_blocking=True)
    for turn in range(20):
        host = account.malloc_host(nbytes)
        ctypes.memset(host, turn + 1, nbytes)
        runtime.memcpy_async(device, host, nbytes, "host_to_device", stream)
        account.record_use(host, stream)
        account.free_host(host)
        other = account.malloc_host(nbytes)
        ctypes.memset(other, 0xEE, nbytes)
        account.free_host(other)
        runtime.stream_sync(stream)
        byte = ctypes.create_string_buffer(1)
        runtime.memcpy(ctypes.addressof(byte), device + nbytes - 1, 1, "device_to_host")
        expect(byte.raw == bytes([turn + 1]), f"turn {turn}: pinned memory was used again under a copy")
    runtime.stream_destroy(stream)
    account.free(device)
    return f"20 turns, {account.stats(0)['pinned_reserved'] >> 20} MiB pinned"


def captures(account: nbxrt.DeviceAllocator, _seconds: float) -> str:
    """Whatever is asked of the account while a stream records a graph, the graph is whole and does its work."""
    runtime, policy = account.runtime, account.stats(0)["policy"]
    said = []
    for mode in ("global", "thread_local", "relaxed"):
        stream, other = runtime.stream_create(), runtime.stream_create()
        target = account.malloc(MIB, 0, stream)
        freed = [account.malloc(nbytes, 0, each) for nbytes in (4 * MIB, 3000) for each in (stream, other)]
        for ptr in freed:
            account.record_use(ptr, other)
            account.free(ptr)
        runtime.sync()
        account.trim(keep=1 << 40)
        runtime.stream_begin_capture(stream, mode)
        runtime.memset_async(target, 9, MIB, stream)
        held, refused, wrong = [], 0, ""
        for nbytes, each in ((4 * MIB, stream), (3000, other), (300 * MIB, stream), (MIB, other)):
            try:
                held.append(account.malloc(nbytes, 0, each))
            except _refusal() as error:
                wrong = wrong if "would spoil the graph" in str(error) else str(error).splitlines()[0]
                refused += 1
        for ptr in held:
            account.record_use(ptr, other)
            account.free(ptr)
        account.trim()
        graph = runtime.stream_end_capture(stream)
        expect(not wrong, f"{mode}: {wrong}")
        launched = runtime.graph_instantiate(graph)
        runtime.memset(target, 0, MIB)
        runtime.graph_launch(launched, stream)
        runtime.stream_sync(stream)
        byte = ctypes.create_string_buffer(1)
        runtime.memcpy(ctypes.addressof(byte), target + 12345, 1, "device_to_host")
        expect(byte.raw == b"\x09", f"the graph wrote {byte.raw!r}")
        runtime.graph_exec_destroy(launched)
        runtime.graph_destroy(graph)
        account.free(target)
        runtime.sync()
        for each in (stream, other):
            runtime.stream_destroy(each)
        account.trim()
        expect(account.memory_allocated(0) == 0, f"{account.memory_allocated(0)} bytes are held")
        said.append(f"{mode} {refused} refused")
    expect(policy != "expandable" or all(" 0 " in each for each in said), ", ".join(said))
    return ", ".join(said)


def _refusal() -> type[Exception]:
    import nbxrt

    return nbxrt.DeviceError


def alone(account: nbxrt.DeviceAllocator, _seconds: float) -> str:
    ptr = account.malloc_alone(3 * MIB, 0)
    handle = account.runtime.ipc_get_mem_handle(ptr, 3 * MIB)
    account.free(ptr)
    expect(account.memory_allocated(0) == 0, f"{account.memory_allocated(0)} bytes are held")
    return f"a handle of {len(handle)} bytes for other processes"


def everything_back(account: nbxrt.DeviceAllocator, _seconds: float) -> str:
    runtime = account.runtime
    runtime.sync()
    account.trim()
    before, _total = runtime.mem_get_info()
    expect(account.memory_allocated(0) == 0, f"{account.memory_allocated(0)} bytes are held")
    left = account.memory_reserved(0) if account.stats(0)["policy"] != "stream_ordered" else 0
    expect(left == 0, f"{left} bytes are reserved")
    ptr = account.malloc(512 * MIB)
    account.free(ptr)
    runtime.sync()
    account.trim()
    after, _total = runtime.mem_get_info()
    expect(abs(before - after) < 64 * MIB, f"{before - after} bytes of the card are missing")
    return f"{after >> 20} MiB of the card are free"


def peers(account: nbxrt.DeviceAllocator, _seconds: float) -> str:
    runtime = account.runtime
    if not runtime.device_can_access_peer(1, 0):
        return "device 1 cannot access device 0"
    ptr = account.malloc(64 * MIB, 0)
    account.admit_peer(0, 1)
    later = account.malloc(64 * MIB, 0)
    byte = ctypes.create_string_buffer(1)
    for mark, address in enumerate((ptr, later), 3):
        runtime.set_device(1)
        runtime.memset(address, mark, 64 * MIB)
        runtime.sync()
        runtime.set_device(0)
        runtime.memcpy(ctypes.addressof(byte), address, 1, "device_to_host")
        expect(byte.raw == bytes([mark]), f"device 1 wrote {byte.raw!r}")
    for address in (ptr, later):
        account.free(address)
    return "device 1 writes memory of device 0"


if __name__ == "__main__":
    main()
