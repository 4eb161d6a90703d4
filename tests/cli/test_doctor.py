"""`nbxrt doctor`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from machines import add_card, add_node
from nbxrt import descriptions
from nbxrt.catalogue.sources import data_folder
from nbxrt.cli.doctor import child

if TYPE_CHECKING:
    from conftest import CommandLine, Ended, Toy

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the bus and the nodes of Linux")
NVIDIA = 0x10DE


def _advice(ended: Ended) -> list[str]:
    """The sentences of the last section."""
    items = ended.out.partition("\nWhat to do\n")[2].split("  -  ")
    return [" ".join(item.split()) for item in items if item.strip()]


def _examined(run: CommandLine, **environment: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the report."""
    ended = run("doctor", "--json", **environment)
    return ended.code, json.loads(ended.out)


def _report(run: CommandLine, **environment: str) -> dict[str, Any]:
    return _examined(run, **environment)[1]


def _backend(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(backend for backend in report["backends"] if backend["name"] == name)


def test_this_machine_can_be_examined(cli: CommandLine) -> None:
    ended = cli("doctor")

    headings = [line.split(":")[0] for line in ended.out.splitlines() if line and not line.startswith(" ")]
    backends = [f"Backend {name}" for name in descriptions.INDEX]
    assert ended.code in (0, 1)
    assert ended.err == ""
    assert [name for name in headings if name not in backends] == [
        "Machine", "Other backends", "Triton", "Environment", "What to do",
    ]  # fmt: skip
    assert {"Backend cuda", "Backend hip", "Backend host"} <= set(headings)


def test_vendors_of_which_nothing_is_here_have_a_line_each(bare: CommandLine) -> None:
    ended = bare("doctor")

    others = ended.out.partition("Other backends: neither a device nor a library of theirs is here\n")[2]
    assert others.startswith("  metal       Apple Metal: Apple Metal does not run on ")
    assert "\n  musa        Moore Threads MUSA: no /dev/mtgpu*\n" in others


def test_a_machine_with_nothing_is_fine_and_host_memory_is_offered(bare: CommandLine) -> None:
    ended = bare("doctor")

    assert ended.code == 0
    assert _advice(ended)[0] == "Nothing is wrong, and there is no GPU that nbxrt can use here."
    assert 1 < len(_advice(ended)) <= 3


def test_json_has_the_same_facts(bare: CommandLine) -> None:
    report = _report(bare)

    assert report["names"] == [backend["name"] for backend in report["backends"]] == list(descriptions.INDEX)
    assert report["advice"] == _advice(bare("doctor"))
    assert report["python"]["executable"] == sys.executable
    assert report["machine"]["root"] == bare.environment["NBXRT_SYSROOT"]
    assert _backend(report, "host")["devices"][0]["name"] == "host memory"


def test_every_candidate_of_a_library_is_listed_with_its_reason(bare: CommandLine) -> None:
    hip = _backend(_report(bare), "hip")

    if hip["library"] == "no":
        assert [candidate["step"] for candidate in hip["candidates"]][:3] == ["loaded", "package", "conda"]
        assert all(candidate["reason"] for candidate in hip["candidates"])


def test_every_variable_that_a_shipped_file_reads_is_listed(bare: CommandLine) -> None:
    environment = _report(bare, DTK_ROOT="/opt/other")["environment"]

    written = "\n".join(data_folder("backends").joinpath(f"{name}.yaml").read_text("utf-8") for name in ("cuda", "hip"))
    read = {"PPU_SDK_ROOT", "DTK_ROOT", "CUDA_PATH", "EBROOTCUDA", "ROCM_PATH", "HIP_VISIBLE_DEVICES"}
    assert all(name in written for name in read)
    assert environment["set"]["DTK_ROOT"] == "/opt/other"
    assert read <= {*environment["set"], *environment["unset"]}


@on_linux
@pytest.mark.needs("cc")
def test_a_device_is_described_with_name_memory_uuid_and_place(toy: Toy) -> None:
    run = toy.add()

    code, report = _examined(run)

    assert code == 0
    assert _backend(report, "toy")["devices"][1] == {
        "index": 1,
        "name": "Toy 1",
        "pci": "0000:02:00.0",
        "uuid": "10111213-1415-1617-1819-1a1b1c1d1e1f",
        "is_part": False,
        "free": 3 << 30,
        "total": 4 << 30,
        "is_usable": True,
        "reason": "",
    }
    assert report["advice"] == ["Nothing: `nbxrt.open()` opens `toy`, and its device can be used."]


@on_linux
@pytest.mark.needs("cc")
def test_the_version_of_a_library_is_told_with_its_path(toy: Toy) -> None:
    run = toy.add()

    said = " ".join(run("doctor").out.split())

    assert "/libtoy.so.1, version 2.3, found by `$TOY_HOME` " in said


@on_linux
def test_a_named_folder_without_the_library_is_a_finding(bare: CommandLine, tmp_path: Path) -> None:
    ended = bare("doctor", NBXRT_HIP_RUNTIME=str(tmp_path))

    assert ended.code == 1
    assert _advice(ended)[0].startswith(
        f"Settle the environment: NBXRT_HIP_RUNTIME={tmp_path} has none of libamdhip64.so.7,"
    )


@on_linux
@pytest.mark.needs("cc")
def test_a_card_without_its_library_is_a_finding_with_the_files_hint(toy: Toy) -> None:
    run = toy.add(library=False)

    ended = run("doctor")

    assert ended.code == 1
    assert _advice(ended) == ["`toy` has a card here and no library: install Toy."]


@on_linux
def test_a_card_whose_kernel_driver_is_missing_is_a_finding(bare: CommandLine) -> None:
    add_card(Path(bare.environment["NBXRT_SYSROOT"]), NVIDIA)

    ended = bare("doctor")

    assert ended.code == 1
    assert "its kernel driver is not loaded or not passed in" in _advice(ended)[0]


@on_linux
@pytest.mark.needs("cc")
def test_a_runtime_that_aborts_costs_its_own_answers_and_no_others(toy: Toy) -> None:
    run = toy.add(operations={"device_count": "toyAbort"})

    code, report = _examined(run)

    said = "the process was ended by SIGABRT while it was asked for its devices"
    assert code == 1
    assert report["advice"] == [f"Update the driver of `toy`, or its library: {said}."]
    assert _backend(report, "toy")["libraries"][0]["version"] == "2.3"
    assert _backend(report, "host")["devices"][0]["is_usable"]


@on_linux
@pytest.mark.needs("cc")
def test_a_runtime_that_aborts_during_detection_leaves_a_report(toy: Toy) -> None:
    run = toy.add(presence={"linux": "ask"}, operations={"device_count": "toyAbort"})

    ended = run("doctor")

    assert ended.code == 1
    assert "ended by SIGABRT during detection" in _advice(ended)[0]
    assert "Backend host: Host memory\n  library     unknown: the child process did not answer\n" in ended.out


@on_linux
@pytest.mark.needs("cc")
@pytest.mark.tier("all")
def test_a_runtime_that_hangs_is_given_up(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    run = toy.add(operations={"device_count": "toyHang"})
    for name, value in run.environment.items():
        monkeypatch.setenv(name, value)

    found = child.probed(patience=10)

    assert found["backends"]["toy"]["crash"] == "no answer within 10 s while it was asked for its devices"
    assert found["backends"]["host"]["devices"]


@on_linux
@pytest.mark.needs("cc")
def test_what_a_runtime_prints_does_not_get_into_the_answers(toy: Toy) -> None:
    run = toy.add(operations={"device_count": "toyNoisy"})

    report = _report(run)

    assert _backend(report, "toy")["count"] == 1
    assert report["crash"] == ""


@on_linux
@pytest.mark.needs("cc")
def test_the_doctors_own_process_loads_no_vendors_library(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    run = toy.add()
    for name, value in run.environment.items():
        monkeypatch.setenv(name, value)

    assert child.probed()["backends"]["toy"]["library"] == "yes"
    assert run.environment["TOY_HOME"] not in Path("/proc/self/maps").read_text("utf-8")


@on_linux
@pytest.mark.needs("cc")
def test_a_variable_that_hides_every_device_is_named(toy: Toy) -> None:
    run = toy.add(operations={"device_count": "toyNone"})

    ended = run("doctor", TOY_VISIBLE="")

    assert ended.code == 1
    assert _advice(ended) == ["Unset TOY_VISIBLE to see the devices of `toy`."]


@on_linux
@pytest.mark.needs("cc")
def test_a_runtime_that_counts_no_device_beside_a_card_is_quoted(toy: Toy) -> None:
    run = toy.add(operations={"device_count": "toyNone", "mem_get_info": "toyNoDevice"})

    ended = run("doctor")

    assert ended.code == 1
    assert _advice(ended) == [
        "`toy` has a card here and counts no device (`mem_get_info` failed: TOY_OTHER (100): "
        "There is no device that this process can use.)."
    ]


@on_linux
@pytest.mark.needs("cc")
def test_a_busy_device_is_described_and_the_reason_told(toy: Toy) -> None:
    run = toy.add(operations={"mem_get_info": "toyBusy"})

    report = _report(run)

    device = _backend(report, "toy")["devices"][0]
    assert (device["name"], device["is_usable"], device["total"]) == ("Toy 0", False, None)
    assert report["advice"][0].startswith("Device 0 of `toy` cannot be used: `mem_get_info` failed: TOY_OTHER (46)")


@on_linux
@pytest.mark.needs("cc")
def test_a_broken_library_is_a_finding(toy: Toy) -> None:
    run = toy.add(card=False, library=False)
    (Path(run.environment["TOY_HOME"]) / "libtoy.so.1").write_bytes(b"")

    ended = run("doctor")

    assert ended.code == 1
    assert _advice(ended)[0].startswith("Replace or remove what is broken: the Toy `runtime` library ")
    assert "\n  library     broken: the Toy `runtime` library" in ended.out


@on_linux
@pytest.mark.needs("cc")
def test_a_backend_that_cannot_be_opened_yet_is_no_broken_library(toy: Toy) -> None:
    run = toy.add(card=False, operations={"malloc": "toyMallocOfLaterVersions"})

    assert run("doctor").code == 0


def test_an_unusable_users_file_is_a_finding(bare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\npriority: high\n", "utf-8")

    ended = bare("doctor", NBXRT_BACKEND_PATH=str(tmp_path / "mine.yaml"))

    assert ended.code == 1
    assert _advice(ended)[0].startswith(f"Mend the file of `mine`: {tmp_path / 'mine.yaml'}:")


def test_an_unknown_forced_backend_is_a_finding(bare: CommandLine) -> None:
    ended = bare("doctor", NBX_GPU_BACKEND="hots")

    names = ", ".join(descriptions.INDEX)
    assert ended.code == 1
    assert _advice(ended) == [f"Settle the environment: NBX_GPU_BACKEND=hots names no backend: there are {names}."]


@pytest.mark.parametrize(
    ("environment", "conflict"),
    [
        (
            {"CUDA_PATH": "/opt/a", "CUDA_HOME": "/opt/b"},
            "CUDA_PATH=/opt/a and CUDA_HOME=/opt/b name different places; `CUDA_PATH` is taken",
        ),
        ({"NBXRT_HIP_RUNTIME": "/nowhere/x.so"}, "NBXRT_HIP_RUNTIME names /nowhere/x.so, which is not there"),
        ({"NBXRT_BACKEND_PATH": "/nowhere/x.yaml"}, "NBXRT_BACKEND_PATH names /nowhere/x.yaml, which is not there"),
        (
            {"NBXRT_ALLOCATER": "direct", "NBXRT_SIM_DEVICES": "2"},
            "NBXRT_ALLOCATER is not read by nbxrt, and NBXRT_ALLOCATOR is",
        ),
        pytest.param(
            {"NBXRT_TRUST_FILES": "yes", "NBXRT_CHECK_DEVICE": "0"},
            "NBXRT_TRUST_FILES=yes does nothing: it takes 1",
            marks=pytest.mark.tier("all"),
        ),
        pytest.param(
            {"NBXRT_BACKEND_PATH": "nowhere"},
            "NBXRT_BACKEND_PATH names nowhere, which is not there",
            marks=pytest.mark.tier("all"),
        ),
    ],
    ids=[
        "two roots",
        "a library that is not there",
        "a file that is not there",
        "a misspelt variable",
        "a value that does nothing",
        "one without a folder",
    ],
)
def test_contradicting_variables_are_a_finding(bare: CommandLine, environment: dict[str, str], conflict: str) -> None:
    code, report = _examined(bare, **environment)

    assert code == 1
    assert conflict in report["conflicts"]


def test_the_variables_that_matter_are_shown_set_or_not(bare: CommandLine) -> None:
    environment = _report(bare, CUDA_VISIBLE_DEVICES="0,1", TRITON_CACHE_DIR="/x", UNRELATED="1")["environment"]

    assert environment["set"]["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert environment["set"]["TRITON_CACHE_DIR"] == "/x"
    assert "UNRELATED" not in environment["set"]
    assert {"NBX_GPU_BACKEND", "HIP_VISIBLE_DEVICES", "ROCM_PATH"} <= set(environment["unset"])


def test_triton_is_read_from_its_files_and_never_imported(bare: CommandLine, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for folder in ("triton/backends/nvidia", "triton/backends/none", "triton-3.4.0.dist-info"):
        (site / folder).mkdir(parents=True)
    (site / "triton/__init__.py").write_text("raise SystemExit('imported')\n", "utf-8")
    (site / "triton/backends/nvidia/driver.py").touch()
    (site / "triton-3.4.0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: triton\nVersion: 3.4.0\n", "utf-8"
    )

    found = _report(bare, PYTHONPATH=f"{site}{':' if sys.platform != 'win32' else ';'}{_home()}")["triton"]

    assert (found["version"], found["path"], found["installed"]) == ("3.4.0", str(site / "triton"), ["nvidia"])
    assert found["keys"]["hip"] == ["amd"]


def _home() -> str:
    return str(Path(descriptions.__file__).parents[1])


@on_linux
@pytest.mark.parametrize(
    ("path", "content", "fact", "said"),
    [
        ("/run/.containerenv", "", "container", "/run/.containerenv is there"),
        ("/.flatpak-info", "", "container", "/.flatpak-info is there"),
        ("/proc/1/cgroup", "0::/kubepods/x\n", "container", "the control group of process 1 names kubepods"),
        ("/proc/sys/kernel/osrelease", "6.6.87-WSL2\n", "wsl", "the kernel is 6.6.87-WSL2"),
        ("/etc/os-release", 'NAME="Toy"\nPRETTY_NAME="Toy Linux 7"\n', "distribution", "Toy Linux 7"),
    ],
    ids=["podman", "flatpak", "kubernetes", "WSL", "distribution"],
)
def test_the_kind_of_machine_is_recognised(bare: CommandLine, path: str, content: str, fact: str, said: str) -> None:
    root = Path(bare.environment["NBXRT_SYSROOT"])
    add_node(root, path)
    (root / path.lstrip("/")).write_text(content, "utf-8")

    assert _report(bare)["machine"][fact] == said
