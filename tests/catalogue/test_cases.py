"""Every file in cases/ is a test: the valid ones have no fault, the others exactly those in the text beside them.

`invalid/form` is what a JSON Schema can see, so other validators refuse it too; `invalid/meaning` is what only nbxrt
sees, so they accept it; `invalid/reading` is what YAML readers disagree about; `invalid/merging` is what a schema sees
once merge keys have merged, so that yaml-language-server, which does that in its own way, misses it. After a change of
wording:

    NBXRT_UPDATE_CASES=1 python -m pytest tests/catalogue/test_cases.py
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from nbxrt.catalogue import inheritance, reading, schema
from nbxrt.catalogue.diagnostics import rendered

if TYPE_CHECKING:
    from nbxrt.catalogue.contract import Contract

CASES = Path(__file__).parent / "cases"
VALID = sorted((CASES / "valid").glob("*.yaml"))
INVALID = sorted((CASES / "invalid").glob("*/*.yaml"))
FORM = sorted(file for kind in ("form", "merging") for file in (CASES / "invalid" / kind).glob("*.yaml"))
MEANING = sorted((CASES / "invalid" / "meaning").glob("*.yaml"))


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def described(path: Path, contract: Contract) -> str:
    found = inheritance.validate_file(path, contract)
    text = rendered(found).replace(str(path), path.name) + "\n"
    return re.sub(r"(backends/\w+\.yaml):\d+:\d+", r"\1:LINE:COLUMN", text)  # where a shipped file says it may change


@pytest.mark.parametrize("path", VALID, ids=name)
def test_a_valid_file_has_no_fault(path: Path, contract: Contract) -> None:
    assert inheritance.validate_file(path, contract) == ()


@pytest.mark.parametrize("path", INVALID, ids=name)
def test_an_invalid_file_has_the_faults_beside_it(path: Path, contract: Contract) -> None:
    """F12, F18: places, paths, what was expected and found, and the nearest known name."""
    expected = path.with_suffix(".txt")

    found = described(path, contract)

    if os.environ.get("NBXRT_UPDATE_CASES"):
        expected.write_text(found, "utf-8")
    assert found == expected.read_text("utf-8")


@pytest.mark.parametrize("path", INVALID, ids=name)
def test_a_fault_is_told_in_fewer_than_ten_lines_and_in_order_of_line(path: Path, contract: Contract) -> None:
    """F12."""
    found = inheritance.validate_file(path, contract)

    assert all(len(fault.render().splitlines()) < 10 for fault in found)
    assert [fault.line for fault in found] == sorted(fault.line for fault in found)


@pytest.fixture(scope="module")
def plain_validator(contract: Contract) -> Any:
    """The schema with a validator that nothing was added to."""
    return Draft202012Validator(schema.shipped(contract))


@pytest.mark.parametrize("path", [*VALID, *MEANING], ids=name)
def test_the_schema_alone_accepts_what_is_right_in_form(path: Path, plain_validator: Any) -> None:
    assert plain_validator.is_valid(reading.read(path, path.name).data)


@pytest.mark.parametrize("path", FORM, ids=name)
def test_the_schema_alone_refuses_what_is_wrong_in_form(path: Path, plain_validator: Any) -> None:
    assert not plain_validator.is_valid(reading.read(path, path.name).data)


def test_editors_that_know_only_draft_07_miss_one_fault_and_refuse_nothing_that_is_right(contract: Contract) -> None:
    """F15."""
    validator = Draft7Validator(schema.shipped(contract))

    refused = [path for path in [*VALID, *FORM, *MEANING] if not validator.is_valid(reading.read(path, path.name).data)]

    assert refused == [path for path in FORM if path.stem != "field_without_size"]  # `prefixItems` is unknown to it


@pytest.mark.checkout
@pytest.mark.tier("all")
@pytest.mark.needs("check-jsonschema")
def test_check_jsonschema_gives_the_same_verdicts(root: Path) -> None:
    """F02, F15."""
    command = [sys.executable, "-m", "check_jsonschema", "--output-format", "json"]
    command += ["--schemafile", str(root / "schema" / "backend.schema.json"), *map(str, [*VALID, *FORM, *MEANING])]

    answer = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)

    refused = {Path(error["filename"]) for error in answer["errors"]}
    assert answer["parse_errors"] == []
    assert refused == set(FORM)
