"""docs/format.md beside the schema: it names every key and every word, and nothing that is not there."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt
from nbxrt.catalogue import schema
from nbxrt.catalogue.references import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbxrt.catalogue.contract import Contract

pytestmark = pytest.mark.checkout

#: Names in the examples that a file chooses for itself: fields, entries of what is kept, models of devices.
CHOSEN = {"context", "shared", "plain", "devicePointer", "location_type", "location_id"}


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "format.md").read_text("utf-8")


@pytest.fixture(scope="module")
def keys(contract: Contract) -> set[str]:
    """Every key and word of the schema, those of the contract among them."""
    return set(_keys(schema.generate(contract)))


def _keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        properties, words = node.get("properties"), node.get("enum")
        yield from properties if isinstance(properties, dict) else ()
        yield from (word for word in words if isinstance(word, str)) if isinstance(words, list) else ()
    for below in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _keys(below)


def _of_the_contract(contract: Contract) -> set[str]:
    """What schema/operations.yaml explains: operations, groups, what these take and give, and words."""
    operations = contract.operations.values()
    names = {parameter.name for each in operations for parameter in (*each.takes, *each.gives)}
    sets = (contract.enums, contract.flags)
    words = {word for named in sets for each in named.values() for word in each.words}
    return {
        *contract.operations, *contract.groups, *contract.errors, *contract.types, *contract.enums, *contract.flags,
        *names, *words, *(f"not_{word}" for word in words),
    }  # fmt: skip


def _blocks(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)


def _inner_keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
    for below in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _inner_keys(below)


def test_every_key_and_word_is_on_the_page(page: str, keys: set[str], contract: Contract) -> None:
    code = "".join([*_blocks(page), *(f" {span}" for span in re.findall(r"`([^`\n]+)`", page))])

    assert keys - _of_the_contract(contract) - {*re.findall(r"\w+", code)} == set()


def test_every_key_of_an_example_is_one(page: str, keys: set[str], contract: Contract) -> None:
    spans = re.findall(r"`(\{\w+: [^`\n]+\})`", page)
    named = {key for example in (*_blocks(page), *spans) for key in _inner_keys(yaml.safe_load(example))}

    unknown = {key for key in named - keys - _of_the_contract(contract) - CHOSEN if re.fullmatch(r"[a-z_]+", key)}

    assert unknown == set()


def test_every_example_has_the_form_of_a_backend_file(page: str, tmp_path: Path) -> None:
    file = tmp_path / "page.yaml"
    for block in _blocks(page):
        file.write_text(_whole(block), "utf-8")

        faults = nbxrt.validate(file)

        assert [each.one_line() for each in faults if each.reference in (*STAGES["file"], *STAGES["form"])] == []


def _whole(example: str) -> str:
    """A file around an example: it is a section, an operation, or the steps of one."""
    if example.startswith("contract:"):
        return example
    if example.startswith("- "):
        example = f"memset:\n  steps:\n{textwrap.indent(example, '    ')}"
    if example.startswith(("memset:", "malloc:")):
        example = f"operations:\n{textwrap.indent(example, '  ')}"
    return f"contract: 1\nextends: host\nname: page\n{example}"
