"""`nbxrt conform`: the conformance suite on the device that is here, or on a library that is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import CommandLine
    from nbxrt.simulation import Simulation

QUICK = ("--group", "error", "--group", "device")


def test_each_check_is_told_with_its_outcome_and_the_sum_last(cli: CommandLine) -> None:
    ended = cli("conform", "host", *QUICK)

    assert ended.code == 0
    assert ended.out.startswith("Host memory (host), device 0: host memory\n")
    assert "works    error" in ended.out
    assert ended.out.rstrip().endswith(", 0 wrong")


def test_the_json_is_the_report(cli: CommandLine) -> None:
    ended = cli("conform", "host", *QUICK, "--json")

    report = json.loads(ended.out)
    assert (report["backend"], report["ok"], report["counts"]["wrong"]) == ("host", True, 0)


def test_junit_has_a_case_for_each_check_and_says_what_is_absent(cli: CommandLine) -> None:
    cli("conform", "host", "--group", "error", "--group", "ipc", "--junit", "report.xml")

    suite = ET.parse(cli.folder / "report.xml").getroot()[0]  # noqa: S314  # written here
    cases = suite.findall("testcase")
    absent = [case.find("skipped") for case in cases if case.get("classname") == "nbxrt.host.ipc"]
    assert suite.get("tests") == str(len(cases))
    assert suite.get("failures") == "0"
    assert {one.get("message", "").partition(":")[0] for one in absent if one is not None} == {"absent"}


@pytest.mark.needs("cc")
def test_a_folder_that_simulate_wrote_serves_every_library(
    cli: CommandLine, simulate: Callable[..., Simulation]
) -> None:
    folder = simulate("cuda", "12").paths["runtime"].parent

    ended = cli("conform", "cuda", "--library", folder, "--group", "management", "--json")

    report = json.loads(ended.out)
    assert {path.rpartition("/")[0] for path in report["libraries"].values()} == {str(folder)}
    assert report["counts"]["works"] > 0


@pytest.mark.needs("cc")
def test_what_is_wrong_is_a_finding(cli: CommandLine, simulate: Callable[..., Simulation]) -> None:
    library = simulate("hip").paths["runtime"]

    ended = cli(
        "conform", "hip", "--library", library, "--group", "error", "--junit", "report.xml",
        NBXRT_SIM_FAIL="malloc:1+:unknown",
    )  # fmt: skip

    assert ended.code == 1
    assert "wrong    error" in ended.out
    assert "<failure message=" in (cli.folder / "report.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("hots",), "did you mean `host`?"),
        (("host", "--group", "streams"), "did you mean `stream`?"),
        (("host", "--device", "1"), "`device`"),
        (("host", "--library", "nowhere.so"), "nowhere.so"),
        (("host", "--library", __file__), "Host memory takes no library: its functions are the process's own"),
        (("--library", "."), "--library needs NAME"),
        (("hip", "--library", "."), "has no library of AMD ROCm HIP: it would have one of libamdhip64.so.7"),
        (("host", "--group", "error", "--junit", "nowhere/report.xml"), "nowhere/report.xml"),
    ],
)
def test_misuse_says_what_to_name_instead(cli: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    ended = cli("conform", *arguments)

    assert ended.code in (1, 2)
    assert ended.out == ""
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_a_library_that_is_none_is_said_in_one_error(cli: CommandLine) -> None:
    (cli.folder / "libcudart.so.13").write_text("no library", "utf-8")

    ended = cli("conform", "cuda", "--library", "libcudart.so.13")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error[library-broken]: ")
