"""Whose library a file is: decided by symbols, links, folder and answer, never by its name alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import nbxrt
import toys
from libraries import make_library
from nbxrt.binding import search
from nbxrt.binding.machine import Machine

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries and the layouts of Linux"),
    pytest.mark.needs("cc"),
]

NO_RULES = {"exports": (), "lacks": (), "linked_to": (), "not_linked_to": (), "not_under": (), "probe": None}


def find(tmp_path: Path, names: tuple[Any, ...] = (), **rules: Any) -> list[tuple[str, str, str]]:
    """(file, verdict, reason) of each candidate in the folders a, b and c."""
    steps = tuple(("root", (str(tmp_path / folder),), {"linux": (".",)}) for folder in "abc")
    role = {
        "names": names or ((None, {"linux": "libmccl.so"}),),
        "search": steps,
        "mode": "local",
        "identity": NO_RULES | rules,
    }
    environ = {"OTHERS_HOME": str(tmp_path / "a")}
    candidates = search.find("mine", "collectives", role, Machine(environ=environ, root="", paths=[]))[2]
    told = [each for each in candidates if each.is_file]
    return [(each.path[len(str(tmp_path)) :], each.verdict, each.reason) for each in told]


def test_a_symbol_that_the_vendors_library_has(tmp_path: Path) -> None:
    make_library(tmp_path / "a/libmccl.so", "int mcclInit(void) { return 0; }")
    make_library(tmp_path / "b/libmccl.so", "int mcclInit(void) { return 0; } int mcMark(void) { return 0; }")

    assert find(tmp_path, exports=("mcclInit", "mcMark")) == [
        ("/a/libmccl.so", "refused", "is another library: it does not export `mcMark`"),
        ("/b/libmccl.so", "chosen", "loaded"),
    ]


def test_a_symbol_that_only_another_vendors_has(tmp_path: Path) -> None:
    make_library(tmp_path / "a/libmccl.so", "int muMark(void) { return 0; }")
    make_library(tmp_path / "b/libmccl.so")

    assert find(tmp_path, lacks=("muMark",)) == [
        ("/a/libmccl.so", "refused", "is another vendor's: it exports `muMark`"),
        ("/b/libmccl.so", "chosen", "loaded"),
    ]


def test_what_it_is_linked_to(tmp_path: Path) -> None:
    others = make_library(tmp_path / "others/libmusart.so.4", "int one(void) { return 1; }")
    own = make_library(tmp_path / "own/libmcruntime.so", "int two(void) { return 2; }")
    make_library(tmp_path / "a/libmccl.so", needs=(others,))
    make_library(tmp_path / "b/libmccl.so", needs=(own,), flags=(f"-Wl,-rpath,{own.parent}",))

    told = [
        ("/a/libmccl.so", "refused", "is another vendor's: it is linked to libmusart"),
        ("/b/libmccl.so", "chosen", "loaded"),
    ]
    assert find(tmp_path, not_linked_to=("libmusart",)) == told
    assert find(tmp_path, linked_to=("libmcruntime",))[0][2] == "is another vendor's: it is not linked to libmcruntime"


def test_where_it_lies_by_folder_by_variable_and_through_links(tmp_path: Path) -> None:
    make_library(tmp_path / "a/libmccl.so")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/libmccl.so").symlink_to(tmp_path / "a/libmccl.so")
    make_library(tmp_path / "c/libmccl.so")

    by_folder = find(tmp_path, not_under=(str(tmp_path / "a"),))
    by_variable = find(tmp_path, not_under=("$OTHERS_HOME", "$NOT_SET"))

    assert [verdict for _path, verdict, _reason in by_folder] == ["refused", "chosen"]
    assert by_variable[0][2] == "is another vendor's: it lies below $OTHERS_HOME"
    assert by_variable[-1][:2] == ("/c/libmccl.so", "chosen")


def test_what_it_answers(tmp_path: Path) -> None:
    for folder, vendor in (("a", "Others"), ("b", "Mine")):
        make_library(tmp_path / folder / "libmccl.so", f'const char *vendor(void) {{ return "{vendor}"; }}')
    probe = ((("vendor",), None, (), ("text", "text"), False), "Mine")

    assert find(tmp_path, probe=probe) == [
        ("/a/libmccl.so", "refused", "is another vendor's: `vendor` answers 'Others' and not 'Mine'"),
        ("/b/libmccl.so", "chosen", "loaded"),
    ]


def test_a_file_without_a_version_in_its_name_is_known_by_its_soname(tmp_path: Path) -> None:
    make_library(tmp_path / "a/libtoy.so", soname="libtoy.so.10.2")
    make_library(tmp_path / "b/libtoy.so", soname="libtoy.so.12")

    assert find(tmp_path, ((12, {"linux": "libtoy.so.12"}), (None, {"linux": "libtoy.so"}))) == [
        ("/a/libtoy.so", "refused", "major 10 is not among 12"),
        ("/b/libtoy.so", "chosen", "loaded"),
    ]


def test_only_another_vendors_copy_means_not_found_and_not_broken(tmp_path: Path) -> None:
    library = make_library(tmp_path / "others/libtoy.so.1", toys.PLAIN)
    search_here = [{"root": str(library.parent), "folder": "."}]
    changes = {"search": search_here, "identity": {"not_under": [str(library.parent)]}}

    with pytest.raises(nbxrt.LibraryNotFoundError) as raised:
        nbxrt.open(toys.write(tmp_path, role=changes))

    assert type(raised.value) is nbxrt.LibraryNotFoundError
    assert f"refused: is another vendor's: it lies below {library.parent}" in str(raised.value)


def test_a_backend_file_says_all_of_it(tmp_path: Path) -> None:
    foreign = make_library(tmp_path / "a/libtoy.so.1", toys.PLAIN + "int toyVendor(void) { return 8; }")
    own = make_library(tmp_path / "b/libtoy.so.1", toys.PLAIN + "int toyVendor(void) { return 7; }")
    steps = [{"root": str(file.parent), "folder": "."} for file in (foreign, own)]
    identity = {
        "exports": ["toyMalloc"],
        "lacks": ["otherMalloc"],
        "not_linked_to": ["libother"],
        "not_under": ["/opt/other", "$OTHER_HOME"],
        "probe": {"call": "toyVendor", "returns": "code", "equals": 7},
    }

    runtime = nbxrt.open(toys.write(tmp_path, role={"search": steps, "identity": identity}))

    assert runtime.library().path == str(own)
    assert [each.reason for each in runtime.library().candidates if each.verdict == "refused"] == [
        "is another vendor's: `toyVendor` answers 8 and not 7"
    ]
