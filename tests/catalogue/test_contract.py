"""The contract holds together, and one that does not is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nbxrt.binding import states
from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import policies, sequences
from nbxrt.catalogue.contract import Contract
from nbxrt.catalogue.sources import data_folder
from nbxrt.errors import DescriptionError

TEXT = (data_folder("schema") / "operations.yaml").read_bytes().decode()


def test_an_operation_has_what_the_file_says() -> None:
    malloc = contracts.load().operations["malloc"]

    assert (malloc.group, malloc.required, malloc.released_by, malloc.since) == ("memory", True, "free", 1)
    assert malloc.takes == (contracts.Parameter("nbytes", "nbytes", zero="skips"),)
    assert malloc.gives == (contracts.Parameter("address", "address"),)
    assert malloc.c == ({"out": "address"}, "nbytes")


@pytest.mark.checkout
def test_the_page_of_the_format_names_what_every_backend_needs(contract: Contract, root: Path) -> None:
    page = (root / "docs" / "format.md").read_text("utf-8")
    section = page.partition("### What every backend has\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:3] for row in section.splitlines() if row.startswith("| `")]

    named = {name: instead for names, instead in rows for name in re.findall(r"`(\w+)`", names)}

    assert named.keys() == {each.name for each in contract.operations.values() if each.required}
    for name, instead in named.items():
        for policy in re.findall(r"{policy: (\w+)}", instead):
            known = policies.POLICIES[policy]
            assert name in known.operations or contract.operations[name].group in known.groups, (name, policy)


def test_what_came_later_is_required_of_no_backend() -> None:
    """Files that were written before it have to open."""
    text = TEXT.replace("contract: 1\n", "contract: 2\n", 1)
    later = "\n  warp:\n    group: device\n    says: Faster.\n    takes: {}\n    gives: {}\n    c: []\n    since: 2\n"

    with pytest.raises(DescriptionError) as raised:
        contracts.read(f"{text.rstrip()}{later}    required: true\n".encode())

    assert [fault.path for fault in raised.value.diagnostics] == ["operations.warp.required"]
    assert contracts.read(f"{text.rstrip()}{later}".encode()).operations["warp"].since == 2


def test_the_names_that_a_device_has_are_refused_for_what_is_kept_of_it() -> None:
    """Each is an attribute already, so that what the file says would never be made."""
    has = {name for name in (*dir(states.State), *vars(states.State(None, "", None))) if not name.startswith("_")}  # type: ignore[arg-type]

    assert {*sequences.DEVICE_FACTS} == has | {"default_stream"}


def test_the_policies_know_every_fact_of_the_contract_by_its_word(contract: Contract) -> None:
    assert tuple(contract.enums["device_attribute"].words) == policies.DEVICE_ATTRIBUTES
    assert tuple(contract.enums["function_attribute"].words) == policies.FUNCTION_ATTRIBUTES


def test_a_parameter_with_a_default_has_it() -> None:
    operation = contracts.load().operations["event_create_flags"]

    assert [each.default for each in operation.takes] == [True, False, False]


def test_what_releases_takes_what_was_made(contract: Contract) -> None:
    for operation in contract.operations.values():
        if operation.released_by is not None and operation.gives:
            made = operation.gives[0].type
            assert made in {each.type for each in contract.operations[operation.released_by].takes}, operation.name


def test_every_type_and_enum_and_error_is_used_or_explained(contract: Contract) -> None:
    types = {each.type for operation in contract.operations.values() for each in (*operation.takes, *operation.gives)}
    flags = {
        argument["flags"]
        for operation in contract.operations.values()
        for argument in operation.c or ()
        if isinstance(argument, dict) and "flags" in argument
    }

    assert set(contract.enums) <= types
    assert set(contract.flags) == flags
    assert {each.group for each in contract.operations.values()} == set(contract.groups)


# Text of the contract, what takes its place, and what is said.
FAULTS = {
    "unknown key": ("    required: true\n", "    requird: true\n", "unknown key `requird`"),
    "missing key": ("    says: Copies and waits until the host side may be reused.\n", "", "missing key `says`"),
    "wrong type of value": ("required: true", "required: 1", "`required` holds the wrong type of value"),
    "type of a parameter": ("takes: {device: device}", "takes: {device: devise}", "unknown type `devise`"),
    "type of a result": ("gives: {count: int}", "gives: {count: {type: number}}", "unknown type `number`"),
    "C type": ("address: {c: pointer,", "address: {c: pointr,", "unknown C type `pointr`"),
    "meaning of zero": ("zero: skips", "zero: ignored", "unknown meaning of zero `ignored`"),
    "group": ("group: memory", "group: memories", "unknown group `memories`"),
    "library role": ("{library: driver,", "{library: drivers,", "unknown library role `drivers`"),
    "releasing operation": ("released_by: free\n", "released_by: fre\n", "unknown released_by `fre`"),
    "expected error": ("errors: [invalid_value]", "errors: [bad_value]", "unknown error `bad_value`"),
    "wider error": ("no_driver: {is: no_device", "no_driver: {is: nothing", "unknown error `nothing`"),
    "name in the usual order": ("c: [{out: count}]", "c: [{out: cnt}]", "`cnt` is no result of `device_count`"),
    "parameter left out": (
        "c: [dst, src, nbytes, kind]",
        "c: [dst, src, nbytes]",
        "`c` of `memcpy` does not name `kind`",
    ),
    "word that is a boolean": (
        "      host: Host memory that",
        "      off: Host memory that",
        "`off` is a boolean or null",
    ),
    "name in capitals": ("  get_device:\n", "  getDevice:\n", "`getDevice` is not a lower-case name"),
    "default": ("default: global", "default: everywhere", "the default is not of type `capture_mode`"),
    "later than the contract": (
        "  free:\n    group: memory\n",
        "  free:\n    since: 99\n    group: memory\n",
        "`since` is a number",
    ),
    "operation and group": ("  memset:\n", "  memory:\n", "`memory` is both one of `operations` and one of `groups`"),
    "answer without a result": ("gives: {done: boolean}", "gives: {done: int}", "`done` needs one boolean result"),
}


@pytest.mark.parametrize(("old", "new", "said"), FAULTS.values(), ids=FAULTS.keys())
def test_a_contract_that_does_not_hold_together_is_refused(old: str, new: str, said: str) -> None:
    assert old in TEXT

    with pytest.raises(DescriptionError, match=re.escape(said)):
        contracts.read(TEXT.replace(old, new, 1).encode())


def test_a_contract_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "operations.yaml"
    file.write_text("- contract\n", "utf-8")

    with pytest.raises(DescriptionError, match="a mapping is expected here"):
        contracts.read(file)
