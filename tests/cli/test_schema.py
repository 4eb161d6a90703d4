"""`nbxrt schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine


def _shipped() -> str:
    return (data_folder("schema") / "backend.schema.json").read_text("utf-8")


def test_the_schema_is_the_one_that_ships(cli: CommandLine) -> None:
    ended = cli("schema")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == _shipped()


def test_the_schema_can_be_written_to_a_file(cli: CommandLine, tmp_path: Path) -> None:
    ended = cli("schema", "-o", "mine.json")

    assert (ended.code, ended.out, ended.err) == (0, "", "wrote mine.json\n")
    assert (tmp_path / "mine.json").read_bytes().decode() == _shipped()


def test_a_folder_is_no_file_to_write_to(cli: CommandLine, tmp_path: Path) -> None:
    ended = cli("schema", "-o", tmp_path)

    assert ended.code == 2
    assert "is a directory" in ended.err
