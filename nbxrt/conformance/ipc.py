"""Checks of the group `ipc`: memory and events shared with another process, which ipc_child.py is."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.conformance.checking import Wrong, check, expect, expect_bytes, expect_that, pattern
from nbxrt.conformance.virtual_memory import VIRTUAL, map_new, reserved

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

SIZE = 1 << 20
#: Seconds that the other process has.
PATIENCE = 60


def _in_child(bench: Bench, job: str, *, files: tuple[int, ...] = (), **facts: Any) -> dict[str, Any]:
    """What another process that opens the same backend, and has these file descriptors too, answers to a job.

    Raises: DeviceError or CapabilityError as the child had it; Wrong when it crashed or did not answer.
    """
    runtime = bench.runtime
    request = {
        "description": runtime.description,
        "contract": runtime.contract,
        "device": bench.device,
        "job": job,
        **facts,
    }
    command = [sys.executable, "-m", "nbxrt.conformance.ipc_child"]
    try:
        done = subprocess.run(  # noqa: S603  # our own module by our own interpreter
            command,
            input=repr(request),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env=_environ(bench),
            pass_fds=files,
        )
    except subprocess.TimeoutExpired:
        raise Wrong(f"the other process did not answer in {PATIENCE} seconds") from None
    if done.returncode:
        raise Wrong(f"the other process {_ended(done.returncode)}: {done.stderr.strip()[-400:] or 'it said nothing'}")
    answer: dict[str, Any] = ast.literal_eval(done.stdout.splitlines()[-1])  # a library may print of its own
    if "error" in answer:
        kind, message, said = answer["error"]
        raise getattr(errors, kind)(f"in the other process: {message}", **said)
    return answer


def _ended(code: int) -> str:
    """How a process ended: below zero stands the signal that ended it."""
    return f"crashed ({signal.Signals(-code).name})" if code < 0 else f"ended with {code}"


def _environ(bench: Bench) -> dict[str, str]:
    """The environment of a child that finds nbxrt where we did, and loads the libraries that we have."""
    here = os.pathsep.join(path for path in sys.path if path)
    environ = {**os.environ, "PYTHONPATH": here}
    for role in bench.runtime.description["libraries"]:
        try:
            path = bench.runtime.library(role).path
        except errors.LibraryNotFoundError:
            continue
        if os.path.isfile(path):
            environ[f"NBXRT_{bench.runtime.name}_{role}".upper()] = path
    return environ


@check("ipc", ("ipc_get_mem_handle", "ipc_open_mem_handle", "ipc_close_mem_handle", "malloc", "free", "memcpy", "sync"))
def another_process_reads_and_writes_shared_memory(bench: Bench) -> None:
    """It sees our bytes, and we see what it wrote."""
    address = bench.memory(SIZE)
    bench.write(address, pattern(SIZE, 1))
    bench.runtime.sync()
    handle = bench.runtime.ipc_get_mem_handle(address, SIZE)
    expect_that(isinstance(handle, bytes) and bool(handle), f"ipc_get_mem_handle: came {handle!r}")
    answer = _in_child(bench, "memory", handle=handle, nbytes=SIZE)
    expect(answer["seen"], pattern(SIZE, 1)[:64].hex(), "the first bytes that the other process saw")
    expect(answer["all"], True, "the other process saw all bytes")
    expect_bytes(bench.read(address, SIZE), pattern(SIZE, 2), "what the other process wrote")


@check("ipc", (*VIRTUAL, "mem_retain", "mem_export", "mem_import", "memcpy", "sync"))
def another_process_reads_and_writes_mapped_memory_by_its_file(bench: Bench) -> None:
    """The handle that it was mapped by is given up before; the memory is asked for by its address."""
    runtime = bench.runtime
    nbytes = runtime.mem_granularity(bench.device)
    address = reserved(bench, nbytes)
    map_new(bench, address, nbytes, "file")
    bench.write(address, pattern(nbytes, 1))
    runtime.sync()
    retained = runtime.mem_retain(address)
    try:
        file = runtime.mem_export(retained)
    finally:
        runtime.mem_release(retained)
    try:
        answer = _in_child(bench, "mapped", files=(file,), file=file, nbytes=nbytes)
    finally:
        os.close(file)
    expect(answer["seen"], pattern(nbytes, 1)[:64].hex(), "the first bytes that the other process saw")
    expect(answer["all"], True, "the other process saw all bytes")
    expect_bytes(bench.read(address, nbytes), pattern(nbytes, 2), "what the other process wrote")


@check(
    "ipc",
    (
        "ipc_get_event_handle",
        "ipc_open_event_handle",
        "event_create_flags",
        "event_record",
        "event_sync",
        "event_destroy",
    ),
)
def another_process_waits_for_a_shared_event(bench: Bench) -> None:
    """The event was recorded here, and the work before it has finished."""
    event = bench.runtime.event_create_flags(timing=False, interprocess=True)
    bench.later(bench.runtime.event_destroy, event)
    bench.runtime.event_record(event, 0)
    bench.runtime.event_sync(event)
    handle = bench.runtime.ipc_get_event_handle(event)
    expect_that(isinstance(handle, bytes) and bool(handle), f"ipc_get_event_handle: came {handle!r}")
    expect(_in_child(bench, "event", handle=handle), {"passed": True}, "the event in the other process")
