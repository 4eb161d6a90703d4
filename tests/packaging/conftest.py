"""The distributions under test, each built once in a run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from copies import run


@pytest.fixture(scope="session")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the checkout."""
    return _build(root, tmp_path_factory.mktemp("wheel"), "--wheel")


@pytest.fixture(scope="session")
def sdist(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution built from the checkout."""
    return _build(root, tmp_path_factory.mktemp("sdist"), "--sdist")


@pytest.fixture(scope="session")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the source distribution unpacks to."""
    folder = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(sdist, folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


@pytest.fixture(scope="session")
def wheel_of_sdist(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the source distribution."""
    return _build(unpacked, tmp_path_factory.mktemp("wheel-of-sdist"), "--wheel")


def _build(source: Path, folder: Path, kind: str) -> Path:
    """Build without a network: the build backend is among the tests' requirements."""
    run(sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", folder, source, cwd=folder)
    (built,) = folder.iterdir()
    return built
