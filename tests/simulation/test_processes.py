"""Memory and events of a simulated device shared between processes, and what a process leaves at its end."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


linux = pytest.mark.skipif(sys.platform != "linux", reason="files of another process are opened through /proc")


def bytes_at(runtime: Runtime, address: int, nbytes: int) -> bytes:
    received = ctypes.create_string_buffer(nbytes)
    runtime.memcpy(ctypes.addressof(received), address, nbytes, "device_to_host")
    return received.raw


class Peer:
    """A process that uses the same library, told line by line what to evaluate."""

    PROGRAM = """
        import ctypes, sys
        import nbxrt
        runtime = nbxrt.open(sys.argv[1])
        for line in sys.stdin:
            print(eval(line), flush=True)
    """

    def __init__(self, simulation: Simulation) -> None:
        environment = {**simulation.environment(), "PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""}
        command = [sys.executable, "-c", textwrap.dedent(self.PROGRAM), simulation.name]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, expression: str) -> str:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@pytest.fixture
def peer(cuda: Simulation) -> Iterator[Peer]:
    other = Peer(cuda)
    yield other
    assert other.process.stdin
    other.process.stdin.close()
    other.process.wait(100)
    assert other.process.stdout
    other.process.stdout.close()


@linux
def test_memory_is_opened_in_another_process(cuda: Simulation, peer: Peer) -> None:
    runtime = cuda.open()
    address = runtime.malloc(64)
    runtime.memset(address, 7, 64)
    runtime.sync()

    handle = runtime.ipc_get_mem_handle(address, 64)
    theirs = int(peer.ask(f"runtime.ipc_open_mem_handle({handle!r}, 64)"))
    peer.ask(f"runtime.memset({theirs}, 9, 32)")
    peer.ask("runtime.sync()")
    peer.ask(f"runtime.ipc_close_mem_handle({theirs}, {handle!r})")

    assert bytes_at(runtime, address, 64) == b"\x09" * 32 + b"\x07" * 32


@linux
def test_an_event_is_waited_for_in_another_process(cuda: Simulation, peer: Peer) -> None:
    runtime = cuda.open()
    event = runtime.event_create_flags(timing=False, interprocess=True)
    handle = runtime.ipc_get_event_handle(event)
    theirs = peer.ask(f"runtime.ipc_open_event_handle({handle!r})")
    runtime.event_record(event, 0)

    before = peer.ask(f"runtime.event_query({theirs})")
    runtime.event_sync(event)

    assert (before, peer.ask(f"runtime.event_query({theirs})")) == ("False", "True")


def test_memory_is_opened_in_its_own_process_too(simulation: Simulation) -> None:
    runtime = simulation.open()
    address = runtime.malloc(64)
    handle = runtime.ipc_get_mem_handle(address, 64)

    again = runtime.ipc_open_mem_handle(handle, 64)
    runtime.memset(again, 3, 64)

    assert again != address
    assert bytes_at(runtime, address, 64) == b"\x03" * 64
    assert runtime.ipc_open_mem_handle(handle, 64) == again
    for _opened in range(2):
        runtime.ipc_close_mem_handle(again, handle)
    with pytest.raises(nbxrt.DeviceError):
        runtime.ipc_close_mem_handle(again, handle)


def test_an_event_is_opened_in_its_own_process_too(simulation: Simulation) -> None:
    runtime = simulation.open()
    event = runtime.event_create_flags(timing=False, interprocess=True)
    again = runtime.ipc_open_event_handle(runtime.ipc_get_event_handle(event))
    runtime.event_record(event, 0)

    before = runtime.event_query(again)
    runtime.sync()

    assert (before, runtime.event_query(again)) == (False, True)


def test_only_memory_and_events_that_can_be_shared_are(runtime: Runtime) -> None:
    for share in (
        lambda: runtime.ipc_get_mem_handle(runtime.malloc_async(64, 0), 64),
        lambda: runtime.ipc_get_mem_handle(runtime.malloc_host(64), 64),
        lambda: runtime.ipc_get_event_handle(runtime.event_create()),
        lambda: runtime.event_create_flags(timing=True, interprocess=True),
    ):
        with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
            share()


def test_bytes_that_are_no_handle_are_refused(runtime: Runtime) -> None:
    with pytest.raises(nbxrt.DeviceError, match="INVALID_VALUE"):
        runtime.ipc_open_mem_handle(bytes(64), 64)


@pytest.mark.parametrize("ending", ["pass", "sys.exit(0)"])
def test_a_process_ends_quietly_with_everything_alive(cuda: Simulation, run: Callable[..., str], ending: str) -> None:
    program = f"""
        import sys
        import nbxrt
        runtime = nbxrt.open("cuda")
        kept = [runtime.malloc(64), runtime.stream_create(), runtime.event_create(), runtime.malloc_host(64)]
        runtime.memset_async(kept[0], 0, 64, kept[1])
        {ending}
    """

    assert run(program, cuda, latency_us=100000) == ""
