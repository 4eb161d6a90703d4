"""MPI as the engine: which rank this process is, where its host's others are, and how identities reach them."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from nbxrt import errors
from nbxrt.distributed import watch

if TYPE_CHECKING:
    from nbxrt.distributed.links import Link
    from nbxrt.runtime import Runtime

_PAUSE = 1e-4
#: The process that MPI is of.
_PROCESS = os.getpid()


class MpiWorld:
    """The ranks of MPI's world, in a communicator of nbxrt's own."""

    engine = "MPI"
    #: Ranks take devices by their number on the host.
    device: int | None = None

    def __init__(self, seconds: float) -> None:
        _refuse_a_fork()
        world = MPI.COMM_WORLD
        self.rank, self.size = world.Get_rank(), world.Get_size()
        self._seconds = seconds
        self._meet(world)
        self._comm = world.Dup()
        local = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = local.Get_rank(), local.Get_size()
        local.Free()
        _leave_in_time()

    def exchange(self, value: Any) -> list[Any]:
        """What every rank says, in order of rank. Raises: CommunicatorTimeoutError when one does not come."""
        self._meet(self._comm)
        answers: list[Any] = self._comm.allgather(value)
        return answers

    def link(self, runtime: Runtime, device: int, seconds: float) -> tuple[Link, bytes]:
        """Collectives on host memory by MPI itself, and what tells this communicator apart."""
        from nbxrt.distributed.mpilink import MpiLink, exchange_name

        own = self._comm.Dup()
        return MpiLink(runtime, device, own, seconds), exchange_name(own)

    def close(self) -> None:
        """Give back what belongs to the world's own messages."""
        self._comm.Free()

    def _meet(self, comm: MPI.Intracomm) -> None:
        """Wait until all ranks are here, so that what follows does not block."""
        request, end = comm.Ibarrier(), time.monotonic() + self._seconds
        while not request.Test():
            if time.monotonic() > end:
                watch.note_failure()
                _leave_in_time()
                raise errors.CommunicatorTimeoutError(
                    f"rank {self.rank} of {self.size}: not all ranks of MPI came to `init` within {self._seconds:g} s",
                    hint="every rank calls `init`, and as often as the others do",
                    operation="init",
                    rank=self.rank,
                    size=self.size,
                    seconds=self._seconds,
                )
            time.sleep(_PAUSE)


def _refuse_a_fork() -> None:
    if os.getpid() != _PROCESS:
        raise errors.ArgumentValueError(
            f"MPI is of process {_PROCESS}, and this is a fork of it, which MPI does not survive",
            hint="let the launcher start every process that takes part",
        )


_prepared = False


def _leave_in_time() -> None:
    """At the end of a process whose communicator broke, MPI may wait for ranks that are gone: not for long."""
    global _prepared  # noqa: PLW0603
    if not _prepared:
        atexit.register(_finalize)
    _prepared = True


def _finalize() -> None:
    """Let MPI end after a communicator broke, and the process, with status 1, when it does not in a few seconds.

    MPI waits inside the interpreter's lock, so that no thread of Python could end the process.
    """
    if not watch.has_failed() or MPI.Is_finalized():
        return
    sys.stdout.flush()
    sys.stderr.flush()
    with open(os.devnull, "w", encoding="ascii") as nowhere:
        faulthandler.dump_traceback_later(watch.GRACE, exit=True, file=nowhere)
        with contextlib.suppress(MPI.Exception):
            MPI.Finalize()
        faulthandler.cancel_dump_traceback_later()
