"""A file that changes while a program runs is read anew, and so is one whose base changes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nbxrt
from copies import run
from nbxrt import descriptions
from nbxrt.catalogue import sources
from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from conftest import Layered

HOME = str(Path(nbxrt.__file__).parents[1])


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


OPENED = """
import sys
opened = []
sys.addaudithook(lambda event, said: opened.append(str(said[0])) if event == "open" else None)
import nbxrt
assert nbxrt.open(sys.argv[1]).name == sys.argv[1]
print(sum(name.endswith("cuda.yaml") for name in opened))
"""


@pytest.mark.tier("all")
@pytest.mark.parametrize(("name", "reads"), [("plain", "0"), ("mine", "1")])
def test_only_the_file_that_is_opened_is_read_with_its_base(name: str, reads: str, tmp_path: Path) -> None:
    host = (data_folder("backends") / "host.yaml").read_text("utf-8")
    (tmp_path / "plain.yaml").write_text(host.replace("name: host", "name: plain"), "utf-8")
    (tmp_path / "site.yaml").write_text("contract: 1\nname: site\nextends: cuda\n", "utf-8")
    (tmp_path / "mine.yaml").write_text("contract: 1\nname: mine\nextends: host\n", "utf-8")
    code = OPENED if name == "plain" else OPENED.replace("cuda.yaml", "host.yaml")

    said = run(sys.executable, "-c", code, name, cwd=tmp_path, PYTHONPATH=HOME, NBXRT_BACKEND_PATH=str(tmp_path))

    assert said == f"{reads}\n"


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
