"""Whole programs: torch is never imported, no C compiler is started, a cache is shared. G02, G04, G08."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "program.py"
TRIPWIRE = "import os\nopen(os.environ['TRIPPED'], 'a').write(__name__)\n"


@pytest.fixture
def start(tmp_path):
    """Starts the program with a torch that is noticed when it is imported; what it said, and whether it was."""
    for name in ("torch", "torch/_C"):
        (tmp_path / "site" / name).mkdir(parents=True)
        (tmp_path / "site" / name / "__init__.py").write_text(TRIPWIRE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NBX", "TRITON"))}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), environment.get("PYTHONPATH", "")]),
        "TRIPPED": str(tmp_path / "tripped"),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }

    def started(vendor, threads=1, name=""):
        folder = tmp_path / f"{vendor}{name}"
        command = [sys.executable, "-W", "error::UserWarning", PROGRAM, vendor, folder, str(threads)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    yield started
    assert not (tmp_path / "tripped").exists()


def said(process):
    output, _none = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(output)


@pytest.mark.parametrize("vendor", ["cuda", "hip"])
def test_torch_is_not_imported_and_no_compiler_of_c_is_started(vendor, start):
    answer = said(start(vendor))

    assert answer["failures"] == []
    assert answer["launches"]
    assert answer["torch"] is False
    assert answer["fallbacks"] == {}
    assert [name for name in answer["started"] if not name.startswith("ptxas")] == []


def test_processes_and_threads_share_a_cache(start):
    processes = [start("cuda", threads=8, name=name) for name in range(8)]

    answers = [said(process) for process in processes]

    assert [answer["failures"] for answer in answers] == [[]] * 8
    assert {answer["compiled"] for answer in answers} == {3}  # one for the threads together, and the autotuner's two
