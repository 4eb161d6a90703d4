"""`nbxrt validate`."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A backend file without a fault."""
    file = tmp_path / "good.yaml"
    file.write_bytes((data_folder("backends") / "host.yaml").read_bytes())
    return file


@pytest.fixture
def bad(good: Path) -> Path:
    """A backend file with one fault, a priority that is no number."""
    file = good.with_name("bad.yaml")
    file.write_text(good.read_text("utf-8").replace("priority: 1000", "priority: high"), "utf-8")
    return file


def _line_of(file: Path, text: str) -> int:
    return file.read_text("utf-8").splitlines().index(text) + 1


def test_a_right_file_is_one_line_of_talk(cli: CommandLine, good: Path) -> None:
    ended = cli("validate", good)

    assert (ended.code, ended.out, ended.err) == (0, "", "1 file: no faults\n")


def test_a_right_file_is_silent_when_quiet(cli: CommandLine, good: Path) -> None:
    ended = cli("validate", "--quiet", good)

    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_fault_is_told_with_its_place_and_the_line_itself(cli: CommandLine, bad: Path) -> None:
    ended = cli("validate", bad.name)

    line = _line_of(bad, "priority: high")
    margin = " " * len(str(line))
    assert ended.code == 1
    assert ended.out.startswith(f"bad.yaml:{line}:11: expected an integer, found the text `high` [wrong-type]\n")
    assert f"  {line} | priority: high\n  {margin} |           ^^^^" in ended.out
    assert ended.err == "1 file: 1 fault in 1 of them\n"


def test_one_bad_file_hides_no_other_and_the_summary_is_last(cli: CommandLine, good: Path, bad: Path) -> None:
    worse = bad.with_name("worse.yaml")
    worse.write_text("a: [1\n", "utf-8")

    ended = cli("validate", worse.name, good.name, bad.name)

    places = [line.partition(":")[0] for line in ended.out.splitlines() if ".yaml:" in line]
    assert ended.code == 1
    assert places == ["worse.yaml", "bad.yaml"]
    assert ended.err == "3 files: 2 faults in 2 of them\n"


def test_a_folder_stands_for_its_files_and_a_file_named_twice_is_checked_once(
    cli: CommandLine, good: Path, bad: Path
) -> None:
    ended = cli("validate", good.parent, bad)

    assert ended.err == "2 files: 1 fault in 1 of them\n"


def test_a_file_of_another_ending_is_not_passed_over_in_silence(cli: CommandLine, good: Path) -> None:
    other = good.with_name("other.yml")
    other.write_text("name: other\n", "utf-8")

    ended = cli("validate", good.parent)

    said = f"{other}: passed over, since the name of a backend file ends in .yaml"
    assert (ended.code, ended.err.splitlines()) == (0, [said, "1 file: no faults"])


def test_a_folder_without_files_is_misuse(cli: CommandLine, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    ended = cli("validate", empty)

    assert ended.code == 2
    assert f"the folder {empty} holds no *.yaml file" in ended.err


def test_a_file_that_is_not_there_is_misuse(cli: CommandLine) -> None:
    ended = cli("validate", "nowhere.yaml")

    assert ended.code == 2
    assert "'nowhere.yaml' does not exist" in ended.err


def test_json_holds_every_fact_of_a_fault(cli: CommandLine, good: Path, bad: Path) -> None:
    ended = cli("validate", "--format", "json", good.name, bad.name)

    found = json.loads(ended.out)
    (fault,) = found["faults"]
    assert ended.code == 1
    assert found["files"] == ["good.yaml", "bad.yaml"]
    assert (fault["file"], fault["line"], fault["column"], fault["end_column"], fault["reference"]) == (
        "bad.yaml",
        _line_of(bad, "priority: high"),
        11,
        15,
        "wrong-type",
    )


def test_github_gets_an_annotation_in_its_own_escaping(cli: CommandLine, bad: Path) -> None:
    odd = bad.rename(bad.with_name("50%,odd.yaml"))

    ended = cli("validate", "--format", "github", odd.name)

    line = _line_of(odd, "priority: high")
    assert ended.code == 1
    assert ended.out == (
        f"::error file=50%25%2Codd.yaml,line={line},col=11,endColumn=15,title=wrong-type"
        "::expected an integer, found the text `high`\n"
    )


def test_bytes_that_are_no_text_are_a_fault_and_no_crash(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "noise.yaml").write_bytes(b"name: \xff\xfe\x00")

    ended = cli("validate", "noise.yaml")

    assert ended.code == 1
    assert ended.out.startswith("noise.yaml:1:")
    assert "Traceback" not in ended.err


def test_every_shipped_file_is_right(cli: CommandLine, tmp_path: Path) -> None:
    for file in (each for each in data_folder("backends").iterdir() if each.name.endswith(".yaml")):
        with file.open("rb") as source, (tmp_path / file.name).open("wb") as target:
            shutil.copyfileobj(source, target)

    ended = cli("validate", tmp_path)

    assert (ended.code, ended.out) == (0, "")
