"""yaml-language-server with the shipped schema: the same verdicts as `nbxrt validate`, completion, and hover."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from language_server import LanguageServer
from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbxrt.catalogue.contract import Contract

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("npm", "node"), pytest.mark.checkout]

#: It judges what is merged also where a key of the mapping's own goes before it.
MISJUDGED = {"own_value_over_a_wrong_merged_one"}

VERSION = "1.25.0"
CASES = Path(__file__).parents[1] / "catalogue" / "cases"

#: What the server understands otherwise. It reads YAML 1.2 with JavaScript's numbers.
MISSED = {
    "comments_only",
    "leading_zero",
    "merge_key_in_quotes",
    "merge_of_no_mapping",
    "number_with_a_fraction",
    "octal_number",
    "old_yaml",
    "tab_before_a_comment",
    "tag",
}


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[LanguageServer]:
    folder = Path(tempfile.gettempdir()) / f"nbxrt-test-language-server-{VERSION}-{os.getuid()}"
    program = folder / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
    if not program.exists():
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
        subprocess.run([*install, f"yaml-language-server@{VERSION}"], check=True, timeout=100)
    with contextlib.closing(LanguageServer(program, root / "schema" / "backend.schema.json")) as running:
        yield running


def test_the_verdict_on_a_file_is_the_same(server: LanguageServer) -> None:
    """For every fault that a JSON Schema can express; of those of meaning it sees none."""
    kinds = ("valid", "invalid/form", "invalid/merging", "invalid/meaning")
    files = [file for kind in kinds for file in sorted((CASES / kind).glob("*.yaml"))]

    refused = {file for file, faults in server.faults(files).items() if faults}

    assert len(files) >= 60
    misjudged = {file for file in refused if file.stem in MISJUDGED}
    assert refused - misjudged == set((CASES / "invalid" / "form").glob("*.yaml"))
    assert {file.stem for file in misjudged} == MISJUDGED


def test_the_shipped_files_have_no_fault(server: LanguageServer) -> None:
    files = [Path(str(file)) for file in data_folder("backends").iterdir() if file.name.endswith(".yaml")]

    assert {file: faults for file, faults in server.faults(files).items() if faults} == {}


def test_what_only_nbxrt_sees_of_the_way_a_file_is_written(server: LanguageServer) -> None:
    files = sorted((CASES / "invalid" / "reading").glob("*.yaml"))

    accepted = {file.stem for file, faults in server.faults(files).items() if not faults}

    assert accepted == MISSED


def test_hovering_over_an_operation_shows_the_contract(server: LanguageServer, contract: Contract) -> None:
    text = (data_folder("backends") / "cuda.yaml").read_bytes().decode().partition("\n")[2] + "unheard_of: 1\n"
    lines = text.splitlines()
    for name in ("malloc", "mem_get_info", "monitor_memory_total", "all_reduce"):
        line = next(number for number, line in enumerate(lines) if line.startswith(f"  {name}:"))

        shown = server.hover(Path("/hover.yaml"), text, line, 4).replace("\\", "").replace("`", "")

        assert contract.operations[name].says.replace("`", "") in shown


def test_operations_and_keys_are_completed(server: LanguageServer, contract: Contract) -> None:
    operations = server.completions(Path("/one.yaml"), "contract: 1\noperations:\n  \n", 2, 2)
    keys = server.completions(Path("/two.yaml"), "libraries:\n  runtime:\n    \n", 2, 4)

    assert set(contract.operations) <= set(operations)
    assert {"names", "search", "status", "version"} <= set(keys)
