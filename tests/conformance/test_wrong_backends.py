"""The suite can fail: backends that are wrong in one way each, and the checks that find it."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt
from nbxrt import conformance
from nbxrt.catalogue.sources import data_folder
from toys import open_toy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What is wrong with a backend on the C library, and checks that must find it.
MUTANTS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "memset does nothing": (
        {"memset": {"value": "success"}},
        {"a fill writes the lowest byte of its value", "anything with an index is an integer"},
    ),
    "memset always writes 0": (
        {
            "memset": {
                "call": "memset",
                "args": ["address", {"int": 0}, "nbytes"],
                "ignores": ["value"],
                "returns": "ignored",
            }
        },
        {"a fill writes the lowest byte of its value", "a fill touches only its range", "allocations do not overlap"},
    ),
    "memset_async does nothing": (
        {"memset_async": {"value": "success"}},
        {"asynchronous fills write the lowest byte of their value"},
    ),
    "memcpy takes source and destination the other way": (
        {"memcpy": {"call": "memmove", "args": ["src", "dst", "nbytes"], "ignores": ["kind"], "returns": "ignored"}},
        {"copies of every size come back unchanged", "copies inside the device move the bytes"},
    ),
    "memcpy moves one byte": (
        {
            "memcpy": {
                "call": "memmove",
                "args": ["dst", "src", {"size": 1}],
                "ignores": ["kind", "nbytes"],
                "returns": "ignored",
            }
        },
        {"copies of every size come back unchanged", "a large copy comes back unchanged"},
    ),
    "memcpy_async does nothing": (
        {"memcpy_async": {"value": "success"}},
        {
            "asynchronous copies come back unchanged",
            "work of a stream runs in the order in which it was given",
            "a stream that waits for an event sees the work before it",
            "a stream that says it has finished has finished",
        },
    ),
    "memory is aligned to 16 bytes": (
        {"malloc": {"call": "posix_memalign", "args": [{"out": "address"}, {"size": 16}, "nbytes"]}},
        {"addresses are multiples of 256"},
    ),
    "pool memory is aligned to 16 bytes": (
        {
            "malloc_async": {
                "call": "posix_memalign",
                "args": [{"out": "address"}, {"size": 16}, "nbytes"],
                "ignores": ["stream"],
            }
        },
        {"addresses of a pool are multiples of 256"},
    ),
    "the current device is one that is not there": (
        {"get_device": {"value": 3}},
        {"the device that was set is the current one", "each thread has its own current device"},
    ),
    "all streams are one": (
        {"stream_create": {"value": 16}},
        {"streams are made waited for and released"},
    ),
    "events have no time": (
        {"event_elapsed": {"value": 0}},
        {"times agree with the clock of the host", "an event never recorded has no time"},
    ),
    "an error is always stored": (
        {"get_last_error": {"value": 7}, "peek_last_error": {"value": 7}},
        {"a failure leaves no stored error", "waiting for an idle device returns"},
    ),
}


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    nbxrt.reset()


def _mutant(folder: Path, operations: dict[str, Any]) -> nbxrt.Runtime:
    """The host's backend with other operations."""
    file = yaml.safe_load((data_folder("backends") / "host.yaml").read_text("utf-8"))
    file["name"] = "mutant"
    file["operations"] |= operations
    path = folder / "mutant.yaml"
    path.write_text(yaml.safe_dump(file, sort_keys=False), "utf-8")
    return nbxrt.open(path)


#: So many run in every tier.
FIRST = 6


@pytest.mark.skipif(sys.platform == "win32", reason="the functions of POSIX")
@pytest.mark.parametrize(
    ("operations", "finders"),
    [
        pytest.param(*mutant, id=name, marks=[pytest.mark.tier("all")] if place >= FIRST else [])
        for place, (name, mutant) in enumerate(MUTANTS.items())
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, operations: dict[str, Any], finders: set[str]) -> None:
    groups = {check.group for check in conformance.checks() if check.name in finders}

    report = conformance.run(_mutant(tmp_path, operations), groups)

    assert finders <= {row.check for row in report.wrong}
    assert not report.ok


def test_a_wrong_row_says_what_was_expected_and_what_came(tmp_path: Path) -> None:
    report = conformance.run(_mutant(tmp_path, {"get_device": {"value": 3}}), groups=["device"])

    details = {row.check: row.detail for row in report.wrong}
    assert details["the device that was set is the current one"] == "get_device after set_device: expected 0, came 3"


#: A library whose current device belongs to the process, and which counts what is allocated.
SHARED = """
static int shared;
static int live;
int toySetShared(int device) { shared = device; return 0; }
int toyGetShared(int *device) { *device = shared; return 0; }
int toyMallocCounted(void **out, size_t n) {
    if (posix_memalign(out, 256, n)) return last = 2;
    __sync_fetch_and_add(&live, 1);
    return 0;
}
int toyFreeCounted(void *p) { __sync_fetch_and_sub(&live, 1); free(p); return 0; }
int toyFillNothing(void *p, int v, size_t n) { return 0; }
int toyLive(void) { return live; }
"""
COUNTED = {"malloc": "toyMallocCounted", "free": "toyFreeCounted"}


@pytest.mark.needs("cc")
def test_a_current_device_that_threads_share_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operations = {"set_device": "toySetShared", "get_device": "toyGetShared"}
    toy = open_toy(tmp_path, monkeypatch, SHARED, operations=operations)

    report = conformance.run(toy, groups=["device"])

    assert [row.check for row in report.wrong] == ["each thread has its own current device"]


@pytest.mark.needs("cc")
def test_an_error_that_stays_stored_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = open_toy(tmp_path, monkeypatch, SHARED, operations=COUNTED, status={"clear": {"call": "toySync"}})

    report = conformance.run(toy, groups=["error"])

    assert "a failure leaves no stored error" in [row.check for row in report.wrong]


@pytest.mark.needs("cc")
def test_checks_that_fail_release_what_they_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = open_toy(tmp_path, monkeypatch, SHARED, operations=COUNTED | {"memset": "toyFillNothing"})

    report = conformance.run(toy, groups=["memory", "pinned", "stream", "event"])

    assert len(report.wrong) > 3
    assert ctypes.CDLL(toy.library().path).toyLive() == 0


@pytest.mark.needs("cc")
def test_a_run_leaves_the_current_device_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = open_toy(tmp_path, monkeypatch, SHARED, operations=COUNTED)
    toy.set_device(1)

    report = conformance.run(toy, groups=["memory"], device=0)

    assert report.device == 0
    assert toy.get_device() == 1


@pytest.mark.needs("cc")
def test_without_a_device_nothing_works_and_nothing_is_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = "int toyNone(int *count) { return 100; }"
    toy = open_toy(tmp_path, monkeypatch, none, operations={"device_count": "toyNone"})

    report = conformance.run(toy, groups=["device", "memory"])

    assert report.counts["works"] == 0
    assert not report.ok
    assert report.rows[0].detail == "needs a device, and there is none"
