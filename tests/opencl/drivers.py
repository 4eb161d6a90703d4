"""Real OpenCL drivers, each alone in a process of its own: a loader reads its list of drivers once a process."""

from __future__ import annotations

import ctypes.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbxrt
from libraries import make_library

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
#: The environment of Intel's runtime, which scripts/setup-opencl.sh makes.
INTEL = ROOT / os.environ.get("VENV", ".venv") / "intel-opencl"
_SYSTEM = Path("/etc/OpenCL/vendors")

#: Adds two vectors: `add(a, b, out, n)`.
SOURCE = b"""
__kernel void add(__global const uint *a, __global const uint *b, __global uint *out, uint n) {
    size_t i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}
"""

_PRELUDE = """
import ctypes, json, sys
import nbxrt
from nbxrt import errors
SOURCE = {source!r}
def said(**facts): print(json.dumps(facts))
"""


def _limited(folder: Path, to: str) -> dict[str, str]:
    """The variables that put a layer before the drivers, under which they have less: `coarse` or `buffers`."""
    here = Path(__file__).parent
    flags = ("-DCL_TARGET_OPENCL_VERSION=300", f"-I{here}")
    layer = make_library(folder / f"{to}.so", (here / f"{to}.c").read_text("utf-8"), flags=flags)
    loader = ctypes.util.find_library("OpenCL")  # Debian's: the one of Intel's wheel takes no layer
    found = next(iter(Path("/usr/lib").glob(f"*-linux-gnu/{loader}")))
    return {"OPENCL_LAYERS": str(layer), "NBXRT_OPENCL_RUNTIME": str(found)}


def environment(driver: str, folder: Path) -> dict[str, str]:
    """The variables under which a loader sees one driver, `both`, or `none`; `pocl-coarse` is one with a layer."""
    driver, _dash, layer = driver.partition("-")
    icd = folder / f"vendors-{driver}"
    icd.mkdir(exist_ok=True)
    added = {"OCL_ICD_VENDORS": f"{icd}/", "POCL_CACHE_DIR": str(folder / "cache")}
    if driver in ("pocl", "both"):
        (icd / "pocl.icd").write_text((_SYSTEM / "pocl.icd").read_text("ascii"), "ascii")
    if driver in ("intel", "both"):
        library = INTEL / "lib" / "libintelocl.so"
        (icd / "intel.icd").write_text(f"{library}\n", "ascii")  # the one in the wheel has a placeholder for the path
        added["LD_LIBRARY_PATH"] = str(INTEL / "lib")
    added |= _limited(folder, layer) if layer else {}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NBX", "OCL_", "LD_LIB"))}
    paths = filter(None, (str(Path(nbxrt.__file__).parents[1]), os.environ.get("PYTHONPATH")))
    return {**inherited, **added, "PYTHONPATH": os.pathsep.join(paths)}


def run(driver: str, folder: Path, program: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a program says that runs with one driver: the facts of its last `said`; `more` are variables beside."""
    text = _PRELUDE.format(source=SOURCE) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text], env={**environment(driver, folder), **(more or {})},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
