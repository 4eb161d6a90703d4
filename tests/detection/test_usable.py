"""The third level: a device is used, in a child process, and only when somebody asks for it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from machines import add_card, add_node, empty_bus
from nbxrt import usability
from nbxrt.simulation import read_log
from toys import PLAIN, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.simulation import Simulation

pytestmark = [
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform != "linux", reason="the bus and the nodes of Linux"),
]


class Machine:
    """A machine with one vendor's card, whose library is simulated."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, simulate: Callable[..., Simulation]) -> None:
        self.root = root
        self.log = root / "calls.log"
        self.simulate = simulate
        self._monkeypatch = monkeypatch

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def add(self, backend: str, vendor: int, node: str, **settings: Any) -> Simulation:
        simulation = self.simulate(backend, "12.9" if backend == "cuda" else "7.1")
        add_card(self.root, vendor)
        add_node(self.root, node)
        self.set(**simulation.environment(log=self.log, **settings))
        return simulation

    def nvidia(self, **settings: Any) -> Simulation:
        return self.add("cuda", 0x10DE, "/dev/nvidia0", **settings)

    def amd(self, **settings: Any) -> Simulation:
        return self.add("hip", 0x1002, "/dev/kfd", **settings)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulate: Callable[..., Simulation]) -> Iterator[Machine]:
    root = tmp_path / "root"
    empty_bus(root)
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "NBX_GPU_BACKEND", "NBXRT_BACKEND_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NBXRT_SYSROOT", str(root))
    for backend in ("CUDA", "HIP"):
        monkeypatch.setenv(f"NBXRT_{backend}_RUNTIME", str(root / "not-there.so"))
    nbxrt.reset()
    yield Machine(root, monkeypatch, simulate)
    nbxrt.reset()


def test_detection_without_it_says_that_it_was_not_asked_and_calls_nothing(machine: Machine) -> None:
    machine.nvidia()

    report = nbxrt.detect()["cuda"]

    assert (report.library, report.device, report.usable) == ("yes", "yes", "unknown")
    assert report.usable_reason == "not asked"
    assert read_log(machine.log) == []


def test_a_device_is_used_in_another_process_and_not_in_this_one(machine: Machine) -> None:
    import os

    machine.nvidia(devices=2)

    report = nbxrt.detect(usable=True)["cuda"]

    assert (report.device, report.count, report.usable) == ("yes", 2, "yes")
    assert report.usable_reason == "device 0 was used"
    processes = {call.process for call in read_log(machine.log)}
    assert len(processes) == 1
    assert os.getpid() not in processes


def test_where_only_the_runtime_can_tell_what_it_told_is_the_reason(machine: Machine) -> None:
    report = nbxrt.detect(usable=True)["host"]

    assert (report.device, report.device_reason) == ("yes", "the runtime counts 1")


def test_a_frozen_application_is_not_started_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its executable is the application, and would run as it does for its user."""
    machine.nvidia()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/none/application")

    report = nbxrt.detect(usable=True)["cuda"]

    assert (report.device, report.usable) == ("yes", "unknown")
    assert "frozen application" in report.usable_reason


def test_a_path_of_python_with_anything_in_it_is_no_matter(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.nvidia()
    odd: list[Any] = [Path("/a path"), b"/bytes", None, 7, "a\0b", "\ud800", "two\nlines"]
    monkeypatch.setattr(sys, "path", [*sys.path, *odd])

    assert nbxrt.detect(usable=True)["cuda"].usable == "yes"


def test_an_answer_is_not_kept(machine: Machine) -> None:
    machine.nvidia()
    first = nbxrt.detect(usable=True)

    machine.set(NBXRT_SIM_FAIL="context:1+:device_unavailable")

    assert first["cuda"].usable == "yes"
    assert nbxrt.detect(usable=True)["cuda"].usable == "no"
    assert nbxrt.detect()["cuda"].usable == "unknown"


def test_a_busy_device_is_passed_over(machine: Machine) -> None:
    machine.nvidia(devices=2, fail="context@0:1+:device_unavailable")

    report = nbxrt.detect(usable=True)["cuda"]

    assert report.usable == "yes"
    assert report.usable_reason.startswith("device 1 was used; device 0: busy (46)")


def test_a_card_that_nobody_may_use_is_not_available(machine: Machine) -> None:
    machine.nvidia(devices=1, fail="context:1+:device_unavailable")

    found = nbxrt.detect(usable=True)

    assert (found["cuda"].device, found["cuda"].usable) == ("yes", "no")
    assert not found.is_available()


def test_no_device_is_told_in_the_words_of_the_backend(machine: Machine) -> None:
    machine.amd(devices=0)

    report = nbxrt.detect(usable=True)["hip"]

    assert (report.library, report.device, report.count, report.usable) == ("yes", "no", 0, "no")
    assert "(100): no AMD card is visible to this process" in report.usable_reason


class TestCrashes:
    """H05: a runtime that ends the process costs its own answer."""

    def toy(self, machine: Machine, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
        from libraries import make_library

        source = PLAIN.replace("int toyDeviceCount(int *count) {", f"int toyDeviceCount(int *count) {{ {body};")
        library = make_library(machine.root / "libtoy.so.1", "#include <stdio.h>\n" + source)
        monkeypatch.setenv("NBXRT_TOY_RUNTIME", str(library))
        machine.set(NBXRT_BACKEND_PATH=str(write(machine.root, presence={"linux": "ask"}, priority=1)))

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("abort()", "aborted (signal 6)"),
            ("*(volatile int *)0 = 1", "crashed (signal 11)"),
            ('fprintf(stderr, "no ISA\\n"); exit(3)', "the process ended with code 3: no ISA"),
        ],
        ids=["abort", "segmentation fault", "exit"],
    )
    def test_a_runtime_that_ends_the_process_is_reported(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, body: str, said: str
    ) -> None:
        self.toy(machine, body, monkeypatch)

        found = nbxrt.detect(usable=True)

        assert (found["toy"].library, found["toy"].usable, found["toy"].usable_reason) == ("yes", "no", said)
        assert found["host"].usable == "yes"

    @pytest.mark.tier("all")
    def test_a_runtime_that_hangs_is_given_up(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.toy(machine, "for (;;) pause()", monkeypatch)

        found = usability.ask("toy", patience=2)

        assert (found.usable, found.reason) == ("no", "no answer within 2 s")

    @pytest.mark.tier("all")
    @pytest.mark.parametrize(
        ("body", "usable"),
        [("if (!fork()) { sleep(40); _exit(0); }", "yes"), ("if (!fork()) sleep(40); pause()", "no")],
    )
    def test_a_process_that_a_library_starts_holds_nobody_up(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, body: str, usable: str
    ) -> None:
        """As a vendor's daemon, which keeps what is written open after the child has ended, or was killed."""
        self.toy(machine, f"static int once; if (!once++) {{ {body}; }}", monkeypatch)
        start = time.monotonic()

        found = usability.ask("toy", patience=8)

        assert found.usable == usable
        assert time.monotonic() - start < 30

    def test_what_a_library_prints_is_no_answer(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.toy(machine, 'printf("{\\"usable\\": 1}\\n"); fflush(stdout)', monkeypatch)

        assert nbxrt.detect(usable=True)["toy"].usable == "yes"
