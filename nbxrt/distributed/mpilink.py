"""Collectives on host memory by MPI: those that do not block, so that a rank that does not come is noticed."""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from nbxrt.distributed.datatypes import NBYTES
from nbxrt.distributed.hostmath import computable, elements_at, mean, stored
from nbxrt.distributed.links import Lost, Stuck, nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from nbxrt.runtime import Runtime

_OPERATIONS = {"sum": MPI.SUM, "avg": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}
#: How often a request is tested before the thread sleeps in between, and seconds of that sleep.
_EAGER, _PAUSE = 200, 1e-4

#: Requests that were given up, with the memory that MPI may still read or write.
_abandoned: list[Any] = []


class MpiLink:
    """One rank's end of a communicator of MPI, for a backend whose device memory is the host's."""

    asynchronous = False

    def __init__(self, runtime: Runtime, device: int, comm: MPI.Intracomm, seconds: float) -> None:
        self.runtime, self.device = runtime, device
        self.who_is_lost: Callable[[], str] = nobody
        self.guard = threading.Lock()
        self._comm, self._seconds = comm, seconds
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self._pending: list[tuple[Any, Callable[[], None]]] | None = None
        #: Waits that have not ended: of another thread, where somebody leaves.
        self._waits = 0
        self._is_left = False

    def prepared(self, name: str, arguments: tuple[Any, ...], stream: int) -> Callable[[], object]:  # noqa: ARG002
        begin = getattr(self, f"_{name}")

        def run() -> None:
            try:
                begun = begin(*arguments)
            except MPI.Exception as error:
                raise Lost(f"MPI says: {error}") from error
            if self._pending is not None:
                self._pending.append(begun)
            else:
                self._finish([begun])

        return run

    def start_group(self) -> None:
        self._pending = []

    def end_group(self) -> None:
        begun, self._pending = self._pending or [], None
        self._finish(begun)

    def _finish(self, begun: Sequence[tuple[Any, Callable[[], None]]]) -> None:
        end = time.monotonic() + self._seconds
        self._waits += 1
        for request, finish in begun:
            self._wait(request, end, begun)
            finish()
        self._waits -= 1

    def _wait(self, request: Any, end: float, begun: Any) -> None:
        tried = 0
        try:
            while not request.Test():
                tried += 1
                if tried > _EAGER or self._is_left:
                    self._demand_patience(tried, end)
                    time.sleep(_PAUSE)
        except MPI.Exception as error:
            _abandoned.append(begun)
            raise Lost(f"MPI says: {error}") from error
        except (Lost, Stuck):
            _abandoned.append(begun)
            raise

    def _demand_patience(self, tried: int, end: float) -> None:
        if self._is_left:
            raise Lost("it was left by another thread")
        if time.monotonic() > end:
            raise Stuck
        if tried % _EAGER == 0 and (said := self.who_is_lost()):
            raise Lost(said)

    # operations: each begins one, and gives the request and what is to be done when it has finished

    def _all_reduce(self, send: int, receive: int, count: int, datatype: str, reduction: str) -> Any:
        values = np.array(computable(elements_at(send, count, datatype), datatype))
        request = self._comm.Iallreduce(MPI.IN_PLACE, values, _OPERATIONS[reduction])
        return request, self._storing(values, receive, count, datatype, reduction)

    def _reduce(self, send: int, receive: int, count: int, datatype: str, reduction: str, root: int) -> Any:
        values = np.array(computable(elements_at(send, count, datatype), datatype))
        if self._rank != root:
            return self._comm.Ireduce(values, None, _OPERATIONS[reduction], root), _keeping(values)
        request = self._comm.Ireduce(MPI.IN_PLACE, values, _OPERATIONS[reduction], root)
        return request, self._storing(values, receive, count, datatype, reduction)

    def _reduce_scatter(self, send: int, receive: int, count: int, datatype: str, reduction: str) -> Any:
        values = np.array(computable(elements_at(send, count * self._size, datatype), datatype))
        own = np.empty(count, values.dtype)
        request = self._comm.Ireduce_scatter_block(values, own, _OPERATIONS[reduction])
        return request, self._storing(own, receive, count, datatype, reduction, values)

    def _storing(
        self, values: Any, receive: int, count: int, datatype: str, reduction: str, *kept: Any
    ) -> Callable[[], None]:
        def store(_kept: Any = kept) -> None:
            made = mean(values, self._size) if reduction == "avg" else values
            stored(made, elements_at(receive, count, datatype), datatype)

        return store

    def _broadcast(self, send: int, receive: int, count: int, datatype: str, root: int) -> Any:
        nbytes = count * NBYTES[datatype]
        if self._rank == root:
            ctypes.memmove(receive, send, nbytes)
        return self._comm.Ibcast(_bytes(receive, nbytes), root), _nothing

    def _all_gather(self, send: int, receive: int, count: int, datatype: str) -> Any:
        nbytes = count * NBYTES[datatype]
        is_in_place = send == receive + self._rank * nbytes
        own = MPI.IN_PLACE if is_in_place else _bytes(send, nbytes)
        return self._comm.Iallgather(own, _bytes(receive, nbytes * self._size)), _nothing

    def _all_to_all(self, send: int, receive: int, count: int, datatype: str) -> Any:
        nbytes = count * NBYTES[datatype] * self._size
        return self._comm.Ialltoall(_bytes(send, nbytes), _bytes(receive, nbytes)), _nothing

    def _send(self, address: int, count: int, datatype: str, peer: int) -> Any:
        return self._comm.Isend(_bytes(address, count * NBYTES[datatype]), peer), _nothing

    def _receive(self, address: int, count: int, datatype: str, peer: int) -> Any:
        return self._comm.Irecv(_bytes(address, count * NBYTES[datatype]), peer), _nothing

    # everything else

    def is_settled(self, stream: int) -> bool:
        return self.runtime.stream_query(stream)

    def error(self) -> str:
        return ""

    def gather(self, part: bytes, size: int, wait: Callable[[int], None]) -> bytes:  # noqa: ARG002  # it is done here
        whole = bytearray(len(part) * size)
        try:
            self._finish([(self._comm.Iallgather(part, whole), _keeping((part, whole)))])
        except MPI.Exception as error:
            raise Lost(f"MPI says: {error}") from error
        return bytes(whole)

    def split(
        self,
        members: Sequence[int],
        rank: int,
        exchange: Callable[[bytes], list[bytes]],  # noqa: ARG002  # MPI splits by itself
    ) -> tuple[MpiLink, bytes]:
        first = members[0] if members else MPI.UNDEFINED
        part = self._comm.Split(first, members.index(rank) if members else 0)
        if not members:
            return self, b""
        name = exchange_name(part)
        return MpiLink(self.runtime, self.device, part, self._seconds), name

    def abort(self) -> None:
        """MPI cannot take back what it has begun; the communicator is left to the end of the process."""

    def close(self, seconds: float) -> None:  # noqa: ARG002  # MPI frees at once what has nothing under way
        if self._waits:
            self._is_left = True
            time.sleep(2 * _PAUSE)  # in which the other thread sees it: nobody may ask MPI anything once it has ended
            raise Stuck
        self._comm.Free()

    def on_device(self) -> AbstractContextManager[None]:
        return nullcontext()


def exchange_name(comm: MPI.Intracomm) -> bytes:
    """Bytes that tell a communicator of MPI apart: its first rank makes them up."""
    import secrets

    name: bytes = comm.bcast(secrets.token_bytes(16) if comm.Get_rank() == 0 else None)
    return name


def _bytes(address: int, nbytes: int) -> Any:
    """Memory as MPI takes it: without a count, which would be that of one rank's part."""
    return MPI.buffer.fromaddress(address, nbytes)


def _nothing() -> None:
    pass


def _keeping(values: Any) -> Callable[[], None]:
    """Nothing to do when a request has finished, but what MPI reads until then is kept: a request does not keep it."""

    def keep(_kept: Any = values) -> None:
        pass

    return keep
