"""Every way to install nbxrt gives the same nbxrt: it works from another folder, and its own tests pass there."""

from __future__ import annotations

import os
import shutil
import sys
import venv
from pathlib import Path

import pytest

import nbxrt
from copies import run, use

pytestmark = [
    pytest.mark.checkout,
    pytest.mark.tier("all"),
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("packaging"),
]

_BIN = "Scripts" if sys.platform == "win32" else "bin"


class Environment:
    """A virtual environment of its own."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.folder = folder
        self.python = folder / _BIN / "python"
        self.program = folder / _BIN / "nbxrt"

    def install(self, *what: str | os.PathLike[str]) -> None:
        run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what, cwd=self.folder)


@pytest.fixture
def clean(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


def _expected(root: Path) -> dict[str, object]:
    return {
        "version": nbxrt.__version__,
        "described": sorted(file.stem for file in (root / "backends").glob("*.yaml")),
        "schema": "https://json-schema.org/draft/2020-12/schema",
        "copied": True,
    }


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_an_installed_distribution_works_from_another_folder(
    kind: str, clean: Environment, request: pytest.FixtureRequest, root: Path, tmp_path: Path
) -> None:
    clean.install(request.getfixturevalue(kind))

    answer = use(clean.python, cwd=tmp_path)

    assert Path(answer.pop("file")).is_relative_to(clean.folder)
    assert answer == _expected(root)
    assert "host" in run(clean.program, "list", cwd=tmp_path)


def test_an_editable_install_works_from_another_folder(clean: Environment, root: Path, tmp_path: Path) -> None:
    clean.install("--editable", root)

    answer = use(clean.python, cwd=tmp_path)

    assert answer.pop("file") == str(root / "nbxrt" / "__init__.py")
    assert answer == _expected(root)


@pytest.fixture
def elsewhere(unpacked: Path, tmp_path: Path) -> Path:
    """All that the tests read, without the package: whoever runs them there tests an installed nbxrt."""
    return Path(shutil.copytree(unpacked, tmp_path / "elsewhere", ignore=lambda _folder, _names: {"nbxrt"}))


def test_the_tests_pass_with_the_wheel_installed(clean: Environment, wheel: Path, elsewhere: Path, root: Path) -> None:
    clean.install(f"nbxrt[test] @ {wheel.as_uri()}")

    closing = run(clean.python, "-m", "pytest", "--numprocesses=auto", cwd=elsewhere, **_settings(root))

    assert f"from {clean.folder}" in closing


def test_the_tests_pass_with_the_wheel_as_a_zip(clean: Environment, wheel: Path, elsewhere: Path, root: Path) -> None:
    clean.install(f"nbxrt[test] @ {wheel.as_uri()}")
    run(clean.python, "-m", "pip", "uninstall", "--quiet", "--yes", "nbxrt", cwd=elsewhere)
    settings = _settings(root) | {"PYTHONPATH": str(wheel)}

    closing = run(clean.python, "-m", "pytest", "--numprocesses=auto", cwd=elsewhere, **settings)

    assert f"from {wheel}" in closing


def _settings(root: Path) -> dict[str, str]:
    """The fast tier, with the vendors' wheels of this checkout."""
    return {"VENV": str(root / os.environ.get("VENV", ".venv")), "NBXRT_TEST_TIER": "fast"}
