"""Modules of the catalogue stand in one order: none needs another that needs it, not even for a type."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

PACKAGE = "nbxrt.catalogue"


def imported(file: Path) -> set[str]:
    """The modules of the package that a module imports, anywhere in it."""
    froms = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    return {
        name
        for node in froms
        for name in ([each.name for each in node.names] if node.module == PACKAGE else [(node.module or "")[16:]])
        if (node.module or "").startswith(PACKAGE)
    }


def test_no_module_needs_itself_in_the_end(root: Path) -> None:
    files = {file.stem: file for file in (root / "nbxrt" / "catalogue").glob("*.py")}
    needs = {name: imported(file) & files.keys() for name, file in files.items()}

    for _step in needs:  # what is needed by what is needed, as far as it goes
        needs = {name: found.union(*(needs[each] for each in found)) for name, found in needs.items()}

    assert [name for name, found in needs.items() if name in found] == []
