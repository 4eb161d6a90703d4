"""A file that extends another states only what differs, and is otherwise what it extends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt import descriptions
from nbxrt.catalogue import layers, reading
from nbxrt.catalogue.schema_extends import REQUIRED
from toys import description

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Layered


def load(file: Path | str) -> dict[str, Any]:
    return dict(descriptions.load(file))


def symbols(file: Path | str) -> dict[str, Any]:
    return {name: operation[1][0][4] for name, operation in load(file)["operations"].items()}


def search(file: Path) -> list[str]:
    return [kind for kind, _where, _folders in load(file)["libraries"]["runtime"]["search"]]


# What is inherited, and what is replaced


def test_three_lines_override_one_symbol(layered: Layered) -> None:
    file = layered.put("mine", "contract: 1\nextends: toy\noperations: {malloc: myMalloc}\n")

    theirs, mine = symbols(layered.folder / "toy.yaml"), symbols(file)

    assert mine["malloc"][0] == ("myMalloc",)
    assert {name: what for name, what in mine.items() if name != "malloc"} == {
        name: what for name, what in theirs.items() if name != "malloc"
    }


def test_a_file_that_says_nothing_more_is_what_it_extends(layered: Layered) -> None:
    mine, theirs = load(layered.extend()), load(layered.folder / "toy.yaml")

    without = {"name", "file", "layers", "libraries", "operations", "absent"}
    assert {key: mine[key] for key in mine if key not in without} == {
        key: theirs[key] for key in theirs if key not in without
    }
    assert symbols("site") == symbols("toy")


def test_a_backend_of_the_same_name_is_overridden_by_extending_it(layered: Layered) -> None:
    file = layered.put("mine", "contract: 1\nextends: cuda\ntitle: Mine\n")

    assert load("cuda")["title"] == "Mine"
    assert load("cuda")["file"] == str(file)


def test_a_chain_of_files_is_followed_to_its_end(layered: Layered) -> None:
    layered.extend("operations: {malloc: siteMalloc, free: siteFree}\n")
    file = layered.extend("operations: {free: myFree}\n", stem="mine", base="site", name="mine")

    called = symbols(file)

    assert (called["malloc"][0], called["free"][0], called["sync"][0]) == (("siteMalloc",), ("myFree",), ("toySync",))
    assert load(file)["layers"] == tuple(str(layered.folder / f"{stem}.yaml") for stem in ("toy", "site", "mine"))


def test_an_operation_is_replaced_whole(layered: Layered) -> None:
    layered.base(operations={"sync": {"call": "toySync", "args": [], "returns": "nothing"}})

    (variant,) = load(layered.extend("operations: {sync: {call: otherSync, args: []}}\n"))["operations"]["sync"][1]

    assert variant[4][3] == ("status",)


def test_a_library_is_replaced_key_by_key_and_each_key_whole(layered: Layered) -> None:
    """F17: what is replaced is replaced whole."""
    file = layered.extend("libraries: {runtime: {status: {success: 7}}}\n")

    alone = description(name="alone")
    alone["libraries"]["runtime"]["status"] = {"success": 7}
    layered.put("alone", alone)

    mine, theirs, whole = (load(each)["libraries"]["runtime"] for each in (file, "toy", "alone"))

    assert mine["status"] == whole["status"]
    assert (mine["names"], mine["search"]) == (theirs["names"], theirs["search"])


def test_a_library_that_was_another_one_begins_anew(layered: Layered) -> None:
    layered.base(libraries={"driver": {"same_as": "runtime"}})

    file = layered.extend(
        "libraries: {driver: {names: [{linux: libd.so}], search: [system], status: {success: 0}}}\n"
        "operations: {module_unload: toyUnload}\nabsent: {module_unload: null}\n"
    )

    assert load(file)["libraries"]["driver"]["names"] == ((None, {"linux": "libd.so"}),)


def test_the_files_own_words_are_not_inherited(layered: Layered) -> None:
    layered.base(override=True, **{"x-note": "theirs"})

    document = layers.merge([reading.read(layered.folder / "toy.yaml", "toy"), reading.read(layered.extend(), "site")])

    assert not {"override", "extends", "x-note"} & set(document.document.data)


# Lists


def test_a_list_replaces_the_list(layered: Layered) -> None:
    assert search(layered.extend("libraries: {runtime: {search: [conda]}}\n")) == ["conda"]


def test_a_list_can_be_changed_instead(layered: Layered) -> None:
    layered.base(role={"search": ["loaded", "conda", "system"]})

    file = layered.extend(
        "libraries: {runtime: {search: {prepend: [{root: /opt/site}], remove: [conda], append: [{root: /last}]}}}\n"
    )

    assert search(file) == ["root", "loaded", "system", "root"]


def test_what_is_in_the_list_already_moves(layered: Layered) -> None:
    layered.base(role={"search": ["loaded", "conda", "system"]})

    assert search(layered.extend("libraries: {runtime: {search: {prepend: [system]}}}\n")) == [
        "system",
        "loaded",
        "conda",
    ]


def test_changes_of_several_files_follow_each_other(layered: Layered) -> None:
    layered.extend("libraries: {runtime: {search: {append: [conda]}}}\n")
    file = layered.extend("libraries: {runtime: {search: {remove: [system]}}}\n", "mine", "site", "mine")

    assert search(file) == ["conda"]


def test_platforms_and_visibility_and_names_can_be_changed_too(layered: Layered) -> None:
    layered.base(presence={"visibility": ["TOY_VISIBLE"]})

    plain = load(
        layered.extend(
            "platforms: {remove: [macos]}\npresence: {visibility: {append: [MY_VISIBLE]}}\n"
            "libraries: {runtime: {names: {prepend: [{linux: libtoy.so.9}]}}}\n"
        )
    )

    assert plain["platforms"] == ("linux",)
    assert plain["visibility"] == ("TOY_VISIBLE", "MY_VISIBLE")
    assert plain["libraries"]["runtime"]["names"][0] == (None, {"linux": "libtoy.so.9"})


def test_removing_an_item_that_the_list_does_not_have_is_told_with_both_places(layered: Layered) -> None:
    fault = layered.fault("libraries: {runtime: {search: {remove: [conda]}}}\n")

    assert (fault.reference, fault.line, fault.column) == ("nothing-to-change", 4, 41)
    assert fault.message == "`conda` is not in the list `libraries.runtime.search`"
    (related,) = fault.related
    line = (layered.folder / "toy.yaml").read_text("utf-8").splitlines().index("    search:") + 1
    assert str(related) == f"the list is at {layered.folder / 'toy.yaml'}:{line}:5"


def test_changing_a_list_that_is_not_there_is_a_fault(layered: Layered) -> None:
    fault = layered.fault("presence: {visibility: {append: [MINE]}}\n")

    assert (fault.reference, fault.message) == ("nothing-to-change", "there is no `presence.visibility` to change")


# Null


def test_null_turns_an_optional_operation_off_and_its_capability_with_it(layered: Layered) -> None:
    """F17."""
    layered.base(operations={"host_register": "toyRegister"}, without=(), absent={})
    text = (layered.folder / "toy.yaml").read_text("utf-8").replace("  host_register: the toy has none\n", "")
    layered.put("toy", text)
    file = layered.extend("operations:\n  host_register: null\n")

    plain = load(file)

    assert "host_register" not in plain["operations"]
    assert plain["absent"]["host_register"] == (f"turned off by {file}", 5)


def test_a_turned_off_operation_is_no_capability_of_the_open_runtime(layered: Layered) -> None:
    file = layered.extend("operations: {mem_get_info: null}\n", base="host")

    runtime = nbxrt.open(file)

    assert not runtime.supports("mem_get_info")
    assert runtime.supports("malloc")
    with pytest.raises(nbxrt.CapabilityError, match=f"turned off by {file}") as raised:
        runtime.mem_get_info()
    assert f"--> {file}:4" in str(raised.value)


def test_an_operation_can_be_turned_off_with_a_reason(layered: Layered) -> None:
    file = layered.extend("operations: {mem_get_info: null}\nabsent: {mem_get_info: too slow here}\n")
    bound_in_base(layered, "mem_get_info", "toyMemory")

    assert load(file)["absent"]["mem_get_info"] == ("too slow here", 5)


def bound_in_base(layered: Layered, name: str, symbol: str) -> None:
    base = layered.folder / "toy.yaml"
    text = base.read_text("utf-8").replace(f"  {name}: the toy has none\n", "")
    base.write_text(text.replace("operations:\n", f"operations:\n  {name}: {symbol}\n"), "utf-8")


def test_structures_that_only_a_turned_off_operation_used_are_no_fault(layered: Layered) -> None:
    assert layered.faults("operations: {pointer_attributes: null}\n", base="cuda") == ()


def test_null_on_what_is_required_is_told_with_both_places(layered: Layered) -> None:
    """F17."""
    fault = layered.fault("operations: {malloc: null}\n")

    line = (layered.folder / "toy.yaml").read_text("utf-8").splitlines().index("  malloc: toyMalloc") + 1
    assert (fault.reference, fault.line, fault.column) == ("required-key", 4, 22)
    assert fault.message == "`operations.malloc` is required, and cannot be taken out"
    assert [*map(str, fault.related)] == [f"what is extended says it at {layered.folder / 'toy.yaml'}:{line}:3"]


@pytest.mark.parametrize(
    ("said", "reference", "message"),
    [
        ("presence: null", "required-key", "`presence` cannot be taken out as a whole"),
        ("operations: null", "required-key", "`operations` cannot be taken out as a whole"),
        ("evidence: null", "nothing-to-change", "`evidence` is a file's own, so there is nothing to take out"),
        ("interop: {dlpack: null}", "wrong-type", "expected a mapping, found null"),
        ("absent: {malloc: null}", "required-operation", "`malloc` is required, and cannot be absent"),
    ],
)
def test_null_on_what_is_no_unit_says_what_is(layered: Layered, said: str, reference: str, message: str) -> None:
    """F17."""
    fault = layered.fault(said, base="cuda")

    assert (fault.reference, fault.message, fault.line) == (reference, message, 4)


def test_a_library_without_its_version_is_told_once_for_all_that_differs_by_it(layered: Layered) -> None:
    faults = layered.faults("libraries: {runtime: {version: null}}\n", base="cuda")

    assert [(fault.reference, fault.line) for fault in faults] == [("inherited-ranges", 4), ("unknown-version", 4)]


def test_null_on_an_unknown_key_is_an_unknown_key(layered: Layered) -> None:
    """F17, F18."""
    assert layered.fault("nonsense: null\n").reference == "unknown-key"
    assert layered.fault("operations: {malloc_asinc: null}\n").reference == "unknown-operation"


def test_null_on_what_is_absent_already_is_told_with_both_places(layered: Layered) -> None:
    """F17, F18: what the extended file does not have."""
    fault = layered.fault("operations: {host_register: null}\n")

    line = (layered.folder / "toy.yaml").read_text("utf-8").splitlines().index("  host_register: the toy has none") + 1
    assert (fault.reference, fault.message) == (
        "nothing-to-change",
        "there is no `operations.host_register` to take out",
    )
    assert [*map(str, fault.related)] == [f"absent at {layered.folder / 'toy.yaml'}:{line}:3"]


def test_an_empty_value_is_not_null(layered: Layered) -> None:
    bound_in_base(layered, "mem_get_info", "toyMemory")

    fault = layered.fault("operations:\n  mem_get_info:\n")

    assert (fault.reference, fault.line) == ("empty-value", 5)


def test_null_and_changes_mean_nothing_in_a_file_that_stands_alone(layered: Layered) -> None:
    file = layered.base(role={"search": {"append": ["system"]}}, operations={"host_register": None})

    assert {(fault.reference, fault.path) for fault in nbxrt.validate(file)} >= {
        ("wrong-type", "libraries.runtime.search"),
        ("wrong-type", "operations.host_register"),
    }


# Binding what the base does not have


def test_binding_what_the_base_gives_a_reason_against_is_told_with_both_places(layered: Layered) -> None:
    fault = layered.fault("operations: {host_register: toyRegister}\n")

    line = (layered.folder / "toy.yaml").read_text("utf-8").splitlines().index("  host_register: the toy has none") + 1
    assert (fault.reference, fault.line, fault.column) == ("bound-and-absent", 4, 14)
    assert fault.message == "`host_register` is not offered by what is extended: the toy has none"
    assert [*map(str, fault.related)] == [f"absent at {layered.folder / 'toy.yaml'}:{line}:3"]
    assert fault.hint == "add `absent: {host_register: null}` to bind it"


def test_a_reason_that_is_taken_back_makes_room_for_a_symbol(layered: Layered) -> None:
    file = layered.extend("operations: {host_register: toyRegister}\nabsent: {host_register: null}\n")

    assert "host_register" in load(file)["operations"]


def test_a_reason_for_what_the_base_binds_is_told_with_both_places(layered: Layered) -> None:
    bound_in_base(layered, "mem_get_info", "toyMemory")

    fault = layered.fault("absent: {mem_get_info: too slow}\n")

    assert (fault.reference, fault.hint) == (
        "bound-and-absent",
        "add `operations: {mem_get_info: null}` to turn it off",
    )
    assert str(fault.related[0]).startswith(f"bound at {layered.folder / 'toy.yaml'}:")


def test_a_reason_that_is_taken_back_without_a_symbol_leaves_the_operation_missing(layered: Layered) -> None:
    assert layered.fault("absent: {host_register: null}\n").reference == "missing-operation"


# Bases


def test_an_unknown_base_is_told_with_the_nearest_name(layered: Layered) -> None:
    fault = layered.fault("", base="toi")

    assert (fault.reference, fault.line, fault.column, fault.hint) == ("unknown-base", 3, 10, "did you mean `toy`?")


def test_a_file_that_extends_itself_alone_is_told_so(layered: Layered) -> None:
    fault = layered.fault("", base="site")

    assert fault.message == "`site` extends itself, and there is no other backend of that name"


def test_a_cycle_is_told_with_every_place(layered: Layered) -> None:
    other = layered.extend("", stem="other", base="site", name="other")

    fault = layered.fault("", base="other")

    assert fault.reference == "extends-cycle"
    assert fault.message == "files extend each other: `site` extends `other` extends `site`"
    assert (fault.file, fault.line) == (str(layered.folder / "site.yaml"), 3)
    assert [*map(str, fault.related)] == [f"`extends: site` at {other}:3:1"]


def test_a_fault_of_the_base_says_why_it_was_read(layered: Layered) -> None:
    layered.base(priority="high")

    fault = layered.fault("")

    assert (fault.file, fault.reference) == (str(layered.folder / "toy.yaml"), "wrong-type")
    assert [*map(str, fault.related)] == [f"read because of `extends: toy` at {layered.folder / 'site.yaml'}:3:1"]


def test_what_an_inherited_value_lacks_is_told_once_and_where_it_was_taken_out(layered: Layered) -> None:
    fault = layered.fault("enums: {memcpy_kind: null}\n")

    assert (fault.file, fault.line, fault.column) == (str(layered.folder / "site.yaml"), 4, 9)
    assert fault.reference == "missing-enum"
    assert fault.message == ("the file has no `enums.memcpy_kind`, of which `memcpy` and `memcpy_async` pass a word")
    assert str(fault.related[0]).startswith(f"`operations.memcpy` is at {layered.folder / 'toy.yaml'}:")


def test_a_library_that_is_taken_out_is_one_fault_that_lists_its_users(layered: Layered) -> None:
    fault = layered.fault("libraries: {driver: null}\n", base="cuda")

    assert (fault.file, fault.line, fault.column) == (str(layered.folder / "site.yaml"), 4, 13)
    assert fault.message.startswith("the file has no library `driver`, which `device_name`, `device_uuid`, ")
    assert re.search(r" and [0-9]+ more call$", fault.message)


def test_names_in_headers_of_what_a_file_replaces_may_be_left_over(layered: Layered) -> None:
    """The vendor's names stay where there is something to name; fewer codes, or more, are nobody's fault."""
    names = {"out_of_memory": "TOY_NO_MEMORY", "no_device": ["TOY_NONE"], "not_ready": "TOY_NOT_READY"}
    layered.base(headers={"codes": {"runtime": names}, "enums": {"memcpy_kind": {"default": "TOY_ANY"}}})
    status = "{success: 0, kinds: {out_of_memory: [2, 3], not_ready: 600}}"
    words = "{host_to_host: 0, host_to_device: 1, device_to_host: 2, device_to_device: 3}"

    faults = layered.faults(f"libraries: {{runtime: {{status: {status}}}}}\nenums: {{memcpy_kind: {words}}}\n")

    assert faults == ()


def test_the_merged_file_is_complete_or_refused(layered: Layered) -> None:
    faults = layered.faults("operations: {memcpy: {call: f, args: [dst, src]}}\n")

    assert {fault.reference for fault in faults} == {"unused-parameter"}
    assert {fault.file for fault in faults} == {str(layered.folder / "site.yaml")}


def test_only_a_file_that_stands_alone_has_to_say_everything(layered: Layered) -> None:
    assert layered.faults("") == ()
    (fault,) = nbxrt.validate(layered.put("bare", "contract: 1\n"))[:1]
    assert all(f"`{key}`" in fault.message for key in REQUIRED)


# Versions

RANGED = [{"before": "2.0", "call": "toyTouch", "args": []}, {"since": "2.0", "call": "toyTouch2", "args": []}]
VERSION = {"call": "toyVersion", "digits": [1000, 10]}


def test_a_library_with_its_own_version_scheme_inherits_no_ranges(layered: Layered) -> None:
    layered.base(role={"version": VERSION}, operations={"sync": RANGED})

    fault = layered.fault("libraries: {runtime: {version: {call: myVersion, digits: [100]}}}\n")

    assert (fault.reference, fault.line, fault.column) == ("inherited-ranges", 4, 23)
    assert fault.message == (
        "`runtime` tells its version in its own way, and inherits ranges of versions: `operations.sync`"
    )
    assert str(fault.related[0]).startswith(f"operations.sync at {layered.folder / 'toy.yaml'}:")


def test_ranges_of_its_own_are_its_own(layered: Layered) -> None:
    layered.base(role={"version": VERSION}, operations={"sync": RANGED})

    assert (
        layered.faults(
            "libraries: {runtime: {version: {call: myVersion, digits: [100]}}}\noperations: {sync: mySync}\n"
        )
        == ()
    )


def test_the_same_version_scheme_said_again_is_the_same(layered: Layered) -> None:
    layered.base(role={"version": VERSION}, operations={"sync": RANGED})

    assert layered.faults("libraries: {runtime: {version: {call: toyVersion, digits: [1000, 10]}}}\n") == ()


def test_structures_and_enums_by_version_are_ranges_too(layered: Layered) -> None:
    fault = layered.fault("libraries: {runtime: {version: {call: v, digits: [1]}}}\n", base="cuda")

    assert "`structs.cudaPointerAttributes`" in fault.message
    assert "`enums." in fault.message or "`operations." in fault.message
