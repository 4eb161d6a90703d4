"""Try on a real card what nbxrt and other libraries give each other, and what only hardware can tell of the objects.

    python scripts/gpu_interop.py [BACKEND] [--json FILE]

Peers that are installed are tried: CuPy, PyTorch, JAX, numba. The others are named as missing. It prints a table, one
row a check, and exits with 1 when one is wrong. Nothing but Python and the peers is needed.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import nbxrt  # the one beside this script

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = [(), (3,), (2, 0, 3), (2, 3, 4)]
TYPES = ["bool", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "complex64"]
#: Bytes of a copy from the host that takes long enough for a reader that does not wait to be early.
LARGE = 1 << 30

CHECKS: dict[str, Callable[[], str]] = {}


class MissingError(Exception):
    """What a check needs is not here."""


def check(function: Callable[[], str]) -> Callable[[], str]:
    """A check by its name as a sentence; its answer is what was seen."""
    CHECKS[function.__name__.replace("_", " ")] = function
    return function


def peer(name: str) -> Any:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise MissingError(f"{name}: {error}") from None
    if name == "torch" and not module.cuda.is_available():
        raise MissingError("torch without a device")
    if name == "jax" and module.default_backend() != "gpu":
        raise MissingError("jax without a device")
    return module


def _backend() -> str:
    return nbxrt.current_device().runtime.name


def expect(found: object, wanted: object, what: str = "") -> None:
    if found != wanted:
        raise AssertionError(f"{what} {found!r} instead of {wanted!r}")


def pattern(shape: tuple[int, ...], kind: str) -> nbxrt.DeviceArray:
    """An array whose bytes are 0 and 1, which every type has a value for."""
    array = nbxrt.empty(shape, kind)
    if array.nbytes:
        array.copy_from(bytes(number % 2 for number in range(array.nbytes)))
    return array


# Round trips


def round_trips(take: Callable[[Any], Any], kinds: list[str], address: Callable[[Any], int]) -> str:
    count = 0
    for kind in kinds:
        for shape in SHAPES:
            ours = pattern(shape, kind)
            theirs = take(ours)
            expect(tuple(theirs.shape), shape, kind)
            if ours.size:
                expect(address(theirs), ours.ptr, f"address of {kind} {shape}")
            back = nbxrt.from_dlpack(theirs)
            expect((back.shape, back.dtype, back.ptr), (ours.shape, ours.dtype, ours.ptr))
            expect(back.tobytes(), ours.tobytes())
            count += 1
    return f"{count} arrays, none copied"


@check
def torch_takes_and_gives_arrays() -> str:
    torch = peer("torch")
    kinds = [*TYPES, "float8_e4m3fn", "float8_e5m2"]
    return round_trips(torch.from_dlpack, kinds, lambda tensor: int(tensor.data_ptr()))


@check
def cupy_takes_and_gives_arrays() -> str:
    cupy = peer("cupy")
    kinds = [kind for kind in TYPES if kind != "bfloat16"]
    return round_trips(cupy.from_dlpack, kinds, lambda array: int(array.data.ptr))


@check
def jax_takes_and_gives_arrays() -> str:
    jax = peer("jax")
    kinds = [kind for kind in TYPES if kind not in ("int64", "float64")]
    return round_trips(jax.dlpack.from_dlpack, kinds, lambda array: int(array.unsafe_buffer_pointer()))


@check
def strides_and_parts_arrive_in_torch() -> str:
    torch = peer("torch")
    whole = torch.arange(24.0, device="cuda").reshape(2, 3, 4)
    ours = nbxrt.from_dlpack(whole)
    for index in [(slice(None), slice(None, None, 2)), (1,), (0, slice(1, 3))]:
        expect(torch.from_dlpack(ours[index]).tolist(), whole[index].tolist())
        expect(
            nbxrt.from_dlpack(whole[index].transpose(0, -1)).numpy().tolist(), whole[index].transpose(0, -1).tolist()
        )
    return "3 parts, both ways"


@check
def the_array_interface_goes_both_ways() -> str:
    cupy = peer("cupy")
    ours = pattern((3, 4), "float32")
    expect(int(cupy.asarray(ours).data.ptr), ours.ptr)
    theirs = cupy.arange(12, dtype="float32").reshape(3, 4)[::-1, ::2]

    class Alone:
        """An array that has its interface and no DLPack."""

        __cuda_array_interface__ = theirs.__cuda_array_interface__

    expect(nbxrt.asarray(Alone()).numpy().tolist(), theirs.get().tolist())
    return "CuPy"


@check
def numba_takes_the_array_interface() -> str:
    cuda = importlib.import_module("numba.cuda") if peer("numba") else None
    taken = cuda.as_cuda_array(pattern((5,), "float32"))
    expect(taken.shape, (5,))
    return "as_cuda_array"


@check
def streams_of_the_peers_are_taken() -> str:
    seen = []
    for name, handle in (
        ("torch", "cuda_stream"),
        ("cupy", "ptr"),
    ):
        try:
            module = peer(name)
        except MissingError:
            continue
        theirs = module.cuda.Stream()
        stream = nbxrt.Stream.from_handle(getattr(theirs, handle), owner=theirs)
        buffer = nbxrt.Buffer(64)
        buffer.fill(5, stream=stream)
        stream.sync()
        expect(buffer.tobytes(), b"\5" * 64)
        seen.append(name)
    try:
        core = importlib.import_module("cuda.core")
    except ImportError:
        pass
    else:
        device = core.Device(0)
        device.set_current()
        theirs = device.create_stream()
        nbxrt.Buffer(64).fill(1, stream=theirs)
        device.create_stream(nbxrt.Stream())
        seen.append("cuda.core, both ways by the protocol")
    if not seen:
        raise MissingError("no peer with streams")
    return ", ".join(seen)


# Order


@check
def the_race_is_seen_without_order() -> str:
    """The race test can fail: a reader that asks for no order is early."""
    early = _races(order=False)
    return (
        f"{early} of 10 readers were early without order"
        if early
        else "no reader was early: the test proves nothing here"
    )


@check
def no_reader_is_early_with_order() -> str:
    expect(_races(order=True), 0, "early readers")
    return "10 readers of torch, none early"


def _races(*, order: bool) -> int:
    """How many of ten readers on a stream of PyTorch saw what was there before a fill on a stream of ours."""
    torch = peer("torch")
    buffer, other, pinned = nbxrt.Buffer(64), nbxrt.Buffer(LARGE), nbxrt.Buffer(LARGE, kind="pinned")
    ours, theirs = nbxrt.Stream(non_blocking=True), torch.cuda.Stream()
    early = 0
    for _round in range(10):
        buffer.fill(0)
        nbxrt.Device(0).sync()
        with ours:
            other.copy_from(pinned, stream=ours)  # takes long, and leaves the processors to the reader
            buffer.fill(7)
            capsule = buffer.__dlpack__(stream=theirs.cuda_stream if order else -1)
        with torch.cuda.stream(theirs):
            tensor = torch.utils.dlpack.from_dlpack(capsule)
            last = tensor[-1:].clone()
        theirs.synchronize()
        early += int(last.item()) != 7
        nbxrt.Device(0).sync()
    return early


@check
def what_torch_wrote_is_seen_in_order() -> str:
    torch = peer("torch")
    ours, theirs = nbxrt.Stream(non_blocking=True), torch.cuda.Stream()
    tensor = torch.zeros(LARGE, dtype=torch.uint8, device="cuda")
    for number in range(1, 6):
        torch.cuda.synchronize()
        with torch.cuda.stream(theirs):
            torch.cuda._sleep(20_000_000)  # noqa: SLF001  # so that a reader who does not wait is early
            tensor.fill_(number)
            taken = nbxrt.from_dlpack(tensor, stream=ours)
        seen = bytearray(1)
        nbxrt.asarray(taken)[-1:].copy_to(seen, stream=ours)
        ours.sync()
        expect(seen[0], number)
    return "5 reads, each of the last write"


@check
def memory_is_not_used_again_before_a_consumers_stream_is_done() -> str:
    torch = peer("torch")
    theirs = torch.cuda.Stream()
    out = torch.empty(LARGE, dtype=torch.uint8, device="cuda")
    for _round in range(5):
        buffer = nbxrt.Buffer(LARGE)
        buffer.fill(3)
        with torch.cuda.stream(theirs):
            tensor = torch.utils.dlpack.from_dlpack(buffer.__dlpack__(stream=theirs.cuda_stream))
            for _each in range(4):
                out.copy_(tensor, non_blocking=True)
            del tensor
        del buffer
        again = nbxrt.Buffer(LARGE)
        again.fill(9)
        theirs.synchronize()
        expect(int(out.max()), 3)
        del again
    return "5 rounds"


# Both libraries in one process


@check
def torch_and_nbxrt_share_one_context_and_one_current_device() -> str:
    torch = peer("torch")
    if torch.cuda.device_count() < 2:
        raise MissingError("a second device")
    torch.cuda.set_device(1)
    nbxrt.invalidate_current_device_cache()
    expect(nbxrt.current_device().index, 1)
    with nbxrt.Device(0):
        expect(torch.cuda.current_device(), 0)
    expect(torch.cuda.current_device(), 1)
    torch.cuda.set_device(0)
    nbxrt.Device(0).set_current()
    return "two devices"


@check
def both_allocators_work_side_by_side() -> str:
    torch = peer("torch")
    kept: list[Any] = []
    for number in range(200):
        kept.append(
            nbxrt.zeros((1 << 18,), "uint8") if number % 2 else torch.zeros(1 << 18, dtype=torch.uint8, device="cuda")
        )
        if number % 5 == 0:
            kept.pop(0)
    torch.cuda.synchronize()
    expect({int(torch.from_dlpack(each).max()) for each in kept}, {0})
    return "200 blocks of each"


# What only hardware can tell of the objects


@check
def pinned_copies_do_not_hold_the_caller() -> str:
    stream = nbxrt.Stream(non_blocking=True)
    buffer, pinned, plain = nbxrt.Buffer(LARGE), nbxrt.Buffer(LARGE, kind="pinned"), bytearray(LARGE)
    times = []
    for source in (pinned, plain):
        buffer.copy_from(source, stream=stream)
        stream.sync()
        start = time.perf_counter()
        buffer.copy_from(source, stream=stream)
        given = time.perf_counter() - start
        stream.sync()
        times.append((given * 1000, (time.perf_counter() - start) * 1000))
    return "; ".join(
        f"{name}: call {given:.2f} ms of {whole:.2f}"
        for name, (given, whole) in zip(("pinned", "pageable"), times, strict=True)
    )


@check
def a_host_source_may_be_dropped_at_once() -> str:
    stream, buffer = nbxrt.Stream(non_blocking=True), nbxrt.Buffer(1 << 26)
    for number in range(20):
        buffer.copy_from(bytearray(bytes([number])) * (1 << 26), stream=stream)
        gc.collect()
        stream.sync()
        expect(set(buffer.tobytes()), {number})
    return "20 copies"


@check
def graphs_replay_and_keep_their_memory() -> str:
    stream = nbxrt.Stream()
    target = nbxrt.Buffer(1 << 20)
    with stream.capture() as graph:
        source = nbxrt.Buffer.from_handle(target.ptr, 1 << 20, owner=target)
        source.fill(6, stream=stream)
        target[:4].copy_from(b"abcd", stream=stream)
        del source
    target.fill(0)
    for _round in range(3):
        graph.launch(stream)
    stream.sync()
    expect(target[:8].tobytes(), b"abcd\6\6\6\6")
    return "3 launches"


@check
def events_time_what_the_device_does() -> str:
    stream, buffer = nbxrt.Stream(non_blocking=True), nbxrt.Buffer(LARGE)
    start = stream.record()
    for _each in range(20):
        buffer.fill(1, stream=stream)
    end = stream.record()
    end.sync()
    return f"20 fills of 1 GiB in {end - start:.2f} ms"


@check
def work_on_the_second_device_makes_no_context_on_the_first() -> str:
    if len(nbxrt.devices()) < 2:
        raise MissingError("a second device")
    program = """
import sys, nbxrt
nbxrt.open(sys.argv[1])
device = nbxrt.Device(1)
stream = device.create_stream()
buffer = device.allocate(64, stream=stream)
buffer.copy_from(bytes(64), stream=stream)
stream.record().sync()
buffer.close()
stream.close()
print(nbxrt.process_memory_report(0), nbxrt.process_memory_report(1))
"""
    return f"devices 0 and 1: {_said_by(program)}"


@check
def copies_between_devices_arrive() -> str:
    if len(nbxrt.devices()) < 2:
        raise MissingError("a second device")
    first, second = nbxrt.devices()[:2]
    one, other = nbxrt.Buffer(1 << 26, first), nbxrt.Buffer(1 << 26, second)
    one.fill(b"\1\2\3\4")
    first.sync()
    other.copy_from(one)
    expect(other.tobytes(), b"\1\2\3\4" * (1 << 24))
    return f"{first.copy_path(second)}"


@check
def peer_access_brings_a_copy_to_the_speed_of_the_link() -> str:
    """Before access is enabled, by the operation itself, which enables nothing; then as objects copy, after it."""
    if len(nbxrt.devices()) < 2:
        raise MissingError("a second device")
    program = """
import sys, time, nbxrt
runtime = nbxrt.open(sys.argv[1])
first, second = nbxrt.devices()[:2]
one, other = nbxrt.Buffer(1 << 30, first), nbxrt.Buffer(1 << 30, second)
stream = nbxrt.Stream(first)
def rate(copy):
    best = 0.0
    for _round in range(5):
        stream.sync()
        start = time.perf_counter()
        copy()
        stream.sync()
        best = max(best, 1.073741824 / (time.perf_counter() - start))
    return round(best, 1)
def bare(): first.on(runtime.memcpy_peer_async, other.ptr, 1, one.ptr, 0, 1 << 30, stream.handle)
def ours(): other.copy_from(one, stream=stream)
before, enabled = rate(bare), rate(ours)
print(f"{before} GB/s before, {enabled} after by objects, {rate(bare)} by the operation; {first.copy_path(second)}")
"""
    return _said_by(program)


@check
def a_block_with_the_second_device_makes_no_context_on_the_first() -> str:
    if len(nbxrt.devices()) < 2:
        raise MissingError("a second device")
    program = """
import sys, threading, nbxrt
nbxrt.open(sys.argv[1])
def work():
    with nbxrt.Device(1):
        nbxrt.empty(8)
thread = threading.Thread(target=work)
thread.start()
thread.join()
with nbxrt.Device(1):
    nbxrt.empty(8)
print(nbxrt.process_memory_report(0), nbxrt.process_memory_report(1))
"""
    return f"devices 0 and 1: {_said_by(program)}"


@check
def memory_of_the_second_device_is_opened_by_another_process() -> str:
    if len(nbxrt.devices()) < 2:
        raise MissingError("a second device")
    return _opened_elsewhere(nbxrt.Device(1))


def _said_by(program: str, *arguments: str) -> str:
    """What a process of its own prints, which is given the backend's name and then the arguments."""
    import subprocess

    command = [sys.executable, "-c", program, _backend(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expect(done.returncode, 0, done.stderr[-400:])
    return done.stdout.strip()


@check
def objects_are_dropped_from_many_threads() -> str:
    made: list[Any] = [make(index) for index in range(len(nbxrt.devices())) for _n in range(50) for make in _MAKERS]

    def drop() -> None:
        while made:
            try:
                made.pop()
            except IndexError:
                return

    threads = [threading.Thread(target=drop) for _each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for device in nbxrt.devices():
        device.sync()
    return f"{50 * len(_MAKERS)} objects a device"


_MAKERS: list[Callable[[int], Any]] = [
    lambda index: nbxrt.Buffer(4096, index),
    nbxrt.Stream,
    nbxrt.Event,
]


@check
def another_process_opens_our_memory() -> str:
    return _opened_elsewhere(nbxrt.Device(0))


def _opened_elsewhere(device: nbxrt.Device) -> str:
    import base64
    import pickle

    buffer = nbxrt.Buffer(1 << 20, device, shareable=True)
    buffer.fill(4)
    device.sync()
    program = """
import base64, pickle, sys, nbxrt
nbxrt.open(sys.argv[1])
buffer = nbxrt.Buffer.from_ipc_handle(pickle.loads(base64.b64decode(sys.argv[2])))
print(buffer.tobytes() == bytes([4]) * 256)
buffer.fill(8)
buffer.device.sync()
"""
    expect(_said_by(program, base64.b64encode(pickle.dumps(buffer[256:512].ipc_handle())).decode()), "True")
    expect(buffer[255:513].tobytes(), b"\4" + b"\x08" * 256 + b"\4")
    return "a part of a buffer, read and written"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("backend", nargs="?", help="by default the best one that is here")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    runtime = nbxrt.open(given.backend)
    print(f"{runtime.title}, {', '.join(device.name for device in nbxrt.devices())}\n")
    rows: list[tuple[str, str, str]] = []
    for name, function in CHECKS.items():
        rows.append((name, *_judged(function)))
        print("| {} | {} | {} |".format(*rows[-1]), flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), "utf-8")
    return int(any(outcome == "wrong" for _name, outcome, _seen in rows))


def _judged(function: Callable[[], str]) -> tuple[str, str]:
    try:
        return "works", function()
    except MissingError as missing:
        return "not tried", f"needs {missing}"
    except Exception as error:  # noqa: BLE001  # the table says what went wrong, and the rest is tried as well
        traceback.print_exc()
        return "wrong", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


if __name__ == "__main__":
    sys.exit(main())
