"""A file that changes while a program runs is read anew, and so is one whose base changes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt import descriptions
from nbxrt.catalogue import sources

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Layered


def edit(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
    os.utime(file, ns=(1, 1))


def test_an_edited_file_is_read_anew(layered: Layered) -> None:
    file = layered.extend("title: One\n")
    before = descriptions.load(file)["title"]
    edit(file, "One", "Two")

    assert (before, descriptions.load(file)["title"]) == ("One", "Two")


def test_an_edited_base_is_read_anew(layered: Layered) -> None:
    file = layered.extend()
    before = descriptions.find(file)
    edit(layered.folder / "toy.yaml", "title: Toy", "title: Other")

    after = descriptions.find(file)

    assert (before[1]()["title"], after[1]()["title"]) == ("Toy", "Other")
    assert before[0] != after[0]


def test_an_unchanged_file_is_read_once(layered: Layered) -> None:
    file = layered.extend()

    assert descriptions.load(file) is descriptions.load(file)


# Who takes whose place


def test_the_order_of_files_decides_nothing_where_one_says_that_it_builds_on_the_other(layered: Layered) -> None:
    layered.put("a", "contract: 1\nextends: toy\ntitle: Mine\n")
    first = descriptions.load("toy")["title"]
    (layered.folder / "a.yaml").rename(layered.folder / "z.yaml")

    assert (first, descriptions.load("toy")["title"]) == ("Mine", "Mine")


def test_override_may_come_before_what_it_takes_the_place_of(layered: Layered) -> None:
    layered.put("a", (layered.folder / "toy.yaml").read_text("utf-8").replace("title: Toy", "title: A\noverride: true"))

    assert descriptions.load("toy")["title"] == "A"


def test_two_files_that_build_on_one_name_follow_each_other(layered: Layered) -> None:
    layered.put("a", "contract: 1\nextends: toy\ntitle: A\noperations: {malloc: aMalloc}\n")
    layered.put("b", "contract: 1\nextends: toy\ntitle: B\n")

    assert descriptions.load("toy")["title"] == "B"
    assert descriptions.load("toy")["operations"]["malloc"][1][0][4][0] == ("aMalloc",)


def test_a_file_given_by_path_extends_what_is_in_force_and_not_itself(layered: Layered) -> None:
    site = layered.put("zsite", "contract: 1\nextends: toy\ntitle: Site\n")

    assert descriptions.load(site)["title"] == "Site"
    assert nbxrt.describe(site).title == "Site"


def test_another_name_needs_override_even_when_the_file_extends_something(layered: Layered) -> None:
    layered.put("mine", "contract: 1\nname: host\nextends: toy\n")

    with pytest.raises(nbxrt.DescriptionError, match="`override: true`"):
        descriptions.load("host")
    assert sources.find().sources["host"].diagnostics
