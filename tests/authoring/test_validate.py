"""`nbxrt validate` as people and programs meet it: colour, formats, exit codes, time, and no network."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    Python = Callable[..., subprocess.CompletedProcess[str]]

HOME = str(Path(sys.modules["nbxrt"].__file__ or "").parents[1])
HOST = (data_folder("backends") / "host.yaml").read_bytes().decode()
CASES = Path(__file__).parents[1] / "catalogue" / "cases"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    file = tmp_path / "bad.yaml"
    file.write_text(HOST.replace("priority: 1000", "priority: high"), "utf-8")
    return file


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": HOME, "TERM": "xterm-256color", **variables}
    command = [sys.executable, "-m", "nbxrt", *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=theirs):
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:  # how Linux says that the other end is closed
            pass
    os.close(ours)
    return said.decode()


def test_colour_is_for_terminals(bad: Path) -> None:
    assert "\x1b[" in on_a_terminal(bad.parent, "validate", bad.name)


def test_no_color_turns_it_off(bad: Path) -> None:
    assert "\x1b" not in on_a_terminal(bad.parent, "validate", bad.name, NO_COLOR="1")


@pytest.mark.parametrize("form", ["human", "json", "github"])
def test_what_is_not_a_terminal_gets_plain_text(form: str, bad: Path, python: Python) -> None:
    ended = python("-m", "nbxrt", "validate", "--format", form, bad.name)

    assert ended.returncode == 1
    assert "\x1b" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(("arguments", "code"), [(["good.yaml"], 0), (["bad.yaml", "good.yaml"], 1), (["--nope"], 2)])
def test_the_exit_codes_are_those_of_the_page(arguments: list[str], code: int, bad: Path, python: Python) -> None:
    (bad.parent / "good.yaml").write_text(HOST, "utf-8")

    assert python("-m", "nbxrt", "validate", *arguments).returncode == code


NO_NETWORK = """
import sys
def refuse(event, arguments):
    if event.startswith(("socket.", "urllib.")) or event in ("subprocess.Popen", "os.system"):
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(refuse)
from nbxrt.cli import main
sys.argv = ["nbxrt", *sys.argv[1:]]
main()
"""


def test_no_file_makes_it_open_a_socket_or_start_a_program(bad: Path, python: Python) -> None:
    url = "http://127.0.0.1:9/schema.json"
    fetching = f"$schema: {url}\n$id: {url}\n$ref: {url}\noperations: {{sync: {{$ref: {url}}}}}\nextends: {url}\n"
    (bad.parent / "fetching.yaml").write_text(fetching, "utf-8")
    files = [*CASES.rglob("*.yaml"), *Path(str(data_folder("backends"))).glob("*.yaml"), bad, "fetching.yaml"]

    ended = python("-c", NO_NETWORK, "validate", "--format", "json", *files)

    assert ended.returncode == 1, ended.stderr
    assert "socket" not in ended.stderr
    assert len(json.loads(ended.stdout)["files"]) == len(files)


@pytest.mark.tier("all")
def test_a_hundred_files_of_the_largest_kind_take_three_seconds(tmp_path: Path, python: Python) -> None:
    resource = pytest.importorskip("resource")  # not on Windows
    text = (data_folder("backends") / "cuda.yaml").read_bytes().decode()
    for number in range(100):
        (tmp_path / f"{number:02}.yaml").write_text(text.replace("name: cuda", f"name: cuda{number}", 1), "utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    ended = python("-m", "nbxrt", "validate", tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "100 files: no faults\n")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before  # others use this machine too
    assert spent < 2 * 3  # twice what it may take


def facts(fault: dict[str, Any]) -> tuple[str, int]:
    return fault["file"], fault["line"]


def test_many_files_are_told_in_their_order_and_that_of_their_lines(python: Python, bad: Path) -> None:
    text = bad.read_text("utf-8").replace("kind: cpu", "kind: tpu")
    for name in ("c.yaml", "a.yaml", "b.yaml"):
        (bad.parent / name).write_text(text, "utf-8")

    ended = python("-m", "nbxrt", "validate", "--format", "json", "c.yaml", "a.yaml", "b.yaml")

    found = [facts(fault) for fault in json.loads(ended.stdout)["faults"]]
    assert [file for file, _line in found] == ["c.yaml"] * 2 + ["a.yaml"] * 2 + ["b.yaml"] * 2
    assert all(one[1] < other[1] for one, other in zip(found[::2], found[1::2], strict=True))
    assert ended.stderr == "3 files: 6 faults in 3 of them\n"


def test_a_line_without_end_is_not_repeated_for_each_of_its_faults(tmp_path: Path, python: Python) -> None:
    file = tmp_path / "wide.yaml"
    file.write_text("x-a: {" + "no: a, " * 3_000 + "}\n", "utf-8")

    ended = python("-m", "nbxrt", "validate", "--format", "json", str(file))

    faults = json.loads(ended.stdout)["faults"]
    assert len(faults) > 50
    assert {fault["source"] for fault in faults} == {""}
