"""Processes that see one copy of nbxrt and nothing of this one, and what every copy must be able to do."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

#: Run by a copy's Python; prints what the copy can do as JSON.
USE = """
import ctypes, json
import nbxrt
from nbxrt.catalogue.sources import data_folder

backends = sorted(file.name[:-5] for file in data_folder("backends").iterdir() if file.name.endswith(".yaml"))
schema = json.loads((data_folder("schema") / "backend.schema.json").read_text("utf-8"))
runtime = nbxrt.open("host")
sent = ctypes.create_string_buffer(bytes(range(256)) * 16)
received = ctypes.create_string_buffer(len(sent))
address = runtime.malloc(len(sent))
runtime.memcpy(address, ctypes.addressof(sent), len(sent), "host_to_device")
runtime.memcpy(ctypes.addressof(received), address, len(sent), "device_to_host")
runtime.free(address)
print(json.dumps({
    "file": nbxrt.__file__,
    "version": nbxrt.__version__,
    "described": [nbxrt.describe(name).name for name in backends],
    "schema": schema["$schema"],
    "copied": received.raw == sent.raw,
}))
"""


def run(*command: str | os.PathLike[str], cwd: Path, **environment: str) -> str:
    """The standard output of a program that must succeed; no variable of this process steers its Python."""
    done = subprocess.run(
        command, cwd=cwd, env=_inherited() | environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def use(*python: str | os.PathLike[str], cwd: Path, **environment: str) -> dict[str, Any]:
    """What the copy of nbxrt that this Python imports can do."""
    answer: dict[str, Any] = json.loads(run(*python, "-c", USE, cwd=cwd, **environment))
    return answer


def _inherited() -> dict[str, str]:
    ours = ("COV", "NBX", "PYTEST", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
