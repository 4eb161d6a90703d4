"""What validation finds in a whole file: completeness, places, follow-on faults, and that nothing else ever happens."""

from __future__ import annotations

import copy
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, validators

import nbxrt
from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import inheritance, reading, schema, validation, verdicts
from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.catalogue.contract import Contract
    from nbxrt.catalogue.diagnostics import Diagnostic

    Faults = Callable[[Any], tuple[Diagnostic, ...]]

OPERATIONS = list(contracts.load().operations)
#: Every operation has its turn in the full tier; in the fast one the first stands for those like it.
REST = pytest.mark.tier("all")
REQUIRED = [name for name, operation in contracts.load().operations.items() if operation.required]
SHIPPED = sorted(
    (each for each in data_folder("backends").iterdir() if each.name.endswith(".yaml")), key=lambda each: each.name
)
#: Those that say everything themselves: what is removed from another is what its base has.
WHOLE = [each for each in SHIPPED if b"\nextends:" not in each.read_bytes()]


def shown(faults: tuple[Diagnostic, ...]) -> list[str]:
    """`path: message` of every fault."""
    return [f"{fault.path}: {fault.message}" for fault in faults]


def test_a_complete_file_has_no_fault(toy: dict[str, Any], faults: Faults) -> None:
    assert faults(toy) == ()


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_every_shipped_file_has_no_fault(file: Any, contract: Contract) -> None:
    assert validation.check(reading.read(file, file.name), contract) == ()


# Completeness.


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_that_is_removed_is_missed_by_its_name(name: str, toy: dict[str, Any], faults: Faults) -> None:
    """The mutation check, on a file that binds everything."""
    toy["operations"].pop(name, None)
    toy["absent"].pop(name, None)

    found = faults(toy)

    assert [(fault.reference, fault.path) for fault in found] == [("missing-operation", "operations")]
    assert found[0].message == f"missing operation `{name}`"
    assert ("a reason under `absent`" in found[0].hint) is not contracts.load().operations[name].required


@pytest.mark.tier("all")
@pytest.mark.parametrize("file", WHOLE, ids=lambda file: file.name)
def test_an_operation_that_is_removed_from_a_shipped_file_is_missed_by_its_name(file: Any, contract: Contract) -> None:
    data = reading.read(file, file.name).data
    for name, operation in contract.operations.items():
        changed = copy.copy(data)
        changed["operations"] = {key: value for key, value in data["operations"].items() if key != name}
        without_group = {*data.get("absent", ())} & {operation.group}
        members = [
            each for each, other in contract.operations.items() if other.group == operation.group and each != name
        ]
        changed["absent"] = {
            key: value for key, value in data.get("absent", {}).items() if key not in (name, operation.group)
        }
        if without_group:
            rest = {each: "for this test" for each in members if each not in changed["operations"]}
            changed["absent"] = {**rest, **changed["absent"]}
        document = reading.read(yaml.safe_dump(changed, sort_keys=False).encode(), file.name)

        found = validation.check(document, contract)

        assert f"missing operation `{name}`" in [fault.message for fault in found], name


@pytest.mark.parametrize("by", ["itself", "its group"])
@pytest.mark.parametrize("name", [REQUIRED[0], *(pytest.param(each, marks=REST) for each in REQUIRED[1:])])
def test_a_required_operation_that_is_absent_is_told_at_its_reason(
    name: str, by: str, toy: dict[str, Any], faults: Faults
) -> None:
    absent = name if by == "itself" else contracts.load().operations[name].group
    del toy["operations"][name]
    toy["absent"][absent] = "the vendor has none"
    text = yaml.safe_dump(toy, sort_keys=False, width=1000)

    (fault,) = faults(text)

    assert (fault.reference, fault.path, fault.source.strip()) == (
        "required-operation", f"absent.{absent}", f"{absent}: the vendor has none",
    )  # fmt: skip
    assert f"`{name}`" in fault.message
    assert fault.hint.startswith("bind what is required under `operations`")


def test_what_is_required_is_there_on_every_system(toy: dict[str, Any], faults: Faults) -> None:
    toy["platforms"] = ["linux", "macos"]
    toy["libraries"]["runtime"]["names"][0]["macos"] = "libtoy.dylib"
    toy["operations"]["sync"] = [{"call": "a", "platform": "linux"}, {"call": "b", "platform": ["linux", "windows"]}]
    toy["operations"]["mem_get_info"] = {"call": "c", "platform": "linux"}

    found = [fault for fault in faults(toy) if fault.reference == "required-operation"]

    assert shown(tuple(found)) == ["operations.sync: `sync` is required, and nothing is said of it for `macos`"]


def test_an_operation_that_the_contract_gained_is_missed(toy: dict[str, Any], contract: Contract) -> None:
    text = (data_folder("schema") / "operations.yaml").read_bytes().decode()
    later = "\n  warp:\n    group: device\n    says: Faster than light.\n    takes: {}\n    gives: {}\n    c: []\n"
    grown = contracts.read((text.rstrip() + later).encode())
    document = reading.read(yaml.safe_dump(toy).encode(), "toy.yaml")

    assert validation.check(document, contract) == ()
    assert shown(validation.check(document, grown)) == ["operations: missing operation `warp`"]


def test_an_absent_group_answers_for_its_unbound_operations(toy: dict[str, Any], faults: Faults) -> None:
    for name in ("comm_destroy", "all_reduce", "send"):
        del toy["operations"][name]
    toy["absent"]["collective"] = "the toy is alone"

    assert faults(toy) == ()


def test_a_file_that_was_just_begun_is_told_by_group(toy: dict[str, Any], faults: Faults) -> None:
    toy["operations"] = {}
    toy["absent"] = {}
    toy["enums"] = {}

    messages = [fault.message for fault in faults(toy)]

    assert "missing operations of group `error`: `get_last_error`, `peek_last_error`" in messages
    assert all(any(f"`{name}`" in message for message in messages) for name in OPERATIONS)
    assert len(messages) == len(contracts.load().groups)


def test_a_key_removed_anywhere_in_the_skeleton_is_missed(toy: dict[str, Any], faults: Faults) -> None:
    for key in ("contract", "name", "title", "abi", "platforms", "priority", "libraries", "operations"):
        without = {each: value for each, value in toy.items() if each != key}

        assert f": missing key `{key}` in a backend file" in shown(faults(without))


# Numbers, words and versions.


@pytest.mark.parametrize("written", ["0o43", "043", "08", "1e3", "1:30", "35.0", ".nan", "1_000", "0b1"])
def test_another_spelling_of_a_number_is_refused_as_written(written: str, toy: dict[str, Any], faults: Faults) -> None:
    """F04."""
    text = yaml.safe_dump(toy).replace("unknown: 30", f"unknown: {written}", 1)

    found = [fault for fault in faults(text) if fault.reference == "bad-number"]

    assert found[0].message == f"expected an integer, found `{written}`"


@pytest.mark.parametrize(("written", "number"), [("0x23", 35), ("-1", -1), ("2147483648", 2**31)])
def test_decimal_and_hexadecimal_numbers_are_accepted(
    written: str, number: int, toy: dict[str, Any], faults: Faults
) -> None:
    """F04."""
    text = yaml.safe_dump(toy).replace("unknown: 30", f"unknown: {written}")

    found = faults(text)

    assert [fault for fault in found if fault.reference != "duplicate-number"] == []
    assert number in reading.read(text.encode(), "x").data["libraries"]["runtime"]["status"]["kinds"].values()


def test_two_codes_that_are_one_number_are_refused(toy: dict[str, Any], faults: Faults) -> None:
    """F04."""
    toy["libraries"]["runtime"]["status"]["kinds"] = {"out_of_memory": 35, "not_ready": [600, 600]}
    toy["libraries"]["runtime"]["status"]["kinds"]["no_device"] = 0x23

    messages = [fault.message for fault in faults(toy) if fault.reference == "duplicate-number"]

    assert messages == ["the code 600 is `not_ready` already", "the code 35 is `out_of_memory` already"]


@pytest.mark.parametrize(
    ("since", "reference"),
    [
        ("12.10", "float-version"),
        ("12", None),
        ('"12.10"', None),
        ("12.4.1", None),
        ("-1", "out-of-range"),
        ("012", "bad-text"),
        ("1_2", "bad-text"),
        ('"12.04"', None),
        ("true", "wrong-type"),
    ],
)
def test_a_version_is_text_or_an_integer(
    since: str, reference: str | None, toy: dict[str, Any], faults: Faults
) -> None:
    """F03."""
    variants = f"    sync:\n      - {{since: {since}, call: toy_sync_v2}}\n      - toy_sync\n"
    text = yaml.safe_dump({**toy, "operations": {**toy["operations"], "sync": "@"}}).replace(
        "  sync: '@'\n", variants[2:]
    )

    found = faults(text)

    assert [fault.reference for fault in found] == ([reference] if reference else [])
    if reference == "float-version":
        assert "`12.10`" in found[0].message
        assert found[0].hint == 'quote it: `"12.10"`'


def test_a_version_with_two_digits_is_later_than_one_with_one(toy: dict[str, Any], faults: Faults) -> None:
    """F03: 12.10 is later than 12.9."""
    toy["operations"]["sync"] = [{"before": "12.10", "call": "a"}, {"since": "12.9", "call": "b"}]

    assert [fault.reference for fault in faults(toy)] == ["overlapping-versions"]


def test_12_and_12_0_are_one_version(toy: dict[str, Any], faults: Faults) -> None:
    toy["operations"]["sync"] = [{"before": 12, "call": "a"}, {"since": "12.0", "call": "b"}]

    assert faults(toy) == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title: Toy", "title: ~", "title: expected text, found null"),
        ("title: Toy", "title: NO", "title: `NO` is text here, and a boolean to other YAML readers"),
        ("name: toy", "name: on", "name: `on` is text here, and a boolean to other YAML readers"),
        ("platforms:\n- linux", "platforms:\n- off", "platforms[0]: unknown value `off`"),
        ("title: Toy", "title: Toy\npresence: {visibility: [NO, TOY_DEVICES]}",
         "presence.visibility[0]: `NO` is text here, and a boolean to other YAML readers"),
        ("title: Toy", "title: Toy\npresence: {required: no}",
         "presence.required: expected true or false, found the text `no`"),
        ("  sync: toy_sync", "  sync: off", "operations.sync: `off` is text here, and a boolean to other YAML readers"),
    ],
)  # fmt: skip
def test_a_bare_word_that_is_a_boolean_elsewhere_is_refused(
    old: str, new: str, said: str, toy: dict[str, Any], faults: Faults
) -> None:
    """F02: in a name, a symbol, a list, and where a boolean is meant; `x-…` is free to say it."""
    text = yaml.safe_dump({**toy, "x-note": "free to say"}).replace("free to say", "off")
    assert old in text

    assert shown(faults(text.replace(old, new, 1))) == [said]


# Empty and odd files.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("# only this\n", "the file is empty"),
        ("---\n", "the file is empty"),
        ("- a\n", "expected a mapping, found a list"),
        ("toy\n", "expected a mapping, found the text `toy`"),
        ("12\n", "expected a mapping, found the number `12`"),
        ("null\n", "expected a mapping, found null"),
    ],
)
def test_a_file_that_is_no_mapping_is_told_so(text: str, message: str, tmp_path: Path) -> None:
    """F07."""
    file = tmp_path / "x.yaml"
    file.write_text(text, "utf-8")

    (fault,) = inheritance.validate_file(file)

    assert (fault.one_line(), fault.path) == (f"{file}:1:1: {message}", "")


def test_a_section_with_nothing_in_it_is_told_so(toy: dict[str, Any], faults: Faults) -> None:
    """F07."""
    toy["libraries"] = None
    text = yaml.safe_dump(toy, sort_keys=False).replace("libraries: null", "libraries:")

    assert "libraries: expected a mapping, found nothing" in shown(faults(text))


def test_schema_keys_in_a_file_are_unknown_keys_and_nothing_is_fetched(
    toy: dict[str, Any], faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> None:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    url = "http://127.0.0.1:9/schema.json"
    toy["$schema"] = url
    toy["operations"]["sync"] = {"$ref": url}

    assert shown(faults(toy)) == [
        "operations.sync: an operation needs one of `call`, `value`, `same`, `policy` or `steps`",
        "operations.sync.$ref: unknown key `$ref` in an operation",
        "$schema: unknown key `$schema` in a backend file",
    ]


# Arity.


def test_a_missing_argument_names_operation_symbol_expected_and_declared(toy: dict[str, Any], faults: Faults) -> None:
    toy["operations"]["malloc"] = {"call": "toyMalloc", "args": [{"out": "address"}]}

    (fault,) = faults(toy)

    assert fault.message == "`malloc` calls `toyMalloc` without `nbytes`"
    assert fault.notes == ("1 argument declared, 2 in the contract's usual order",)


def test_an_operation_without_arguments_and_without_a_usual_order_is_refused(
    toy: dict[str, Any], faults: Faults
) -> None:
    del toy["absent"]["ipc_get_mem_handle"]
    toy["operations"]["ipc_get_mem_handle"] = "toyIpc"

    (fault,) = faults(toy)

    assert fault.reference == "missing-arguments"
    assert "`ipc_get_mem_handle` calls `toyIpc`" in fault.message
    assert fault.label == "it takes `address` and `nbytes` and gives `handle`"


def test_the_content_of_an_unknown_enum_is_not_judged(toy: dict[str, Any], faults: Faults) -> None:
    toy["enums"]["colour"] = [{"words": [1]}, "red", {"since": {}}]

    assert shown(faults(toy)) == ["enums.colour: unknown enum `colour`"]


def test_a_file_without_a_runtime_is_told_so(toy: dict[str, Any], faults: Faults) -> None:
    toy["libraries"]["driver"]["enter"] = {"call": "toyEnter"}
    del toy["libraries"]["runtime"]

    assert "libraries: missing key `runtime` in `libraries`" in shown(faults(toy))


def test_a_path_that_no_file_system_takes_is_a_fault() -> None:
    (fault,) = inheritance.validate_file("a\0b.yaml")

    assert fault.reference == "unreadable-file"


# Limits and laws.


def test_a_hundred_operations_are_validated_in_time(toy: dict[str, Any], contract: Contract, no_garbage: None) -> None:
    for name, operation in contract.operations.items():
        if operation.c is not None:
            toy["operations"][name] = {"call": f"toy_{name}", "args": list(operation.c)}
    document = reading.read(yaml.safe_dump(toy).encode(), "toy.yaml")
    validation.check(document, contract)
    start = time.process_time()

    found = validation.check(document, contract)

    assert found == ()
    assert time.process_time() - start < 0.5  # 15 ms, with room for a busy machine


def test_a_file_full_of_errors_ends_in_time(toy: dict[str, Any], contract: Contract, no_garbage: None) -> None:
    toy["operations"]["sync"] = [{"since": "1", "before": "2", "cal": "x"}] * 2000
    toy["libraries"]["runtime"]["names"] = [{"lnux": ""}] * 5000
    document = reading.read(yaml.dump(toy, Dumper=NoAliases).encode(), "toy.yaml")
    start = time.process_time()

    found = validation.check(document, contract)

    assert 100 < len(found) < 1500
    assert time.process_time() - start < 10


class NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def test_importing_the_catalogue_does_not_import_jsonschema() -> None:
    names = ("jsonschema", "difflib", "rich", "importlib.metadata")
    code = f"import sys, nbxrt.catalogue.validation; print([name for name in {names} if name in sys.modules])"

    environment = {**os.environ, "PYTHONPATH": str(Path(nbxrt.__file__).parents[1])}

    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert answer.stdout == "[]\n"


WORDS = st.sampled_from(
    [
        *("malloc", "call", "args", "out", "struct", "since", "before", "12.0", "status", "runtime", "linux", "names"),
        *("memcpy_kind", "same_as", "value", "success", "address", "nbytes", "x", "", "fields", "bytes", "int"),
        *("ignores", "result", "of"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**33) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def mutations(draw: st.DrawFn) -> tuple[dict[str, Any], list[str | int]]:
    """A shipped or example file with one node replaced, removed or added, and the path of that node."""
    file = draw(st.sampled_from(FILES))
    node = data = copy.deepcopy(file)
    path: list[str | int] = []
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = draw(st.sampled_from(keys))
        path.append(key)
        inner = node[key]
        if isinstance(inner, (dict, list)) and inner and draw(st.integers(0, 3)):
            node = inner
            continue
        if isinstance(node, dict) and draw(st.booleans()):
            node[draw(WORDS)] = node.pop(key) if draw(st.booleans()) else draw(VALUES)
        elif draw(st.booleans()):
            node[key] = draw(VALUES)
        else:
            del node[key]
        return data, path


CASES = sorted((Path(__file__).parent / "cases" / "valid").glob("*.yaml"))
FILES = [reading.read(file, file.name).data for file in [*SHIPPED, *CASES]]


WHOLE = verdicts.without_references(schema.generate(contracts.load()))
IS_RIGHT = verdicts.Verdicts().of(WHOLE)
INTEGERS = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _checker, each: verdicts.is_integer(each))
JSONSCHEMA = validators.extend(Draft202012Validator, {}, type_checker=INTEGERS)(WHOLE)  # type: ignore[no-untyped-call]


@given(mutations())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_quick_verdict_is_that_of_jsonschema(changed: tuple[dict[str, Any], list[str | int]]) -> None:
    data, _path = changed

    assert IS_RIGHT(data) == JSONSCHEMA.is_valid(data)


PARTS = [
    ({"enum": [1, "1", True]}, [1, "1", True, 1.0, 0, False, None, [1]]),
    ({"const": False}, [False, 0, None]),
    ({"uniqueItems": True}, [[1, True], [1, 1.0], ["a", "a"], [[1], [1]], [], "aa"]),
    ({"contains": {"type": "string"}}, [[], [1], [1, "a"], {}]),
    ({"prefixItems": [{"type": "string"}], "items": {"type": "null"}}, [["a"], ["a", None], ["a", 1], [1], [], 1]),
    ({"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": False}, [{"x": None}, {"x": 1}, {"y": 1}]),
    ({"properties": {"xa": True}, "patternProperties": {"^x": False}}, [{"xa": 1}, {"a": 1}]),
    ({"propertyNames": {"pattern": "^a"}, "minProperties": 1, "maxProperties": 2}, [{}, {"a": 1}, {"b": 1}, 7]),
    ({"if": {"type": "object"}, "then": {"required": ["a"]}, "else": {"minimum": 3}}, [{}, {"a": 1}, 2, 3, True, "x"]),
    ({"if": {"type": "object"}}, [{}, 1]),
    ({"maximum": 3, "maxItems": 1, "minItems": 1, "type": ["integer", "array"]}, [3, 4, 2.5, [], [1], [1, 2], "a"]),
    ({"allOf": [{"pattern": "a"}, {"pattern": "b"}, {"minimum": 1}]}, ["ab", "a", 0, 1]),
]


@pytest.mark.parametrize(("part", "values"), PARTS, ids=[" ".join(part) for part, _values in PARTS])
def test_each_keyword_has_the_verdict_of_jsonschema(part: dict[str, Any], values: list[Any]) -> None:
    is_right = verdicts.Verdicts().of(part)

    assert [is_right(each) for each in values] == [JSONSCHEMA.evolve(schema=part).is_valid(each) for each in values]


def test_a_keyword_without_a_verdict_is_not_passed_over() -> None:
    with pytest.raises(KeyError, match="oneOf"):
        verdicts.Verdicts().of({"oneOf": []})


@given(mutations())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_changed_file_is_right_or_has_faults_and_nothing_else_happens(
    changed: tuple[dict[str, Any], list[str | int]],
) -> None:
    data, _path = changed
    text = yaml.dump(data, Dumper=NoAliases, sort_keys=False)
    scanned = reading.scan(text.encode(), "x.yaml")

    found = scanned.diagnostics
    if scanned.document is not None:
        found += validation.check(scanned.document, contracts.load())

    for fault in found:
        assert fault.render()
        assert 1 <= fault.line <= text.count("\n") + 1
        assert fault.source == text.split("\n")[fault.line - 1]


ENDLESS = {
    "search": [{"root": f"/a{number}", "folder": "b"} for number in range(65)],
    "names": [{"linux": f"a{number}"} for number in range(65)],
}


@pytest.mark.parametrize("key", ENDLESS)
def test_a_list_whose_items_are_compared_has_an_end(key: str, toy: dict[str, Any], faults: Faults) -> None:
    toy["libraries"]["runtime"][key] = ENDLESS[key]

    (fault,) = faults(toy)

    assert fault.message == "expected at most 64 items, found 65"


def test_a_list_of_one_word_many_times_is_told_as_often_as_people_read(toy: dict[str, Any], faults: Faults) -> None:
    toy["platforms"] = ["linux"] * 1_000

    assert len(faults(toy)) <= 501


@pytest.mark.parametrize("version", ["9" * 10_000, "1." + "9" * 10_000])
def test_a_version_of_thousands_of_digits_is_none(version: str, toy: dict[str, Any], faults: Faults) -> None:
    toy["operations"]["malloc"] = [{"call": "toyMalloc", "since": version}]

    (fault,) = faults(toy)

    assert fault.reference == "bad-text"


@pytest.mark.parametrize("number", [float("inf"), -float("inf"), -1.5, 1e300])
def test_a_number_with_a_fraction_is_told_once(number: float, toy: dict[str, Any], faults: Faults) -> None:
    toy["priority"] = number

    (fault,) = faults(toy)

    assert fault.reference == "bad-number"
