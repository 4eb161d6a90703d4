"""What the tests that run beside a real Triton share. They run in an environment of a version's own, without torch."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent), str(Path(__file__).parents[2])]
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"  # 3.9 warns where it is not set

import binaries  # noqa: E402

import nbxrt  # noqa: E402
from nbxrt.simulation import build  # noqa: E402

#: What each vendor's simulated device is, so that Triton compiles for it.
SETTINGS = {"cuda": {"compute_capability_major": 9, "compute_capability_minor": 0}, "hip": {"warp_size": 64}}


def pytest_sessionstart():
    """Give Triton a cache of its own, in a run of these tests: others only look here for tests of theirs."""
    if "TRITON_CACHE_DIR" not in os.environ:
        os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="nbxrt-triton-")
        atexit.register(shutil.rmtree, os.environ["TRITON_CACHE_DIR"], ignore_errors=True)


def _stub(folder, source, *names):
    """A driver that remembers launches, under its file names."""
    library = folder / names[0]
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-Wl,-Bsymbolic",
        f"-Wl,-soname,{names[0]}",
        "-o",
        library,
        Path(__file__).parent / source,
    ]
    subprocess.run([*command, "-ldl"], check=True)
    for name in names[1:]:
        (folder / name).symlink_to(library)
    loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    loaded.stub_launch.restype = ctypes.c_char_p
    loaded.stub_launches.restype = loaded.stub_torn.restype = ctypes.c_long
    return loaded


@pytest.fixture(scope="session")
def stub(tmp_path_factory):
    """For Triton's own launcher of NVIDIA's kernels, and for counting."""
    folder = tmp_path_factory.mktemp("cuda")
    os.environ["TRITON_LIBCUDA_PATH"] = str(folder)
    return _stub(folder, "stub_cuda.c", "libcuda.so.1", "libcuda.so")  # 3.5 links by the second name


@pytest.fixture(scope="session")
def hip_stub(tmp_path_factory):
    """For Triton's own launcher of AMD's kernels."""
    folder = tmp_path_factory.mktemp("hip")
    os.environ["TRITON_LIBHIP_PATH"] = str(folder / "libamdhip64.so")
    return _stub(folder, "stub_hip.c", "libamdhip64.so")


@pytest.fixture
def simulate(tmp_path):
    """Builds a simulated vendor whose devices take real binaries, and installs nbxrt in Triton on it."""
    made = []

    def simulated(name="cuda", **options):
        cache = Path(tempfile.gettempdir()) / f"nbxrt-test-simulations-{os.getuid()}"
        simulation = build(name, tmp_path / f"simulation-{len(made)}", cache=cache, **options)
        simulation.on_image(binaries.module_text)
        for attribute, value in SETTINGS[name].items():
            simulation.set_attribute(attribute, value)
        simulation.set_architecture("gfx942:sramecc+:xnack-")
        made.append(simulation)
        runtime = simulation.open()
        nbxrt.triton.install(runtime)
        return simulation, runtime

    yield simulated
    nbxrt.triton.uninstall()
