"""Two processes that share memory of segments by `multiprocessing`: what the tests run, on any backend."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbxrt

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MIB = 1 << 20
#: The memory, and the part of it that the other process has, which lies in several pieces.
WHOLE, PART = 150 * MIB, slice(20 * MIB + 512, 120 * MIB + 1024)


def other(handle: Any, ours: Connection) -> None:
    """Open the memory of a handle, or of each that is sent until None comes; look at it and fill it."""
    sent = handle is None
    if sent:
        handle = ours.recv()
    before = 0
    while handle is not None:
        first, second = (nbxrt.Buffer.from_ipc_handle(handle) for _ in range(2))
        seen = is_all(second, 1)
        first.close()
        second.fill(7)
        second.device.sync()
        second.close()
        pieces = len(handle.files)
        handle = None
        ours.send((seen, first.nbytes, pieces, files() - before))
        before = before or files()
        handle = ours.recv() if sent else None


def files() -> int:
    """How many file descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def shared_by(way: str) -> tuple[int, int]:
    """Share memory with another process as an argument of it, or by a pipe; pieces, and the files that a round left."""
    context = multiprocessing.get_context("spawn")
    buffer = nbxrt.Buffer(WHOLE)
    left = []
    for _round in range(2):
        ours, theirs = context.Pipe()
        buffer.fill(1)
        buffer.device.sync()
        handle = buffer[PART].ipc_handle()
        process = context.Process(target=other, args=(handle if way == "argument" else None, theirs))
        process.start()
        if way == "pipe":
            ours.send(handle)
        del handle
        seen, nbytes, pieces, _files = ours.recv()
        assert (seen, nbytes) == (True, PART.stop - PART.start)
        if way == "pipe":
            buffer.fill(1)
            buffer.device.sync()
            ours.send(buffer[PART].ipc_handle())
            assert ours.recv() == (seen, nbytes, pieces, 0)
            ours.send(None)
        process.join()
        assert process.exitcode == 0
        process.close()
        ours.close()
        theirs.close()
        check_bytes(buffer)
        left.append(files())
    return pieces, left[1] - left[0]


def check_bytes(buffer: nbxrt.Buffer) -> None:
    """The part holds what the other process wrote, and what is around it is as it was."""
    assert is_all(buffer[PART], 7)
    for around in (slice(0, PART.start), slice(PART.stop, WHOLE)):
        assert is_all(buffer[around], 1)


def is_all(buffer: nbxrt.Buffer, value: int) -> bool:
    """Whether every byte has that value."""
    return buffer.tobytes().count(value) == buffer.nbytes
