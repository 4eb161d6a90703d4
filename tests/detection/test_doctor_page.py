"""docs/doctor.md says what the doctor says."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform != "linux", reason="the machines of the page are of Linux"),
    pytest.mark.skipif(
        any(find_spec(name) for name in ("nvidia", "_rocm_sdk_core", "triton"))
        or Path(sys.prefix, "conda-meta").exists(),
        reason="this Python has vendors' libraries, which the doctor would find on each of the page's machines",
    ),
]


@pytest.mark.tier("all")
def test_the_transcripts_are_current(root: Path) -> None:
    command = [sys.executable, str(root / "scripts" / "doctor_transcripts.py"), "--check"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_every_machine_is_told_what_to_do_in_at_most_three_sentences(root: Path) -> None:
    page = (root / "docs" / "doctor.md").read_text("utf-8")

    advice = [part.split("```")[0] for part in page.split("\nWhat to do\n")[1:]]

    assert len(advice) == 6
    assert all(1 <= each.count("  -  ") <= 3 for each in advice)
