"""Snapshots: what PyTorch's memory viewer reads, the history behind them, and how they are drawn."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

import nbxrt
from nbxrt.cli.app import commands
from nbxrt.memory import layers

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20


def used(account: nbxrt.DeviceAllocator) -> list[int]:
    """Some use of an account, with something freed, something waiting and something held."""
    stream = account.runtime.stream_create()
    ptrs = [account.malloc(nbytes) for nbytes in (1000, 3 * MIB, 30 * MIB, 5 * MIB, 700)]
    account.runtime.memset_async(ptrs[1], 0, MIB, stream)
    account.record_use(ptrs[1], stream)
    for ptr in ptrs[1:3]:
        account.free(ptr)
    return [ptrs[0], *ptrs[3:]]


def test_the_blocks_of_a_segment_fill_it(account: nbxrt.DeviceAllocator) -> None:
    account.add_layer(layers.Tracking)
    held = used(account)

    snapshot = account.snapshot()

    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    assert {block["address"] for block in blocks if block["state"] == "active_allocated"} == set(held)
    for segment in snapshot["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        assert segment["blocks"][0]["address"] == segment["address"]
    assert sum(segment["allocated_size"] for segment in snapshot["segments"]) == account.memory_allocated()
    frames = next(block["frames"] for block in blocks if block["state"] == "active_allocated")
    assert (Path(frames[0]["filename"]).name, frames[1]["name"]) == ("test_snapshot.py", "used")


def test_what_is_reserved_is_in_segments(pool: nbxrt.DeviceAllocator) -> None:
    used(pool)

    snapshot = pool.snapshot()

    assert sum(segment["total_size"] for segment in snapshot["segments"]) == pool.memory_reserved()
    states = {block["state"] for segment in snapshot["segments"] for block in segment["blocks"]}
    assert states == {"active_allocated", "active_pending_free", "inactive"}


def test_events_are_remembered_in_the_viewers_words(pool: nbxrt.DeviceAllocator) -> None:
    pool.add_layer(layers.History)

    pool.free(pool.malloc(3 * MIB))
    pool.trim()

    grown, shrunk = ("map", "unmap") if pool.stats()["policy"] == "expandable" else ("alloc", "free")
    trace = pool.snapshot()["device_traces"][0]
    assert [event["action"] for event in trace] == [
        f"segment_{grown}", "alloc", "free_requested", "free_completed", f"segment_{shrunk}",
    ]  # fmt: skip
    assert [event["size"] for event in trace[1:4]] == [3 * MIB] * 3
    assert trace[1]["frames"][0]["name"] == "test_events_are_remembered_in_the_viewers_words"


def test_history_is_bounded(pool: nbxrt.DeviceAllocator) -> None:
    history = pool.add_layer(layers.History, most=10)

    for _turn in range(100):
        pool.free(pool.malloc(512))

    assert len(history.events) == 10


def test_a_snapshot_is_written_and_drawn(pool: nbxrt.DeviceAllocator, tmp_path: Path) -> None:
    pool.add_layer(layers.History)
    used(pool)
    pool.snapshot(tmp_path / "memory.pickle")

    done = CliRunner().invoke(
        commands, ["memory", "plot", str(tmp_path / "memory.pickle"), "-o", str(tmp_path / "memory.svg")]
    )

    assert done.output == f"{tmp_path / 'memory.svg'}\n"
    picture = ET.fromstring((tmp_path / "memory.svg").read_text("utf-8"))  # noqa: S314  # our own
    kinds = [element.tag.rpartition("}")[2] for element in picture.iter()]
    assert kinds.count("polyline") == 2
    assert kinds.count("rect") >= 5


@pytest.mark.parametrize("suffix", [".svg", ".png", ".PNG"])
def test_a_picture_is_written_as_its_name_ends(pool: nbxrt.DeviceAllocator, tmp_path: Path, suffix: str) -> None:
    used(pool)
    pool.snapshot(tmp_path / "memory.pickle")
    picture = tmp_path / f"memory{suffix}"

    done = CliRunner().invoke(commands, ["memory", "plot", str(tmp_path / "memory.pickle"), "-o", str(picture)])

    assert done.exit_code == 0
    assert picture.read_bytes()[:4] == {".svg": b"<svg", ".png": b"\x89PNG"}[suffix.lower()]


@pytest.mark.parametrize("name", ["memory.jpg", "memory"])
def test_a_picture_of_another_kind_is_refused(pool: nbxrt.DeviceAllocator, tmp_path: Path, name: str) -> None:
    used(pool)
    pool.snapshot(tmp_path / "memory.pickle")

    done = CliRunner().invoke(commands, ["memory", "plot", str(tmp_path / "memory.pickle"), "-o", str(tmp_path / name)])

    assert done.exit_code == 2
    assert "a picture is written as .svg or .png" in done.output
    assert not (tmp_path / name).exists()


def test_a_place_where_no_picture_can_be_written_is_told_by_name(pool: nbxrt.DeviceAllocator, tmp_path: Path) -> None:
    used(pool)
    pool.snapshot(tmp_path / "memory.pickle")
    picture = tmp_path / "nowhere" / "memory.svg"

    done = CliRunner().invoke(commands, ["memory", "plot", str(tmp_path / "memory.pickle"), "-o", str(picture)])

    assert done.exit_code == 2
    assert f"Could not open file '{picture}': No such file or directory" in done.output


def test_a_device_that_the_snapshot_does_not_have_is_refused(pool: nbxrt.DeviceAllocator, tmp_path: Path) -> None:
    used(pool)
    pool.snapshot(tmp_path / "memory.pickle")
    command = ["memory", "plot", str(tmp_path / "memory.pickle"), "-o", str(tmp_path / "memory.svg"), "--device"]

    for device, said in (("7", "has nothing of device 7, but of 0"), ("-1", "-1")):
        done = CliRunner().invoke(commands, [*command, device])

        assert done.exit_code == 2
        assert said in done.output
    assert not (tmp_path / "memory.svg").exists()


def test_a_pickle_that_is_no_plain_data_is_not_followed(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return sys.exit, ("sprung",)

    (tmp_path / "trap").write_bytes(pickle.dumps({"segments": [Trap()]}))

    done = CliRunner().invoke(commands, ["memory", "plot", str(tmp_path / "trap"), "-o", str(tmp_path / "out.svg")])

    assert done.exit_code == 2
    assert "which is no plain data" in done.output
    assert not (tmp_path / "out.svg").exists()


def test_leaks_are_reported_at_exit_on_request(
    run: Callable[..., tuple[int, str]],
) -> None:
    code, said = run("""
        from nbxrt import memory
        from nbxrt.memory import layers
        account = memory.account()
        layers.report_at_exit(account.add_layer(layers.Tracking))
        account.free(account.malloc(100))
        account.malloc(5000)
    """)

    assert code == 0
    assert said.startswith("nbxrt: memory that was never freed\n5000 bytes in 1 block allocated at\n  <string>:7 ")
