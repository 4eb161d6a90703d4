"""The JSON Schema: current, valid, of one dialect, explained on every node, as strict as the contract."""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import schema, translation, wrong_values
from nbxrt.catalogue.forms import FORMS
from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbxrt.catalogue.contract import Contract

COMMITTED = (data_folder("schema") / "backend.schema.json").read_bytes().decode()

# Everything that Draft 2020-12 defines and this schema uses; draft-07 knows all but two of them.
KEYWORDS = {
    *("$schema", "$id", "$defs", "$ref", "title", "description", "examples", "type", "enum", "const", "contains"),
    *("properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties"),
    *("maxProperties", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "minimum", "maximum", "pattern"),
    *("allOf", "if", "then", "else"),
}
NAMED = {"properties", "patternProperties", "$defs"}


def nodes(node: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in a schema, with a path for people."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            for name, inner in value.items() if key in NAMED else [("", value)]:
                if key not in ("enum", "const", "examples", "required"):
                    yield from nodes(inner, f"{path}/{key}/{name}".rstrip("/"))
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from nodes(inner, f"{path}/{index}")


def test_the_committed_schema_is_current(contract: Contract) -> None:
    assert schema.rendered(contract) == COMMITTED, "run `python -m nbxrt.catalogue.schema`"


def test_the_schema_is_valid_by_its_own_dialect() -> None:
    """F15."""
    Draft202012Validator.check_schema(json.loads(COMMITTED))


def test_every_pattern_and_every_type_has_its_words() -> None:
    found = [node for _path, node in nodes(json.loads(COMMITTED))]

    assert {node["pattern"] for node in found if "pattern" in node} <= {*translation.PATTERNS}
    types = [node["type"] for node in found if "type" in node]
    assert {each for kind in types for each in (kind if isinstance(kind, list) else [kind])} <= {*wrong_values.TYPES}


def test_no_keyword_is_from_another_dialect() -> None:
    """F15."""
    used = {key for _path, node in nodes(json.loads(COMMITTED)) for key in node}

    assert used <= KEYWORDS
    assert not used & {"oneOf", "anyOf", "not"}  # one mistake, one error


def test_every_key_and_every_form_is_explained() -> None:
    whole = json.loads(COMMITTED)

    unexplained = [
        path
        for path, node in nodes(whole)
        if re.search(r"/(properties|patternProperties)/[^/]+$", path)
        and not re.search(r"/(if|else)/properties/", path)
        and "/allOf/" not in path
        and "description" not in {**node, **_referred(whole, node)}
    ]

    assert unexplained == []


def _referred(whole: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = whole["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else {}
    return found


def test_every_reference_leads_somewhere_and_every_definition_is_used() -> None:
    whole = json.loads(COMMITTED)
    referred = {node["$ref"] for _path, node in nodes(whole) if "$ref" in node}

    assert referred == {f"#/$defs/{name}" for name in whole["$defs"]}


def test_every_example_is_valid_where_it_stands() -> None:
    whole = json.loads(COMMITTED)

    for path, node in nodes(whole):
        validator = Draft202012Validator({**node, "$defs": whole["$defs"]})
        for example in node.get("examples", ()):
            assert validator.is_valid(example), (path, example)


def test_every_operation_and_every_word_carries_the_contracts_sentence(contract: Contract) -> None:
    whole = schema.generate(contract)

    for name, operation in contract.operations.items():
        assert whole["properties"]["operations"]["properties"][name]["description"].startswith(operation.says)
    for enum in (*contract.enums.values(), *contract.flags.values()):
        for word, says in enum.words.items():
            assert whole["$defs"][f"words_{enum.name}"]["properties"][word]["description"] == says


def test_every_form_of_an_argument_has_its_schema(contract: Contract) -> None:
    text = json.dumps(schema.generate(contract)["$defs"]["argument"])

    assert all(json.dumps(form.says) in text for form in FORMS.values())


def test_patterns_mean_the_same_in_python_and_javascript() -> None:
    patterns = {node["pattern"] for _path, node in nodes(json.loads(COMMITTED)) if "pattern" in node}

    assert not [pattern for pattern in patterns if re.search(r"\\[AZzGQE]|\(\?[P<i]|\\[dws]\b(?<!\\S)", pattern)]


# A contract that has grown.

LATER = """
  warp_drive:
    group: device
    says: Faster than light.
    takes: {}
    gives: {}
    c: []
    since: 2
"""


def grown() -> Contract:
    text = (data_folder("schema") / "operations.yaml").read_bytes().decode()
    return contracts.read((re.sub(r"(?m)^contract: 1$", "contract: 2", text).rstrip() + LATER).encode())


def test_a_file_for_an_older_contract_need_not_know_later_operations(toy: dict[str, Any]) -> None:
    validator = Draft202012Validator(schema.generate(grown()))

    assert validator.is_valid(toy)


def test_a_file_for_the_newer_contract_must_answer_them(toy: dict[str, Any]) -> None:
    validator = Draft202012Validator(schema.generate(grown()))
    newer = {**toy, "contract": 2}
    bound = copy.deepcopy(newer)
    bound["operations"]["warp_drive"] = "toy_warp"

    (error,) = validator.iter_errors(newer)

    assert (error.message, list(error.path)) == ("'warp_drive' is a required property", ["operations"])
    assert validator.is_valid(bound)
