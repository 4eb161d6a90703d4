"""`nbxrt upgrade`: what a newer contract has is added as absent, and nothing else is touched."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import pytest

from nbxrt.catalogue import reading, upgrading, validation
from nbxrt.catalogue.sources import data_folder
from nbxrt.errors import DescriptionError, NbxrtError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.catalogue.contract import Contract

SHIPPED = {
    file.name: file.read_bytes().decode()
    for file in sorted(data_folder("backends").iterdir(), key=lambda file: file.name)
    if file.name.endswith(".yaml")
}
WARP = "warp_drive: new in contract 2, not looked at yet"
ROWS = "memcpy_2d: new in contract 2, not looked at yet"

LIGHT = f"{WARP}   # Faster than light."
COPIES = f"{ROWS}   # Copies rows."


@pytest.mark.parametrize("name", SHIPPED)
def test_only_the_contract_and_the_new_lines_differ(name: str, grown: Contract) -> None:
    before = SHIPPED[name]

    upgrade = upgrading.upgraded(before, grown, name)

    changes = [
        line[1:].strip().partition("   #")[0]
        for line in difflib.ndiff(before.splitlines(), upgrade.text.splitlines())
        if line[0] in "+-"
    ]
    assert [line for line in changes if line not in (WARP, ROWS, "", "absent:")] == ["contract: 1", "contract: 2"]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_upgraded_file_is_right_for_the_newer_contract(name: str, grown: Contract) -> None:
    upgrade = upgrading.upgraded(SHIPPED[name], grown, name)

    assert validation.check(reading.read(upgrade.text.encode(), name), grown) == ()


def test_what_a_file_extends_answers_for_it(grown: Contract) -> None:
    upgrade = upgrading.upgraded("contract: 1\nextends: cuda\nabsent: {ipc: no}\n", grown, "x.yaml")

    assert upgrade == upgrading.Upgrade("contract: 2\nextends: cuda\nabsent: {ipc: no}\n", 1, 2, ())


def test_an_operation_whose_group_is_absent_is_answered_already(grown: Contract) -> None:
    file = SHIPPED["metal.yaml"].replace("\nabsent:\n", "\nabsent:\n  device: not here\n  memory: not here\n")

    upgrade = upgrading.upgraded(file, grown, "metal.yaml")

    assert upgrade.added == ()
    assert upgrade.text == file.replace("contract: 1", "contract: 2")


def test_a_file_of_the_newest_contract_stays_as_it_is(contract: Contract) -> None:
    upgrade = upgrading.upgraded(SHIPPED["cuda.yaml"], contract, "cuda.yaml")

    assert upgrade == upgrading.Upgrade(SHIPPED["cuda.yaml"], 1, 1, ())


FORMS = {
    "line breaks of old": ("contract: 1\rabsent:\r", f"contract: 2\rabsent:\r  {LIGHT}\r  {COPIES}\r"),
    "no section": ("contract: 1\n", f"contract: 2\n\nabsent:\n  {LIGHT}\n  {COPIES}\n"),
    "no line break at the end": (
        "contract: 1",
        f"contract: 2\n\nabsent:\n  {LIGHT}\n  {COPIES}\n",
    ),
    "an empty section": (
        "absent: {}  # all is bound\ncontract: 1\n",
        f"absent:  # all is bound\n  {LIGHT}\n  {COPIES}\ncontract: 2\n",
    ),
    "on one line": (
        "contract: 1  # one\nabsent: {peer: none}\n",
        'contract: 2  # one\nabsent: {warp_drive: "new in contract 2, not looked at yet", '
        'memcpy_2d: "new in contract 2, not looked at yet", peer: none}\n',
    ),
    "in another indentation": (
        "contract: 1\nabsent:\n    # why\n    peer: none\n",
        f"contract: 2\nabsent:\n    # why\n    {LIGHT}\n    {COPIES}\n    peer: none\n",
    ),
    "with other line breaks": (
        "contract: 1\r\nabsent:\r\n  peer: none\r\n",
        f"contract: 2\r\nabsent:\r\n  {LIGHT}\r\n  {COPIES}\r\n  peer: none\r\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS.keys())
def test_the_section_is_found_however_it_is_written(before: str, after: str, grown: Contract) -> None:
    assert upgrading.upgraded(before, grown, "x.yaml").text == after


def test_a_file_that_cannot_be_edited_is_left_alone_and_says_what_to_add(grown: Contract) -> None:
    text = "contract: 1\nabsent: !!map\n  ? peer\n  : none\n".replace("!!map", "")

    with pytest.raises(NbxrtError, match="cannot be edited") as caught:
        upgrading.upgraded(text, grown, "x.yaml")

    assert WARP in caught.value.hint


def test_a_file_without_a_contract_is_refused(grown: Contract) -> None:
    with pytest.raises(NbxrtError, match="does not say which contract"):
        upgrading.upgraded("extends: cuda\n", grown, "x.yaml")


@pytest.mark.parametrize("number", ["99", "0", "true", "x", "1.0"])
def test_a_contract_that_there_is_not_is_refused_where_it_is_written(number: str, grown: Contract) -> None:
    with pytest.raises(DescriptionError) as caught:
        upgrading.upgraded(f"extends: cuda\ncontract: {number}\n", grown, "x.yaml")

    (fault,) = caught.value.diagnostics
    assert (fault.line, fault.path) == (2, "contract")


def test_the_command_says_that_there_is_nothing_to_do(python: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SHIPPED["host.yaml"], "utf-8")

    ended = python("-m", "nbxrt", "upgrade", "mine.yaml")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "mine.yaml is written for contract 1 already\n")
    assert file.read_text("utf-8") == SHIPPED["host.yaml"]
