"""Whatever bytes a file holds: no other exception, no hang over a second, no memory over 200 MB."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbxrt.catalogue import reading, validation
from nbxrt.catalogue.sources import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.catalogue.contract import Contract

MEGABYTE = 1_000_000
SECONDS = {"fast": 2, "all": 30, "nightly": 600}
TIER = os.environ.get("NBXRT_TEST_TIER", "fast")

HOST = (data_folder("backends") / "host.yaml").read_bytes().decode()


@pytest.mark.timeout(SECONDS[TIER] + 120)
def test_fuzzed_bytes_are_read_or_refused_in_bounds(python: Callable[..., Any]) -> None:
    seed = time.time_ns() if TIER == "nightly" else 1  # the other tiers judge a change and not its luck

    ended = python(Path(__file__).parent / "fuzzing.py", SECONDS[TIER], seed)

    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-8000:]}"
    seen = json.loads(ended.stdout)
    assert seen["examples"] >= 100
    assert seen["slowest_s"] < 1, seen["slowest"]
    assert seen["memory"] < 200 * MEGABYTE


def many(count: int, item: str) -> str:
    return ", ".join(item.format(number=number) for number in range(count))


#: What stands in the host's file, and what takes its place: a list or mapping about as long as may be read.
HEAVY = {
    "names without a file": ("search: [process", "search: [" + many(20_000, "{{}}") + ", process"),
    "unknown platforms": ("platforms: [", "platforms: [" + many(40_000, "x{number}") + ", "),
    "unknown keys": ("title: ", "\n".join(f"k{number}: 1" for number in range(20_000)) + "\ntitle: "),
    "unknown operations": ("  sync:", "\n".join(f"  k{number}: x" for number in range(20_000)) + "\n  sync:"),
    "words that are booleans elsewhere": ("title: ", "z: [" + many(40_000, "no") + "]\ntitle: "),
    "one code again and again": ("{out_of_memory: 12", "{unknown: [" + many(40_000, "3") + "], out_of_memory: 12"),
    "one step again and again": ("search: [process", "search: [" + many(15_000, "loaded") + ", process"),
    "ranges that overlap": (
        "operations:",
        "structs: {s: [" + many(4_000, "{{since: {number}, before: 9999, bytes: 8}}") + "]}\noperations:",
    ),
    "one long word": ("title: Host", "title: Host" + "a" * 900_000),
}


@pytest.mark.tier("all")
@pytest.mark.parametrize(("old", "new"), HEAVY.values(), ids=HEAVY.keys())
def test_a_file_of_the_largest_size_is_judged_within_a_second(
    old: str, new: str, contract: Contract, no_garbage: None
) -> None:
    content = HOST.replace(old, new, 1).encode()
    validation.check(reading.read(HOST.encode(), "x.yaml"), contract)
    start = time.process_time()

    scanned = reading.scan(content, "x.yaml")
    found = scanned.diagnostics
    if scanned.document is not None:
        found += validation.check(scanned.document, contract)
    shown = [fault.render() for fault in found]

    assert time.process_time() - start < 1
    assert len(shown) <= 2 * 500 + 100
