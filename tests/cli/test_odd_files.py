"""Files that no command can read: each is told in one sentence, whatever the command, and nothing waits for ever."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import nbxrt
from copies import run
from nbxrt.cli.app import commands

if TYPE_CHECKING:
    from collections.abc import Callable

HOME = str(Path(nbxrt.__file__).parents[1])

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, links and devices of Unix")


def _link_to(target: str) -> Callable[[Path], None]:
    return lambda file: file.symlink_to(target)


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to itself": _link_to("odd.yaml"),
    "a link to nothing": _link_to("nothing"),
    "a device without end": _link_to("/dev/zero"),
    "no text": lambda file: file.write_bytes(b"\xff\xfe\xff"),
    "nothing": lambda file: file.write_bytes(b""),
    "too much": lambda file: file.write_bytes(b"a: " + b"x" * 3_000_000),
    "half a character": lambda file: file.write_bytes(b"title: \xc3"),
}

COMMANDS = [
    ("validate", "{file}"),
    ("show", "{file}"),
    ("explain", "{file}", "operations.malloc"),
    ("diff", "{file}", "cuda"),
    ("diff", "cuda", "{file}"),
    ("libraries", "{file}"),
    ("upgrade", "{file}"),
    ("new", "mine", "--like", "{file}"),
]


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_is_told_in_words(command: tuple[str, ...], make: Callable[[Path], object], tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    make(file)

    ended = CliRunner().invoke(commands, [word.replace("{file}", str(file)) for word in command])

    assert ended.exit_code in (1, 2), ended.output
    assert isinstance(ended.exception, SystemExit), ended.exception
    assert "odd.yaml" in ended.output
    assert "Traceback" not in ended.output


def test_a_folder_that_holds_them_all_and_is_named_twice_harms_no_other_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, make in enumerate(ODD.values()):
        make(tmp_path / f"odd{number}.yaml")
    monkeypatch.setenv("NBXRT_BACKEND_PATH", f"{tmp_path}{os.pathsep}{tmp_path}/")

    ended = CliRunner().invoke(commands, ["show", "host"])

    assert (ended.exit_code, ended.output.partition(" ")[0]) == (0, "Host")


LIMITED = """
import resource, signal, sys
from pathlib import Path
from nbxrt.cli import files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
try:
    files.replace(Path(sys.argv[1]), b"after" * 100)
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize("room", [1000, 100], ids=["room", "no room"])
def test_a_changed_file_is_replaced_as_a_whole_or_not_at_all(room: int, tmp_path: Path) -> None:
    file, link = tmp_path / "mine.yaml", tmp_path / "link.yaml"
    file.write_bytes(b"before")
    file.chmod(0o600)
    link.symlink_to("mine.yaml")

    said = run(sys.executable, "-c", LIMITED, link, str(room), cwd=tmp_path, PYTHONPATH=HOME)

    assert (said, file.read_bytes()) == (("", b"after" * 100) if room > 500 else ("File too large\n", b"before"))
    assert (link.is_symlink(), file.stat().st_mode & 0o777) == (True, 0o600)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.yaml", "mine.yaml"]


def test_an_empty_path_is_not_taken_for_the_working_folder() -> None:
    (fault,) = nbxrt.validate("")

    assert fault.reference == "unreadable-file"
    assert fault.message == "the file cannot be read: its path is empty"
