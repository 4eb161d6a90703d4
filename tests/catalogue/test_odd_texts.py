"""More texts of each kind that others stumble over: refused at their place by a known reference, or read as meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nbxrt.catalogue import reading, validation

if TYPE_CHECKING:
    from nbxrt.catalogue.contract import Contract

PLAIN = (Path(__file__).parent / "cases" / "valid" / "plain.yaml").read_text("utf-8")
COPY = "  memcpy: toyCopy\n"
CODE = "out_of_memory: 2"
TITLE = "title: Toy runtime"
COPIED = "dst, src, nbytes, kind"
EXPLAINED = '      explains: [{code: 35, says: "this is {version of it"}]\n      name:'
END = "  collective: not in this example\n"

#: What stands in the plainest file, what stands there instead, and the reference that it gets, if any.
TEXTS = {
    # F01
    "a key again, in quotes": (COPY, f'{COPY}  "memcpy": other\n', "duplicate-key"),
    "a key again, after `?`": (COPY, f"{COPY}  ? memcpy\n  : other\n", "duplicate-key"),
    "a key again, by an escape": (COPY, f'{COPY}  "mem\\u0063py": other\n', "duplicate-key"),
    "a code again, in hexadecimal": ("[600, 601]", "[600, 0x258]", "duplicate-number"),
    # F02
    "null as a name": (TITLE, "title: Null", "wrong-type"),
    "a boolean in capitals": (TITLE, "title: TRUE", "wrong-type"),
    "a boolean word in a block": (TITLE, "title: |\n  on\n", None),
    # F03
    "a version with a point at its end": (COPY, "  memcpy: [{call: a, since: 12.}]\n", "float-version"),
    "a version as YAML 1.1's octal": (COPY, "  memcpy: [{call: a, since: 012}]\n", "bad-text"),
    "a version with a letter": (COPY, "  memcpy: [{call: a, since: v12}]\n", "bad-text"),
    # F04
    "a capital X": (CODE, "out_of_memory: 0X23", "bad-number"),
    "digits of another script": (CODE, "out_of_memory: ٣", "wrong-type"),
    "a number of forty digits": (CODE, f"out_of_memory: {'9' * 40}", "out-of-range"),
    "minus zero, which is success": (CODE, "out_of_memory: -0", "duplicate-number"),
    "a plus": (CODE, "out_of_memory: +35", None),
    # F05
    "a tab behind a colon": (COPY, "  memcpy:\ttoyCopy\n", "tab"),
    "a tab at a line's end": (COPY, "  memcpy: toyCopy\t\n", "tab"),
    "a tab on an empty line": (COPY, f"\t\n{COPY}", "tab"),
    "a tab in a flow mapping": ("{major: 2, linux", "{major: 2,\tlinux", "tab"),
    # F08
    "an empty second document": (END, f"{END}---\n", "several-documents"),
    "a second document behind dots": (END, f"{END}...\n---\n", "several-documents"),
    "a comment behind dots": (END, f"{END}...\n# the end\n", None),
    # F10
    "an alias as a key": (END, f"{END}x-k: &k word\nx-b: {{*k : 1}}\n", None),
    "a mapping that merges itself": (END, f"{END}x-a: &x {{<<: *x}}\n", "recursive-alias"),
    # F18
    "x with a capital": ("priority: 50", "priority: 50\nX-note: 1", "unknown-key"),
    "x in a library": ("    names:", "    x-note: 1\n    names:", "unknown-key"),
    "a key of nothing": ("priority: 50", 'priority: 50\n"": 1', "unknown-key"),
    "a placeholder that nothing fills": ("folder: lib", "folder: 'lib/{arch}'", "bad-text"),
    "a placeholder that is not closed": ("      name:", EXPLAINED, "unknown-placeholder"),
    "a symbol twice": (COPY, "  memcpy: {call: [one, one]}\n", "repeated"),
    "a text that C would cut": (COPY, f'  memcpy: {{call: a, args: [{COPIED}, {{literal: "a\\0b"}}]}}\n', "bad-text"),
}


@pytest.mark.parametrize(("right", "odd", "reference"), TEXTS.values(), ids=TEXTS)
def test_it_is_refused_where_it_stands_or_read_as_meant(
    right: str, odd: str, reference: str | None, contract: Contract
) -> None:
    assert PLAIN.count(right) == 1
    text = PLAIN.replace(right, odd)
    began = PLAIN[: PLAIN.index(right)].count("\n") + 1

    scanned = reading.scan(text.encode(), "toy.yaml")
    found = list(scanned.diagnostics)
    if scanned.document is not None:
        found += validation.check(scanned.document, contract)

    assert {fault.reference for fault in found} == ({reference} if reference else set())
    assert all(began <= fault.line <= began + odd.count("\n") for fault in found)
