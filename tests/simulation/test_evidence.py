"""Signatures that vendors' headers have: a simulation is held to them, and a file that states others is refused."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import toys
from nbxrt import descriptions, verifying
from nbxrt.catalogue.sources import data_folder
from nbxrt.simulation import SignatureError, build, evidence
from nbxrt.simulation.plan import Plan, make_plan
from nbxrt.verifying import recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

#: Shipped backends with headers, and the majors of their files that have a simulation of single calls.
MAJORS = {"cuda": ("11", "12", "13"), "hip": ("5", "6", "7"), "ascend": (None,)}

TOY_HEADER = """
#include <stddef.h>
int toyDeviceCount(int *count);
int toyMalloc(void **out, size_t n);
int toyFree(void *p);
int toyFill(void *p, int v, size_t n);
int toyLastError(void);
const char *toyName(int code);
"""


def _plans(backend: Mapping[str, Any]) -> Callable[[Any], Plan]:
    return lambda versions: make_plan(backend, descriptions.contract(), "linux", versions)


def _compared(backend: Mapping[str, Any], version: str | None) -> frozenset[str]:
    record = evidence.recorded(backend["name"], backend["name"])
    assert record is not None
    return evidence.compared(_plans(backend)(version), _plans(backend), record)


@pytest.mark.parametrize(
    ("backend", "version"), [(name, each) for name, versions in MAJORS.items() for each in versions]
)
def test_what_ships_agrees_with_the_headers_that_were_read(backend: str, version: str | None) -> None:
    told = _compared(descriptions.built_in(backend), version)

    assert len(told) > 60


def _with_an_argument_more(description: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Mapping[str, Any]]]:
    """Each operation of one call with an unsigned 0 behind its arguments: its symbols, and the description."""
    for operation, (line, variants) in description["operations"].items():
        if len(variants) == 1 and variants[0][0] == "call":
            form, since, before, platforms, (symbols, role, arguments, *rest), extras = variants[0]
            call = (symbols, role, (*arguments, ("const", "uint", 0)), *rest)
            changed = (line, ((form, since, before, platforms, call, extras),))
            yield operation, symbols, {**description, "operations": {**description["operations"], operation: changed}}


@pytest.mark.tier("all")
@pytest.mark.parametrize("backend", MAJORS)
def test_an_argument_too_many_is_refused_in_every_operation_whose_header_was_read(backend: str) -> None:
    description = descriptions.built_in(backend)
    told = _compared(description, None)
    functions = _plans(description)(None).functions
    shared = {function.symbol for function in functions if len(function.cases) > 1}  # of two operations: refused before

    missed = []
    for operation, symbols, mistaken in _with_an_argument_more(description):
        if told & set(symbols) and not shared & set(symbols):
            with pytest.raises(SignatureError, match=rf"`operations\.{operation}`: .* in the header, and "):
                _compared(mistaken, None)
        else:
            missed.append(operation)

    assert len(missed) < 20


@pytest.mark.needs("cc")
def test_a_copy_of_a_shipped_file_with_a_mistake_has_no_simulation(tmp_path: Path) -> None:
    text = (data_folder("backends") / "cuda.yaml").read_text("utf-8")
    mistaken = "  malloc: {call: cudaMalloc, args: [{out: address}, nbytes, {uint: 0}]}"
    file = tmp_path / "cuda.yaml"
    file.write_text(re.sub(r"(?m)^  malloc: cudaMalloc.*$", mistaken, text, count=1) + "override: true\n", "utf-8")

    with pytest.raises(SignatureError) as caught:
        build(file, tmp_path / "simulation")

    said = "  `operations.malloc`: `cudaMalloc` takes 2 parameters in the header, and 3 in the file"
    assert said in str(caught.value).splitlines()
    assert "nbxrt verify" in caught.value.hint
    assert not (tmp_path / "simulation").exists()


@pytest.mark.tier("all")
@pytest.mark.needs("cxx")
def test_headers_of_ones_own_are_kept_beside_the_file(tmp_path: Path, simulate: Callable[..., Any]) -> None:
    file = toys.write(tmp_path)
    (tmp_path / "toy.h").write_text(TOY_HEADER, "utf-8")
    before = simulate(file)
    result = verifying.verify(file, headers=[tmp_path / "toy.h"])

    recording.keep(tmp_path / "signatures" / "toy.json", result)

    assert before.from_headers == frozenset()
    assert simulate(file).from_headers == {
        "toyDeviceCount", "toyMalloc", "toyFree", "toyFill", "toyLastError", "toyName",
    }  # fmt: skip
    with pytest.raises(SignatureError, match="`toyFree` takes 1 parameter in the header, and 2 in the file"):
        simulate(toys.write(tmp_path, operations={"free": {"call": "toyFree", "args": ["address", {"int": 0}]}}))


def test_a_record_says_which_header_it_was_read_in(tmp_path: Path) -> None:
    record = evidence.recorded("cuda", "cuda")

    assert record is not None
    assert {name: release.versions["runtime"] for name, release in record.releases.items()} == {
        name: name for name in ("11.8", "12.9", "13.5")
    }
    assert all(re.fullmatch("[0-9a-f]{64}", each) for of in record.releases.values() for each in of.headers.values())


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    for name in MAJORS:
        text = data_folder("backends").joinpath("signatures").joinpath(f"{name}.json").read_text("utf-8")
        file = tmp_path / f"{name}.json"
        file.write_text(text, "utf-8")

        record = recording.load(file)

        assert recording.text_of(record) == text
        for _role, signatures in record.functions.values():
            for written, release in zip(signatures, itertools.chain(*signatures.values()), strict=False):
                assert release in record.releases
                assert recording.written(recording.parsed(written)) == written


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", json.dumps({"backend": "toy", "releases": {}, "functions": {"f": {"is": {"?": []}}}})]
)
def test_a_record_that_is_none_is_said_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "signatures").mkdir()
    (tmp_path / "signatures" / "toy.json").write_text(content, "utf-8")

    with pytest.raises(nbxrt.NbxrtError, match="is no record of signatures: ") as caught:
        evidence.recorded(toys.write(tmp_path), "toy")

    assert caught.value.hint == "write it anew with `nbxrt verify --record`"
