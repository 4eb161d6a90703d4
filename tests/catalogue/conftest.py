"""What the tests of the catalogue share: the contract, a complete file made of it, and its faults."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import reading, validation

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.catalogue.contract import Contract, Words
    from nbxrt.catalogue.diagnostics import Diagnostic

ABSENT = "the contract has no usual order for it"


@pytest.fixture(scope="session")
def contract() -> Contract:
    return contracts.load()


@pytest.fixture(scope="session")
def whole(contract: Contract) -> dict[str, Any]:
    """A file that binds every operation with a usual C order, one a symbol, and gives a reason for the others."""
    role = {
        "names": [{"major": 1, "linux": "libtoy.so.1"}],
        "search": ["system"],
        "status": {"success": 0, "kinds": {word: code for code, word in enumerate(contract.errors, 1)}},
    }
    bound = {name for name, operation in contract.operations.items() if operation.c is not None}
    return {
        "contract": contract.number,
        "name": "toy",
        "title": "Toy",
        "abi": "c",
        "platforms": ["linux"],
        "priority": 50,
        "libraries": {name: copy.deepcopy(role) for name in ("runtime", "driver", "management", "collectives")},
        "enums": {words.name: _numbers(words) for words in _used_words(contract, bound)},
        "operations": {name: f"toy_{name}" for name in contract.operations if name in bound},
        "absent": {name: ABSENT for name in contract.operations if name not in bound},
    }


def _used_words(contract: Contract, bound: set[str]) -> list[Words]:
    types = {
        each.type for name in bound for each in (*contract.operations[name].takes, *contract.operations[name].gives)
    }
    return [*(words for name, words in contract.enums.items() if name in types), *contract.flags.values()]


def _numbers(words: Words) -> dict[str, int]:
    return {word: 1 << index for index, word in enumerate(words.words)}


@pytest.fixture
def toy(whole: dict[str, Any]) -> dict[str, Any]:
    """A copy of the complete file that a test may change."""
    return copy.deepcopy(whole)


@pytest.fixture(scope="session")
def faults(contract: Contract) -> Callable[[Any], tuple[Diagnostic, ...]]:
    """The faults of a file: text, or data that is written as YAML first."""

    def found(file: Any) -> tuple[Diagnostic, ...]:
        text = file if isinstance(file, str) else yaml.safe_dump(file, sort_keys=False, width=1000)
        scanned = reading.scan(text.encode(), "toy.yaml")
        if scanned.document is None or scanned.diagnostics:
            return scanned.diagnostics
        return validation.check(scanned.document, contract)

    return found
