"""Whole programs: torch is never imported, no C compiler is started, a cache is shared. G02, G03, G04, G08."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SIMULATIONS = os.path.join(tempfile.gettempdir(), f"nbxrt-test-simulations-{os.getuid()}")
PROGRAM = Path(__file__).parent / "program.py"
TRIPWIRE = "import os\nopen(os.environ['TRIPPED'], 'a').write(__name__)\n"


#: A compiler that has no headers, and that is noticed when it is started.
COMPILER = "#!/bin/sh\necho compiler >> $TRIPPED\necho 'fatal error: Python.h: No such file' >&2\nexit 1\n"


@pytest.fixture
def start(tmp_path):
    """Starts the program with a torch that is noticed when it is imported; what it said, and whether it was."""
    for name in ("torch", "torch/_C"):
        (tmp_path / "site" / name).mkdir(parents=True)
        (tmp_path / "site" / name / "__init__.py").write_text(TRIPWIRE)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NBX", "TRITON"))}
    inherited |= {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), inherited.get("PYTHONPATH", "")]),
        "TRIPPED": str(tmp_path / "tripped"),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
        "SIMULATIONS": SIMULATIONS,
        "TRITON_DEFAULT_FP_FUSION": "1",
    }

    def started(vendor, threads=1, name="", rounds=1, processes=1, **environment):
        folder = tmp_path / f"{vendor}{name}"
        numbers = map(str, (threads, rounds, processes))
        command = [sys.executable, "-W", "error::UserWarning", PROGRAM, vendor, folder, *numbers]
        return subprocess.Popen(command, env=inherited | environment, stdout=subprocess.PIPE, text=True)

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


@pytest.mark.parametrize("compiler", ["/nonexistent", "cc"])
def test_a_compiler_that_cannot_work_is_not_asked(compiler, start, tmp_path):
    (tmp_path / "cuda").mkdir()
    for name in ("cc", "gcc", "clang") if compiler == "cc" else ():
        (tmp_path / "cuda" / name).write_text(COMPILER)
        (tmp_path / "cuda" / name).chmod(0o755)

    answer = said(start("cuda", LATER_CC=compiler))

    assert (answer["failures"], answer["launches"]) == ([], True)
    assert [name for name in answer["started"] if not name.startswith("ptxas")] == []


def test_processes_and_threads_share_a_cache(start):
    """G04: twenty times from an empty one."""
    processes = [start("cuda", threads=8, name=name, rounds=20, processes=8) for name in range(8)]

    answers = [said(process) for process in processes]

    assert [(answer["failures"], answer["launches"]) for answer in answers] == [([], True)] * 8
    assert {answer["compiled"] for answer in answers} == {22}  # once a round for all threads, and the autotuner's two


HOMES = """
import json, os, sys
sys.path[:0] = [{inside!r}, {launch!r}]
import binaries, nbxrt
from nbxrt.simulation import build
simulation = build("cuda", {folder!r}, cache={cache!r})
simulation.on_image(binaries.module_text)
for part, number in (("major", 9), ("minor", 0)):
    simulation.set_attribute("compute_capability_" + part, number)
os.chdir({empty!r})
if {stranger!r}:
    import pwd
    def getpwuid(uid): raise KeyError(uid)  # what it says of a user that the system does not know
    pwd.getpwuid = getpwuid
for name in ("HOME", "TRITON_HOME", "TRITON_CACHE_DIR"):
    os.environ.pop(name, None)
os.environ.update({given!r})
runtime = nbxrt.triton.install(simulation.open())
import kernels
before = sorted(os.listdir({empty!r}))
x = nbxrt.zeros(1024, device=nbxrt.Device(0, runtime=runtime))
try:
    kernels.add[(4,)](x, x, x, 1024, BLOCK=256)
    error = [None, ""]
except nbxrt.CapabilityError as failure:
    error = [failure.message, failure.hint]
runtime.sync()
print(json.dumps([before, sorted(os.listdir({empty!r})), len(simulation.launches()), *error]))
"""


@pytest.mark.parametrize(
    ("given", "stranger", "made", "says"),
    [
        ({"HOME": "{home}"}, False, ".triton", None),
        ({"HOME": "{home}", "TRITON_HOME": "{home}/mine"}, False, "mine", None),
        ({"HOME": "/sys", "TRITON_HOME": "{home}/mine"}, False, "mine", None),
        ({"HOME": "/sys", "TRITON_CACHE_DIR": "{home}/cache"}, False, "cache", None),
        ({"TRITON_CACHE_DIR": "{home}/cache"}, True, "cache", None),
        (
            {"HOME": "/sys"},
            False,
            "",
            r"Triton cannot compile with its cache in /sys/\.triton/cache: .*: \w.* \(E\w+\)",
        ),
        (
            {"HOME": "{home}", "TRITON_CACHE_DIR": ""},
            False,
            "",
            "Triton has no folder for its cache: TRITON_CACHE_DIR is ''",
        ),
        (
            {"HOME": "{home}", "TRITON_CACHE_DIR": "~/c"},
            False,
            "",
            "Triton has .*: TRITON_CACHE_DIR is '~/c', and Triton ",
        ),
        (
            {},
            True,
            "",
            r"Triton has no folder for its cache: there is no HOME, and the system knows no home of this user",
        ),
    ],
)
def test_a_cache_lies_where_it_is_wanted_else_one_error_says_which_variable_to_set(
    given, stranger, made, says, tmp_path
):
    home, empty = tmp_path / "home", tmp_path / "empty"
    home.mkdir(), empty.mkdir()
    text = HOMES.format(
        inside=str(PROGRAM.parent),
        launch=str(PROGRAM.parents[1]),
        folder=str(tmp_path / "cuda"),
        empty=str(empty),
        cache=SIMULATIONS,
        given={name: value.format(home=home) for name, value in given.items()},
        stranger=stranger,
    )

    answer = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    before, after, launches, error, hint = json.loads(answer.stdout)

    assert before == after == []
    if says is None:
        assert (error, launches) == (None, 1)
        assert [each.name for each in home.iterdir()] == [made]
    else:
        assert re.match(says, error)
        assert "TRITON_CACHE_DIR" in hint
        assert launches == 0
