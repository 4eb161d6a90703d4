"""Libraries that stand in for vendors whose operations are several calls or messages: conformant, and limited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import simulations
from nbxrt import descriptions
from nbxrt.simulation import CompilerError, StandIn, has_stand_in, stand_in

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the headers and the assembly are for Linux"),
]

ROOT = Path(__file__).parents[2]
#: What each needs, and the source of a kernel `add`.
STAND_INS = {
    "metal": ("gobjc", (ROOT / "scripts" / "images" / "metal.msl").read_bytes()),
    "level_zero": ("level-zero", b"FAKE code"),
}
EACH = [pytest.param(name, id=name, marks=pytest.mark.needs(needs)) for name, (needs, _image) in STAND_INS.items()]

CONFORM = """
import ctypes, json, sys, nbxrt
from nbxrt import conformance
rt = nbxrt.open({name!r})
given = dict(variable="variable", value=77) if {name!r} == "level_zero" else dict()
reports = [conformance.run(rt, device=at, module_image=conformance.ModuleImage({image!r}, **given))
           for at in range(rt.device_count())]
print(json.dumps([report.to_dict() for report in reports]))
"""
OUT_OF_MEMORY = """
import nbxrt
rt = nbxrt.open({name!r})
kept, here = [], rt.mem_get_info()[1]
try:
    while True: kept.append(rt.malloc(1 << 20))
except nbxrt.OutOfMemoryError:
    pass
rt.free(kept.pop())
rt.free(rt.malloc(1 << 20))
print(here >> 20, len(kept) + 1)
"""


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., StandIn]:
    return lambda name, **options: stand_in(name, tmp_path / "library", cache=simulations.cache(), **options)


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", EACH)
def test_the_whole_suite_passes_on_every_device(made: Callable[..., StandIn], name: str) -> None:
    done = simulations.run(CONFORM.format(name=name, image=STAND_INS[name][1]), made(name).environment())

    assert done.returncode == 0, done.stderr
    reports: list[Any] = json.loads(done.stdout)
    assert len(reports) == 2
    for report in reports:
        rows = report["rows"]
        assert [(row["check"], row["detail"]) for row in rows if row["outcome"] == "wrong"] == []
        assert report["counts"]["works"] > 60
        absent = set(descriptions.built_in(name)["absent"])
        lacking = [row for row in rows if row["outcome"] == "absent" and not absent & set(row["needs"])]
        assert {row["detail"].partition("`")[2].partition("`")[0] for row in lacking} <= {
            "launch_kernel", "mem_address_reserve", "set_accessed_by",  # not packed before, no alignment, no such word
        }  # fmt: skip


@pytest.mark.tier("all")
@pytest.mark.needs("level-zero")
def test_its_folder_has_the_library_under_the_vendors_name(made: Callable[..., StandIn], tmp_path: Path) -> None:
    made("level_zero")
    command = [sys.executable, "-m", "nbxrt", "conform", "level_zero", "--library", "library", "--group", "memory"]

    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(nbxrt.__file__).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tmp_path}/library/libze_loader.so.1" in done.stdout


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", EACH)
def test_memory_is_limited(made: Callable[..., StandIn], name: str) -> None:
    done = simulations.run(OUT_OF_MEMORY.format(name=name), made(name, memory=8 << 20).environment())

    assert done.returncode == 0, done.stderr
    there, had = map(int, done.stdout.split())
    assert there == 8
    assert had in (7, 8)  # room for the alignment


@pytest.mark.parametrize("name", descriptions.INDEX)
def test_every_shipped_backend_has_a_simulation_but_the_host(name: str) -> None:
    from nbxrt.simulation.plan import make_plan

    description = descriptions.built_in(name)
    if name == "host":
        with pytest.raises(nbxrt.CapabilityError, match="its functions are the process's own"):
            make_plan(description, descriptions.contract(), "linux")
    elif not has_stand_in(description):
        assert make_plan(description, descriptions.contract(), "linux").functions


def test_without_objective_c_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other-cc"
    other.write_text("#!/bin/sh\necho cc1obj\n", "utf-8")  # as GCC answers for a program that it lacks
    other.chmod(0o755)
    monkeypatch.setenv("CC", str(other))

    with pytest.raises(CompilerError, match="the stand-in cannot be compiled here: ") as caught:
        stand_in("metal", tmp_path / "library", cache=tmp_path / "cache")

    assert "apt install gobjc" in caught.value.hint


def test_without_the_vendors_header_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other-cc"
    said = "ze.c:4:10: fatal error: level_zero/ze_api.h: No such file or directory"
    other.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n", "utf-8")
    other.chmod(0o755)
    monkeypatch.setenv("CC", str(other))

    with pytest.raises(CompilerError, match=r"does not compile the stand-in: ze\.c:4:10: .*ze_api\.h") as caught:
        stand_in("level_zero", tmp_path / "library", cache=tmp_path / "cache")

    assert "apt install libze-dev" in caught.value.hint


@pytest.mark.tier("all")
@pytest.mark.needs("level-zero")
def test_one_without_faults_says_what_has_them(made: Callable[..., StandIn]) -> None:
    with pytest.raises(nbxrt.CapabilityError, match="the stand-in for Intel Level Zero has neither faults nor a log"):
        made("level_zero").log()


def test_a_backend_of_single_calls_has_none(tmp_path: Path) -> None:
    with pytest.raises(nbxrt.CapabilityError, match="there is no stand-in for NVIDIA CUDA"):
        stand_in("cuda", tmp_path)


@pytest.mark.needs("gobjc")
def test_the_command_writes_one_and_a_shell_that_takes_its_lines_has_the_devices(tmp_path: Path) -> None:
    nbxrt_here = {**os.environ, "PYTHONPATH": str(Path(nbxrt.__file__).parents[1])}
    ask = "import nbxrt; rt = nbxrt.open('metal'); print(rt.device_count(), rt.mem_get_info()[1])"
    script = (
        f'eval "$("{sys.executable}" -m nbxrt simulate metal -o sim --devices 3 --memory 512M)"\n'
        f'"{sys.executable}" -c "{ask}"'
    )

    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=nbxrt_here, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["3", str(512 << 20)]
    assert "written after the vendor's interface" in done.stderr
