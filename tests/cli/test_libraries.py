"""`nbxrt libraries`: every candidate in order, with its verdict."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from libraries import make_library
from nbxrt import descriptions

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries and the layouts of Linux"),
    pytest.mark.needs("cc"),
]

#: The first call of this library ends the process.
ABORTING = """
#include <stdlib.h>
int hipGetDeviceCount(int *count) { abort(); }
int hipRuntimeGetVersion(int *version) { abort(); }
int hipInit(unsigned flags) { abort(); }
"""


def in_one_line(text: str) -> str:
    """The text without the breaks of its lines."""
    return " ".join(text.split())


def test_the_chosen_copy_comes_first_and_the_others_are_said_to_be_not_tried(bare: CommandLine, tmp_path: Path) -> None:
    make_library(tmp_path / "toolkit/lib64/libcudart.so.12")
    make_library(tmp_path / "root/usr/local/cuda/lib64/libcudart.so.11.0")

    ended = bare("libraries", "cuda", CUDA_HOME=str(tmp_path / "toolkit"))

    assert ended.err == ""
    said = in_one_line(ended.out).replace(str(tmp_path), "")
    first = "/toolkit/lib64/libcudart.so.12"
    assert f"runtime {first}, major 12, by `$CUDA_HOME`" in said
    other = "/root/usr/local/cuda/lib64/libcudart.so.11.0"
    assert said.index(f"$CUDA_HOME chosen {first}: loaded") < said.index(f"root not tried {other}: {first} comes first")


def test_json_has_the_same_facts(bare: CommandLine, tmp_path: Path) -> None:
    library = make_library(tmp_path / "root/usr/local/cuda/lib64/libcudart.so.12")

    ended = bare("libraries", "cuda", "--json")

    (found,) = json.loads(ended.out)
    runtime, driver = found["libraries"][:2]
    assert (found["name"], found["warnings"]) == ("cuda", [])
    assert (runtime["role"], runtime["status"], runtime["path"]) == ("runtime", "chosen", str(library))
    assert {"step": "root", "path": str(library), "verdict": "chosen", "reason": "loaded", "major": 12} in runtime[
        "candidates"
    ]
    assert (driver["status"], driver["says"]) == ("missing", "not found")
    assert ended.code == 0


def test_every_backend_is_listed_without_a_name(bare: CommandLine) -> None:
    ended = bare("libraries", "--json")

    assert [found["name"] for found in json.loads(ended.out)] == list(descriptions.INDEX)
    assert ended.code == 0


@pytest.mark.tier("all")
def test_a_file_that_cannot_be_used_keeps_nobody_from_the_others(bare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("contract: [", "utf-8")

    ended = bare("libraries", NBXRT_BACKEND_PATH=str(tmp_path / "mine.yaml"))

    assert ended.code == 1
    assert "mine: cannot be used" in ended.out
    assert "not valid YAML" in ended.out
    assert "host: Host memory" in ended.out


def test_a_runtime_that_is_not_found_is_a_finding_when_it_was_asked_for(bare: CommandLine) -> None:
    assert bare("libraries", "cuda").code == 1


def test_a_broken_library_is_a_finding_and_is_named(bare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "root/usr/lib64").mkdir(parents=True)
    (tmp_path / "root/usr/lib64/libcudart.so.12").touch()

    ended = bare("libraries")

    assert ended.code == 1
    assert "libcudart.so.12 (system) is empty" in in_one_line(ended.out)


def test_an_unknown_name_is_misuse(bare: CommandLine) -> None:
    ended = bare("libraries", "cudda")

    assert ended.code == 2
    assert "error[backend-not-found]" in ended.err


def test_no_function_of_a_library_is_called(bare: CommandLine, tmp_path: Path) -> None:
    """H05: a runtime that aborts at its first call does not end the search."""
    library = make_library(tmp_path / "root/opt/rocm/lib/libamdhip64.so.6", ABORTING)

    ended = bare("libraries", "hip", "--json")

    assert ended.code == 0
    assert json.loads(ended.out)[0]["libraries"][0]["path"] == str(library)


def test_a_missing_dependency_is_told_with_everything_between(bare: CommandLine, tmp_path: Path) -> None:
    lib = tmp_path / "root/opt/rocm/lib"
    deep = make_library(lib / "libhsakmt.so.1", "int deep(void) { return 1; }")
    middle = make_library(lib / "libhsa-runtime64.so.1", "int middle(void) { return 1; }", needs=(deep,))
    make_library(lib / "libamdhip64.so.6", needs=(middle,), flags=("-Wl,-rpath,$ORIGIN",))
    deep.unlink()

    ended = bare("libraries", "hip")

    assert ended.code == 1
    assert "needs libhsa-runtime64.so.1, which needs libhsakmt.so.1, which the loader does not find" in in_one_line(
        ended.out
    )
