"""Every operation is answered in every shipped file: what the contract adds is missed there, whatever its group."""

from __future__ import annotations

import pytest

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import reading, validation
from nbxrt.catalogue.sources import data_folder

CONTRACT = (data_folder("schema") / "operations.yaml").read_bytes().decode()
GROUPS = list(contracts.load().groups)
SHIPPED = sorted(file.name for file in data_folder("backends").iterdir() if file.name.endswith(".yaml"))
#: One that extends another has what that one answers.
WHOLE = [name for name in SHIPPED if b"\nextends:" not in (data_folder("backends") / name).read_bytes()]


@pytest.mark.tier("all")
@pytest.mark.parametrize("group", GROUPS)
def test_an_operation_that_the_contract_adds_is_missed_unless_its_group_is_absent(group: str) -> None:
    later = f"\n  warp: {{group: {group}, says: Faster than light, takes: {{}}, gives: {{}}, c: []}}\n"
    grown = contracts.read((CONTRACT.rstrip() + later).encode())

    for name in WHOLE:
        document = reading.read(data_folder("backends") / name, name)
        faults = validation.check(document, grown)

        is_answered = group in document.data.get("absent", {})
        assert [fault.message for fault in faults] == ([] if is_answered else ["missing operation `warp`"]), name
