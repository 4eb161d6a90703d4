"""Ranks on devices: graphs of collectives, memory that ranks share, and where they have contexts."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from ranks import Array, raised, refused

import nbxrt
from nbxrt import errors


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
    kind = errors.CommunicatorError if comm.rank else errors.ArgumentValueError
    error = raised(lambda: comm.share(nbxrt.Buffer(8, shareable=comm.rank > 0)), kind)
    assert error.hint == "`Buffer(nbytes, shareable=True)` is one"


def contexts(comm: Any) -> None:
    """A process has a context on the device of its rank and nowhere else."""
    comm.barrier()
    assert devices_with_context(comm.runtime) == [comm.device] == [comm.rank]
    comm.barrier()


def devices_with_context(runtime: Any) -> list[int]:
    """As the simulated vendor says, or the driver's list of processes."""
    if (library := os.environ.get("NBXRT_CUDA_RUNTIME")) is not None:
        bits = ctypes.CDLL(library).nbxrt_sim_contexts()
        return [device for device in range(32) if bits >> device & 1]
    listed = [{process.pid for process in nbxrt.processes(device)} for device in range(runtime.device_count())]
    return [device for device, pids in enumerate(listed) if os.getpid() in pids]


def training(comm: Any) -> None:
    """The example's losses are those of one process."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    from data_parallel import train

    alone, together = train(None, 5), train(comm, 5)
    assert alone[-1] < alone[0]
    np.testing.assert_allclose(together, alone, rtol=1e-5)
