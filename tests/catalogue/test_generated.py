"""What is written from schema/ and backends/ and committed is what they say now."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbxrt.catalogue import compiling

pytestmark = pytest.mark.checkout


def test_no_generated_file_is_stale(root: Path) -> None:
    texts = compiling.written(root)

    stale = [path.relative_to(root).as_posix() for path, text in texts.items() if path.read_text("utf-8") != text]

    assert stale == []  # `make generate` writes them


def test_no_compiled_module_is_of_a_backend_that_is_gone(root: Path) -> None:
    compiled = {path.name for path in (root / "nbxrt" / "compiled").glob("*.py")}

    assert compiled <= {path.name for path in compiling.written(root)}
