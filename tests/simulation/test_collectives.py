"""Collectives between ranks of one process, each a thread with a device of its own."""

from __future__ import annotations

import ctypes
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

RANKS = 3


class Rank:
    """One end of a communicator, in its thread."""

    def __init__(self, runtime: Runtime, unique: bytes, rank: int) -> None:
        runtime.set_device(rank)
        self.runtime = runtime
        self.rank = rank
        self.communicator = runtime.comm_init_rank(RANKS, unique, rank)
        self.stream = runtime.stream_create()

    def put(self, values: Sequence[int]) -> int:
        """Device memory that holds 32-bit integers."""
        data = (ctypes.c_int32 * len(values))(*values)
        address = int(self.runtime.malloc(4 * len(values)))
        self.runtime.memcpy(address, ctypes.addressof(data), 4 * len(values), "host_to_device")
        return address

    def get(self, address: int, count: int) -> list[int]:
        self.runtime.stream_sync(self.stream)
        data = (ctypes.c_int32 * count)()
        self.runtime.memcpy(ctypes.addressof(data), address, 4 * count, "device_to_host")
        return list(data)


@pytest.fixture
def ranks(simulate: Callable[..., Simulation]) -> Callable[[Callable[[Rank], Any]], list[Any]]:
    """Runs a function in every rank; the answers in order of rank."""
    runtime = simulate("cuda", "12.9", devices=RANKS).open()

    def run(function: Callable[[Rank], Any]) -> list[Any]:
        unique = runtime.comm_unique_id()
        with ThreadPoolExecutor(RANKS) as pool:
            return list(pool.map(lambda rank: function(Rank(runtime, unique, rank)), range(RANKS)))

    return run


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("sum", [6, 60]), ("prod", [6, 6000]), ("max", [3, 30]), ("min", [1, 10]), ("avg", [2, 20])],
)
def test_every_rank_receives_the_reduction(ranks: Any, reduction: str, expected: list[int]) -> None:
    def reduce(own: Rank) -> list[int]:
        address = own.put([own.rank + 1, 10 * (own.rank + 1)])
        own.runtime.all_reduce(address, address, 2, "int32", reduction, own.communicator, own.stream)
        return own.get(address, 2)

    assert ranks(reduce) == [expected] * RANKS


def test_nothing_arrives_before_the_stream_comes_to_it(ranks: Any) -> None:
    together = threading.Barrier(RANKS)

    def reduce(own: Rank) -> tuple[bool, bool]:
        address = own.put([1])
        own.runtime.stream_sync(own.stream)
        own.runtime.all_reduce(address, address, 1, "int32", "sum", own.communicator, own.stream)
        before = ctypes.c_int32.from_address(address).value == 1
        together.wait()
        return before, own.get(address, 1) == [RANKS]

    assert ranks(reduce) == [(True, True)] * RANKS


def test_the_root_sends_to_all(ranks: Any) -> None:
    def broadcast(own: Rank) -> list[int]:
        address = own.put([own.rank, own.rank])
        own.runtime.broadcast(address, address, 2, "int32", 1, own.communicator, own.stream)
        return own.get(address, 2)

    assert ranks(broadcast) == [[1, 1]] * RANKS


def test_only_the_root_receives_a_reduction(ranks: Any) -> None:
    def reduce(own: Rank) -> list[int]:
        address, result = own.put([own.rank + 1]), own.put([-1])
        own.runtime.reduce(address, result, 1, "int32", "sum", 2, own.communicator, own.stream)
        return own.get(result, 1)

    assert ranks(reduce) == [[-1], [-1], [6]]


def test_elements_of_all_ranks_are_gathered_in_order(ranks: Any) -> None:
    def gather(own: Rank) -> list[int]:
        result = own.put([0] * RANKS)
        own.runtime.all_gather(own.put([own.rank + 7]), result, 1, "int32", own.communicator, own.stream)
        return own.get(result, RANKS)

    assert ranks(gather) == [[7, 8, 9]] * RANKS


def test_a_reduction_is_scattered(ranks: Any) -> None:
    def scatter(own: Rank) -> list[int]:
        result = own.put([0])
        own.runtime.reduce_scatter(own.put([1, 10, 100]), result, 1, "int32", "sum", own.communicator, own.stream)
        return own.get(result, 1)

    assert ranks(scatter) == [[3], [30], [300]]


def test_every_rank_sends_to_every_rank(ranks: Any) -> None:
    def exchange(own: Rank) -> list[int]:
        result = own.put([0] * RANKS)
        send = own.put([10 * own.rank + to for to in range(RANKS)])
        own.runtime.all_to_all(send, result, 1, "int32", own.communicator, own.stream)
        return own.get(result, RANKS)

    assert ranks(exchange) == [[10 * other + own for other in range(RANKS)] for own in range(RANKS)]


def test_ranks_send_round_a_ring(ranks: Any) -> None:
    def pass_on(own: Rank) -> list[int]:
        send, result = own.put([own.rank]), own.put([-1])
        own.runtime.group_start()
        own.runtime.send(send, 1, "int32", (own.rank + 1) % RANKS, own.communicator, own.stream)
        own.runtime.receive(result, 1, "int32", (own.rank - 1) % RANKS, own.communicator, own.stream)
        own.runtime.group_end()
        return own.get(result, 1)

    assert ranks(pass_on) == [[2], [0], [1]]


def test_ranks_of_a_ring_may_receive_before_they_send(ranks: Any) -> None:
    def pass_on(own: Rank) -> list[int]:
        send, result = own.put([own.rank]), own.put([-1])
        own.runtime.group_start()
        own.runtime.receive(result, 1, "int32", (own.rank - 1) % RANKS, own.communicator, own.stream)
        own.runtime.send(send, 1, "int32", (own.rank + 1) % RANKS, own.communicator, own.stream)
        own.runtime.group_end()
        return own.get(result, 1)

    assert ranks(pass_on) == [[2], [0], [1]]


def test_one_thread_joins_for_all_ranks_in_a_group(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cuda", "12.9", devices=2)
    runtime = simulation.open()
    unique, ends = runtime.comm_unique_id(), []

    runtime.group_start()
    for rank in range(2):
        runtime.set_device(rank)
        ends.append(runtime.comm_init_rank(2, unique, rank))
    runtime.group_end()
    for rank, end in enumerate(ends):
        runtime.set_device(rank)
        address = runtime.malloc(8)
        runtime.all_reduce(address, address, 2, "int32", "sum", end, 0)
    runtime.sync()
    for end in ends:
        runtime.comm_destroy(end)

    assert [live.kind for live in simulation.ledger()] == ["device", "device"]


def test_a_rank_that_leaves_breaks_the_others(ranks: Any) -> None:
    left, joined = threading.Event(), threading.Barrier(3)

    def work(own: Rank) -> int:
        joined.wait()
        if own.rank == 0:
            own.runtime.comm_abort(own.communicator)
            left.set()
            return 0
        left.wait()
        return int(own.runtime.comm_async_error(own.communicator))

    assert ranks(work) == [0, 2, 2]


def test_two_ranks_on_one_device_are_refused(simulate: Callable[..., Simulation]) -> None:
    runtime = simulate("cuda", "12.9", devices=1).open()
    unique = runtime.comm_unique_id()

    def join(rank: int) -> str:
        with pytest.raises(nbxrt.DeviceError) as caught:
            runtime.comm_init_rank(2, unique, rank)
        return str(caught.value.kind)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(join, range(2))) == ["invalid_value"] * 2


FLOATS = [
    ("float64", "d", [0.1, -2.5, 1e300], [0.1, -2.5, 1e300]),
    ("float32", "f", [0.5, -2.5, 1e30], [0.5, -2.5, 1.0000000150474662e30]),
    ("float16", "e", [0.5, -2.5, 65504.0], [0.5, -2.5, 65504.0]),
]


@pytest.mark.parametrize(("datatype", "code", "values", "expected"), FLOATS, ids=[row[0] for row in FLOATS])
def test_a_sum_of_floats_is_rounded_to_their_type(
    simulate: Callable[..., Simulation], datatype: str, code: str, values: list[float], expected: list[float]
) -> None:
    runtime = simulate("cuda", "12.9").open()
    communicator = runtime.comm_init_rank(1, runtime.comm_unique_id(), 0)
    form = f"<{len(values)}{code}"
    sent = ctypes.create_string_buffer(struct.pack(form, *values), struct.calcsize(form))
    address = runtime.malloc(len(sent))
    runtime.memcpy(address, ctypes.addressof(sent), len(sent), "host_to_device")

    runtime.all_reduce(address, address, len(values), datatype, "sum", communicator, 0)
    runtime.memcpy(ctypes.addressof(sent), address, len(sent), "device_to_host")

    assert list(struct.unpack(form, sent.raw)) == expected


@pytest.mark.parametrize(
    ("datatype", "bits", "doubled"),
    [
        ("bfloat16", [0x3F80, 0x0001, 0x7F7F, 0x7F80, 0xC000], [0x4000, 0x0002, 0x7F80, 0x7F80, 0xC080]),
        ("float16", [0x3C00, 0x0001, 0x03FF, 0x7BFF, 0x7C00], [0x4000, 0x0002, 0x07FE, 0x7C00, 0x7C00]),
        ("float8_e4m3", [0x38, 0x01, 0x07, 0x76, 0xB8], [0x40, 0x02, 0x0E, 0x7E, 0xC0]),
        ("float8_e5m2", [0x3C, 0x01, 0x03, 0x7B, 0x7C], [0x40, 0x02, 0x06, 0x7C, 0x7C]),
    ],
)
def test_small_floats_double_as_their_formats_say(
    simulate: Callable[..., Simulation], datatype: str, bits: list[int], doubled: list[int]
) -> None:
    runtime = simulate("cuda", "12.9", devices=2).open()
    unique, size = runtime.comm_unique_id(), 2 if "16" in datatype else 1
    data = b"".join(pattern.to_bytes(size, "little") for pattern in bits)

    def reduce(rank: int) -> bytes:
        runtime.set_device(rank)
        end = runtime.comm_init_rank(2, unique, rank)
        buffer = ctypes.create_string_buffer(data, len(data))
        address = runtime.malloc(len(data))
        runtime.memcpy(address, ctypes.addressof(buffer), len(data), "host_to_device")
        runtime.all_reduce(address, address, len(bits), datatype, "sum", end, 0)
        runtime.memcpy(ctypes.addressof(buffer), address, len(data), "device_to_host")
        return buffer.raw

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(reduce, range(2)))

    assert results == [b"".join(pattern.to_bytes(size, "little") for pattern in doubled)] * 2
