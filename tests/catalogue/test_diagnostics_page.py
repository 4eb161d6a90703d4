"""docs/diagnostics.md explains every reference that the code can give, with an example that is what the code says.

After a change of wording, when cases/ is current:

    NBXRT_UPDATE_CASES=1 python -m pytest tests/catalogue/test_diagnostics_page.py
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from nbxrt.catalogue.references import STAGES, stage

pytestmark = pytest.mark.checkout

CASES = Path(__file__).parent / "cases" / "invalid"
SECTION = re.compile(r"(?m)^### `([a-z-]+)`\n(.*?)(?=^##|\Z)", re.DOTALL)
EXAMPLE = re.compile(r"```text\n(error\[([a-z-]+)\]:.*?\n  --> (\w+)\.yaml.*?)\n```", re.DOTALL)
KNOWN = [reference for references in STAGES.values() for reference in references]


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "diagnostics.md").read_text("utf-8")


def told(stem: str) -> dict[str, list[str]]:
    """The faults of the case of that name, as they are told, by reference."""
    found: dict[str, list[str]] = {}
    for file in CASES.glob(f"*/{stem}.txt"):
        for block in re.split(r"\n\n(?=error\[)", file.read_text("utf-8").rstrip("\n")):
            found.setdefault(block[len("error[") : block.index("]")], []).append(block)
    return found


def references_in(file: Path) -> set[str]:
    """The values in a module that look like references, and those that it gives to what makes a fault."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(re.findall(r"^[a-z]+(?:-[a-z]+)+$", node.value))
    return found - {"utf-8"}


def test_every_reference_has_its_section_in_the_order_of_the_stages(page: str) -> None:
    assert [reference for reference, _text in SECTION.findall(page)] == KNOWN


def test_no_reference_stands_twice() -> None:
    assert len(set(KNOWN)) == len(KNOWN)
    assert {stage(reference) for reference in KNOWN} == set(STAGES)


def test_every_reference_that_the_code_can_give_is_known_and_every_known_one_is_given(root: Path) -> None:
    files = [file for file in (root / "nbxrt" / "catalogue").glob("*.py") if file.name != "references.py"]
    code = "".join(file.read_text("utf-8") for file in files)

    given = set().union(*map(references_in, files))

    assert given - set(KNOWN) - {"utf-16-le", "utf-16-be"} == set()
    composed = {"unused-struct", "unused-enum"}
    assert [each for each in KNOWN if f'"{each}"' not in code and each not in composed] == []


def test_every_example_is_what_the_case_of_its_name_says(page: str, root: Path) -> None:
    wanted = page
    for example, reference, stem in EXAMPLE.findall(page):
        said = told(stem).get(reference, [])
        assert said, f"no case `{stem}` says `{reference}`"
        if example not in said:
            wanted = wanted.replace(example, said[0])

    if os.environ.get("NBXRT_UPDATE_CASES"):
        (root / "docs" / "diagnostics.md").write_text(wanted, "utf-8")
    assert page == wanted


def test_every_reference_that_a_case_shows_has_an_example(page: str) -> None:
    shown = {reference for file in CASES.glob("*/*.txt") for reference in told(file.stem)}

    bare = [reference for reference, text in SECTION.findall(page) if reference in shown and "```text" not in text]

    assert bare == []


def test_every_section_says_what_it_means_and_what_mends_it(page: str) -> None:
    for reference, text in SECTION.findall(page):
        paragraphs = [each for each in EXAMPLE.sub("", text).split("\n\n") if each.strip()]
        assert len(paragraphs) >= 2, reference
