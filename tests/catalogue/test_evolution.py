"""The contract grows, and files written before it did still open."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import nbxrt
from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import reading, validation
from nbxrt.catalogue.compiling import compile_backend, compile_contract
from nbxrt.catalogue.model import structure
from nbxrt.runtime import Runtime

pytestmark = [pytest.mark.checkout, pytest.mark.tier("all")]

NEWER = {
    "group": "memory",
    "since": 2,
    "says": "Copies rows of a pitch.",
    "takes": {"dst": "address", "src": "address", "nbytes": "nbytes"},
    "gives": {},
    "c": ["dst", "src", "nbytes"],
}


@pytest.fixture
def grown(root: Path) -> bytes:
    """A copy of the contract to which one operation was added."""
    data = yaml.safe_load((root / "schema/operations.yaml").read_text("utf-8"))
    data["contract"] = 2
    data["operations"]["memcpy_2d"] = NEWER
    return yaml.safe_dump(data, sort_keys=False).encode()


def host(root: Path, **changes: object) -> bytes:
    data = yaml.safe_load((root / "backends/host.yaml").read_text("utf-8"))
    return yaml.safe_dump(data | changes, sort_keys=False).encode()


def test_a_file_of_the_older_contract_is_valid_and_opens(root: Path, grown: bytes) -> None:
    document = reading.read(host(root), "host.yaml")
    plain = compile_contract(reading.read(grown, "operations.yaml").data)

    faults = validation.check(document, contracts.read(grown))
    runtime = Runtime(compile_backend(structure(document.data, file="host.yaml"), plain), plain)

    assert faults == ()
    address = runtime.malloc(16)
    runtime.free(address)
    assert not runtime.supports("memcpy_2d")
    with pytest.raises(nbxrt.CapabilityError, match="written for contract 1, which does not have it"):
        runtime.memcpy_2d(1, 2, 3)  # type: ignore[attr-defined]


def test_a_file_of_the_newer_contract_must_answer_the_new_operation(root: Path, grown: bytes) -> None:
    document = reading.read(host(root, contract=2), "host.yaml")

    faults = validation.check(document, contracts.read(grown))

    assert [(fault.reference, "memcpy_2d" in fault.message) for fault in faults] == [("missing-operation", True)]


def test_a_file_of_a_contract_that_is_not_there_yet_is_refused(root: Path, grown: bytes) -> None:
    document = reading.read(host(root, contract=3), "host.yaml")

    assert validation.check(document, contracts.read(grown))
