"""What people write in their first backend file, and the hint that they get."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nbxrt.catalogue import reading, validation

if TYPE_CHECKING:
    from nbxrt.catalogue.contract import Contract

PLAIN = (Path(__file__).parent / "cases" / "valid" / "plain.yaml").read_text("utf-8")
SEARCH = "[loaded, {package: toy.runtime, folder: lib}, system]"
FREE = "{call: toyFree, args: [address]}"

#: What stands in the file, what people write instead, and the beginning of the hint.
MISTAKES = {
    "a C call": (FREE, "toyFree(address)", "write the symbol alone, `toyFree`, or `{call: toyFree, args: […]}`"),
    "arguments with types": (FREE, "{call: toyFree, args: {address: pointer}}", "the arguments are a list in C order"),
    "a type in front": ("[address]", "[void* address]", "did you mean `address`?"),
    "another indentation": ("    search:", "   search:", "the line is indented like none of those"),
    "a list of one file": ("contract: 1\nname", "- contract: 1\n  name", "all items of a list begin with `-`"),
    "no space behind the colon": ("malloc: toy", "malloc:toy", "a key's `:` has a space behind it"),
    "a text with a colon": ("Toy runtime", "Toy: the runtime", "a key's `:` has a space behind it, and a text with"),
    "a text that begins oddly": ("Toy runtime", "@toy", "a text that begins with this character stands in quotes"),
    "a path of Windows": (SEARCH, '[{root: "C:\\Toy", folder: bin}]', "in double quotes a `\\` begins an escape"),
    "a bracket left open": ("[address]", "[address", "the list that begins with `[` ends with `]`"),
    "something behind the end": ("absent:\n", "...\nabsent:\n", "the file's one document ends before this"),
    "a path as a search step": (SEARCH, "[loaded, /opt/toy/lib]", "a place is a step of its own: `{root: /opt/toy/lib"),
    "a variable with its dollar": (SEARCH, "[{environment: $TOY, folder: lib}]", "write `[TOY]`: a list of names"),
    "a name alone": (
        "{major: 2, linux: libtoy.so.2, windows: toy2.dll}",
        "libtoy.so.2",
        "say for which system: `{linux:",
    ),
    "groups without reasons": ("absent:\n", "absent: [peer]\nx-absent:\n", "each has its reason: `absent: {peer: "),
    "an operation that is null": (
        "memcpy: toyCopy",
        "memcpy: null",
        "name its symbol; an operation that is not required",
    ),
    "a range of versions": (
        "memcpy: toyCopy",
        "memcpy: [{call: a, since: '>=2'}]",
        "a range is `since`, included, and",
    ),
    "codes before their words": (
        "out_of_memory: 2",
        "2: out_of_memory",
        "the word comes first, then its number: `WORD: 2`",
    ),
    "a number in quotes": ("out_of_memory: 2", "out_of_memory: '0x2'", "write it without quotes: `0x2`"),
    "the contract in quotes": ("contract: 1", "contract: '1'", "write it without quotes: `1`"),
    "a hyphen in a name": ("name: toy", "name: toy-gpu", "write `toy_gpu`"),
    "an old boolean": ("priority: 50", "priority: 50\noverride: yes", "write `true`"),
    "a system with a capital": ("[linux, windows]", "[Linux]", "did you mean `linux`?"),
    "one instead of a list": ("[linux, windows]", "linux", "write `platforms: [linux]`"),
    "a pointer that comes back": (FREE, "{call: toyFree, returns: pointer}", "write `{pointer: NAME}` with the result"),
    "a key in the wrong room": (
        "    search:",
        "    operations: {}\n    search:",
        "`operations` stands at the top of the",
    ),
    "a note in an operation": (
        FREE,
        "{call: toyFree, x-note: mine}",
        "a key for the file's own use begins with `x-`, and stands at the top",
    ),
    "another case": ("stream_query", "streamQuery", "did you mean `stream_query`?"),
}


@pytest.mark.parametrize(("right", "wrong", "hint"), MISTAKES.values(), ids=MISTAKES)
def test_the_hint_says_what_was_meant(right: str, wrong: str, hint: str, contract: Contract) -> None:
    assert right in PLAIN

    scanned = reading.scan(PLAIN.replace(right, wrong, 1).encode(), "toy.yaml")
    found = list(scanned.diagnostics)
    if scanned.document is not None:
        found += validation.check(scanned.document, contract)

    assert any(fault.hint.startswith(hint) for fault in found), [*map(str, found)]


SLIPS = {
    "a role": ("  runtime:", "  runtim:"),
    "an argument's form": ("[address]", "[{parm: address, type: int}]"),
    "a required operation": ("  memset: toyFill", "  memest: toyFill"),
    "a search step's place": ("folder: lib}", "foldr: lib}"),
    "a library's names": ("    names:", "    nams:"),
}


@pytest.mark.parametrize(("right", "wrong"), SLIPS.values(), ids=SLIPS)
def test_one_slip_is_one_fault(right: str, wrong: str, contract: Contract) -> None:
    assert PLAIN.count(right) == 1
    document = reading.read(PLAIN.replace(right, wrong).encode(), "toy.yaml")

    (fault,) = validation.check(document, contract)

    assert fault.hint.startswith("did you mean `")


def test_a_hint_is_no_longer_than_people_read(contract: Contract) -> None:
    scanned = reading.scan(PLAIN.replace(SEARCH, "[/" + "a" * 90_000 + "]").encode(), "toy.yaml")

    assert scanned.document is not None
    assert all(len(fault.hint) < 200 for fault in validation.check(scanned.document, contract))
