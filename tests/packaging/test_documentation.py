"""The documentation says what the code does: examples run, and every variable, error and search step is explained."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt
from copies import run
from nbxrt import errors
from nbxrt.binding import search

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.checkout


def test_the_example_of_the_readme_runs_on_any_machine(root: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text("utf-8"), re.DOTALL)

    said = run(sys.executable, "-c", example, cwd=tmp_path, PYTHONPATH=str(root), NBX_GPU_BACKEND="host")

    assert said.endswith("first light\n")


def test_the_vendor_of_the_readme_lacks_nothing_but_the_operations_it_leaves_out(root: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (root / "README.md").read_text("utf-8"), re.DOTALL)
    file = tmp_path / "mygpu.yaml"
    file.write_text(example, "utf-8")

    faults = nbxrt.validate(file)

    assert {fault.reference for fault in faults} == {"missing-operation"}


def test_every_variable_in_the_code_is_documented(root: Path) -> None:
    read = {name for file in _sources(root) for name in _variables(file.read_text("utf-8"))}

    documented = set(_variables((root / "docs" / "environment.md").read_text("utf-8")))

    assert read - documented == set()


def test_every_documented_variable_is_in_the_code(root: Path) -> None:
    rows = re.findall(r"^\| `(NBX\w+)` \|", (root / "docs" / "environment.md").read_text("utf-8"), re.MULTILINE)

    code = "".join(file.read_text("utf-8") for file in _sources(root))

    assert rows
    assert [name for name in rows if name not in code] == []


def test_every_error_class_is_documented_by_its_reference(root: Path) -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.NbxrtError)}

    rows = dict(re.findall(r"^\| `([a-z-]+)` \| `(\w+)` \|", _page(root, "errors.md"), re.MULTILINE))

    assert rows == {kind.reference: kind.__name__ for kind in kinds}


def test_every_fault_of_a_file_is_documented_by_its_reference(root: Path) -> None:
    said = {word for file in (root / "nbxrt" / "catalogue").glob("*.py") for word in _references(file)}

    documented = set(re.findall(r"^### `([a-z0-9-]+)`", _page(root, "diagnostics.md"), re.MULTILINE))

    assert said - documented == set()


def test_every_search_step_and_verdict_is_documented(root: Path) -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", _page(root, "search.md"), re.MULTILINE))

    assert rows == {*search.STEPS, *_verdicts()}


def test_every_page_is_in_the_index(root: Path) -> None:
    pages = {file.name for file in (root / "docs").glob("*.md")} - {"README.md"}

    assert pages <= set(re.findall(r"[\w-]+\.md", _page(root, "README.md")))


def test_every_link_leads_somewhere(root: Path) -> None:
    texts = {file: file.read_text("utf-8") for file in [*root.glob("*.md"), *(root / "docs").glob("*.md")]}
    links = [(file, link) for file, text in texts.items() for link in re.findall(r"\]\(([^)#:]+)\)", text)]

    broken = [f"{file.name}: {link}" for file, link in links if not (file.parent / link).exists()]

    assert broken == []


def _page(root: Path, name: str) -> str:
    return (root / "docs" / name).read_text("utf-8")


def _sources(root: Path) -> Iterator[Path]:
    return (root / "nbxrt").rglob("*.py")


def _variables(text: str) -> Iterator[str]:
    """Names of variables of ours; a placeholder such as `NBXRT_<BACKEND>_<ROLE>` counts for itself."""
    yield from re.findall(r"\bNBX(?:RT)?(?:_[A-Z]+)+\b(?!_)", text)


def _references(file: Path) -> Iterator[str]:
    """What looks like the reference of a fault: words joined by hyphens that are values of their own in the code."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^[a-z]+(?:-[a-z]+)+$", node.value)


def _verdicts() -> set[str]:
    """The verdicts that the docstring of a candidate lists."""
    assert search.Candidate.__doc__
    listed = search.Candidate.__doc__.partition("Verdicts:")[2]
    return set(re.findall(r"`(\w+)`", listed))
