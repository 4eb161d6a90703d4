"""`open` follows no file that somebody else may change; whatever only shows a file never refuses."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt
from copies import run
from nbxrt.catalogue import trust
from nbxrt.catalogue.sources import data_folder
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no owner and mode to ask")

HOST = (data_folder("backends") / "host.yaml").read_bytes()
OTHER_GROUP = next(group for group in range(40_000, 50_000) if group != os.getegid())


def status(mode: int, owner: int = 1000, group: int = 1000) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))


FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (status(FILE | 0o644), ""),
        (status(FILE | 0o644, owner=0), ""),
        (status(FILE | 0o664), ""),
        (status(FILE | 0o664, group=60_001), "can be written by the group 60001"),
        (status(FILE | 0o664, owner=0, group=60_001), "can be written by the group 60001"),
        (status(FILE | 0o666), "can be written by everybody"),
        (status(FILE | 0o644, owner=60_002), "belongs to the user 60002"),
        (status(FOLDER | 0o777), "can be written by everybody"),
        (status(FOLDER | 0o1777, owner=0, group=0), ""),
        (status(FOLDER | 0o755, owner=60_002), "belongs to the user 60002"),
        (status(FOLDER | 0o1777, owner=60_002), "belongs to the user 60002"),
    ],
    ids=[
        "one's own", "root's", "the own group may write", "another group may write", "root's, and another group may",
        "everybody may write", "another user's", "an open folder", "a sticky folder", "another user's folder",
        "another user's sticky folder",
    ],
)  # fmt: skip
def test_who_else_may_change_a_file(asked: os.stat_result, expected: str) -> None:
    assert trust.changeable_by(asked, 1000, frozenset({1000})) == expected


ACCOUNTS = [("root", 0, 0), ("sync", 5, 0), ("ada", 1000, 1000), ("bob", 1001, 100), ("eve", 1002, 100)]


@pytest.mark.parametrize(
    ("group", "user", "members", "private"),
    [
        (1000, 1000, [], True),
        (1000, 1000, ["ada"], True),
        (1000, 1000, ["bob"], False),
        (1000, 1000, ["of another host"], False),
        (100, 1001, [], False),
        (0, 0, [], True),
        (0, 7000, [], True),
        (7000, 7000, [], True),
    ],
    ids=[
        "a group of one's own", "where one is listed", "with another member", "with a member without an account",
        "a group that all users have", "root's", "root's, in a container", "no account at all",
    ],
)  # fmt: skip
def test_whether_a_group_is_one_users_alone(group: int, user: int, members: list[str], private: bool) -> None:
    assert trust.is_private(group, user, ACCOUNTS, members) is private


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A user's file that can be opened, in a folder of its own."""
    folder = tmp_path / "site"
    folder.mkdir(mode=0o755)
    path = folder / "mine.yaml"
    path.write_bytes(HOST.replace(b"name: host", b"name: mine", 1))
    path.chmod(0o644)
    yield path
    nbxrt.reset()


def test_a_file_of_ones_own_is_opened(file: Path) -> None:
    assert nbxrt.open(file).name == "mine"


def test_a_file_that_everybody_may_write_is_refused_with_what_to_do(file: Path) -> None:
    file.chmod(0o666)

    with pytest.raises(DescriptionError) as raised:
        nbxrt.open(file)

    (fault,) = raised.value.diagnostics
    assert (fault.reference, fault.file) == ("untrusted-file", str(file))
    assert f"`{file}` can be written by everybody" in fault.message
    assert "NBXRT_TRUST_FILES=1" in fault.hint


def test_the_files_folder_counts_as_well(file: Path) -> None:
    file.parent.chmod(0o777)

    with pytest.raises(DescriptionError, match=r"site` can be written by everybody"):
        nbxrt.open(file)


def test_the_variable_says_otherwise(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o666)
    monkeypatch.setenv("NBXRT_TRUST_FILES", "1")

    assert nbxrt.open(file).name == "mine"


def test_a_link_is_as_trusted_as_all_that_it_leads_through(file: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "there.yaml").symlink_to(file)
    (tmp_path / "link.yaml").symlink_to(tmp_path / "open" / "there.yaml")

    assert trust.why_not(str(file)) == ""
    assert trust.why_not(str(tmp_path / "link.yaml")) == f"`{tmp_path / 'open'}` can be written by everybody"


def test_a_path_is_followed_as_the_system_follows_it(file: Path, tmp_path: Path) -> None:
    """What stands before `..` may be a link, and then leads elsewhere than the text of the path says."""
    (tmp_path / "open" / "below").mkdir(parents=True)
    (tmp_path / "open" / "mine.yaml").write_bytes(file.read_bytes())
    (tmp_path / "open").chmod(0o777)
    (file.parent / "link").symlink_to(tmp_path / "open" / "below")

    assert os.path.normpath(file.parent / "link" / ".." / "mine.yaml") == str(file)
    assert trust.why_not(f"{file.parent}/link/../mine.yaml") == f"`{tmp_path / 'open'}` can be written by everybody"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_link_that_somebody_else_may_turn_is_not_followed(file: Path, tmp_path: Path) -> None:
    """In a sticky folder a link can be replaced by the one whose it is."""
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    link = tmp_path / "sticky" / "link.yaml"
    link.symlink_to(file)
    own = trust.why_not(str(link))
    os.lchown(link, 60_002, 60_002)

    assert own == ""
    assert trust.why_not(str(link)) == f"`{link}` belongs to the user 60002"


@pytest.mark.tier("all")
def test_libraries_are_not_loaded_for_a_file_that_is_not_followed(file: Path, tmp_path: Path) -> None:
    file.chmod(0o666)

    command = [sys.executable, "-m", "nbxrt", "libraries"]
    environment = {**os.environ, "PYTHONPATH": str(Path(nbxrt.__file__).parents[1])}
    ended = subprocess.run([*command, file], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "somebody else may change it" in ended.stderr


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")

    assert trust.why_not(str(tmp_path / "a" / "x.yaml")) == ""


def test_a_base_has_to_be_trusted_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = file.parent / "top.yaml"
    top.write_text("contract: 1\nname: top\nextends: mine\n", "utf-8")
    top.chmod(0o644)
    file.chmod(0o666)
    monkeypatch.setenv("NBXRT_BACKEND_PATH", str(file))

    with pytest.raises(DescriptionError) as raised:
        nbxrt.open(top)

    assert [fault.file for fault in raised.value.diagnostics] == [str(file)]


def test_a_file_on_the_path_is_refused_by_open_and_told_by_detect(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o666)
    monkeypatch.setenv("NBXRT_BACKEND_PATH", str(file))

    with pytest.raises(DescriptionError, match="somebody else may change it"):
        nbxrt.open("mine")
    assert "somebody else may change it" in str(nbxrt.detect())


@pytest.mark.tier("all")
def test_what_only_shows_a_file_never_refuses(file: Path, tmp_path: Path) -> None:
    file.chmod(0o666)
    home = str(Path(nbxrt.__file__).parents[1])

    assert nbxrt.validate(file) == ()
    assert nbxrt.describe(file).name == "mine"
    for command in (["show"], ["validate"], ["explain"], ["diff", "host"], ["show", "--origin"]):
        run(sys.executable, "-m", "nbxrt", *command, str(file), cwd=tmp_path, PYTHONPATH=home)
    run(sys.executable, "-m", "nbxrt", "list", cwd=tmp_path, PYTHONPATH=home, NBXRT_BACKEND_PATH=str(file))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_group_or_user_is_refused_on_disk(file: Path) -> None:
    file.chmod(0o664)
    os.chown(file, 0, OTHER_GROUP)
    by_group = trust.why_not(str(file))
    os.chown(file, 60_002, 0)

    assert by_group == f"`{file}` can be written by the group {OTHER_GROUP}"
    assert trust.why_not(str(file)) == f"`{file}` belongs to the user 60002"
