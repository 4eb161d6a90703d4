"""What all commands share: where they write, how they fail, and what they cost others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import CommandLine

COMMANDS = (
    "doctor", "list", "libraries", "topology", "show", "new", "upgrade", "explain", "diff", "validate", "verify",
    "simulate", "conform", "compile", "schema", "memory", "demo",
)  # fmt: skip
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_the_version_is_the_packages(cli: CommandLine) -> None:
    ended = cli("--version")

    assert (ended.code, ended.out) == (0, f"nbxrt {nbxrt.__version__}\n")


def test_help_lists_every_command(cli: CommandLine) -> None:
    ended = cli("--help")

    assert ended.code == 0
    listed = ended.out.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines()] == list(COMMANDS)
    assert "..." not in listed  # nothing is cut off


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(cli: CommandLine, command: str) -> None:
    ended = cli(command, "--help")

    assert ended.code == 0
    assert ended.out.startswith(f"Usage: nbxrt {command} ")


def test_an_unknown_command_is_misuse(cli: CommandLine) -> None:
    ended = cli("lsit")

    assert (ended.code, ended.out) == (2, "")
    assert "No such command 'lsit'. Did you mean 'list'?" in ended.err


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
    ended = bare("doctor", TRITON_NOTE="red \x1b[31m and bell \x07")

    assert r"  TRITON_NOTE=red \x1b[31m and bell \x07" in ended.out.splitlines()


def test_a_narrow_encoding_loses_nothing_to_an_error(bare: CommandLine) -> None:
    ended = bare("doctor", TRITON_NOTE="grüße", PYTHONIOENCODING="ascii")

    assert ended.code == 0
    assert "TRITON_NOTE=gr\\xfc\\xdfe" in ended.out


@pytest.fixture
def by_shell(tmp_path: Path) -> Callable[[str], tuple[int, str, str]]:
    """Runs `nbxrt …` as a shell does, so that its streams can be closed or led to where nothing can be written."""

    def run(command: str) -> tuple[int, str, str]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(nbxrt.__file__).parents[1]),
            "PYTHON": sys.executable,
        }
        line = command.replace("nbxrt ", '"$PYTHON" -m nbxrt ', 1)
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    return run


on_unix = pytest.mark.skipif(sys.platform == "win32", reason="the redirections of a Unix shell")
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")


@needs_full
@pytest.mark.parametrize("command", ["show host", "--help"])
def test_an_answer_that_cannot_be_written_is_one_sentence_and_a_failure(
    by_shell: Callable[[str], tuple[int, str, str]], command: str
) -> None:
    ended = by_shell(f"nbxrt {command} >/dev/full")

    assert ended == (2, "", "error: standard output cannot be written: No space left on device\n")


@needs_full
@pytest.mark.parametrize(("command", "code"), [("show host", 0), ("show nobody", 2), ("nonsense", 2)])
def test_talk_that_cannot_be_written_changes_no_exit_code(
    by_shell: Callable[[str], tuple[int, str, str]], command: str, code: int
) -> None:
    assert by_shell(f"nbxrt {command} 2>/dev/full")[0] == code


@on_unix
def test_closed_streams_are_as_good_as_thrown_away(by_shell: Callable[[str], tuple[int, str, str]]) -> None:
    assert by_shell("nbxrt show host >&- 2>&- <&-") == (0, "", "")
    assert by_shell("nbxrt show nobody >&-")[2].startswith("error[backend-not-found]")


@on_unix
def test_a_reader_that_has_enough_is_no_error(by_shell: Callable[[str], tuple[int, str, str]]) -> None:
    assert by_shell("nbxrt show cuda | head -n 1")[2] == ""
