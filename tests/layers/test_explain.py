"""`nbxrt explain`, `nbxrt show --origin` and `nbxrt diff`: where values come from, and what differs."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from nbxrt.cli.app import commands

if TYPE_CHECKING:
    from conftest import Layered


@dataclass
class Ended:
    code: int
    out: str
    err: str


def nbxrt(*arguments: str | os.PathLike[str]) -> Ended:
    """The command line in this process: no test here is about how it starts."""
    result = CliRunner().invoke(commands, [os.fspath(each) for each in arguments], prog_name="nbxrt")
    return Ended(result.exit_code, result.stdout, result.stderr)


def line(file: Path, text: str) -> int:
    return file.read_text("utf-8").splitlines().index(text) + 1


# explain


def test_a_value_is_told_with_its_place_and_what_it_replaced(layered: Layered) -> None:
    """F13: a base and two files over it."""
    base = layered.folder / "toy.yaml"
    site = layered.extend("operations: {malloc: siteMalloc}\n")
    mine = layered.extend("operations: {malloc: myMalloc}\n", stem="mine", base="site", name="mine")

    ended = nbxrt("explain", "--json", "mine", "operations.malloc")

    (origin,) = json.loads(ended.out)["origins"]
    told = [(each["value"], each["file"], each["line"]) for each in (origin["said"], *origin["replaced"])]
    assert told == [
        ("myMalloc", str(mine), 4),
        ("siteMalloc", str(site), 4),
        ("toyMalloc", str(base), line(base, "  malloc: toyMalloc")),
    ]


def test_people_read_the_same_in_lines(layered: Layered) -> None:
    site = layered.extend("operations: {malloc: siteMalloc}\n")

    ended = nbxrt("explain", site, "operations.malloc")

    base = layered.folder / "toy.yaml"
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "operations.malloc\n"
        "  is          siteMalloc\n"
        f"              {site}:4:14\n"
        "  replaced    toyMalloc\n"
        f"              {base}:{line(base, '  malloc: toyMalloc')}:3\n"
    )


def test_each_item_of_a_changed_list_has_its_own_place(layered: Layered) -> None:
    site = layered.extend("libraries: {runtime: {search: {prepend: [conda]}}}\n")

    (origin,) = json.loads(nbxrt("explain", "--json", site, "libraries.runtime.search").out)["origins"]

    base = layered.folder / "toy.yaml"
    assert [(each["value"], each["file"], each["line"]) for each in origin["items"]] == [
        ("conda", str(site), 4),
        ("system", str(base), line(base, "    - system")),
    ]
    assert [each["value"] for each in origin["replaced"]] == [["system"]]


def test_an_item_that_was_put_before_others_has_replaced_none(layered: Layered) -> None:
    site = layered.extend("libraries: {runtime: {search: {prepend: [system]}}}\n")

    ended = nbxrt("explain", "--json", site, "libraries.runtime.search[0]")

    (origin,) = json.loads(ended.out)["origins"]
    assert (origin["said"]["value"], origin["said"]["file"]) == ("system", str(site))
    assert origin["replaced"] == []


def test_the_variable_that_goes_before_a_file_is_told_too(layered: Layered, monkeypatch: pytest.MonkeyPatch) -> None:
    """F13: and the environment."""
    monkeypatch.setenv("NBXRT_TOY_RUNTIME", "/opt/libtoy.so")

    ended = nbxrt("explain", "toy", "libraries.runtime.names")

    assert "overridden  by NBXRT_TOY_RUNTIME=/opt/libtoy.so" in ended.out


def test_an_operation_that_was_turned_off_says_where_and_what_it_was(layered: Layered) -> None:
    site = layered.extend("operations: {malloc_async: null}\n", base="cuda")

    (origin,) = json.loads(nbxrt("explain", "--json", site, "operations.malloc_async").out)["origins"]

    assert (origin["path"], origin["said"]["value"]) == ("absent.malloc_async", f"turned off by {site}")
    assert [each["value"] for each in origin["replaced"]] == ["cudaMallocAsync"]
    assert origin["replaced"][0]["file"] == "backends/cuda.yaml"


def test_a_value_inside_a_unit_has_its_own_line(layered: Layered) -> None:
    base = layered.folder / "toy.yaml"

    (origin,) = json.loads(nbxrt("explain", "--json", "toy", "libraries.runtime.status.kinds.no_device").out)["origins"]

    assert (origin["said"]["value"], origin["said"]["line"]) == (100, line(base, "        no_device: 100"))


def test_a_merged_value_has_the_place_that_it_was_merged_from(layered: Layered) -> None:
    said = "x-call: &call {call: siteMalloc, args: [{out: address}, nbytes]}\noperations: {malloc: {<<: *call}}\n"
    site = layered.extend(said)

    ended = nbxrt("explain", "--json", site, "operations.malloc.call")

    (origin,) = json.loads(ended.out)["origins"]
    assert (origin["said"]["value"], origin["said"]["line"], origin["said"]["column"]) == ("siteMalloc", 4, 16)


def test_a_library_that_is_another_one_leads_there(layered: Layered) -> None:
    (origin,) = json.loads(nbxrt("explain", "--json", "hip", "libraries.driver.hint").out)["origins"]

    assert origin["path"] == "libraries.runtime.hint"


def test_a_section_stands_for_all_that_is_in_it(layered: Layered) -> None:
    origins = json.loads(nbxrt("explain", "--json", "toy", "libraries.runtime").out)["origins"]

    assert [each["path"] for each in origins] == [f"libraries.runtime.{key}" for key in ("names", "search", "status")]


def test_a_path_that_leads_nowhere_is_misuse_with_the_nearest(layered: Layered) -> None:
    ended = nbxrt("explain", "toy", "libraries.runtime.serch")

    assert ended.code == 2
    assert "hint: did you mean `libraries.runtime.search`?" in ended.err


def test_a_faulty_file_is_told_with_its_faults(layered: Layered) -> None:
    ended = nbxrt("explain", layered.extend("nonsense: 1\n"), "operations.malloc")

    assert ended.code == 1
    assert "error[unknown-key]" in ended.err


def test_show_origin_lists_every_value_of_a_description(layered: Layered) -> None:
    site = layered.extend("operations: {malloc: siteMalloc}\n")

    out = nbxrt("show", site, "--origin").out

    assert f"operations.malloc\n  is          siteMalloc\n              {site}:4:14\n" in out
    assert f"operations.free\n  is          toyFree\n              {layered.folder / 'toy.yaml'}:" in out


# diff


def test_what_means_the_same_is_no_difference_however_it_is_written(layered: Layered) -> None:
    site = layered.extend("operations: {malloc: {call: [toyMalloc]}}\n")

    assert nbxrt("diff", "toy", site) == Ended(0, "", "0 differences\n")


def test_a_difference_is_told_by_its_path_and_both_sides(layered: Layered) -> None:
    site = layered.extend(
        "priority: 7\noperations: {malloc: siteMalloc}\nlibraries: {runtime: {search: {append: [conda]}}}\n"
    )

    ended = nbxrt("diff", "toy", site)

    assert (ended.code, ended.err) == (1, "3 differences\n")
    assert ended.out == (
        "priority\n  -  500\n  +  7\n"
        "libraries.runtime.search\n  +  conda\n"
        "operations.malloc\n  -  int toyMalloc(void **address, size_t nbytes)\n"
        "  +  int siteMalloc(void **address, size_t nbytes)\n"
    )


def test_what_differs_is_shown_as_people_write_it(layered: Layered) -> None:
    wheel = "{package: acme.lib, folder: {linux: lib}}"
    site = layered.extend(
        f"presence: {{visibility: [MINE]}}\nlibraries: {{runtime: {{search: {{append: [{wheel}]}}, hint: install it, "
        "version: {call: toyVersion, digits: [100]}, status: {success: 0, kinds: {not_ready: [7, 8]}}}}\n"
    )

    found = {each["path"]: each["other"] for each in json.loads(nbxrt("diff", "--json", "toy", site).out)}

    runtime = "libraries.runtime."
    assert found["presence.visibility"] == ["MINE"]
    assert found[runtime + "search"] == [wheel]
    assert found[runtime + "hint"] == ["install it"]
    assert found[runtime + "version"] == ["{call: toyVersion, digits: [100]}"]
    assert found[runtime + "status.kinds.not_ready"] == ["7", "8"]
    assert found[runtime + "status.name"] == []


def test_the_steps_of_objects_are_shown_step_by_step() -> None:
    found = {each["path"]: each for each in json.loads(nbxrt("diff", "--json", "metal", "opencl").out)}

    assert found["policies.queues.destroy"] == {
        "path": "policies.queues.destroy",
        "one": ["{send: release, to: queue}"],
        "other": ["{call: clReleaseCommandQueue, args: [queue]}"],
    }
    assert found["triton"]["one"] == ["{keys: [metal], target: metal}"]


@pytest.mark.parametrize("base", ["cuda", "opencl", "metal"])
def test_what_is_taken_over_is_no_difference_wherever_it_stands(layered: Layered, base: str) -> None:
    site = layered.extend("title: Mine\n", base=base)

    found = json.loads(nbxrt("diff", "--json", base, site).out)

    assert [each["path"] for each in found] == ["title"]


def test_what_c_does_not_show_of_an_operation_is_shown_as_written(layered: Layered) -> None:
    layered.base(operations={"memset_async": {"call": "f", "args": [{"array": ["nbytes", 0], "type": "uint64"}],
                                              "ignores": ["address", "value", "stream"]}},
                 absent={"mem_get_info": "none"})  # fmt: skip
    toy = (layered.folder / "toy.yaml").read_text("utf-8").replace("  memset_async: the toy has none\n", "")
    layered.put("toy", toy)
    site = layered.extend(
        "operations: {memset_async: {call: f, args: [{array: [nbytes, 0], type: uint64}], "
        "ignores: [address, value, stream], returns: ignored}}\n"
    )

    (difference,) = json.loads(nbxrt("diff", "--json", "toy", site).out)

    assert difference["path"] == "operations.memset_async"
    assert difference["one"] != difference["other"]


def test_an_operation_that_one_side_lacks_shows_its_reason(layered: Layered) -> None:
    site = layered.extend("operations: {malloc_async: null}\nabsent: {malloc_async: broken here}\n", base="cuda")

    (difference,) = json.loads(nbxrt("diff", "--json", "cuda", site).out)

    assert difference["path"] == "operations.malloc_async"
    assert difference["other"] == ["absent: broken here"]


def test_another_order_alone_shows_both_lists(layered: Layered) -> None:
    layered.base(role={"search": ["loaded", "system"]})
    site = layered.extend("libraries: {runtime: {search: [system, loaded]}}\n")

    (difference,) = json.loads(nbxrt("diff", "--json", "toy", site).out)

    assert len(difference["one"]) == len(difference["other"]) == 2


@pytest.mark.parametrize("others", [("toy", "nothing"), ("broken", "toy")])
def test_what_cannot_be_read_is_neither_equal_nor_different(layered: Layered, others: tuple[str, str]) -> None:
    layered.put("broken", "name: broken\n")

    ended = nbxrt("diff", *others)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error[")


def test_quiet_is_only_the_exit_code(layered: Layered) -> None:
    assert nbxrt("diff", "-q", "cuda", "hip") == Ended(1, "", "")
