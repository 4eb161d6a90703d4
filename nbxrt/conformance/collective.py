"""Checks of the group `collective`: communication between ranks, one a device, at most two, a thread each."""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING

from nbxrt.conformance.checking import Wrong, check, expect, expect_bytes, expect_that

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.conformance.bench import Bench

JOIN = ("comm_unique_id", "comm_init_rank", "comm_destroy", "comm_async_error")
WORK = ("malloc", "free", "memcpy", "memset", "stream_create", "stream_destroy", "stream_sync")
COUNT = 1000
#: Seconds that the ranks have to meet.
PATIENCE = 90


class Rank:
    """One rank: its number of how many, its communicator, its stream, and memory for its elements."""

    def __init__(self, bench: Bench, number: int, ranks: int) -> None:
        self.bench = bench
        self.number = number
        self.ranks = ranks
        self.communicator = 0
        self.stream = bench.stream()
        self.source = bench.memory(4 * COUNT * ranks)
        self.target = bench.memory(4 * COUNT * ranks)

    def values(self, number: int) -> tuple[int, ...]:
        """The elements of a rank."""
        return tuple((number + 1) * index for index in range(COUNT * self.ranks))

    def fill(self) -> None:
        """Put this rank's elements into its source, and nothing of use into its target."""
        self.bench.write(self.source, _words(self.values(self.number)))
        self.bench.write(self.target, b"\xee" * 4 * COUNT * self.ranks)

    def look(self, expected: tuple[int, ...], what: str) -> None:
        """Wait, and compare the target's first elements."""
        runtime = self.bench.runtime
        runtime.stream_sync(self.stream)
        expect(runtime.comm_async_error(self.communicator), 0, f"comm_async_error after {what}")
        came = self.bench.read(self.target, 4 * len(expected))
        expect_bytes(came, _words(expected), f"{what}, rank {self.number}")


def _words(values: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def _by_ranks(bench: Bench, ranks: int, work: Callable[[Rank], None]) -> None:
    """Let every rank join a communicator and do the work, each in a thread of its own and on its own device."""
    identity = bench.runtime.comm_unique_id()
    faults: list[BaseException] = []

    def rank(number: int) -> None:
        try:
            _one_rank(bench, number, ranks, identity, work)
        except BaseException as error:  # noqa: BLE001  # it must reach the thread that checks
            faults.append(error)

    threads = [threading.Thread(target=rank, args=(number,), daemon=True) for number in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if faults:
        raise faults[0]
    if any(thread.is_alive() for thread in threads):
        raise Wrong(f"{ranks} ranks did not finish in {PATIENCE} seconds")


def _one_rank(bench: Bench, number: int, ranks: int, identity: bytes, work: Callable[[Rank], None]) -> None:
    runtime = bench.runtime
    bench.use((bench.device + number) % bench.devices)
    me = Rank(bench, number, ranks)
    me.communicator = runtime.comm_init_rank(ranks, identity, number)
    try:
        work(me)
    except BaseException:
        runtime.comm_abort(me.communicator)
        raise
    runtime.comm_destroy(me.communicator)


def _everything(me: Rank) -> None:
    for collective in (_reductions, _gathers, _broadcasts, _messages):
        collective(me)


def _reductions(me: Rank) -> None:
    runtime, ends = me.bench.runtime, (me.communicator, me.stream)
    sums = tuple(map(sum, zip(*(me.values(number) for number in range(me.ranks)), strict=True)))
    me.fill()
    runtime.all_reduce(me.source, me.target, COUNT, "uint32", "sum", *ends)
    me.look(sums[:COUNT], "all_reduce")
    me.fill()
    runtime.reduce(me.source, me.target, COUNT, "uint32", "max", 0, *ends)
    me.look(me.values(me.ranks - 1)[:COUNT] if me.number == 0 else (0xEEEEEEEE,) * COUNT, "reduce")
    me.fill()
    runtime.reduce_scatter(me.source, me.target, COUNT, "uint32", "sum", *ends)
    me.look(sums[me.number * COUNT : (me.number + 1) * COUNT], "reduce_scatter")


def _gathers(me: Rank) -> None:
    runtime, ends = me.bench.runtime, (me.communicator, me.stream)
    me.fill()
    runtime.all_gather(me.source, me.target, COUNT, "uint32", *ends)
    me.look(tuple(value for number in range(me.ranks) for value in me.values(number)[:COUNT]), "all_gather")


def _to_all(me: Rank) -> None:
    runtime, ends = me.bench.runtime, (me.communicator, me.stream)
    me.fill()
    runtime.all_to_all(me.source, me.target, COUNT, "uint32", *ends)
    mine = slice(me.number * COUNT, (me.number + 1) * COUNT)
    me.look(tuple(value for number in range(me.ranks) for value in me.values(number)[mine]), "all_to_all")


def _broadcasts(me: Rank) -> None:
    runtime = me.bench.runtime
    for root in range(me.ranks):
        me.fill()
        runtime.broadcast(me.source, me.target, COUNT, "uint32", root, me.communicator, me.stream)
        me.look(me.values(root)[:COUNT], f"broadcast from {root}")


def _messages(me: Rank) -> None:
    """To the next rank, which is itself when it is alone."""
    runtime, ends = me.bench.runtime, (me.communicator, me.stream)
    me.fill()
    runtime.group_start()
    runtime.send(me.source, COUNT, "uint32", (me.number + 1) % me.ranks, *ends)
    runtime.receive(me.target, COUNT, "uint32", (me.number - 1) % me.ranks, *ends)
    runtime.group_end()
    me.look(me.values((me.number - 1) % me.ranks)[:COUNT], "send and receive")


COLLECTIVES = ("comm_abort", "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "send", "receive",
               "group_start", "group_end")  # fmt: skip


@check("collective", ("comm_unique_id",))
def every_communicator_has_its_own_identity(bench: Bench) -> str:
    """An identity is bytes."""
    first, second = bench.runtime.comm_unique_id(), bench.runtime.comm_unique_id()
    expect_that(isinstance(first, bytes) and any(first), f"comm_unique_id: came {first!r}")
    expect_that(first != second, "comm_unique_id gave the same bytes twice")
    return f"{len(first)} bytes"


@check("collective", (*JOIN, *WORK, *COLLECTIVES))
def one_rank_alone_receives_its_own_elements(bench: Bench) -> None:
    """Every collective is tried."""
    _by_ranks(bench, 1, _everything)


@check("collective", (*JOIN, *WORK, *COLLECTIVES), devices=2)
def two_ranks_receive_the_elements_of_both(bench: Bench) -> None:
    """Every collective is tried."""
    _by_ranks(bench, 2, _everything)


@check("collective", (*JOIN, *WORK, "comm_abort", "all_to_all"))
def every_rank_sends_to_every_rank(bench: Bench) -> str:
    """There are two ranks, or one where there is one device."""
    ranks = min(2, bench.devices)
    _by_ranks(bench, ranks, _to_all)
    return f"{ranks} ranks"


@check("collective", (*JOIN, *WORK, "comm_abort", "all_reduce"))
def no_elements_are_nothing_to_do(bench: Bench) -> None:
    """The target stays as it is."""

    def work(me: Rank) -> None:
        me.fill()
        me.bench.runtime.all_reduce(0, 0, 0, "uint32", "sum", me.communicator, me.stream)
        me.look((0xEEEEEEEE,) * COUNT, "all_reduce of 0 elements")

    _by_ranks(bench, 1, work)
