"""What the driver attributes to this process, and why it is sometimes not known (section I of the cases)."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from libraries import make_library
from nbxrt.binding.machine import Machine
from simulations import STRANGER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Opened
    from nbxrt.simulation import Simulation

    Open = Callable[..., Opened]

NOT_REPORTED = 2**64 - 1
#: A process that the container has, beside this one.
NEIGHBOUR = STRANGER + 77
#: The exports that a driver has, from newest to oldest, less the ones before it: the record grew with `_v2`.
OLDER = {
    "_v3": (),
    "_v2": ("nvmlDeviceGetComputeRunningProcesses_v3",),
    "bare": ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
}

#: The last call of each management library that has one.
LAST_CALLS: list[tuple[str, Any, str]] = [
    ("cuda", "12.9", "nvmlShutdown"),
    ("hip", {"runtime": "7.1", "management": "26.1"}, "amdsmi_shut_down"),
]
#: A management library that claims to have so many rows; its first answers are those of one card.
CLAIMING = """
static int code; static unsigned claims, most;
void claim(int c, unsigned n) { code = c; claims = n; }
unsigned most_room(void) { return most; }
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) { *handle = (void *)1; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, void *rows) {
    if (*n > most) most = *n;
    *n = claims;
    return code;
}
"""


class TestProcessMemory:
    def test_it_is_the_bytes_that_the_driver_lists_for_this_process(self, opened: Open) -> None:
        _simulation, runtime = opened()
        runtime.malloc(3 << 20)

        assert nbxrt.process_memory(0) == 3 << 20
        assert nbxrt.process_memory_report(0).reason == ""

    def test_without_a_device_it_is_of_the_current_one(self, opened: Open) -> None:
        _simulation, runtime = opened()
        runtime.set_device(1)
        runtime.malloc(1 << 20)

        assert (nbxrt.process_memory(), nbxrt.process_memory(0)) == (1 << 20, None)

    def test_asking_gives_no_device_a_context(self, opened: Open) -> None:
        simulation, _runtime = opened()

        nbxrt.process_memory(0)
        nbxrt.processes(1)

        assert simulation.contexts() == set()

    @pytest.mark.parametrize("without", OLDER.values(), ids=OLDER)
    def test_each_record_that_the_library_had_is_read_to_the_last_row(
        self, opened: Open, without: tuple[str, ...]
    ) -> None:
        simulation, _runtime = opened(without=without)
        rows = [(STRANGER, 1), (os.getpid(), 7 << 20), (STRANGER + 1, 3)]
        simulation.set_processes(0, rows)

        assert [(each.pid, each.nbytes) for each in nbxrt.processes(0)] == rows
        assert nbxrt.process_memory(0) == 7 << 20

    def test_a_process_that_is_listed_twice_counts_with_both(self, opened: Open) -> None:
        simulation, _runtime = opened()
        simulation.set_processes(0, [(os.getpid(), 5), (os.getpid(), 6)])

        assert nbxrt.process_memory(0) == 11

    def test_a_list_that_is_longer_than_the_room_for_it_is_read_whole(self, opened: Open) -> None:
        simulation, _runtime = opened()
        simulation.set_processes(0, [(pid, pid) for pid in range(1, 1001)])

        assert [each.pid for each in nbxrt.processes(0)] == list(range(1, 1001))

    @pytest.mark.parametrize("version", ["24.7", "26.1"])
    def test_amd_smi_tells_it_in_the_record_of_each_release(self, opened: Open, version: str) -> None:
        simulation, _runtime = opened("hip", {"runtime": "7.1", "management": version})
        simulation.set_processes(0, [(pid, pid << 20) for pid in (os.getpid(), *range(STRANGER, STRANGER + 101))])

        assert nbxrt.process_memory(0) == os.getpid() << 20

    def test_what_is_no_device_is_an_error_of_the_caller(self, opened: Open) -> None:
        opened()

        with pytest.raises(TypeError, match="process_memory_report takes an index"):
            nbxrt.process_memory("0")


class TestNotReported:
    """I01: a number that means that there is none."""

    def test_it_is_none_and_neither_the_marker_nor_zero(self, opened: Open) -> None:
        simulation, _runtime = opened()
        simulation.set_processes(0, [(os.getpid(), NOT_REPORTED)])

        report = nbxrt.process_memory_report(0)

        assert (report.nbytes, report.reason) == (None, "not reported by this driver model")
        assert [(each.pid, each.nbytes) for each in nbxrt.processes(0)] == [(os.getpid(), None)]


class TestPidNamespaces:
    """I02: the driver may know this process by another id, and another one by this id."""

    @pytest.mark.parametrize("rows", [[(STRANGER, 5), (STRANGER + 1, 6)], []], ids=["ids that are not ours", "nothing"])
    def test_a_list_without_this_process_is_no_answer(self, opened: Open, rows: list[tuple[int, int]]) -> None:
        simulation, _runtime = opened()
        simulation.set_processes(0, rows)

        report = nbxrt.process_memory_report(0)

        assert report.nbytes is None
        assert "pid namespace" in report.reason

    def test_an_entry_of_our_id_is_not_trusted_where_ids_differ(self, opened: Open, proc: Path) -> None:
        simulation, _runtime = opened()
        simulation.set_processes(0, [(os.getpid(), 5)])
        (proc / "status").write_text(f"Name:\tpython\nNSpid:\t4711\t{os.getpid()}\n")

        report = nbxrt.process_memory_report(0)

        assert report.nbytes is None
        assert f"pid namespace (NSpid 4711 {os.getpid()})" in report.reason
        assert "these ids may be of another" in nbxrt.processes(0).reason

    @pytest.mark.parametrize(("name", "known"), [("pid:[4026531836]", True), ("pid:[4026532201]", False)])
    def test_a_container_is_known_by_the_name_of_its_namespace(
        self, opened: Open, proc: Path, name: str, known: bool
    ) -> None:
        simulation, _runtime = opened()
        simulation.set_processes(0, [(os.getpid(), 5)])
        (proc / "status").write_text(f"NSpid:\t{os.getpid()}\n")
        (proc / "ns").mkdir()
        (proc / "ns/pid").symlink_to(name)

        assert (nbxrt.process_memory(0) is not None) == known


class TestTheNamespacesOwnIds:
    """Drivers that list a process by the id that it has in the namespace of the one who asks."""

    @pytest.fixture
    def contained(self, opened: Open, proc: Path) -> Callable[..., nbxrt.ProcessMemory]:
        """What is reported in a container whose driver lists `rows`; `used` says whether a device node is mapped."""

        def report(rows: list[tuple[int, int]], *, used: bool = True) -> nbxrt.ProcessMemory:
            simulation, _runtime = opened()
            simulation.set_processes(0, rows)
            (proc / "status").write_text(f"NSpid:\t{os.getpid()}\n")
            (proc / "ns").mkdir()
            (proc / "ns/pid").symlink_to("pid:[4026532201]")
            proc.with_name(str(os.getpid())).mkdir()
            proc.with_name(str(NEIGHBOUR)).mkdir()
            node = proc.parents[1] / "dev/nvidia0"
            node.parent.mkdir()
            node.write_bytes(bytes(4096))
            with node.open("rb") as file, mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ) as held:
                if not used:
                    held.close()
                return nbxrt.process_memory_report(0)

        return report

    def test_ours_among_others_of_the_namespace_is_ours(self, contained: Callable[..., nbxrt.ProcessMemory]) -> None:
        report = contained([(os.getpid(), 5), (NEIGHBOUR, 6)])

        assert (report.nbytes, report.reason) == (5, "")

    @pytest.mark.parametrize(
        ("rows", "used", "said"),
        [
            ([], True, "the driver lists no process for it"),
            ([(NEIGHBOUR, 5)], True, "the driver lists other processes, none of them by this one's id {pid}"),
            ([(os.getpid(), 5), (STRANGER, 6)], True, f"the driver lists processes that are not in it ({STRANGER})"),
            (
                [(os.getpid(), 5)],
                False,
                "this process uses no device yet, so that the one listed as {pid} may be another",
            ),
        ],
        ids=["nothing listed", "only others", "one that is not here", "no device used"],
    )
    def test_whatever_may_be_anothers_is_not_ours(
        self, contained: Callable[..., nbxrt.ProcessMemory], rows: list[tuple[int, int]], used: bool, said: str
    ) -> None:
        report = contained(rows, used=used)

        assert report.nbytes is None
        assert (
            "this process is in a pid namespace (pid:[4026532201]), and " + said.format(pid=os.getpid())
            in report.reason
        )


class TestIndex:
    """I04: the management library counts devices in another order than the runtime."""

    @pytest.mark.parametrize(("visible", "device", "own"), [([1, 0], 0, 1), ([1, 0], 1, 0), ([1], 0, 1)])
    def test_the_memory_is_that_of_the_runtimes_device(
        self, opened: Open, visible: list[int], device: int, own: int
    ) -> None:
        simulation, _runtime = opened()
        simulation.set_visible(visible)
        for physical in (0, 1):
            simulation.set_processes(physical, [(os.getpid(), 100 + physical)])

        assert nbxrt.process_memory(device) == 100 + own

    def test_a_handle_is_found_by_uuid_or_pci_address_alone(self, opened: Open) -> None:
        simulation, _runtime = opened()
        simulation.clear()

        nbxrt.process_memory(1)

        management = [call.operation for call in simulation.log() if call.operation.startswith("monitor_")]
        assert management == ["monitor_by_uuid", "monitor_processes"]

    def test_where_there_are_no_uuids_it_is_the_pci_address(self, opened: Open) -> None:
        simulation, runtime = opened("hip", "7.1")
        simulation.set_visible([1])
        runtime.malloc(4096)
        simulation.clear()

        assert nbxrt.process_memory(0) == 4096
        assert "monitor_by_pci_bus_id" in [call.operation for call in simulation.log()]


class TestParts:
    """I06: who has a part of a card may not ask about the whole."""

    def test_the_part_is_found_by_its_uuid(self, opened: Open) -> None:
        simulation, runtime = opened()
        simulation.set_part(0)
        runtime.malloc(1 << 20)

        assert nbxrt.process_memory(0) == 1 << 20

    def test_without_a_handle_of_the_part_the_refusal_of_the_card_is_told(self, opened: Open) -> None:
        simulation, runtime = opened()
        simulation.set_part(0, known=False)
        runtime.malloc(1 << 20)

        report = nbxrt.process_memory_report(0)

        assert report.nbytes is None
        assert "`monitor_processes` failed: status (4): The operation is not permitted" in report.reason
        assert nbxrt.processes(0).reason == report.reason

    def test_a_query_that_is_not_supported_is_no_error(self, opened: Open) -> None:
        simulation, runtime = opened()
        runtime.malloc(1 << 20)
        simulation.fail("monitor_processes", kind="not_supported", onward=True)

        assert nbxrt.process_memory(0) is None
        assert "(3)" in nbxrt.process_memory_report(0).reason


class TestMissingLibrary:
    """I07: compute works without the management library, and it is not tried again and again."""

    def test_a_mismatch_is_explained_and_compute_goes_on(self, opened: Open) -> None:
        simulation, runtime = opened()
        simulation.fail("management.init", kind="driver_mismatch", onward=True)

        report = nbxrt.process_memory_report(0)

        assert report.nbytes is None
        assert "(18)" in report.reason
        assert "different versions" in report.reason
        assert report.reason.endswith("; reboot or reload the driver")
        assert runtime.malloc(64)

    def test_the_first_use_is_tried_once_and_again_after_reset(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        simulation, _runtime = opened()
        for name, value in simulation.environment().items():
            monkeypatch.setenv(name, value)
        simulation.fail("management.init", kind="driver_mismatch", onward=True)

        def tries() -> int:
            return sum(call.operation == "management.init" for call in simulation.log())

        for device in (0, 1, 0):
            nbxrt.process_memory(device)
        before = tries()
        simulation.mend()
        nbxrt.reset()
        nbxrt.open("cuda").malloc(64)

        assert (before, nbxrt.process_memory(0), tries()) == (1, 64, 2)
        nbxrt.reset()

    def test_a_library_that_is_not_there_is_a_reason(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        simulation, _runtime = opened()
        variables = {**simulation.environment(), "NBXRT_CUDA_MANAGEMENT": str(tmp_path / "not-there.so")}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        nbxrt.reset()
        runtime = nbxrt.open("cuda")

        report = nbxrt.process_memory_report(0)

        assert runtime.malloc(64)
        assert report.nbytes is None
        assert report.reason.startswith("no NVIDIA CUDA `management` library could be loaded; install NVIDIA's driver")
        nbxrt.reset()

    @pytest.mark.parametrize(("backend", "version", "last"), LAST_CALLS)
    def test_one_whose_last_call_another_package_has_made_is_started_again(
        self, opened: Open, backend: str, version: Any, last: str
    ) -> None:
        simulation, runtime = opened(backend, version)
        runtime.malloc(1 << 20)
        nbxrt.process_memory(0)

        getattr(ctypes.CDLL(str(simulation.paths["management"])), last)()

        assert nbxrt.process_memory_report(0).reason == ""
        assert nbxrt.process_memory(0) == 1 << 20

    @pytest.mark.parametrize(("claimed", "listed"), [((7, 2**32 - 1), 0), ((7, 100), 0), ((0, 2**32 - 1), 64)])
    def test_a_number_of_processes_that_cannot_be_is_not_believed(
        self, simulate: Callable[..., Simulation], tmp_path: Path, claimed: tuple[int, int], listed: int
    ) -> None:
        """Room for as many as a damaged answer claims would be 100 GB."""
        stub = make_library(tmp_path / "libnvidia-ml.so.1", CLAIMING)
        simulation = simulate("cuda", "12.9")
        environ = {**os.environ, **simulation.environment(), "NBXRT_CUDA_MANAGEMENT": str(stub)}
        library = ctypes.CDLL(str(stub))
        library.claim(claimed[0], ctypes.c_uint(claimed[1]))

        with nbxrt.use(nbxrt.Runtime(simulation.description, simulation.contract, Machine(environ=environ))):
            found = nbxrt.processes(0)

        assert len(found) == listed
        assert library.most_room() <= 1 << 16
        assert bool(found.reason) == (listed == 0)

    def test_a_lost_card_is_explained(self, opened: Open) -> None:
        simulation, runtime = opened()
        runtime.malloc(64)
        simulation.fail("monitor_processes", kind="device_unavailable", onward=True)

        assert "(15): the card is lost" in nbxrt.process_memory_report(0).reason
        assert runtime.malloc(64)

    def test_a_backend_without_such_a_library_says_so(self) -> None:
        nbxrt.reset()
        with nbxrt.use(nbxrt.open("host")):
            assert "`management`" in nbxrt.process_memory_report(0).reason
        nbxrt.reset()

    def test_without_a_backend_nothing_is_raised(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        nbxrt.reset()
        monkeypatch.setenv("NBX_GPU_BACKEND", "cuda")
        monkeypatch.setenv("NBXRT_CUDA_RUNTIME", str(tmp_path / "not-there.so"))

        assert nbxrt.process_memory(0) is None
        assert nbxrt.processes(0) == ()
        assert nbxrt.processes(0).reason
        nbxrt.reset()
