"""The other process of the `ipc` checks: it reads a job from standard input, does it and answers on its output."""

from __future__ import annotations

import ast
import ctypes
import sys
from typing import Any

from nbxrt import errors
from nbxrt.conformance.checking import pattern
from nbxrt.runtime import Runtime


def memory(runtime: Runtime, request: dict[str, Any]) -> dict[str, Any]:
    """Open shared memory, look at it, and write something else into it."""
    handle, nbytes = request["handle"], request["nbytes"]
    address = runtime.ipc_open_mem_handle(handle, nbytes)
    try:
        return _looked_at(runtime, address, nbytes)
    finally:
        runtime.ipc_close_mem_handle(address, handle)


def mapped(runtime: Runtime, request: dict[str, Any]) -> dict[str, Any]:
    """Map memory that a file descriptor is of, look at it, and write something else into it."""
    nbytes = request["nbytes"]
    address = runtime.mem_address_reserve(nbytes)
    try:
        imported = runtime.mem_import(request["file"])
        try:
            runtime.mem_map(address, nbytes, 0, imported)
        finally:
            runtime.mem_release(imported)
        try:
            runtime.mem_set_access(address, nbytes, request["device"])
            return _looked_at(runtime, address, nbytes)
        finally:
            runtime.mem_unmap(address, nbytes)
    finally:
        runtime.mem_address_free(address, nbytes)


def _looked_at(runtime: Runtime, address: int, nbytes: int) -> dict[str, Any]:
    """What is in memory, which holds something else after."""
    host = ctypes.create_string_buffer(nbytes)
    runtime.memcpy(ctypes.addressof(host), address, nbytes, "device_to_host")
    seen = host.raw
    host.raw = pattern(nbytes, 2)
    runtime.memcpy(address, ctypes.addressof(host), nbytes, "host_to_device")
    runtime.sync()
    return {"seen": seen[:64].hex(), "all": seen == pattern(nbytes, 1)}


def event(runtime: Runtime, request: dict[str, Any]) -> dict[str, Any]:
    """Open a shared event and wait for it, as a stream and as the host."""
    opened = runtime.ipc_open_event_handle(request["handle"])
    try:
        runtime.stream_wait_event(0, opened)
        runtime.stream_sync(0)
        runtime.event_sync(opened)
        return {"passed": runtime.event_query(opened)}
    finally:
        runtime.event_destroy(opened)


JOBS = {"memory": memory, "mapped": mapped, "event": event}


def main() -> None:
    """Do one job."""
    request = ast.literal_eval(sys.stdin.read())
    runtime = Runtime(request["description"], request["contract"])
    try:
        runtime.set_device(request["device"])
        answer = JOBS[request["job"]](runtime, request)
    except errors.DeviceError as error:
        facts = {key: getattr(error, key) for key in ("operation", "symbol", "code", "name", "text", "kind", "sticky")}
        answer = {"error": (type(error).__name__, error.message, facts)}
    sys.stdout.write(f"\n{answer!r}\n")


if __name__ == "__main__":
    main()
