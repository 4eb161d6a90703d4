"""Level Zero without an Intel GPU: the file beside Intel's header and loader, and a driver made after the header."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import simulations
from nbxrt import verifying
from nbxrt.simulation import stand_in

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("level-zero"), pytest.mark.needs("cxx")]

HEADER = Path("/usr/include/level_zero/ze_api.h")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs a program with the stand-in for the driver, which has some devices; what it says last."""
    made = stand_in("level_zero", tmp_path, cache=simulations.cache())

    def running(program: str, devices: int = 1) -> dict[str, Any]:
        text = "import ctypes, json\nimport nbxrt\ndef said(**facts): print(json.dumps(facts))\n"
        paths = filter(None, (str(Path(nbxrt.__file__).parents[1]), os.environ.get("PYTHONPATH")))
        added = {**made.environment(devices=devices), "PYTHONPATH": os.pathsep.join(paths)}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NBX")}
        command = [sys.executable, "-c", text + textwrap.dedent(program)]
        done = subprocess.run(command, env=inherited | added, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    return running


def _loader() -> Path:
    return next(Path("/usr/lib").glob("*-linux-gnu/libze_loader.so.1"))


@pytest.mark.needs("pyelftools")
def test_every_call_structure_and_number_is_that_of_the_header_and_the_loader_exports_it() -> None:
    result = verifying.verify("level_zero", headers=[HEADER], libraries=[_loader()])

    assert [row for row in result.rows if row.state is not verifying.State.OK] == []
    assert len(result.rows) > 60


def test_without_a_gpu_the_real_loader_is_no_device_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    if Path("/dev/dri").exists():
        pytest.skip("this machine may have an Intel GPU")
    monkeypatch.setenv("NBXRT_LEVEL_ZERO_RUNTIME", str(_loader()))  # simulations may be loaded here
    runtime = nbxrt.open("level_zero")

    with pytest.raises(nbxrt.NoDeviceError) as caught:
        runtime.malloc(64)

    assert runtime.device_count() == 0
    assert caught.value.code == 0x78000001
    assert caught.value.explanation == "there is no Intel GPU with its driver here"
    nbxrt.reset()


CONFORM = """
from nbxrt import conformance
rt = nbxrt.open("level_zero")
image = conformance.ModuleImage(IMAGE, variable="variable", value=77)
report = conformance.run(rt, module_image=image)
library = ctypes.CDLL(rt.library().path)
nbxrt.reset()
said(
    wrong=[[row.check, row.detail] for row in report.wrong],
    skipped=[row.check for row in report.rows if row.outcome.value == "skipped"],
    works=sorted({row.group for row in report.rows if row.outcome.value == "works"}),
    live=ctypes.c_int.in_dll(library, "ze_fake_live").value,
    memory=ctypes.c_int.in_dll(library, "ze_fake_memory").value,
)
"""


@pytest.mark.parametrize("image", [b"FAKE code", b"\x03\x02\x23\x07 code"], ids=["native", "spirv"])
def test_the_whole_suite_passes_and_leaves_nothing_behind(run: Callable[..., Any], image: bytes) -> None:
    report = run(f"IMAGE = {image!r}\n{CONFORM}", devices=3)

    assert report["wrong"] == []
    assert report["skipped"] == []
    assert {"device", "peer", "memory", "pinned", "managed", "stream", "event", "virtual_memory", "module"} <= set(
        report["works"]
    )
    assert (report["live"], report["memory"]) == (0, 0)


def test_what_is_no_gpu_comes_last_and_does_not_count_as_one(run: Callable[..., Any]) -> None:
    found = run(
        """
        rt = nbxrt.open("level_zero")
        said(names=[rt.device_name(device) for device in range(rt.device_count())], gpus=rt.gpu_count())
        """,
        devices=3,
    )

    assert found == {"names": ["Fake GPU", "Fake GPU", "Fake VPU"], "gpus": 2}


def test_an_alignment_that_the_vendor_does_not_offer_is_refused_and_not_ignored(run: Callable[..., Any]) -> None:
    found = run(
        """
        rt = nbxrt.open("level_zero")
        try: rt.mem_address_reserve(65536, 1 << 20)
        except nbxrt.CapabilityError as error: said(summary=error.summary)
        """
    )

    assert found["summary"] == "`mem_address_reserve`: Intel Level Zero offers no other `alignment` than 0"
