"""What importing and opening do not do: import what the user did not ask for."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import nbxrt
from copies import run

#: The folder, or the zip, that the nbxrt under test is imported from.
HOME = str(Path(nbxrt.__file__).parents[1])

SLOW = {
    "attrs", "attr", "yaml", "jsonschema", "importlib.metadata", "dataclasses", "typing", "numpy", "triton", "torch",
    "click", "rich",
}  # fmt: skip


REPORT = """
import json, sys
before = set(sys.modules)
sys.path.insert(0, sys.argv[1])
exec(sys.argv[2])
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def _imported_by(code: str, tmp_path: Path) -> set[str]:
    """The modules that some code adds to those of a bare Python."""
    return set(json.loads(run(sys.executable, "-I", "-S", "-c", REPORT, HOME, code, cwd=tmp_path)))


def test_importing_nbxrt_imports_nothing_else(tmp_path: Path) -> None:
    reading_a_zip = {"zipimport", "zlib"}

    assert _imported_by("import nbxrt", tmp_path) - reading_a_zip == {"nbxrt"}


@pytest.mark.parametrize(
    "code",
    [
        "import nbxrt; nbxrt.open('host').malloc(64)",
        "import nbxrt; nbxrt.detect()",
        "import nbxrt; nbxrt.reset()",
    ],
)
def test_the_way_to_a_built_in_backend_imports_nothing_slow(code: str, tmp_path: Path) -> None:
    assert _imported_by(code, tmp_path) & SLOW == set()


def test_asking_packages_for_backends_where_none_offers_any_reads_no_yaml(tmp_path: Path) -> None:
    code = "from nbxrt import descriptions; descriptions.with_packages()"

    assert _imported_by(code, tmp_path) & SLOW <= {"importlib.metadata", "typing"}


TRIPWIRE = "import os\nopen(os.environ['TRIPPED'], 'a').write(__name__ + '\\n')\n"

EVERY_WAY = """
import sys
import nbxrt

nbxrt.detect()
for force in (None, "host"):
    if force:
        import os
        os.environ["NBX_GPU_BACKEND"] = force
    try:
        nbxrt.gpu_backend()
        nbxrt.gpu_runtime().device_count()
    except nbxrt.BackendNotFoundError:
        assert force is None
nbxrt.open().malloc(64)
nbxrt.ensure_triton_device(0)
nbxrt.set_device(0)
nbxrt.reset()
assert not {"torch", "triton"} & set(sys.modules)
"""


def test_detection_and_opening_import_neither_torch_nor_triton(tmp_path: Path) -> None:
    site, tripped = tmp_path / "site", tmp_path / "tripped"
    for package in ("torch", "triton", "triton/backends/nvidia", "triton/backends/amd"):
        (site / package).mkdir(parents=True)
        (site / package / "__init__.py").write_text(TRIPWIRE)

    run(
        sys.executable,
        "-c",
        EVERY_WAY,
        cwd=tmp_path,
        PYTHONPATH=os.pathsep.join([str(site), HOME]),
        TRIPPED=str(tripped),
    )

    assert not tripped.exists()


def test_the_tripwire_itself_trips(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(TRIPWIRE)

    run(sys.executable, "-c", "import torch", cwd=tmp_path, PYTHONPATH=str(tmp_path), TRIPPED=str(tmp_path / "tripped"))

    assert (tmp_path / "tripped").read_text() == "torch\n"
