"""Codes mean what they mean: the sentence says which of the things is wrong that a code can stand for."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt
from machines import add_card, add_node, empty_bus
from nbxrt import descriptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

    Simulate = Callable[..., Simulation]

pytestmark = [
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform != "linux", reason="the bus and the nodes of Linux"),
]


@pytest.fixture(autouse=True)
def _no_devices_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_bus(tmp_path / "root")
    monkeypatch.setenv("NBXRT_SYSROOT", str(tmp_path / "root"))
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)


def refusal(simulation: Simulation, kind: type[nbxrt.DeviceError] = nbxrt.DeviceError) -> nbxrt.DeviceError:
    """What an allocation raises."""
    with pytest.raises(kind) as caught:
        simulation.open().malloc(64)
    return caught.value


def test_no_driver_an_old_driver_and_a_stub_are_three_sentences(simulate: Simulate) -> None:
    none, old, stub = (simulate("cuda", "12.9") for _each in range(3))
    none.set_no_driver()
    old.set_no_driver()
    old.set_driver_version(11040)
    stub.fail("malloc", kind="stub_library")

    said = [
        (each.code, type(each), each.summary, each.hint)
        for each in (refusal(none), refusal(old), refusal(stub, nbxrt.DriverError))
    ]

    assert [(code, kind) for code, kind, _said, _hint in said] == [
        (35, nbxrt.NoDeviceError),
        (35, nbxrt.NoDeviceError),
        (34, nbxrt.DriverError),
    ]
    assert said[0][2].endswith("(35): there is no NVIDIA driver here, and this is the runtime of CUDA 12.9")
    assert said[1][2].endswith("(35): the driver runs CUDA up to 11.4, and this is the runtime of CUDA 12.9")
    assert "(34): the driver is a stub" in said[2][2]
    assert "CUDA 12.9" in said[2][2]
    assert said[1][3] == "update the driver, or install a runtime of CUDA 11.4 or older"
    assert len({hint for *_rest, hint in said[:2]}) == 2


def test_the_driver_is_asked_for_its_version_anew(simulate: Simulate) -> None:
    simulation = simulate("cuda", "13.5")
    library = simulation.open().library("runtime")

    before = library.driver_version
    simulation.set_driver_version(12040)

    assert (before, library.driver_version) == ((13, 5), (12, 4))


def test_a_library_that_cannot_be_asked_knows_no_driver(simulate: Simulate) -> None:
    assert simulate("hip", "7.1").open().library("runtime").driver_version == ()


@pytest.mark.parametrize(
    ("code", "said", "hint"),
    [
        (46, "another process has the card for itself", "compute mode"),
        (802, "the NVLink fabric between the cards is not up", "fabric manager"),
        (803, "the driver's library and its kernel module are of different versions", "reboot or reload the driver"),
        (804, "a forward-compatibility driver is in use, which this card does not take", "LD_LIBRARY_PATH"),
        (222, "CUDA up to 12.9", "compile with CUDA 12.9"),
    ],
)
def test_a_code_that_says_little_by_itself_is_explained(simulate: Simulate, code: int, said: str, hint: str) -> None:
    library = simulate("cuda", "12.9").open().library("runtime")

    error = library.failure(code, "malloc", "cudaMalloc")

    assert said in error.summary
    assert error.explanation in error.summary
    assert hint in str(error)


def test_an_unexplained_code_keeps_the_librarys_own_words(simulate: Simulate) -> None:
    library = simulate("cuda", "12.9").open().library("runtime")

    error = library.failure(400, "stream_sync", "cudaStreamSynchronize")

    assert (error.explanation, error.text) == ("", "A handle is unknown or already destroyed.")
    assert error.summary.endswith("(400): A handle is unknown or already destroyed.")


class TestNoDevice:
    """B01, B04: a toolkit without a card, and cards that a variable hides."""

    @pytest.mark.parametrize("value", ["", "-1"], ids=repr)
    def test_no_visible_device_names_the_variable_that_is_set(
        self, simulate: Simulate, monkeypatch: pytest.MonkeyPatch, value: str
    ) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        monkeypatch.setenv("NBXRT_SIM_OBEY_VISIBILITY", "1")
        simulation = simulate("cuda", "12.9")

        error = refusal(simulation, nbxrt.NoDeviceError)

        assert simulation.open().device_count() == 0
        assert error.code == 100
        assert "no NVIDIA card is visible to this process" in error.summary
        assert f"CUDA_VISIBLE_DEVICES is set to {value!r}" in str(error)

    def test_the_librarys_code_for_no_such_ordinal_is_no_device_where_there_is_none(self, simulate: Simulate) -> None:
        simulation = simulate("hip", "7.1", devices=0)
        runtime = simulation.open()
        simulation.fail("malloc", kind="invalid_device")

        with pytest.raises(nbxrt.NoDeviceError) as caught:
            runtime.malloc(64)

        assert (caught.value.code, caught.value.kind) == (101, "no_device")

    def test_the_same_code_is_a_wrong_ordinal_where_there_are_devices(self, simulate: Simulate) -> None:
        simulation = simulate("hip", "7.1")
        runtime = simulation.open()
        simulation.fail("malloc", kind="invalid_device")

        with pytest.raises(nbxrt.DeviceError) as caught:
            runtime.malloc(64)

        assert (type(caught.value), caught.value.kind) == (nbxrt.DeviceError, "invalid_device")

    def test_a_count_of_none_can_be_explained_without_a_context(self, simulate: Simulate) -> None:
        simulation = simulate("cuda", "12.9", devices=0)
        runtime = simulation.open()
        simulation.clear()

        why = runtime.why_no_device()

        assert why is not None
        assert (why.operation, why.code) == ("device_count", 100)
        assert simulation.contexts() == set()
        assert simulate("cuda", "12.9").open().why_no_device() is None


class TestCodeForAnotherCard:
    """H05: a module that holds no code for the device is told with what both are, and with the way around."""

    def refused(self, simulate: Simulate, backend: str, version: str, image: bytes, numbers: tuple[int, int]) -> str:
        simulation = simulate(backend, version)
        runtime = simulation.open()
        for part, number in zip(("major", "minor"), numbers, strict=True):
            simulation.set_attribute(f"compute_capability_{part}", number)
        simulation.fail("module_load", kind="no_binary")
        with pytest.raises(nbxrt.DeviceError) as caught:
            runtime.module_load(image)
        assert (caught.value.code, caught.value.kind) == (209, "no_binary")
        return str(caught.value)

    def test_hip_names_both_architectures_and_the_variable(
        self, simulate: Simulate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        image = (
            b"\x7fELF..amdgcn-amd-amdhsa--gfx1100\0amdgcn-amd-amdhsa--gfx90a:xnack+\0amdgcn-amd-amdhsa--gfx90a\0_gfx7"
        )
        monkeypatch.delenv("HSA_OVERRIDE_GFX_VERSION", raising=False)

        unset = self.refused(simulate, "hip", "7.1", image, (9, 4))
        monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "9.4.1")
        at_set = self.refused(simulate, "hip", "7.1", image, (9, 4))

        assert "(209): the module holds no code for this card's gfx architecture" in unset
        assert "  device 0 is gfx94x\n  the module names gfx90a, gfx1100\n" in unset
        assert "  HSA_OVERRIDE_GFX_VERSION is not set\n\nhint: build for it" in unset
        assert "  HSA_OVERRIDE_GFX_VERSION is set to '9.4.1'\n" in at_set

    def test_cuda_names_both_compute_capabilities(self, simulate: Simulate) -> None:
        image = b".version 8.0\n.target sm_100a\n.address_size 64\n"

        said = self.refused(simulate, "cuda", "12.9", image, (9, 0))

        assert "  device 0 is sm_90\n  the module names sm_100a" in said

    def test_a_module_whose_targets_cannot_be_read_is_said_to_name_none(self, simulate: Simulate) -> None:
        assert "the module names no target that begins gfx" in self.refused(simulate, "hip", "7.1", b"code", (11, 0))


class TestNodes:
    """B08: the card's node is there, and this user may not open it."""

    def test_the_error_names_the_node_its_group_and_ours(
        self, simulate: Simulate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with ClosedNode("/dev/kfd") as root:
            monkeypatch.setenv("NBXRT_SYSROOT", root)
            runtime = simulate("hip", "7.1", devices=0).open()
            said, groups = _as_nobody(partial(_refused_memory, runtime))

        assert f"{root}/dev/kfd is there, and this process may not read and write it" in said
        assert "its mode is 0660, its group is 0" in said or os.geteuid()
        assert f"this process is of the groups {groups}" in said

    def test_a_closed_node_beside_the_cards_is_named_too(
        self, simulate: Simulate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Containers are given both nodes, and a group that has another number than on the host."""
        with ClosedNode("/dev/dri/renderD128") as root:
            add_node(Path(root), "/dev/kfd")
            (Path(root) / "dev/kfd").chmod(0o666)
            monkeypatch.setenv("NBXRT_SYSROOT", root)
            runtime = simulate("hip", "7.1", devices=0).open()
            said, _groups = _as_nobody(partial(_refused_memory, runtime))

        assert f"{root}/dev/dri/renderD128 is there, and this process may not read and write it" in said
        assert "kfd is there" not in said

    def test_a_closed_node_beside_one_that_may_be_used_is_anothers(self, tmp_path: Path) -> None:
        from nbxrt.binding.machine import Machine
        from nbxrt.presence import forbidden

        for node in ("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"):
            add_node(tmp_path, node)
            (tmp_path / node[1:]).chmod(0 if node.endswith("128") else 0o666)

        def look() -> str:
            return str(forbidden(descriptions.built_in("hip"), Machine(root=str(tmp_path), environ={})))

        assert look() == "[]"

    @pytest.mark.parametrize(("nodes", "missing"), [(["nvidia0", "nvidiactl"], ["nvidia-uvm"]), ([], [])])
    def test_a_failure_without_a_reason_names_the_nodes_that_are_missing(
        self, simulate: Simulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nodes: list[str], missing: list[str]
    ) -> None:
        for node in nodes:
            add_node(tmp_path, f"/dev/{node}")
        monkeypatch.setenv("NBXRT_SYSROOT", str(tmp_path))
        simulation = simulate("cuda", "12.9")
        simulation.fail("malloc", kind="unknown")

        with pytest.raises(nbxrt.DeviceError) as caught:
            simulation.open().malloc(64)

        assert "modprobe nvidia_uvm" in caught.value.hint
        assert [line for line in str(caught.value).splitlines() if "there is no /" in line] == [
            f"  there is no {tmp_path}/dev/{node}" for node in missing
        ]

    def test_a_node_that_may_be_used_is_not_mentioned(self, simulate: Simulate, tmp_path: Path) -> None:
        add_card(tmp_path / "root", 0x1002)
        add_node(tmp_path / "root", "/dev/kfd")

        assert "may not read" not in str(refusal(simulate("hip", "7.1", devices=0), nbxrt.NoDeviceError))

    def test_detection_asks_the_runtime_and_says_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from nbxrt.binding.machine import Machine
        from nbxrt.presence import device_there, forbidden

        with ClosedNode("/dev/kfd") as root:
            add_card(Path(root), 0x1002)
            hip = descriptions.built_in("hip")

            def look() -> str:
                machine = Machine(root=root, environ={})
                return f"{device_there(hip, machine)[0]} {forbidden(hip, machine)}"

            look()  # imports what it needs: this Python may be closed to others too
            said, _groups = _as_nobody(look)

        assert said.startswith("True ['")
        assert "may not read and write it" in said


class ClosedNode:
    """A root folder that everybody may enter, with a device node that is closed to others."""

    def __init__(self, node: str) -> None:
        self._node = node

    def __enter__(self) -> str:
        self._folder = tempfile.TemporaryDirectory()
        root = Path(self._folder.name)
        root.chmod(0o755)
        add_node(root, self._node)
        (root / self._node.lstrip("/")).chmod(0o660 if os.geteuid() == 0 else 0)
        (root / self._node.lstrip("/")).parent.chmod(0o755)
        return str(root)

    def __exit__(self, *_what: object) -> None:
        self._folder.cleanup()


def _refused_memory(runtime: nbxrt.Runtime) -> str:
    """What is said where memory is asked for and no device is there."""
    with pytest.raises(nbxrt.NoDeviceError) as caught:
        runtime.malloc(64)
    return str(caught.value)


def _as_nobody(ask: Callable[[], str]) -> tuple[str, str]:
    """What a function answers to a user who owns nothing, and the groups of that user."""
    if os.geteuid():
        return ask(), ", ".join(map(str, sorted({os.getegid(), *os.getgroups()})))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answer = "nothing was answered"
        try:
            os.setgroups([65533])
            os.setgid(65534)
            os.setuid(65534)
            answer = ask()
        except BaseException as error:  # noqa: BLE001  # told to the test
            answer = repr(error)
        finally:
            os.write(writing, answer.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        answer = file.read()
    os.waitpid(child, 0)
    return answer, "65533, 65534"
