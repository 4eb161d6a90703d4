"""What the wheel and the source distribution hold."""

from __future__ import annotations

import email
import re
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import nbxrt
from copies import use

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [pytest.mark.checkout, pytest.mark.xdist_group("packaging")]

_LEFT_BEHIND = {"__pycache__", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def test_the_wheel_holds_every_file_of_the_package_and_its_data_and_nothing_else(wheel: Path, root: Path) -> None:
    data = {f"nbxrt/{file}" for folder in ("backends", "schema") for file in _files(root, folder)}

    packed = {name for name in _members(wheel) if ".dist-info/" not in name}

    assert packed == _files(root, "nbxrt") | data


def test_the_wheel_is_pure_python_for_every_platform(wheel: Path) -> None:
    assert wheel.name == f"nbxrt-{nbxrt.__version__}-py3-none-any.whl"


def test_the_wheel_tells_checkers_that_it_is_typed(wheel: Path) -> None:
    assert {"nbxrt/py.typed", "nbxrt/operations.pyi"} <= set(_members(wheel))


def test_the_wheel_states_its_licence_its_python_and_what_it_depends_on(wheel: Path, root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]

    metadata = email.message_from_bytes(_members(wheel)[f"nbxrt-{nbxrt.__version__}.dist-info/METADATA"])

    needed = {re.sub("[<>=~].*", "", line) for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert metadata["Version"] == nbxrt.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == project["requires-python"] == ">=3.10"
    assert {each.lower() for each in needed} == {"pyyaml", "jsonschema", "attrs", "click", "rich"}


def test_the_source_distribution_holds_every_file_of_the_repository(sdist: Path, root: Path) -> None:
    folders = ("backends", "docs", "nbxrt", "schema", "scripts", "tests")
    single = {"CHANGELOG.md", "LICENSE", "Makefile", "README.md", "pyproject.toml", ".ci/run"}

    with tarfile.open(sdist) as archive:
        packed = {str(PurePosixPath(*PurePosixPath(each.name).parts[1:])) for each in archive if each.isfile()}

    assert single | {file for folder in folders for file in _files(root, folder)} <= packed


def test_a_wheel_built_from_the_source_distribution_is_the_same_wheel(wheel: Path, wheel_of_sdist: Path) -> None:
    assert _members(wheel_of_sdist) == _members(wheel)


def test_the_wheel_works_as_a_zip_on_the_path(wheel: Path, root: Path, tmp_path: Path) -> None:
    answer = use(sys.executable, cwd=tmp_path, PYTHONPATH=str(wheel))

    assert answer == {
        "file": str(wheel / "nbxrt" / "__init__.py"),
        "version": nbxrt.__version__,
        "described": sorted(file.stem for file in (root / "backends").glob("*.yaml")),
        "schema": "https://json-schema.org/draft/2020-12/schema",
        "copied": True,
    }


def _members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _files(root: Path, folder: str) -> set[str]:
    """The files of a folder as paths below the root, without what Python and the tools leave there."""
    files = (path.relative_to(root) for path in (root / folder).rglob("*") if path.is_file())
    return {file.as_posix() for file in files if not _LEFT_BEHIND & set(file.parts)}
