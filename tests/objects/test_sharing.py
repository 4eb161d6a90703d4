"""Memory and events of another process."""

from __future__ import annotations

import base64
import pickle
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

PROGRAM = """
import base64, pickle, sys
import nbxrt
handle = pickle.loads(base64.b64decode({handle!r}))
{work}
"""


@pytest.fixture
def other(run: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., str]:
    """Runs a program in another process that has a handle; what it printed."""

    def program(work: str, handle: Any, simulation: Simulation) -> str:
        text = PROGRAM.format(handle=base64.b64encode(pickle.dumps(handle)).decode(), work=work)
        done = run(text, simulation)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    return program


def test_another_process_sees_the_bytes_of_a_part_and_writes_them(
    simulation: Simulation, other: Callable[..., str]
) -> None:
    buffer = nbxrt.Buffer(4096, device=1, shareable=True)
    buffer.fill(1)
    buffer.device.sync()
    work = """
first, second = nbxrt.Buffer.from_ipc_handle(handle), nbxrt.Buffer.from_ipc_handle(handle)
assert (first.ptr, first.nbytes, first.device.index, first.owns) == (second.ptr, 8, 1, True)
first.close()
print(second.tobytes().hex())
second.fill(7)
nbxrt.Device(1).sync()
"""

    seen = other(work, buffer[16:24].ipc_handle(), simulation)

    assert seen == "01" * 8
    assert buffer[8:32].tobytes() == b"\1" * 8 + b"\7" * 8 + b"\1" * 8


def test_another_process_waits_for_an_event(simulation: Simulation, other: Callable[..., str]) -> None:
    event = nbxrt.Event(timing=False, interprocess=True)
    event.record()
    event.sync()

    assert other("print(nbxrt.Event.from_ipc_handle(handle).query())", event.ipc_handle(), simulation) == "True"


def test_an_event_that_was_not_made_for_others_has_no_handle_and_says_what_to_do(cuda: Simulation) -> None:
    closed = nbxrt.Event(timing=False, interprocess=True)
    handle = closed.ipc_handle()
    handle.process = 1
    events = nbxrt.Event(), nbxrt.Event(timing=False), nbxrt.Event.from_ipc_handle(handle)
    closed.close()
    cuda.clear()

    for event in events:
        with pytest.raises(
            nbxrt.ArgumentValueError, match=r"was not made here for other[^$]*hint: `Event\(timing=False"
        ):
            event.ipc_handle()
    with pytest.raises(nbxrt.ArgumentValueError, match="is closed"):
        closed.ipc_handle()

    assert [call.operation for call in cuda.log()] == []


def test_memory_without_a_handle_of_its_own_says_what_to_do(simulation: Simulation) -> None:
    with pytest.raises(nbxrt.ArgumentValueError, match=r"has no handle[^$]*hint: `Buffer\(nbytes, shareable=True\)`"):
        nbxrt.Buffer(64, kind="pinned").ipc_handle()
    with pytest.raises(nbxrt.ArgumentValueError, match="`shareable` is for device memory, not for pinned memory"):
        nbxrt.Buffer(64, kind="pinned", shareable=True)


def test_a_handle_is_for_other_processes(simulation: Simulation) -> None:
    handle = nbxrt.Buffer(64, shareable=True).ipc_handle()

    with pytest.raises(nbxrt.ArgumentValueError, match="was made in this process, and is for others"):
        nbxrt.Buffer.from_ipc_handle(handle)


def test_a_process_of_the_same_number_in_another_container_is_another_one(simulation: Simulation) -> None:
    handle = nbxrt.Buffer(64, shareable=True).ipc_handle()
    handle.mark = b"of there"

    assert nbxrt.Buffer.from_ipc_handle(handle).nbytes == 64


def test_a_handle_that_does_not_fit_is_refused(simulation: Simulation, host: Runtime) -> None:
    handle = nbxrt.Buffer(64, nbxrt.Device(0, runtime=simulation.open()), shareable=True).ipc_handle()
    handle.process = 1

    with pytest.raises(nbxrt.ArgumentValueError, match=r"is of another backend than <nbxrt.Runtime host"):
        nbxrt.Buffer.from_ipc_handle(handle)
    with pytest.raises(nbxrt.ArgumentTypeError, match="a handle of event that"):
        nbxrt.Event.from_ipc_handle(handle)
    with pytest.raises(nbxrt.ArgumentTypeError, match="a handle of memory that"):
        nbxrt.Buffer.from_ipc_handle(b"bytes")  # type: ignore[arg-type]


def test_a_device_that_this_process_does_not_see_is_named(simulation: Simulation) -> None:
    handle = nbxrt.Buffer(64, shareable=True).ipc_handle()
    handle.process, handle.uuid = 1, "00000000-0000-0000-0000-000000000000"

    with pytest.raises(nbxrt.ArgumentValueError, match=r"its device 0{8}-.* is not visible to this process"):
        nbxrt.Buffer.from_ipc_handle(handle)


def test_a_backend_without_handles_quotes_its_file(host: Runtime) -> None:
    with pytest.raises(nbxrt.CapabilityError, match="memory of the C library cannot be shared between processes"):
        nbxrt.Buffer(64, shareable=True).ipc_handle()


def test_an_export_that_the_driver_refuses_is_told_with_its_reason(cuda: Simulation) -> None:
    cuda.fail("ipc_get_mem_handle", kind="not_supported")

    with pytest.raises(nbxrt.DeviceError, match="ipc_get_mem_handle"):
        nbxrt.Buffer(64, shareable=True).ipc_handle()
    assert nbxrt.current_device().runtime.get_last_error() == 0
