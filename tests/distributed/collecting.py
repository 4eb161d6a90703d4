"""Ranks that collect: every one checks what it has received against NumPy."""

from __future__ import annotations

from functools import reduce as fold
from typing import Any

import numpy as np
from ranks import CARRIERS, Array, encoded

import nbxrt.distributed as dist

OPERATIONS: dict[str, Any] = {
    "sum": sum,
    "prod": lambda rows: fold(np.multiply, rows),
    "max": lambda rows: fold(np.maximum, rows),
    "min": lambda rows: fold(np.minimum, rows),
    "avg": lambda rows: sum(rows) / len(rows),
}


def values(rank: int, count: int) -> Any:
    """Numbers that every type has, and whose results it has too."""
    return (np.arange(count) + rank) % 3


def combined(op: str, datatype: str, rows: list[Any]) -> Any:
    found = OPERATIONS[op](rows)
    return encoded(np.trunc(found) if "int" in datatype else found, datatype)


class Case:
    """A communicator, an element type, a count, a stream: what one round of all collectives is made of."""

    def __init__(self, comm: Any, datatype: str, count: int, stream: int) -> None:
        self.comm, self.datatype, self.count, self.stream = comm, datatype, count, stream
        self.rows = [values(rank, count * comm.size) for rank in range(comm.size)]
        self.options = {"stream": stream, "dtype": datatype}

    def array(self, elements: Any) -> Array:
        return Array(self.comm.runtime, encoded(elements, self.datatype))

    def own(self, count: int) -> Array:
        return self.array(self.rows[self.comm.rank][:count])

    def empty(self, count: int) -> Array:
        return self.array(np.full(count, 2))

    def expect(self, array: Array, expected: Any, what: str) -> None:
        self.comm.wait(self.stream)
        assert array.get().tolist() == np.asarray(expected).tolist(), f"{what} of {self.count} {self.datatype}"
        array.close()

    def firsts(self) -> list[Any]:
        return [row[: self.count] for row in self.rows]


def reductions(case: Case, ops: tuple[str, ...]) -> None:
    for op in ops:
        expected = combined(op, case.datatype, case.firsts())
        x = case.own(case.count)
        case.comm.all_reduce(x, op, **case.options)
        case.expect(x, expected, f"all_reduce {op} in place")
        x, out = case.own(case.count), case.empty(case.count)
        case.comm.all_reduce(x, op, out=out, **case.options)
        case.expect(out, expected, f"all_reduce {op}")
        case.expect(x, encoded(case.firsts()[case.comm.rank], case.datatype), "what was sent")
        reduce_to_one(case, op, expected)
        scatter(case, op)


def reduce_to_one(case: Case, op: str, expected: Any) -> None:
    root = case.comm.size - 1
    x, out = case.own(case.count), case.empty(case.count)
    untouched = out.get()
    case.comm.reduce(x, op, root, out=out, **case.options)
    case.expect(out, expected if case.comm.rank == root else untouched, f"reduce {op}")
    case.comm.reduce(x, op, root, **case.options)
    own = encoded(case.firsts()[case.comm.rank], case.datatype)
    case.expect(x, expected if case.comm.rank == root else own, f"reduce {op} in place")


def scatter(case: Case, op: str) -> None:
    first = case.comm.rank * case.count
    expected = combined(op, case.datatype, [row[first : first + case.count] for row in case.rows])
    x, out = case.own(case.count * case.comm.size), case.empty(case.count)
    case.comm.reduce_scatter(x, out, op, **case.options)
    case.expect(out, expected, f"reduce_scatter {op}")
    case.comm.reduce_scatter(x, x.part(first, case.count), op, **case.options)
    case.comm.wait(case.stream)
    assert x.get()[first : first + case.count].tolist() == expected.tolist()
    x.close()


def movements(case: Case) -> None:
    comm, count = case.comm, case.count
    root = 1 % comm.size
    x = case.own(count)
    comm.broadcast(x, root, **case.options)
    case.expect(x, encoded(case.firsts()[root], case.datatype), "broadcast in place")
    x, out = case.own(count), case.empty(count)
    comm.broadcast(x, root, out=out, **case.options)
    case.expect(out, encoded(case.firsts()[root], case.datatype), "broadcast")
    everything = encoded(np.concatenate(case.firsts()), case.datatype)
    out = case.empty(count * comm.size)
    comm.all_gather(x, out, **case.options)
    case.expect(out, everything, "all_gather")
    out = case.empty(count * comm.size)
    out.put(
        encoded(
            np.where(
                np.arange(out.elements.size) // max(count, 1) == comm.rank,
                np.tile(case.firsts()[comm.rank], comm.size),
                2,
            ),
            case.datatype,
        )
    )
    comm.all_gather(out.part(comm.rank * count, count), out, **case.options)
    case.expect(out, everything, "all_gather in place")
    x.close()
    x, out = case.own(count * comm.size), case.empty(count * comm.size)
    comm.all_to_all(x, out, **case.options)
    mine = slice(comm.rank * count, (comm.rank + 1) * count)
    case.expect(out, encoded(np.concatenate([row[mine] for row in case.rows]), case.datatype), "all_to_all")
    x.close()
    messages(case)


def grouped(case: Case) -> None:
    """Collectives that start together, those among them that a library does by messages."""
    comm, root = case.comm, 0
    x, y, out = case.own(case.count), case.own(case.count * comm.size), case.empty(case.count * comm.size)
    with comm.group():
        comm.broadcast(x, root, **case.options)
        comm.all_to_all(y, out, **case.options)
    mine = slice(comm.rank * case.count, (comm.rank + 1) * case.count)
    case.expect(x, encoded(case.firsts()[root], case.datatype), "broadcast in a group")
    case.expect(out, encoded(np.concatenate([row[mine] for row in case.rows]), case.datatype), "all_to_all in a group")
    y.close()


def messages(case: Case) -> None:
    """Round a ring, in any order inside a group: some ranks receive first, all do, none does."""
    comm = case.comm
    for receives_first in (comm.rank % 2 == 0, True, False):
        x, out = case.own(case.count), case.empty(case.count)
        send = (comm.send, x, (comm.rank + 1) % comm.size)
        recv = (comm.recv, out, (comm.rank - 1) % comm.size)
        with comm.group():
            for call, array, peer in (recv, send) if receives_first else (send, recv):
                call(array, peer, **case.options)
        case.expect(out, encoded(case.firsts()[comm.rank - 1], case.datatype), "send and recv")
        x.close()


def many_messages(comm: Any) -> None:
    """In one group, more than a library has room for, and received before the first is sent."""
    stream, times = comm.runtime.stream_create(), 40
    sent = [Array(comm.runtime, np.full(3, 100 * comm.rank + turn, np.int32)) for turn in range(times)]
    heard = [Array(comm.runtime, np.full(3, -1, np.int32)) for _turn in range(times)]
    with comm.group():
        for x in heard:
            comm.recv(x, (comm.rank - 1) % comm.size, stream=stream)
        for x in sent:
            comm.send(x, (comm.rank + 1) % comm.size, stream=stream)
    comm.wait(stream)
    before = (comm.rank - 1) % comm.size
    assert [x.get().tolist() for x in heard] == [[100 * before + turn] * 3 for turn in range(times)]
    comm.runtime.stream_destroy(stream)


def every_collective(comm: Any) -> None:
    """For every element type and reduction that the library has."""
    stream = comm.runtime.stream_create()
    ops = tuple(op for op in OPERATIONS if op in offered(comm.runtime, "reduction", OPERATIONS))
    for datatype in offered(comm.runtime, "datatype", CARRIERS):
        reductions(Case(comm, datatype, 7, stream), ops)
        movements(Case(comm, datatype, 7, stream))
    for datatype, count in (("float32", 1), ("float32", 1001), ("int64", 4099)):
        reductions(Case(comm, datatype, count, stream), ("sum",))
        movements(Case(comm, datatype, count, stream))
    grouped(Case(comm, "float32", 7, stream))
    many_messages(comm)
    comm.runtime.stream_destroy(stream)


def offered(runtime: Any, enum: str, usual: Any) -> list[str]:
    """The words that the backend file has numbers for; all of them on host memory."""
    found = runtime.description["enums"].get(enum)
    return list(usual) if found is None else [word for _since, _before, words in found for word in words]


def no_elements(comm: Any) -> None:
    case = Case(comm, "float32", 0, comm.runtime.stream_create())
    reductions(case, ("sum",))
    movements(case)
    comm.barrier()


def overlapping_groups(comm: Any) -> None:
    """Rows and columns of ranks, two in a row, in use at once on two streams, given in another order by odd ranks."""
    ranks = range(comm.size)
    row, column = comm.rank // 2, comm.rank % 2
    rows, columns = comm.split(row), comm.split(column)
    streams = [comm.runtime.stream_create_flags(non_blocking=True) for _each in range(2)]
    arrays = [Array(comm.runtime, np.full(5, comm.rank)) for _each in range(2)]
    jobs = list(zip((rows, columns), arrays, streams, strict=True))
    on_host = comm.runtime.kind == "cpu"
    for part, array, stream in jobs if on_host or comm.rank % 2 else reversed(jobs):
        part.all_reduce(array, stream=stream)
    for part, _array, stream in jobs:
        part.wait(stream)
    assert arrays[0].get().tolist() == [sum(rank for rank in ranks if rank // 2 == row)] * 5
    assert arrays[1].get().tolist() == [sum(rank for rank in ranks if rank % 2 == column)] * 5
    assert (rows.rank, rows.size, columns.rank) == (column, 2, row)
    in_one_group(rows, columns)
    assert (comm.split(None) is None) is True
    backwards = comm.split(0, -comm.rank)
    assert backwards.rank == comm.size - 1 - comm.rank
    for part in (rows, columns, backwards):
        part.close()


def in_one_group(rows: Any, columns: Any) -> None:
    """Operations of two communicators start together: messages too large for a queue, of arrays that nobody holds."""
    count, stream = 1 << 17, rows.runtime.stream_create()
    summed, heard = (Array(rows.runtime, np.full(count, part.rank, np.int32)) for part in (rows, columns))
    with dist.group(rows, columns):
        rows.all_reduce(summed, stream=stream)
        for peer in range(columns.size):
            if peer != columns.rank:
                columns.send(Array(rows.runtime, np.full(count, columns.rank, np.int32)), peer, stream=stream)
                columns.recv(heard, peer, stream=stream)
    rows.wait(stream)
    columns.wait(stream)
    assert set(summed.get().tolist()) == {sum(range(rows.size))}
    assert set(heard.get().tolist()) == {1 - columns.rank if columns.size == 2 else columns.rank}
