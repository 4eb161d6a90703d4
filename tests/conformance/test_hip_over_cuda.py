"""scripts/hip_over_cuda.c, by which the file of HIP runs on NVIDIA's cards, over a simulated CUDA."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nbxrt import conformance

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.simulation import Simulation

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform != "linux", reason="it is for Linux"),
]


@pytest.mark.parametrize("version", [pytest.param("12", marks=pytest.mark.tier("all")), "13"])
def test_the_file_of_hip_runs_on_the_functions_of_cuda(
    simulate: Callable[..., Simulation], version: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = simulate("cuda", version)
    monkeypatch.setenv("HIP_OVER_CUDA_RUNTIME", str(cuda.paths["runtime"]))
    monkeypatch.setenv("HIP_OVER_CUDA_DRIVER", str(cuda.paths["driver"]))
    library = tmp_path / "libamdhip64.so.6"
    source = str(root / "scripts" / "hip_over_cuda.c")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", str(library), "-ldl"], check=True)

    report = conformance.run(conformance.opened("hip", library), ["device", "memory", "managed", "graph", "ipc"])

    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.counts["works"] > 30
