"""`nbxrt list`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nbxrt import descriptions
from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine


def _users_file(folder: Path, *changes: tuple[str, str]) -> Path:
    """The host's file as a user's: another name, and other changes."""
    text = (data_folder("backends") / "host.yaml").read_text("utf-8")
    for old, new in (("name: host", "name: mine"), *changes):
        assert old in text
        text = text.replace(old, new, 1)
    file = folder / "mine.yaml"
    file.write_text(text, "utf-8")
    return file


def test_every_backend_is_listed_in_order_of_detection(cli: CommandLine) -> None:
    ended = cli("list")

    names = [line.split()[0] for line in ended.out.splitlines() if not line.startswith(" ")]
    assert (ended.code, ended.err) == (0, "")
    assert names == list(descriptions.INDEX)


def test_a_line_says_what_kind_of_backend_it_is_and_where_it_runs(cli: CommandLine) -> None:
    ended = cli("list")

    assert "host        Host memory: cpu on linux, windows, macos; priority 1000\n" in ended.out


def test_no_line_is_wider_than_a_terminal(cli: CommandLine) -> None:
    ended = cli("list")

    assert max(map(len, ended.out.splitlines())) <= 80


def test_json_counts_bound_and_absent_operations(cli: CommandLine) -> None:
    rows = {row["name"]: row for row in json.loads(cli("list", "--json").out)}

    host = descriptions.built_in("host")
    assert rows["host"] == {
        "name": "host",
        "title": "Host memory",
        "kind": "cpu",
        "platforms": ["linux", "windows", "macos"],
        "priority": 1000,
        "triton": None,
        "bound": len(host["operations"]),
        "absent": len(host["absent"]),
        "evidence": {"header": 11},
        "maturity": "from headers",
        "file": "backends/host.yaml",
        "faults": [],
    }


def test_a_users_file_is_listed_where_its_priority_puts_it(cli: CommandLine, tmp_path: Path) -> None:
    file = _users_file(tmp_path, ("kind: cpu", "kind: gpu"), ("priority: 1000", "priority: 1"))

    rows = json.loads(cli("list", "--json", NBXRT_BACKEND_PATH=str(file)).out)

    assert (rows[0]["name"], rows[0]["file"]) == ("mine", str(file))


def test_a_users_file_that_cannot_be_used_is_a_finding_and_hides_no_other(cli: CommandLine, tmp_path: Path) -> None:
    file = _users_file(tmp_path, ("priority: 1000", "priority: high"))

    ended = cli("list", NBXRT_BACKEND_PATH=str(file))

    assert ended.code == 1
    assert "Host memory" in ended.out
    assert f"mine        cannot be used:\n            {file}:" in ended.out


@pytest.mark.tier("all")
def test_what_the_path_names_and_is_not_there_is_told_beside_the_list(cli: CommandLine) -> None:
    ended = cli("list", NBXRT_BACKEND_PATH="~/nowhere")

    assert (ended.code, ended.err) == (
        1,
        "warning: `~/nowhere` in NBXRT_BACKEND_PATH: there is no such file or folder: `~` stands for no home folder "
        "here\n",
    )
    assert "host        Host memory" in ended.out
