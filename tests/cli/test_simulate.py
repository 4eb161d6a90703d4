"""`nbxrt simulate`: a vendor's library from a backend file, and the variables that make a process use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt
import simulations

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = [*simulations.NEEDED]


@pytest.mark.tier("all")
def test_a_shell_that_takes_the_lines_has_the_devices(cli: CommandLine) -> None:
    ended = cli("simulate", "cuda", "-o", "sim", "--devices", "3", "--memory", "512M")

    ask = "import nbxrt; rt = nbxrt.open('cuda'); print(rt.device_count(), rt.mem_get_info()[1])"
    script = f'{ended.out}\n"{sys.executable}" -c "{ask}"'
    environ = {**os.environ, "PYTHONPATH": str(Path(nbxrt.__file__).parents[1])}
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env=environ)
    assert ended.code == 0
    assert said.stdout.split() == ["3", str(512 << 20)]
    assert ended.err.startswith(f"wrote {cli.folder}/sim/libcudart.so.13: cuda, 3 simulated devices; ")
    assert ended.err.endswith(" signatures are the vendor's headers'\n")


@pytest.mark.tier("all")
def test_the_version_decides_the_files_and_json_says_them(cli: CommandLine) -> None:
    ended = cli("simulate", "hip", "-o", "sim", "--version", "6.2", "--json")

    said = json.loads(ended.out)
    assert said["libraries"]["runtime"] == f"{cli.folder}/sim/libamdhip64.so.6"
    assert said["versions"]["runtime"] == "6.2"
    assert said["environment"]["NBXRT_SIM_DEVICES"] == "2"
    assert "hipMalloc" in said["from_headers"]
    assert len(said["from_headers"]) < said["functions"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("hots", "-o", "sim"), "did you mean `host`?"),
        (("cuda",), "--output"),
        (("cuda", "-o", "sim", "--version", "9"), "no `runtime` of major 9"),
        (("cuda", "-o", "sim", "--without", "cudaNothing"), "cudaNothing"),
        (("cuda", "-o", "sim", "--memory", "much"), "`much` is no size"),
        (("host", "-o", "sim"), "its functions are the process's own"),
        (("metal", "-o", "sim", "--version", "1"), "are for libraries that are made from the file"),
        (("metal", "-o", "sim", "--without", "MTLCreateSystemDefaultDevice"), "are for libraries that are made"),
    ],
)
def test_what_cannot_be_simulated_is_said(cli: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    ended = cli("simulate", *arguments)

    assert ended.code != 0
    assert ended.out == ""
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_without_a_compiler_it_says_what_to_install(cli: CommandLine) -> None:
    ended = cli("simulate", "cuda", "-o", "sim", CC="nowhere-cc")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error[compiler]: a simulation needs a C compiler: CC names `nowhere-cc`")
