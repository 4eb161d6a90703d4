"""`nbxrt new`: a draft is complete, valid, explained, and marked where the author has to look."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from nbxrt.catalogue import reading, validation
from nbxrt.catalogue.prefixes import Renaming
from nbxrt.catalogue.sources import data_folder
from nbxrt.cli.new import drafted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.catalogue.contract import Contract

BASES = sorted(file.name[:-5] for file in data_folder("backends").iterdir() if file.name.endswith(".yaml"))
CUDA = Renaming("cuda", "musa", ("cu",), ("nvml", "nccl"))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("prefix", ["musa", "x", "on", "a_long_prefix_2"])
def test_a_draft_has_no_fault_whatever_it_is_made_after(base: str, prefix: str, contract: Contract) -> None:
    text = drafted("fresh", base, prefix)

    assert validation.check(reading.read(text.encode(), "fresh.yaml"), contract) == ()


@pytest.mark.tier("all")
@pytest.mark.parametrize("base", BASES)
def test_a_draft_of_a_draft_is_right_too(base: str, contract: Contract, tmp_path: Path) -> None:
    first = tmp_path / "first.yaml"
    first.write_text(drafted("first", base, "first"), "utf-8")

    text = drafted("second", str(first), "second")

    assert validation.check(reading.read(text.encode(), "second.yaml"), contract) == ()


@pytest.mark.parametrize("base", BASES)
def test_every_operation_stands_with_its_meaning_and_a_mark(base: str, contract: Contract) -> None:
    comments = _comments(drafted("fresh", base, "fresh"))

    assert set(contract.operations) <= set(comments)
    for name, operation in contract.operations.items():
        assert comments[name].startswith(operation.says), name
        assert "CHECK: " in comments[name], name


def test_every_call_stands_with_its_c_signature() -> None:
    comments = _comments(drafted("musa", "cuda", "musa"))

    assert comments["malloc"] == (
        "Allocates memory on the current device; 0 bytes give address 0. "
        "CHECK: int musaMalloc(void **address, size_t nbytes)"
    )
    assert (
        "usual C form: int stream_priority_range(int *least, int *greatest)"
        in _comments(drafted("x", "metal", "x"))["stream_priority_range"]
    )


def test_what_is_bound_in_the_base_is_bound_in_the_draft() -> None:
    base = reading.read(data_folder("backends") / "cuda.yaml", "cuda.yaml").data

    draft = _data(drafted("musa", "cuda", "musa"))

    assert set(draft["operations"]) == set(base["operations"])
    assert draft["operations"]["malloc"] == "musaMalloc"
    assert draft["operations"]["mem_create"]["call"] == "muMemCreate"
    assert draft["operations"]["all_reduce"] == "ncclAllReduce"
    assert "MUmemAllocationProp" in draft["structs"]
    assert draft["libraries"]["runtime"]["names"][0]["linux"] == "libmusart.so.13"
    assert draft["libraries"]["driver"]["init"]["call"] == "muInit"


def test_what_is_the_bases_alone_is_left_out_and_told() -> None:
    text = drafted("musa", "cuda", "musa")
    draft = _data(text)

    assert not {"presence", "triton", "interop", "binaries", "override"} & set(draft)
    assert "nvidia" not in str(draft["libraries"]["runtime"]["search"])
    assert "#   triton: {keys: [nvidia], target: cuda, architecture: [10, 1]}" in text
    assert {*re.findall(r"#   ([a-z]+): \{", text)} >= {"presence", "interop", "binaries"}
    assert "#   explains: [{code: 35, driver: missing" in text
    assert "NVIDIA" not in str(draft)  # nor would a user read of another vendor's driver
    assert (draft["name"], draft["title"]) == ("musa", "MUSA")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cudaMalloc", "musaMalloc"),
        ("cuInit", "muInit"),
        ("CUmemAllocationProp", "MUmemAllocationProp"),
        ("ncclSend", "ncclSend"),
        ("custom", "custom"),
        ("nvcudaCall", "nvmusaCall"),
    ],
)
def test_a_symbol_is_renamed_by_its_prefix(old: str, new: str) -> None:
    assert CUDA.symbol(old) == new


@pytest.mark.parametrize(
    ("old", "new"), [("libcudart.so.13", "libmusart.so.13"), ("CUDA_PATH", "MUSA_PATH"), ("curl.so", "curl.so")]
)
def test_a_name_is_renamed_by_the_main_prefix_alone(old: str, new: str) -> None:
    assert CUDA.name(old) == new


# The command.


def test_the_draft_goes_to_standard_output_or_to_a_file(python: Callable[..., Any], tmp_path: Path) -> None:
    printed = python("-m", "nbxrt", "new", "fresh", "--like", "host")
    written = python("-m", "nbxrt", "new", "fresh", "--like", "host", "-o", "fresh.yaml")

    assert (printed.returncode, written.returncode, written.stdout) == (0, 0, "")
    assert (tmp_path / "fresh.yaml").read_bytes().decode() == printed.stdout
    assert re.fullmatch(r"wrote fresh\.yaml: \d+ places to check, each marked CHECK\n", written.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cuda", "--like", "hip"), "there is a backend `cuda` already"),
        (("Fresh", "--like", "hip"), "`Fresh` is no NAME"),
        (("fresh", "--like", "hip", "--prefix", "a-b"), "`a-b` is no --prefix"),
        (("fresh", "--like", "cudo"), "did you mean `cuda`?"),
        (("fresh", "--like", "host", "-o", "there.yaml"), "there.yaml is there already"),
    ],
)
def test_misuse_is_told(arguments: tuple[str, ...], said: str, python: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("mine", "utf-8")

    ended = python("-m", "nbxrt", "new", *arguments)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert (tmp_path / "there.yaml").read_text("utf-8") == "mine"


def test_a_base_with_faults_is_refused_with_them(python: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("contract: 1\n", "utf-8")

    ended = python("-m", "nbxrt", "new", "fresh", "--like", "bad.yaml")

    assert ended.returncode == 1
    assert "error[missing-key]" in ended.stderr


def _data(text: str) -> Any:
    return reading.read(text.encode(), "draft.yaml").data


def _comments(text: str) -> dict[str, str]:
    """The comment above each key that is set in by two, its lines joined."""
    found = re.findall(r"(?m)((?:^  # .*\n)+)  (\w+):", text)
    return {key: " ".join(line.strip("# ").strip() for line in comment.splitlines()) for comment, key in found}
