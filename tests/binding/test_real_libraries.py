"""The vendors' own libraries, from their wheels, on a machine without a card: they open, and answer as they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.needs("wheels"),
    pytest.mark.skipif(sys.platform != "linux", reason="wheels of Linux"),
    pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is a card"),
]

PROGRAM = """
    import ctypes, json
    import nbxrt
    rt = nbxrt.open("cuda")
    contract = rt.contract["operations"]
    required = [name for name, entry in contract.items() if entry["required"]]
    of_runtime = [name for name in contract if rt.supports(name)]
    count = ctypes.c_int(-77)
    answers = {"device_count": getattr(rt, rt.table()["device_count"])(ctypes.byref(count))}
    for name, call in {"malloc": lambda: rt.malloc(64), "malloc_host": lambda: rt.malloc_host(64),
                       "set_device": lambda: rt.set_device(0), "stream_create": lambda: rt.stream_create(),
                       "get_device": lambda: rt.get_device()}.items():
        try: call()
        except nbxrt.NoDeviceError as error: answers[name] = error.code
    print(json.dumps({
        "path": rt.library().path, "version": rt.version(), "answers": answers, "count": count.value,
        "missing": [name for name in required if name not in of_runtime], "devices": rt.device_count(),
        "name": rt.error_name(2), "text": rt.error_text(2), "unknown": rt.error_name(12345),
    }))
"""


def ask(wheel: Path) -> dict[str, Any]:
    """What a fresh process with this wheel alone says."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("NBX", "CUDA", "CONDA", "LD_LIBRARY"))
    }
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(wheel), os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    answer: dict[str, Any] = json.loads(said)
    return answer


@pytest.mark.parametrize("major", [11, 12, 13])
def test_the_wheels_library_is_opened_and_has_every_required_symbol(wheels: Path, major: int) -> None:
    said = ask(wheels / f"cuda-{major}")

    assert Path(said["path"]).is_relative_to(wheels / f"cuda-{major}")
    assert said["missing"] == []
    assert said["version"][0] == major
    assert (said["name"], said["text"]) == ("cudaErrorMemoryAllocation", "out of memory")
    assert said["unknown"] == "unrecognized error code"


@pytest.mark.parametrize("major", [11, 12, 13])
def test_without_a_driver_every_call_says_so_and_nothing_is_read_that_was_not_written(wheels: Path, major: int) -> None:
    said = ask(wheels / f"cuda-{major}")

    assert said["answers"] == dict.fromkeys(
        ("device_count", "malloc", "malloc_host", "set_device", "stream_create", "get_device"), 35
    )
    assert said["count"] == -77
    assert said["devices"] == 0
