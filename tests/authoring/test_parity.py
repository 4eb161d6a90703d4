"""Every operation is answered in every shipped file: what the contract adds, or a file loses, is missed there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from nbxrt import descriptions
from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import inheritance, loading, reading, sources
from nbxrt.catalogue.sources import data_folder
from nbxrt.compiled.contract import CONTRACT as CONTRACT_VALUES
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = (data_folder("schema") / "operations.yaml").read_bytes().decode()
GROUPS = list(contracts.load().groups)
SHIPPED = sorted(file.name for file in data_folder("backends").iterdir() if file.name.endswith(".yaml"))
EXTENDING = [name for name in SHIPPED if b"\nextends:" in (data_folder("backends") / name).read_bytes()]


@pytest.mark.tier("all")
@pytest.mark.parametrize("group", GROUPS)
def test_an_operation_that_the_contract_adds_is_missed_unless_its_group_is_absent(group: str) -> None:
    later = f"\n  warp: {{group: {group}, says: Faster than light, takes: {{}}, gives: {{}}, c: []}}\n"
    grown = contracts.read((CONTRACT.rstrip() + later).encode())
    found = sources.find(environment={})
    known = contracts.load()

    for name in SHIPPED:
        source = found.select(name.removesuffix(".yaml"))
        is_answered = group in inheritance.whole(source, found, known).document.data.get("absent", {})
        faults = inheritance.whole(source, found, grown).faults

        assert [fault.message for fault in faults] == ([] if is_answered else ["missing operation `warp`"]), name


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", EXTENDING)
def test_what_a_file_that_extends_another_says_of_an_operation_is_not_lost_unnoticed(name: str, tmp_path: Path) -> None:
    """Validation cannot miss what the base answers: the compiled form, which has to be current, differs."""
    data = reading.read(data_folder("backends") / name, name).data
    committed = descriptions.built_in(data["name"])
    file = tmp_path / name
    for section in ("operations", "absent"):
        for operation in data.get(section, {}):
            rest = {key: value for key, value in data[section].items() if key != operation}
            file.write_text(yaml.safe_dump({**data, section: rest}, sort_keys=False), "utf-8")

            try:
                read = loading.given(str(file), CONTRACT_VALUES)
            except DescriptionError:
                continue

            assert any(read[key] != committed[key] for key in ("operations", "absent")), operation
