"""What editors get: a schema by the file's first line, and something to show at every node of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from nbxrt.catalogue import schema
from nbxrt.catalogue.sources import data_folder
from nbxrt.catalogue.writing import SCHEMA_FILE
from nbxrt.cli.new import drafted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.catalogue.contract import Contract

MODELINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")


def keys(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that a file may have, with its schema; conditions that only tell forms apart are no keys."""
    for word, value in node.items() if isinstance(node, dict) else ():
        for name, inner in below(word, value, path):
            if word in (*_SECTIONS, "additionalProperties", "items"):
                yield name, inner
            yield from keys(inner, name)


def below(word: str, value: Any, path: str) -> list[tuple[str, Any]]:
    """The schemas in a keyword that are about a value in a file, each with the path of that value."""
    if word == "$defs":
        return [(f"#{name}", inner) for name, inner in value.items()]
    if word in _SECTIONS:
        return [(f"{path}.{name}", inner) for name, inner in value.items()]
    if word in ("additionalProperties", "items"):
        return [(f"{path}.*", value)] if isinstance(value, dict) else []
    if word in ("allOf", "prefixItems"):
        return [(path, inner) for inner in value]
    return [(path, value)] if word in ("then", "else") else []


@pytest.fixture(scope="module")
def whole(contract: Contract) -> dict[str, Any]:
    """The schema, less its rules about the file as a whole, which name keys and explain none."""
    return {key: value for key, value in schema.generate(contract).items() if key in ("$id", *_SECTIONS)}


_SECTIONS = ("properties", "patternProperties", "$defs")


def resolved(node: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """A node with what it refers to; what it says itself counts first."""
    if "$ref" not in node:
        return node
    return {**resolved(whole["$defs"][node["$ref"].rpartition("/")[2]], whole), **node}


def test_every_key_has_a_description(whole: dict[str, Any]) -> None:
    bare = [path for path, node in keys(whole) if _says_something(node) and "description" not in resolved(node, whole)]

    assert [path for path in bare if not re.fullmatch(r"#\w+", path)] == []  # a definition may leave it to its users


def test_every_key_shows_what_may_stand_there(whole: dict[str, Any]) -> None:
    """By examples, or because the editor lists the words or the keys itself."""
    shown = {"examples", "enum", "properties", "const"}

    bare = [
        path
        for path, node in keys(whole)
        if _says_something(node) and not shown & _with_forms(resolved(node, whole), whole)
    ]

    assert bare == []


def _says_something(node: dict[str, Any]) -> bool:
    """Whether a node is for a value: one that only says what must be there beside it is a rule."""
    return bool({"type", "enum", "$ref", "description"} & set(node))


def _with_forms(node: dict[str, Any], whole: dict[str, Any]) -> set[str]:
    """The keywords of a node, and of the forms that it chooses between and the items that it lists."""
    words = {*node, *(["enum"] if node.get("type") == "boolean" else [])}
    for word in ("then", "else", "items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            words |= _with_forms(resolved(node[word], whole), whole)
    for each in node.get("allOf", ()):
        words |= _with_forms(resolved(each, whole), whole)
    return words


def test_the_schema_has_a_name_and_no_address(whole: dict[str, Any]) -> None:
    assert whole["$id"] == "urn:nbxrt:schema:backend"


@pytest.mark.checkout
def test_every_shipped_file_and_every_draft_says_where_its_schema_is(root: Path) -> None:
    for file in (root / "backends").glob("*.yaml"):
        found = MODELINE.match(file.read_text("utf-8"))
        assert found, file.name
        assert json.loads((file.parent / found[1]).read_text("utf-8"))["$id"] == schema.IDENTIFIER

    found = MODELINE.match(drafted("fresh", "host", "fresh"))
    assert found
    assert found[1] == SCHEMA_FILE


def test_the_line_of_a_draft_resolves_in_an_empty_folder(python: Callable[..., Any], tmp_path: Path) -> None:
    python("-m", "nbxrt", "new", "fresh", "--like", "host", "-o", "fresh.yaml")
    python("-m", "nbxrt", "schema", "-o", SCHEMA_FILE)

    (found,) = MODELINE.findall((tmp_path / "fresh.yaml").read_text("utf-8"))

    assert json.loads((tmp_path / found).read_text("utf-8"))["$id"] == schema.IDENTIFIER


@pytest.mark.checkout
def test_the_examples_of_the_page_are_what_they_say(root: Path) -> None:
    page = (root / "docs" / "editors.md").read_text("utf-8")
    blocks = [yaml.safe_load(text) for text in re.findall(r"```(?:yaml|json)\n(.*?)```", page, re.DOTALL)]
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text("utf-8"))

    (workflow,) = [each for each in blocks if each and "jobs" in each]
    (commits,) = [each for each in blocks if each and "repos" in each]

    assert workflow["jobs"]["validate"]["steps"][-1]["run"] == "nbxrt validate --format github backends/"
    assert commits["repos"][0]["hooks"][0]["id"] == hook["id"]


def test_the_shipped_schema_is_beside_the_contract() -> None:
    names = {file.name for file in data_folder("schema").iterdir()}

    assert {"operations.yaml", SCHEMA_FILE} <= names
