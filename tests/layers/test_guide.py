"""The guide's examples are what it says they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt import descriptions

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.checkout


@pytest.fixture
def examples(root: Path, tmp_path: Path) -> list[Path]:
    """The YAML files of the guide, in order."""
    texts = re.findall(r"```yaml\n(.*?)```", (root / "docs" / "layers.md").read_text("utf-8"), re.DOTALL)
    files = [tmp_path / f"example-{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, "utf-8")
    return files


def test_every_example_is_a_right_file(examples: list[Path]) -> None:
    assert len(examples) >= 4
    for file in examples:
        assert nbxrt.validate(file) == (), file.read_text("utf-8")


def test_the_first_overrides_one_symbol_in_three_lines(examples: list[Path]) -> None:
    assert len(examples[0].read_text("utf-8").splitlines()) == 3
    assert descriptions.load(examples[0])["name"] == "cuda"
    assert descriptions.load(examples[0])["operations"]["malloc"][1][0][4][0] == ("myMalloc",)


def test_the_operation_that_is_turned_off_has_its_reason(examples: list[Path]) -> None:
    assert descriptions.load(examples[2])["absent"]["malloc_async"][0] == "the pool leaks on our driver"
