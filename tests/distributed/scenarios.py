"""Programs of ranks, run as `python scenarios.py NAME`: every rank checks what it has received.

Those that take a communicator run on every kind of it: on simulated devices, under MPI, in workers of Ray.
"""

from __future__ import annotations

import copy
import ctypes
import os
import signal
import sys
import time
from functools import reduce as fold
from typing import Any

import numpy as np
from ranks import CARRIERS, Array, encoded, join, meet, took_at_most

import nbxrt
import nbxrt.distributed as dist
from nbxrt import errors
from nbxrt.memory.allocator import account_of

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


def messages(case: Case) -> None:
    comm = case.comm
    x, out = case.own(case.count), case.empty(case.count)
    with comm.group():
        comm.send(x, (comm.rank + 1) % comm.size, **case.options)
        comm.recv(out, (comm.rank - 1) % comm.size, **case.options)
    case.expect(out, encoded(case.firsts()[comm.rank - 1], case.datatype), "send and recv")
    x.close()


def every_collective(comm: Any) -> None:
    stream = comm.runtime.stream_create()
    for datatype in CARRIERS:
        reductions(Case(comm, datatype, 7, stream), tuple(OPERATIONS))
        movements(Case(comm, datatype, 7, stream))
    for datatype, count in (("float32", 1), ("float32", 1001), ("int64", 4099)):
        reductions(Case(comm, datatype, count, stream), ("sum",))
        movements(Case(comm, datatype, count, stream))
    comm.runtime.stream_destroy(stream)


def all_but_broadcasts(comm: Any) -> None:
    """For a library that broadcasts in another way than the contract; the small floats that it has not are left out."""
    stream = comm.runtime.stream_create()
    for datatype in ("int8", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"):
        case = Case(comm, datatype, 7, stream)
        for op in ("sum", "prod", "max", "min"):
            expected = combined(op, datatype, case.firsts())
            x = case.own(case.count)
            comm.all_reduce(x, op, **case.options)
            case.expect(x, expected, f"all_reduce {op}")
            reduce_to_one(case, op, expected)
            scatter(case, op)
        messages(case)
    comm.runtime.stream_destroy(stream)


def no_elements(comm: Any) -> None:
    case = Case(comm, "float32", 0, comm.runtime.stream_create())
    reductions(case, ("sum",))
    movements(case)
    comm.barrier()


def overlapping_groups(comm: Any) -> None:
    """Rows and columns of a square of ranks, in use at once on two streams, given in another order by odd ranks."""
    width = 2
    rows, columns = comm.split(comm.rank // width), comm.split(comm.rank % width)
    streams = [comm.runtime.stream_create_flags(non_blocking=True) for _each in range(2)]
    arrays = [Array(comm.runtime, np.full(5, comm.rank)) for _each in range(2)]
    jobs = list(zip((rows, columns), arrays, streams, strict=True))
    on_host = comm.runtime.kind == "cpu"
    for part, array, stream in jobs if on_host or comm.rank % 2 else reversed(jobs):
        part.all_reduce(array, stream=stream)
    for part, _array, stream in jobs:
        part.wait(stream)
    first = comm.rank // width * width
    assert arrays[0].get().tolist() == [2 * first + 1] * 5
    assert arrays[1].get().tolist() == [2 * (comm.rank % width) + width] * 5
    assert (rows.rank, rows.size, columns.rank) == (comm.rank % width, width, comm.rank // width)
    assert (comm.split(None) is None) is True
    backwards = comm.split(0, -comm.rank)
    assert backwards.rank == comm.size - 1 - comm.rank
    for part in (rows, columns, backwards):
        part.close()


def refusals(comm: Any) -> None:
    """What is wrong is refused before anything is sent: the communicator is as good as before."""
    x, short = Array(comm.runtime, np.zeros(8, np.float32)), Array(comm.runtime, np.zeros(3, np.float32))
    whole = Array(comm.runtime, np.zeros(8 * comm.size, np.int32))
    wrong = [
        (lambda: comm.all_reduce(3.5), TypeError, "takes an array, not float"),
        (lambda: comm.all_reduce(x, "add"), ValueError, "`op` is one of avg, max, min, prod, sum, not 'add'"),
        (lambda: comm.all_reduce(x, out=short), ValueError, "`out` holds 3 float32, and 8 float32 belong there"),
        (lambda: comm.all_gather(x, whole), ValueError, "`out` holds"),
        (lambda: comm.all_to_all(short, Array(comm.runtime, np.zeros(3, np.float32))), ValueError, "cannot be divided"),
        (lambda: comm.all_to_all(x, x), ValueError, "`x` and `out` overlap"),
        (lambda: comm.broadcast(x, comm.size), ValueError, f"`root` is a rank below {comm.size}"),
        (lambda: comm.send(x, "next"), TypeError, "`peer` is a rank, not 'next'"),
        (lambda: comm.all_reduce(x, dtype="complex64"), TypeError, "`complex64` is no element type"),
        (lambda: comm.all_reduce(x, stream="main"), TypeError, "`stream` takes a Stream"),
        (lambda: comm.split("a b"), TypeError, "`color` is an integer, not 'a b'"),
        (lambda: comm.split(0, 1.5), TypeError, "`key` is an integer, not 1.5"),
        (lambda: copy.copy(comm), TypeError, "takes plain data, not Communicator"),
    ]
    for call, kind, said in wrong:
        refused(call, kind, said)
    refused(lambda: in_group(comm, x, short), ValueError, "`out` holds 3")
    comm.all_reduce(x)
    comm.wait()
    assert x.get().tolist() == [0] * 8


def in_group(comm: Any, x: Any, short: Any) -> None:
    with comm.group():
        comm.all_reduce(x)
        comm.all_reduce(x, out=short)


def raised(call: Any, kind: type[Exception]) -> Any:
    """The error of a call. These programs also run where pytest is not."""
    try:
        call()
    except kind as error:
        return error
    message = f"nothing raised {kind.__name__}"
    raise AssertionError(message)


def refused(call: Any, kind: type[Exception], said: str) -> None:
    error = raised(call, kind)
    assert said in str(error), str(error)
    assert isinstance(error, errors.ArgumentError)


def different_calls(comm: Any) -> None:
    """With NBXRT_DIST_CHECK=1, and all ranks can go on."""
    x = Array(comm.runtime, np.ones(8, np.float32))
    calls = [
        (
            lambda: comm.all_reduce(x),
            lambda: comm.broadcast(x),
            "rank 0 calls all_reduce of 8 float32 (sum), rank 1 calls broadcast of 8 float32 (root 0)",
        ),
        (
            lambda: comm.all_reduce(x),
            lambda: comm.all_reduce(x.part(0, 7)),
            "rank 0 calls all_reduce of 8 float32 (sum), rank 1 calls all_reduce of 7 float32 (sum)",
        ),
        (
            lambda: comm.all_reduce(x),
            lambda: comm.all_reduce(x.part(0, 0)),
            "rank 1 calls all_reduce of 0 float32 (sum)",
        ),
        (
            lambda: comm.all_reduce(x),
            lambda: comm.all_reduce(x, dtype="int32"),
            "rank 1 calls all_reduce of 8 int32 (sum)",
        ),
        (
            lambda: comm.reduce(x, "max"),
            lambda: comm.reduce(x, "max", 1),
            "(max, root 0), rank 1 calls reduce of 8 float32 (max, root 1)",
        ),
    ]
    for usual, other, said in calls:
        refused(other if comm.rank == 1 else usual, ValueError, said)
    comm.all_reduce(x)
    comm.wait()
    assert x.get().tolist() == [comm.size] * 8


# Ranks that fail. These take no communicator: they make several.


def told(call: Any) -> errors.CommunicatorError:
    error: errors.CommunicatorError = raised(call, errors.CommunicatorError)
    return error


def a_rank_that_does_not_come() -> None:
    comm = join(timeout=1)
    held = account_of(comm.runtime).memory_allocated()
    x, stream = Array(comm.runtime, np.ones(4, np.float32)), comm.runtime.stream_create()
    if comm.rank == 1:
        time.sleep(2.5)
        assert "rank 1 of 3" in str(told(lambda: comm.all_reduce(x, stream=stream)))
    else:
        comm.all_reduce(x, stream=stream)
        with took_at_most(4):
            comm.runtime.stream_sync(stream)  # which knows of no communicator: the watch ends what it waits for
        error = told(lambda: comm.wait(stream))
        assert f"rank {comm.rank} of 3, `all_reduce`: " in str(error)
        if isinstance(error, TimeoutError):  # the one that was first; the other may have seen that one leave
            assert "not finished within 1 s; rank 1 (process" in str(error)
            assert "has made 0 calls of 1" in str(error)
            assert (error.operation, error.rank, error.size, error.missing) == ("all_reduce", comm.rank, 3, (1,))
        assert str(told(comm.barrier)) == str(error)
    assert account_of(comm.runtime).memory_allocated() < held, "what was held is given back"
    again = join("again")
    again.all_reduce(x, stream=stream)
    again.wait(stream)
    assert x.get().tolist() == [3] * 4


def a_rank_that_waits_for_itself() -> None:
    """Nobody but rank 0 calls, and it asks: the error names those who did not come."""
    comm = join(timeout=1)
    x = Array(comm.runtime, np.ones(4, np.float32))
    if comm.rank == 0:
        comm.all_reduce(x)
        error = told(comm.wait)
        assert isinstance(error, TimeoutError)
        assert error.missing == (1, 2)
    else:
        time.sleep(1.5)


def a_rank_that_ends() -> None:
    comm = join(timeout=10)
    x = Array(comm.runtime, np.ones(4, np.float32))
    meet("joined", comm.rank, b"", [0, 1, 2])  # joining is not what is ended here
    if comm.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.all_reduce(x)
    with took_at_most(5):
        error = told(comm.wait)
    assert "rank 2 (process" in str(error)
    # the library may notice before the system is done with the process
    assert "has ended" in str(error) or "has made 0 calls of 1" in str(error)
    assert error.missing == (2,)
    left = join("left", ranks=[0, 1])
    x.put(np.ones(4, np.float32))
    left.all_reduce(x)
    left.wait()
    assert x.get().tolist() == [2] * 4


def ranks_that_end_in_the_middle_of_each() -> None:
    """In each round the last rank ends; the others tell, and go on without it."""
    rank, size = int(os.environ["RANK"]), int(os.environ["SIZE"])
    for number, name in enumerate(ROUNDS):
        alive = list(range(size - number))
        comm = join(f"round-{number}", timeout=20, ranks=alive)
        x, out = (Array(comm.runtime, np.ones(len(alive) * 4, np.float32)) for _each in range(2))
        meet(f"joined-{number}", rank, b"", alive)  # joining is not what is ended here
        if rank == alive[-1]:
            os.kill(os.getpid(), signal.SIGKILL)

        def call(name: str = name, comm: Any = comm, x: Any = x, out: Any = out) -> None:
            ROUNDS[name](comm, x, out)
            comm.wait()

        if name == "recv" and comm.rank != 0:
            comm.abort()
            continue
        error = told(call)
        assert alive[-1] in error.missing or "has left" in str(error), str(error)
        assert error.operation == name.replace("recv", "receive"), (name, str(error))
        comm.close()


ROUNDS: dict[str, Any] = {
    "all_reduce": lambda comm, x, out: comm.all_reduce(x),
    "broadcast": lambda comm, x, out: comm.broadcast(x, comm.size - 1),
    "reduce": lambda comm, x, out: comm.reduce(x),
    "all_gather": lambda comm, x, out: comm.all_gather(x.part(0, 4), out),
    "reduce_scatter": lambda comm, x, out: comm.reduce_scatter(x, out.part(0, 4)),
    "all_to_all": lambda comm, x, out: comm.all_to_all(x, out),
    "barrier": lambda comm, x, out: comm.barrier(),
    "recv": lambda comm, x, out: comm.recv(x, comm.size - 1),
}


def an_end_that_leaves_work_behind() -> None:
    """Rank 0 goes without waiting for what it gave; nobody else calls it."""
    comm = join(timeout=1)
    if comm.rank == 0:
        comm.all_reduce(Array(comm.runtime, np.ones(4, np.float32)))


def a_rank_that_joins_alone() -> None:
    runtime = nbxrt.open("cuda")
    error = told(lambda: dist.join(runtime.comm_unique_id(), 0, 2, timeout=0.5))
    assert "rank 0 of 2: the others did not join within 0.5 s" in str(error)


# Under an engine: these take the engine's communicator, and engines run few programs, for their start is slow.


def everything(comm: Any) -> None:
    refusals(comm)
    no_elements(comm)
    every_collective(comm)
    overlapping_groups(comm)


def a_rank_is_killed(comm: Any) -> None:
    """The last one; the others tell at once, and end by themselves."""
    last = comm.size - 1
    x = Array(comm.runtime, np.ones(4, np.float32))
    comm.all_reduce(x)
    comm.wait()
    if comm.rank == last:
        time.sleep(0.5)  # until the others, too, have what they were to receive
        os.kill(os.getpid(), signal.SIGKILL)

    def call() -> None:
        comm.all_reduce(x)
        comm.wait()

    with took_at_most(10):
        error = told(call)
    assert f"rank {last} (process" in str(error)
    assert "has ended" in str(error)


def a_rank_is_late(comm: Any) -> None:
    last = comm.size - 1
    x = Array(comm.runtime, np.ones(4, np.float32))
    if comm.rank == last:
        time.sleep(3)
        return
    error = told(lambda: (comm.all_reduce(x), comm.wait()))
    if isinstance(error, TimeoutError):  # the one that was first; another may have seen that one leave
        assert error.missing == (last,)
    assert f"rank {comm.rank} of {comm.size}, `all_reduce`: " in str(error)


def a_captured_collective(comm: Any) -> None:
    """On devices whose library can be captured: a graph of a collective is launched as often as one likes."""
    runtime = comm.runtime
    x, stream = Array(runtime, np.ones(1000, np.float32)), runtime.stream_create_flags(non_blocking=True)
    comm.all_reduce(x, stream=stream)  # what is made at first use cannot be captured
    comm.wait(stream)
    runtime.stream_begin_capture(stream, "thread_local")
    comm.all_reduce(x, stream=stream)
    graph = runtime.stream_end_capture(stream)
    launched = runtime.graph_instantiate(graph)
    for _turn in range(2):
        runtime.graph_launch(launched, stream)
    comm.wait(stream)
    assert x.get().tolist() == [comm.size**3] * 1000
    runtime.graph_exec_destroy(launched)
    runtime.graph_destroy(graph)
    runtime.stream_destroy(stream)


def shared_memory(comm: Any) -> None:
    """Every rank reads all others' memory, and writes into that of the next one."""
    nbxrt.runtime.put_in_force(comm.runtime)
    own = nbxrt.Buffer(8 * comm.size, shareable=True)
    own.copy_from(bytes([comm.rank]) * own.nbytes)
    everybody = comm.share(own)
    assert everybody[comm.rank] is own
    assert [set(buffer.tobytes()) for buffer in everybody] == [{rank} for rank in range(comm.size)]
    comm.barrier()
    following = everybody[(comm.rank + 1) % comm.size]
    following[8 * comm.rank : 8 * comm.rank + 8].copy_from(b"\xff" * 8)
    comm.runtime.sync()
    comm.barrier()
    before = (comm.rank - 1) % comm.size
    assert own[8 * before : 8 * before + 8].tobytes() == b"\xff" * 8
    for rank, buffer in enumerate(everybody):
        if rank != comm.rank:
            buffer.close()
    comm.barrier()
    own.close()
    contexts(comm)
    refused(lambda: comm.share(nbxrt.Buffer(8)), ValueError, "has no handle for other processes")


def contexts(comm: Any) -> None:
    """A process has a context on the device of its rank and nowhere else."""
    comm.barrier()
    bits = ctypes.CDLL(os.environ["NBXRT_CUDA_RUNTIME"]).nbxrt_sim_contexts()
    assert bits == 1 << comm.device == 1 << comm.rank


def main() -> None:
    scenario = globals()[sys.argv[1]]
    timeout = float(os.environ.get("TIMEOUT", "60"))
    if scenario.__code__.co_argcount == 0:
        scenario()
        return
    comm = dist.init(timeout=timeout) if "ENGINE" in os.environ else join(timeout=timeout)
    with comm:
        scenario(comm)


if __name__ == "__main__":
    main()
