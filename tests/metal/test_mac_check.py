"""scripts/mac_check.py, run on the stand-in: what it does on a Mac, as far as that can be seen here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import objective_c

if TYPE_CHECKING:
    from objective_c import Stub

pytestmark = [
    pytest.mark.skipif(not objective_c.IS_FOR_THIS_MACHINE, reason=objective_c.FOR_WHICH),
    pytest.mark.needs("gobjc"),
    pytest.mark.checkout,
    pytest.mark.tier("all"),
]

SCRIPT = Path(__file__).parents[2] / "scripts" / "mac_check.py"


def test_everything_works_and_is_written_down(compiled_stub: Stub, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, str(SCRIPT), "--json", str(report)]

    done = subprocess.run(
        command, env={**os.environ, **compiled_stub.environment()}, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(report.read_text("utf-8"))
    assert found["counts"]["wrong"] == 0
    assert found["machine"]["device"] == "0 of 1: Stub M1"
    assert {row["outcome"] for row in found["rows"] if row["group"] == "fact"} == {"works"}
    assert done.stdout.rstrip().endswith("0 wrong")
