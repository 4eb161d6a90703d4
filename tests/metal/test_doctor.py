"""`nbxrt doctor` compares a file's messages with the live classes of the system, here those of the stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import objective_c

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from objective_c import Stub

pytestmark = [
    pytest.mark.skipif(not objective_c.IS_FOR_THIS_MACHINE, reason=objective_c.FOR_WHICH),
    pytest.mark.needs("gobjc"),
]

#: The backend for a system that has the stand-in in place of the framework.
HERE = """
contract: 1
extends: metal
name: here
platforms: [linux]
libraries:
  runtime: {{names: [{{linux: {framework}}}], loads_first: null}}
  driver: {{names: [{{linux: {runtime}}}]}}
{more}
"""


@pytest.fixture
def doctor(compiled_stub: Stub, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Runs the doctor on that system; its exit code and what it says."""

    def run(*options: str, more: str = "") -> tuple[int, str]:
        text = HERE.format(framework=compiled_stub.framework, runtime=compiled_stub.runtime, more=more)
        (tmp_path / "here.yaml").write_text(text, "utf-8")
        environment = {**os.environ, "NBXRT_BACKEND_PATH": str(tmp_path), "COLUMNS": "200"}
        command = [sys.executable, "-m", "nbxrt", "doctor", *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    return run


def _backend(said: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in json.loads(said)["backends"] if each["name"] == "here")
    return found


def test_messages_that_the_system_answers_as_described_are_counted(doctor: Callable[..., tuple[int, str]]) -> None:
    code, said = doctor("--json")
    found = _backend(said)

    assert (found["library"], found["usable"]) == ("yes", "yes")
    assert found["messages"]["differences"] == []
    assert found["messages"]["compared"] > 40
    assert code == 0


def test_a_difference_is_a_line_and_what_to_do(doctor: Callable[..., tuple[int, str]]) -> None:
    more = 'messages:\n  NSArray: {count: "I", "objectAtIndex:": "@Q"}\n  Missing: {name: "@"}'
    code, said = doctor(more=more)

    assert code == 1
    assert "`count` of `NSArray` is `Q16@0:8` here, and `I` in the file" in said
    assert "there is no class or protocol `Missing` for `name`" in said
    assert "Report that the file of `here` does not fit this system" in said
