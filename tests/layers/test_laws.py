"""Laws of the merge: it is associative, no unit is half one file's, every place is where its value was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from hypothesis import given
from hypothesis import strategies as some

from nbxrt.catalogue import contract as contracts
from nbxrt.catalogue import layers, reading
from toys import description

if TYPE_CHECKING:
    from nbxrt.catalogue.document import Document

CONTRACT = contracts.load()
OPTIONAL = [name for name, operation in CONTRACT.operations.items() if not operation.required][:8]
STEPS = ["loaded", "conda", "system", {"root": "/a"}, {"root": "/b", "folder": "lib"}]

steps = some.lists(some.sampled_from(STEPS), min_size=1, max_size=3, unique_by=repr)
changes = some.dictionaries(some.sampled_from(["prepend", "append", "remove"]), steps, min_size=1)
symbols = some.sampled_from(["fOne", "fTwo", {"call": "fThree", "args": []}])
roles = some.fixed_dictionaries(
    {},
    optional={
        "search": steps | changes,
        "hint": some.sampled_from(["one", None]),
        "status": some.sampled_from([{"success": 0}, {"success": 1, "kinds": {"no_device": 2}}, None]),
    },
)
parts = some.fixed_dictionaries(
    {"contract": some.just(1), "extends": some.just("toy")},
    optional={
        "title": some.sampled_from(["One", "Two"]),
        "platforms": some.just({"remove": ["macos"]}) | some.just(["linux"]),
        "operations": some.dictionaries(some.sampled_from(OPTIONAL), symbols | some.none(), max_size=4),
        "absent": some.dictionaries(some.sampled_from(OPTIONAL), some.just("a reason") | some.none(), max_size=3),
        "libraries": some.fixed_dictionaries(
            {}, optional={"runtime": roles, "driver": roles | some.just({"same_as": "runtime"}) | some.none()}
        ),
        "enums": some.just({"memcpy_kind": {"default": 4}}) | some.just({"memcpy_kind": None}),
    },
)

BASE = description(libraries={"driver": {"same_as": "runtime"}})


def document(data: dict[str, Any], name: str) -> Document:
    return reading.read(yaml.safe_dump(data, sort_keys=False).encode(), name)


def places(found: Document) -> dict[tuple[str | int, ...], str]:
    return {path: found.where(path) for path, _entry in found.nodes()}


@given(some.lists(parts, min_size=2, max_size=4), some.data())
def test_files_that_extend_each_other_mean_the_same_however_they_are_grouped(
    said: list[dict[str, Any]], data: some.DataObject
) -> None:
    files = [document(BASE, "base"), *(document(each, f"layer {number}") for number, each in enumerate(said))]
    split = data.draw(some.integers(1, len(files) - 1))

    at_once = layers.merge(files)
    first = layers.merge(files[:split])
    then = layers.merge([first.document, *files[split:]])

    assert then.document.data == at_once.document.data
    assert places(then.document) == places(at_once.document)
    assert [fault.one_line() for fault in sorted((*first.faults, *then.faults))] == [
        fault.one_line() for fault in at_once.faults
    ]


@given(some.lists(parts, min_size=1, max_size=3))
def test_every_unit_is_one_files_alone_and_stands_where_it_was_written(said: list[dict[str, Any]]) -> None:
    files = {each.name: each for each in [document(BASE, "0"), *(document(d, str(i)) for i, d in enumerate(said, 1))]}

    merged = layers.merge([*files.values()]).document

    for name, value in merged.data["operations"].items():
        owner = files[merged.place(("operations", name)).value.file]
        assert owner.data["operations"][name] == value
        assert owner.place(("operations", name)) == merged.place(("operations", name))
    for role, library in merged.data["libraries"].items():
        for key, value in library.items():
            owner = files[merged.place(("libraries", role, key)).value.file]
            stated = owner.data["libraries"][role][key]
            assert stated == value or layers.is_change(("libraries", role, key), stated)


@given(some.lists(parts, min_size=1, max_size=3))
def test_nothing_is_bound_and_absent_unless_it_was_told(said: list[dict[str, Any]]) -> None:
    merged = layers.merge([document(BASE, "0"), *(document(each, str(i)) for i, each in enumerate(said, 1))])

    both = set(merged.document.data["operations"]) & set(merged.document.data["absent"])

    told = {fault.path.rpartition(".")[2] for fault in merged.faults if fault.reference == "bound-and-absent"}
    own = {name for each in said for name in set(each.get("operations", ())) & set(each.get("absent", ()))}
    assert both <= told | own


@given(some.lists(parts, min_size=1, max_size=3))
def test_the_history_of_a_unit_ends_with_what_is_in_force(said: list[dict[str, Any]]) -> None:
    merged = layers.merge([document(BASE, "0"), *(document(each, str(i)) for i, each in enumerate(said, 1))])
    if merged.faults:
        return

    for name, value in merged.document.data["operations"].items():
        last = merged.history["operations", name][-1]
        assert (last.value, last.where) == (value, merged.document.where(("operations", name)))
