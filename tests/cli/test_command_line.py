"""What all commands share: where they write, how they fail, and what they cost others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import nbxrt

if TYPE_CHECKING:
    from conftest import CommandLine

COMMANDS = (
    "doctor", "list", "libraries", "show", "new", "upgrade", "explain", "diff", "validate", "simulate", "conform",
    "schema", "demo",
)  # fmt: skip
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_the_version_is_the_packages(cli: CommandLine) -> None:
    ended = cli("--version")

    assert (ended.code, ended.out) == (0, f"nbxrt {nbxrt.__version__}\n")


def test_help_lists_every_command(cli: CommandLine) -> None:
    ended = cli("--help")

    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.partition("Commands:\n")[2].splitlines()] == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(cli: CommandLine, command: str) -> None:
    ended = cli(command, "--help")

    assert ended.code == 0
    assert ended.out.startswith(f"Usage: nbxrt {command} ")


def test_an_unknown_command_is_misuse(cli: CommandLine) -> None:
    ended = cli("lsit")

    assert (ended.code, ended.out) == (2, "")
    assert "No such command 'lsit'" in ended.err


def test_an_error_is_told_with_its_reference_and_a_hint_and_no_traceback(cli: CommandLine) -> None:
    ended = cli("show", "hots")

    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("error[backend-not-found]: `hots` is not a known backend: ")
    assert ended.err.endswith("\n\nhint: did you mean `host`?\n")


@pytest.mark.parametrize("arguments", [("list",), ("show", "host")])
def test_colour_adds_nothing_to_the_text(bare: CommandLine, arguments: tuple[str, ...]) -> None:
    plain = bare(*arguments)
    coloured = bare(*arguments, FORCE_COLOR="1", TERM="xterm-256color")

    assert ESCAPE.search(coloured.out)
    assert ESCAPE.sub("", coloured.out) == plain.out


@pytest.mark.parametrize("arguments", [("list",), ("show", "host"), ("doctor",), ("show", "nobody")])
def test_no_color_leaves_no_escape(bare: CommandLine, arguments: tuple[str, ...]) -> None:
    ended = bare(*arguments, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color")

    assert "\x1b" not in ended.out + ended.err


def test_what_a_terminal_would_obey_is_shown_escaped(bare: CommandLine) -> None:
    ended = bare("doctor", NBXRT_NOTE="red \x1b[31m and bell \x07")

    assert r"  NBXRT_NOTE=red \x1b[31m and bell \x07" in ended.out.splitlines()


def test_a_narrow_encoding_loses_nothing_to_an_error(bare: CommandLine) -> None:
    ended = bare("doctor", NBXRT_NOTE="grüße", PYTHONIOENCODING="ascii")

    assert ended.code == 0
    assert "NBXRT_NOTE=gr\\xfc\\xdfe" in ended.out
