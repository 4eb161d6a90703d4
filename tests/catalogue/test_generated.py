"""What is written from schema/ and backends/ and committed is what they say now."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbxrt.catalogue import compiling

pytestmark = pytest.mark.checkout


@pytest.fixture(scope="module")
def texts(root: Path) -> dict[Path, str]:
    return compiling.written(root)


def test_no_generated_file_is_stale(root: Path, texts: dict[Path, str]) -> None:
    stale = [path.relative_to(root).as_posix() for path, text in texts.items() if path.read_text("utf-8") != text]

    assert stale == []  # `make generate` writes them


def test_no_compiled_module_is_of_a_backend_that_is_gone(root: Path, texts: dict[Path, str]) -> None:
    compiled = {path.name for path in (root / "nbxrt" / "compiled").glob("*.py")}

    assert compiled <= {path.name for path in texts}
