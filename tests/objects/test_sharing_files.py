"""Memory of virtual-memory segments in another process, by file descriptors."""

from __future__ import annotations

import pickle
import subprocess
from multiprocessing import resource_sharer
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

MIB = 1 << 20


def open_files() -> list[Path]:
    """The file descriptors of this process."""
    return sorted(Path("/proc/self/fd").iterdir())


@pytest.mark.tier("all")
@pytest.mark.parametrize("way", ["argument", "pipe"])
def test_another_process_has_the_memory_by_its_files(
    simulation: Simulation, run: Callable[..., subprocess.CompletedProcess[str]], way: str
) -> None:
    program = """
    import sys
    sys.path.insert(0, {folder!r})
    import sharing_processes

    print(*sharing_processes.shared_by({way!r}))
    """

    done = run(program.format(folder=str(Path(__file__).parent), way=way), simulation)

    assert (done.returncode, done.stderr) == (0, "")
    pieces, left = done.stdout.split()
    assert int(pieces) > 1
    assert int(left) == 0


@pytest.mark.parametrize("failing", ["mem_address_reserve", "mem_import", "mem_map", "mem_set_access"])
def test_an_opening_that_fails_leaves_nothing(cuda: Simulation, failing: str) -> None:
    handle = nbxrt.Buffer(200 * MIB).ipc_handle()
    handle.process = 1
    before = cuda.ledger()
    cuda.fail(failing, 1 if failing in ("mem_address_reserve", "mem_set_access") else 2, "invalid_value")

    with pytest.raises(nbxrt.DeviceError, match=failing):
        nbxrt.Buffer.from_ipc_handle(handle)

    assert cuda.ledger() == before


def test_a_buffer_that_was_opened_gives_its_mapping_back(cuda: Simulation) -> None:
    buffer = nbxrt.Buffer(200 * MIB)
    buffer.fill(5)
    handle = buffer[MIB:].ipc_handle()
    handle.process = 1
    before = cuda.ledger()

    with nbxrt.Buffer.from_ipc_handle(handle) as opened:
        assert (opened.owns, opened.nbytes, opened.ptr == buffer.ptr + MIB) == (True, 199 * MIB, False)
        assert opened[-4:].tobytes() == b"\5" * 4
        assert cuda.ledger() != before

    assert cuda.ledger() == before


def test_a_mapping_that_is_closed_in_a_capture_is_given_back_with_the_graph_on_its_own_device(cuda: Simulation) -> None:
    handle = nbxrt.Buffer(64, device=1).ipc_handle()
    handle.process = 1
    opened, stream = nbxrt.Buffer.from_ipc_handle(handle), nbxrt.Stream(device=0)
    with stream.capture("relaxed") as graph:
        opened.close()
    cuda.clear()

    with nbxrt.Device(0):
        graph.close()

    released = [(call.operation, call.device) for call in cuda.log() if call.operation in ("sync", "mem_unmap")]
    assert released == [("sync", 1), ("mem_unmap", 1)]


def test_memory_of_segments_is_not_pickled_by_itself_and_says_what_to_do(cuda: Simulation) -> None:
    handle = nbxrt.Buffer(64).ipc_handle()

    with pytest.raises(nbxrt.ArgumentTypeError, match=r"`pickle`[^$]*hint: send it by `multiprocessing`"):
        pickle.dumps(handle)


def test_a_handle_has_a_file_of_each_piece_and_closes_it(cuda: Simulation) -> None:
    buffer = nbxrt.Buffer(400 * MIB)
    before = open_files()

    handle = buffer[100 * MIB : 101 * MIB].ipc_handle()
    whole = buffer.ipc_handle()

    assert 1 <= len(handle.files) <= 2 < len(whole.files)
    assert sum(whole.sizes) >= 400 * MIB
    assert len(open_files()) == len(before) + len(handle.files) + len(whole.files)
    del handle, whole
    assert len(open_files()) == len(before)


def test_an_export_that_fails_leaves_no_file(cuda: Simulation) -> None:
    buffer = nbxrt.Buffer(200 * MIB)
    before = open_files()
    held = cuda.ledger()
    cuda.fail("mem_export", 2, "not_supported")

    with pytest.raises(nbxrt.DeviceError, match="mem_export") as caught:
        buffer.ipc_handle()

    assert caught.value.kind == "not_supported"
    assert (open_files(), cuda.ledger()) == (before, held)


def test_a_closed_handle_opens_nothing(cuda: Simulation) -> None:
    handle = nbxrt.Buffer(64).ipc_handle()
    handle.process = 1
    handle.close()
    handle.close()

    with pytest.raises(nbxrt.ArgumentValueError, match="handle of memory of cuda:0 in process 1> is closed"):
        nbxrt.Buffer.from_ipc_handle(handle)


def test_a_device_that_gives_no_files_says_so(cuda: Simulation) -> None:
    cuda.fail("mem_create", 2, "not_supported")  # the second is the first that asks for a file

    with pytest.raises(nbxrt.ArgumentValueError, match=r"no file descriptor: `mem_create`[^$]*shareable=True"):
        nbxrt.Buffer(64).ipc_handle()


def test_files_that_do_not_arrive_are_told_and_leave_nothing(cuda: Simulation) -> None:
    buffer = nbxrt.Buffer(400 * MIB)
    before = open_files()
    sent = ForkingPickler.dumps(buffer.ipc_handle())
    received = ForkingPickler.loads(sent)
    assert len(received.files) > 2
    received.close()

    with pytest.raises(nbxrt.ExchangeError, match=r"descriptors of <nbxrt handle of memory of cuda:0 [^$]*hint: who"):
        ForkingPickler.loads(sent)

    resource_sharer.stop(timeout=60)
    assert len(open_files()) == len(before)


def test_a_handle_that_is_closed_is_not_sent(cuda: Simulation) -> None:
    handle = nbxrt.Buffer(64).ipc_handle()
    handle.close()

    with pytest.raises(nbxrt.ArgumentValueError, match="is closed"):
        ForkingPickler.dumps(handle)


def test_a_handle_of_files_is_for_other_processes(cuda: Simulation) -> None:
    with pytest.raises(nbxrt.ArgumentValueError, match="was made in this process, and is for others"):
        nbxrt.Buffer.from_ipc_handle(nbxrt.Buffer(64).ipc_handle())
