"""Ranks that fail: they die, are late, or do not come. Those that take no communicator make several themselves."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from ranks import Array, join, meet, raised, took_at_most, wait_for_files

import nbxrt
import nbxrt.distributed as dist
from nbxrt import errors
from nbxrt.distributed.progress import Progress, joining
from nbxrt.distributed.rankfile import path_of
from nbxrt.memory.allocator import account_of

#: Seconds that operations have where ranks do not come in time: enough for all to join on a machine that is busy.
SHORT = 5.0
#: Seconds after which a rank surely hangs, whatever else the machine does; an operation that has longer was ended.
HANGS = 30.0


def told(call: Any) -> errors.CommunicatorError:
    error: errors.CommunicatorError = raised(call, errors.CommunicatorError)
    return error


def a_rank_that_does_not_come() -> None:
    comm = join(timeout=SHORT)
    everybody = list(range(comm.size))
    held = account_of(comm.runtime).memory_allocated()
    x, stream = Array(comm.runtime, np.ones(4, np.float32)), comm.runtime.stream_create()
    if comm.rank == 1:
        meet("told", comm.rank, b"", everybody)
        assert "rank 1 of 3" in str(told(lambda: comm.all_reduce(x, stream=stream)))
    else:
        comm.all_reduce(x, stream=stream)
        with took_at_most(HANGS):
            comm.runtime.stream_sync(stream)  # which knows of no communicator: the watch ends what it waits for
        error = told(lambda: comm.wait(stream))
        assert f"rank {comm.rank} of 3, `all_reduce`: " in str(error)
        if isinstance(error, TimeoutError):  # the one that was first; the other may have seen that one leave
            assert "not finished within 5 s; rank 1 (process" in str(error)
            assert "has made 0 calls of 1" in str(error)
            assert (error.operation, error.rank, error.size, error.missing) == ("all_reduce", comm.rank, 3, (1,))
        assert str(told(comm.barrier)) == str(error)
        meet("told", comm.rank, b"", everybody)
    assert account_of(comm.runtime).memory_allocated() < held, "what was held is given back"
    again = join("again")
    again.all_reduce(x, stream=stream)
    again.wait(stream)
    assert x.get().tolist() == [3] * 4


def a_rank_that_waits_for_itself() -> None:
    """Nobody but rank 0 calls, and it asks: the error names those who did not come."""
    comm = join(timeout=SHORT)
    x = Array(comm.runtime, np.ones(4, np.float32))
    if comm.rank == 0:
        comm.all_reduce(x)
        error = told(comm.wait)
        assert isinstance(error, TimeoutError)
        assert error.missing == (1, 2)
    meet("told", comm.rank, b"", list(range(comm.size)))


def a_rank_that_ends() -> None:
    """The last one, once all have joined; the others tell, and go on without it in a new communicator."""
    comm = join()
    last = comm.size - 1
    x = Array(comm.runtime, np.ones(4, np.float32))
    meet("joined", comm.rank, b"", list(range(comm.size)))  # joining is not what is ended here
    if comm.rank == last:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.all_reduce(x)
    with took_at_most(HANGS):
        error = told(comm.wait)
    assert f"rank {last} (process" in str(error)
    # the library may notice before the system is done with the process
    assert "has ended" in str(error) or "has made 0 calls of 1" in str(error)
    assert error.missing == (last,)
    left = join("left", ranks=list(range(last)))
    x.put(np.ones(4, np.float32))
    left.all_reduce(x)
    left.wait()
    assert x.get().tolist() == [last] * 4


def a_rank_that_ends_in_the_middle() -> None:
    """The last one, while the others are in the operation that OPERATION names."""
    name = os.environ["OPERATION"]
    comm = join()
    x, out = (Array(comm.runtime, np.ones(comm.size * 4, np.float32)) for _each in range(2))
    meet("joined", comm.rank, b"", list(range(comm.size)))  # joining is not what is ended here
    last = comm.size - 1
    if comm.rank == last:
        os.kill(os.getpid(), signal.SIGKILL)
    error = told(lambda: (CALLS[name](comm, x, out), comm.wait()))
    assert last in error.missing or "has left" in str(error), str(error)
    assert error.operation == name.replace("recv", "receive"), (name, str(error))


#: What takes a communicator and two arrays to an operation that waits for the last rank.
CALLS: dict[str, Any] = {
    "all_reduce": lambda comm, x, out: comm.all_reduce(x),
    "broadcast": lambda comm, x, out: comm.broadcast(x, comm.size - 1),
    "reduce": lambda comm, x, out: comm.reduce(x),
    "all_gather": lambda comm, x, out: comm.all_gather(x.part(0, 4), out),
    "reduce_scatter": lambda comm, x, out: comm.reduce_scatter(x, out.part(0, 4)),
    "all_to_all": lambda comm, x, out: comm.all_to_all(x, out),
    "barrier": lambda comm, x, out: comm.barrier(),
    "recv": lambda comm, x, out: comm.recv(x, comm.size - 1),
}


def a_fork(comm: Any) -> None:
    """A child refuses its parent's communicator, and leaves it as it is."""
    x = Array(comm.runtime, np.ones(4, np.float32))
    child = os.fork()
    if not child:
        error = raised(lambda: comm.all_reduce(x), errors.ArgumentValueError)
        comm.close()
        os._exit(0 if f"is of process {os.getppid()}, and this is a fork of it" in str(error) else 1)
    assert os.waitpid(child, 0)[1] == 0
    comm.all_reduce(x)
    comm.wait()
    assert x.get().tolist() == [comm.size] * 4


def an_exit_in_the_middle(comm: Any) -> None:
    """Every rank leaves by `sys.exit` inside the block, and its status is what it said."""
    folder = Path(os.environ.get("TELL") or os.environ["MEET"])
    comm.all_reduce(Array(comm.runtime, np.ones(1 << 16, np.float32)))
    (folder / f"given-{comm.rank}").touch()  # one that goes before the others have called ends it for them
    wait_for_files(folder, [f"given-{rank}" for rank in range(comm.size)])
    sys.exit(4 if comm.rank == comm.size - 1 else 0)


def an_end_that_leaves_work_behind() -> None:
    """Rank 0 goes without waiting for what it gave; nobody else calls it."""
    comm = join(timeout=SHORT)
    if comm.rank == 0:
        comm.all_reduce(Array(comm.runtime, np.ones(4, np.float32)))


def a_rank_that_joins_alone() -> None:
    runtime = nbxrt.open("cuda")
    error = told(lambda: dist.join(runtime.comm_unique_id(), 0, 2, timeout=0.5))
    assert "rank 0 of 2: the others did not join within 0.5 s" in str(error)


def a_rank_is_killed(comm: Any) -> None:
    """The last one; the others tell at once, end by themselves, and write down in a folder that they were right."""
    last, folder = comm.size - 1, Path(os.environ.get("TELL") or os.environ["MEET"])
    x = Array(comm.runtime, np.ones(4, np.float32))
    comm.all_reduce(x)
    comm.wait()
    (folder / f"has-received-{comm.rank}").touch()
    if comm.rank == last:
        wait_for_files(folder, [f"has-received-{rank}" for rank in range(comm.size)])
        os.kill(os.getpid(), signal.SIGKILL)

    def call() -> None:
        comm.all_reduce(x)
        comm.wait()

    with took_at_most(HANGS):
        error = told(call)
    assert f"rank {last} (process" in str(error)
    # the library may notice before the system is done with the process
    assert "has ended" in str(error) or "calls of" in str(error)
    (folder / f"told-{comm.rank}").touch()


def a_rank_leaves(comm: Any) -> None:
    """The last one gives up, and its process goes on; one that has a message with another goes on, too."""
    x = Array(comm.runtime, np.ones(4, np.float32))
    last = comm.size - 1
    meet("joined", comm.rank, b"", list(range(comm.size)))  # joining is not what is left here
    if comm.rank == last:
        comm.abort()
        meet("told", comm.rank, b"", list(range(comm.size)))
        return
    time.sleep(float(os.environ.get("LATE", "0")))  # in which the watch sees it, to whom that rank owes no call yet
    with took_at_most(HANGS):
        error = told(lambda: (comm.all_reduce(x), comm.wait()))
    assert f"rank {last} (process" in str(error)
    assert "has left" in str(error)
    meet("told", comm.rank, b"", list(range(comm.size)))


def a_rank_that_ends_as_it_joins() -> None:
    """It has joined the library's communicator, and no more of it; nothing of it is left behind."""
    rank, runtime = int(os.environ["RANK"]), nbxrt.open("cuda")
    runtime.set_device(rank)
    identity = meet("first", rank, runtime.comm_unique_id() if rank == 0 else b"", [0, 1])[0]
    if rank == 1:
        with joining(identity, 1, 2):
            runtime.comm_init_rank(2, identity, 1)
            os.kill(os.getpid(), signal.SIGKILL)
    with took_at_most(HANGS):
        assert "rank 0 of 2, `barrier`: " in str(told(lambda: dist.join(identity, 0, 2, timeout=60)))
    assert not path_of(identity).exists()


def a_rank_that_ends_before_all_have_joined() -> None:
    """The last one does not come, and the one before it ends: the first need not wait until its time is over."""
    rank, runtime = int(os.environ["RANK"]), nbxrt.open("cuda")
    runtime.set_device(rank)
    identity = meet("first", rank, runtime.comm_unique_id() if rank == 0 else b"", [0, 1, 2])[0]
    if rank == 1:
        with joining(identity, rank, 3) as progress:
            threading.Thread(target=end_when_seen, args=(progress,)).start()
            runtime.comm_init_rank(3, identity, rank)
    if rank == 0:
        with took_at_most(HANGS):
            error = told(lambda: dist.join(identity, rank, 3, timeout=60))
        assert "rank 0 of 3: rank 1 (process" in str(error)
        assert "has ended before all had joined" in str(error)


def end_when_seen(progress: Progress) -> None:
    """End this process when the first rank can see that it joins."""
    while 0 not in progress.staying():
        time.sleep(0.002)
    os.kill(os.getpid(), signal.SIGKILL)


def a_rank_that_ends_in_a_split() -> None:
    """The last one, when the others have come to the library's call that joins the new communicator."""
    comm = join()
    joins, folder = comm.runtime.comm_init_rank, Path(os.environ["MEET"])

    def join_or_end(*given: Any) -> Any:
        (folder / f"splits-{comm.rank}").touch()
        if comm.rank == comm.size - 1:
            wait_for_files(folder, [f"splits-{rank}" for rank in range(comm.size)])
            os.kill(os.getpid(), signal.SIGKILL)
        return joins(*given)

    comm.runtime.comm_init_rank = join_or_end
    with took_at_most(HANGS):
        error = told(lambda: comm.split(0))
    assert f"rank {comm.size - 1} (process" in str(error)
    assert "has ended" in str(error)


def closing_in_another_order(comm: Any) -> None:
    """The last rank closes two communicators the other way round: each is left when nobody else stays in it."""
    first, second = comm.split(0), comm.split(0)
    for part in (first, second):
        part.all_reduce(Array(comm.runtime, np.ones(4, np.float32)))
    with took_at_most(HANGS):
        for part in (second, first) if comm.rank == comm.size - 1 else (first, second):
            part.close()
    raised(first.barrier, errors.ArgumentValueError)


def one_raises() -> None:
    comm = dist.init(timeout=60)
    if comm.rank == 1:
        message = "rank 1 gives up"
        raise RuntimeError(message)
    with took_at_most(HANGS):
        comm.all_reduce(Array(comm.runtime, np.ones(4, np.float32)))
        comm.wait()


def a_communicator_that_nobody_holds() -> None:
    """What it gave to a stream is watched on: the stream ends."""
    comm = join(timeout=SHORT)
    x, runtime = Array(comm.runtime, np.ones(4, np.float32)), comm.runtime
    if comm.rank == 0:
        comm.all_reduce(x)
        del comm
        gc.collect()
        with took_at_most(HANGS):
            runtime.stream_sync(0)
    meet("done", int(os.environ["RANK"]), b"", [0, 1])


def a_rank_is_late(comm: Any) -> None:
    last = comm.size - 1
    x = Array(comm.runtime, np.ones(4, np.float32))
    if comm.rank == last:
        time.sleep(comm.timeout + 1)
        return
    error = told(lambda: (comm.all_reduce(x), comm.wait()))
    if isinstance(error, TimeoutError):  # the one that was first; another may have seen that one leave
        assert error.missing == (last,)
    assert f"rank {comm.rank} of {comm.size}, `all_reduce`: " in str(error)
