"""`nbxrt verify`: what it prints, and how it exits."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine

pytestmark = [
    pytest.mark.needs("cxx"),
    pytest.mark.skipif(sys.platform != "linux", reason="the headers of a Linux toolchain"),
]

STANDARD = ("--header", "standard.h")


@pytest.fixture
def header(cli: CommandLine) -> CommandLine:
    """A header with the standard functions that the host's file binds."""
    text = "#define _POSIX_C_SOURCE 200809L\n#include <errno.h>\n#include <stdlib.h>\n#include <string.h>\n"
    (cli.folder / "standard.h").write_text(text, "utf-8")
    return cli


def test_the_hosts_file_agrees_with_the_c_library(header: CommandLine) -> None:
    ended = header("verify", "host", *STANDARD)

    assert ended.code == 0
    assert ended.out.startswith("Host memory, backends/host.yaml\n")
    assert "ok         operations.memcpy:" in ended.out
    assert (
        "libraries.runtime.status.success:20\n             the file does not say under `headers` what 0 is" in ended.out
    )
    assert ended.out.rstrip().endswith(" ok, 0 wrong, 1 unverified")


def test_what_disagrees_is_a_finding_with_what_the_header_says(header: CommandLine) -> None:
    (header.folder / "standard.h").write_text("void *memmove(void *to, const void *from, int n);\n", "utf-8")

    ended = header("verify", "host", *STANDARD)

    assert ended.code == 1
    assert "`memmove` parameter 3 is a 32-bit signed integer in the header" in ended.out
    assert "the header says memmove: void* (*)(void*, const void*, int)" in ended.out


def test_json_has_the_rows(header: CommandLine) -> None:
    said = json.loads(header("verify", "host", *STANDARD, "--json").out)

    assert said["ok"] is True
    row = next(row for row in said["rows"] if row["subject"] == "operations.memset")
    assert (row["state"], row["by"]) == ("ok", ["header"])


def test_what_the_headers_declare_can_be_kept(header: CommandLine) -> None:
    ended = header("verify", "host", *STANDARD, "--record", "signatures/host.json")

    kept = json.loads((header.folder / "signatures" / "host.json").read_text("utf-8"))
    assert ended.code == 0
    assert kept["functions"]["memmove"] == {"role": "runtime", "is": {"p(v)(p(v), p(v), u8)": ["0"]}}
    assert set(kept["releases"]["0"]["headers"]) == {"standard.h"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("host", "--library", "standard.h", "--record", "kept.json"), "--record keeps what headers declare"),
        (("host",), "give --header FILE, --library FILE, or both"),
        (("host", "--header", "nowhere.h"), "nowhere.h"),
        (("hots", *STANDARD), "did you mean `host`?"),
        (("cuda", *STANDARD, "--version", "9"), "no `runtime` of major 9, but 13, 12, 11"),
        (("nowhere.yaml", *STANDARD), "the file cannot be read: no such file"),
        (("cuda", *STANDARD, "--version", "drivers=12"), "no library of its own for drivers"),
    ],
)
def test_misuse_is_told_apart_from_findings(header: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    ended = header("verify", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_without_a_compiler_it_says_so_in_one_error(header: CommandLine) -> None:
    ended = header("verify", "host", *STANDARD, CXX="nowhere-c++")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error[header]: a header is read by a C++ compiler: CXX names `nowhere-c++`")
