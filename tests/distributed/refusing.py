"""Ranks that call what is wrong: it is refused on every rank, and the communicator is as good as before."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from ranks import Array, raised, refused

import nbxrt
import nbxrt.distributed as dist
from nbxrt import errors


def refusals(comm: Any) -> None:
    """What is wrong is refused before anything is sent: the communicator is as good as before."""
    x, short = Array(comm.runtime, np.zeros(8, np.float32)), Array(comm.runtime, np.zeros(3, np.float32))
    whole = Array(comm.runtime, np.zeros(8 * comm.size, np.int32))
    other = (comm.rank + 1) % comm.size
    wrong = [
        (lambda: comm.all_reduce(3.5), TypeError, "takes an array, not float"),
        (lambda: comm.all_reduce(x, "add"), ValueError, "`op` is one of avg, max, min, prod, sum, not 'add'"),
        (lambda: comm.all_reduce(x, out=short), ValueError, "`out` holds 3 float32, and 8 float32 belong there"),
        (lambda: comm.all_gather(x, whole), ValueError, "`out` holds"),
        (lambda: comm.all_to_all(short, Array(comm.runtime, np.zeros(3, np.float32))), ValueError, "cannot be divided"),
        (lambda: comm.all_to_all(x, x), ValueError, "`x` and `out` overlap"),
        (lambda: comm.all_reduce(x.part(0, 6), out=x.part(2, 6)), ValueError, "`x` and `out` overlap"),
        (lambda: comm.broadcast(x.part(2, 6), out=x.part(0, 6)), ValueError, "`x` and `out` overlap"),
        (lambda: comm.all_gather(x.part(other, 1), x.part(0, comm.size)), ValueError, "`x` and `out` overlap"),
        (lambda: comm.reduce_scatter(x, x.part(3, 8 // comm.size)), ValueError, "`x` and `out` overlap"),
        (lambda: comm.all_gather(x, None), TypeError, "`out` is an array, not None"),
        (lambda: comm.all_reduce(x, ["sum"]), ValueError, "`op` is one of avg, max, min, prod, sum, not ['sum']"),
        (lambda: comm.share(None), TypeError, "`share` takes a Buffer, not None"),
        (lambda: dist.group(5), TypeError, "a group is of communicators, not of 5"),
        (lambda: comm.broadcast(x, comm.size), ValueError, f"`root` is a rank below {comm.size}"),
        (lambda: comm.send(x, "next"), TypeError, "`peer` is a rank, not 'next'"),
        (lambda: comm.all_reduce(x, dtype="complex64"), TypeError, "`complex64` is no element type"),
        (lambda: comm.all_reduce(x, stream="main"), TypeError, "`stream` takes a Stream"),
        (lambda: comm.all_reduce(x, ""), ValueError, "`op` is one of avg, max, min, prod, sum, not ''"),
        (lambda: comm.all_reduce(np.float32(1)), TypeError, "takes an array, not the NumPy scalar"),
        (lambda: comm.all_reduce(Odd()), TypeError, "cannot read this Odd: AttributeError: "),
        (lambda: comm.wait(timeout="1"), TypeError, "`timeout` is seconds, not '1'"),
        (lambda: comm.wait(timeout=float("nan")), ValueError, "`timeout` is more than 0 seconds"),
        (lambda: comm.split("a b"), TypeError, "`color` is an integer, not 'a b'"),
        (lambda: comm.split(0, 1.5), TypeError, "`key` is an integer, not 1.5"),
        (lambda: copy.copy(comm), TypeError, "takes plain data, not Communicator"),
    ]
    if comm.runtime.kind != "cpu":
        host = np.zeros(8, np.float32)
        wrong.append(
            (lambda: comm.all_reduce(host), ValueError, "takes device memory, and `x` (ndarray) is host memory")
        )
    for call, kind, said in wrong:
        refused(call, kind, said)
    refused(lambda: in_group(comm, x, short), ValueError, "`out` holds 3")
    refused(lambda: left_in_group(comm, x), ValueError, "the communicator is closed")
    other_calls(comm)
    comm.all_reduce(x)
    comm.wait()
    assert x.get().tolist() == [0] * 8


def in_group(comm: Any, x: Any, short: Any) -> None:
    with comm.group():
        comm.all_reduce(x)
        comm.all_reduce(x, out=short)


def left_in_group(comm: Any, x: Any) -> None:
    part = comm.split(0)
    with part.group():
        part.all_reduce(x)
        part.close()


def other_calls(comm: Any) -> None:
    """Ranks that call different things whose messages are of one kind, where no check is asked for."""
    calls = [
        (lambda: comm.split(0), comm.barrier, "rank 0 calls split, rank 1 calls barrier"),
        (comm.barrier, lambda: comm.share(nbxrt.Buffer(8)), "rank 0 calls barrier, rank 1 calls share"),
        (lambda: comm.share(nbxrt.Buffer(8)), lambda: comm.split(0), "rank 0 calls share, rank 1 calls split"),
    ]
    with nbxrt.use(comm.runtime):
        for usual, other, said in calls:
            refused(other if comm.rank == 1 else usual, ValueError, said)


def a_split_beside_another_call(comm: Any) -> None:
    """Where no check is asked for: the communicator is broken, by name."""
    x = Array(comm.runtime, np.ones(64, np.float32))
    calls = [lambda: comm.split(0), lambda: (comm.all_reduce(x), comm.wait())]
    name = ("split", "all_reduce")[comm.rank != 0]
    assert f"rank {comm.rank} of {comm.size}, `{name}`: " in str(
        raised(calls[comm.rank != 0], errors.CommunicatorError)
    )


class Odd:
    """No array, though it has an address."""

    def data_ptr(self) -> int:
        return 1


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
    calls += [
        (lambda: comm.all_reduce(x), comm.barrier, "(sum), rank 1 calls barrier"),
        (comm.barrier, lambda: comm.split(0), "rank 0 calls barrier, rank 1 calls split"),
    ]
    for usual, other, said in calls:
        refused(other if comm.rank == 1 else usual, ValueError, said)
    comm.all_reduce(x)
    comm.wait()
    assert x.get().tolist() == [comm.size] * 8
