"""`nbxrt demo`."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING

import pytest

from nbxrt.catalogue.sources import data_folder
from nbxrt.cli.demo.payload import PIECE

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CommandLine, Ended, Toy

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the nodes of Linux")

LEGS = ("pageable to device", "device to pageable", "pinned to device", "device to pinned")


def _said(ended: Ended, label: str) -> str:
    """What stands behind a label."""
    return next(line for line in ended.out.splitlines() if line.startswith(f"  {label:<12}"))[14:]


def _digest(content: bytes) -> str:
    """The digest of a small file's bytes as they are moved: repeated to one piece."""
    return hashlib.sha256((content * (PIECE // len(content) + 1))[:PIECE]).hexdigest()


def test_without_a_gpu_the_bytes_move_in_host_memory_and_it_is_said(demonstrated: Ended) -> None:
    assert demonstrated.code == 0
    assert _said(demonstrated, "no GPU") == "no GPU is used: the bytes move inside host memory"
    assert _said(demonstrated, "backend") == "host (Host memory)"
    assert "metal: Apple Metal does not run on linux" in demonstrated.out or sys.platform != "linux"
    assert demonstrated.out.endswith("64 MiB went there and back by host, and every byte is the same.\n")


def test_every_leg_has_a_time_and_a_bandwidth(demonstrated: Ended) -> None:
    lines = [line for line in demonstrated.out.splitlines() if line[2:22].strip() in LEGS]
    rows = {line[2:22].strip(): line[22:].split() for line in lines}

    assert tuple(rows) == LEGS
    assert {(row[0], row[1], row[3], row[5]) for row in rows.values()} == {("64", "MiB", "ms", "GB/s")}
    assert all(float(row[2]) > 0 and float(row[4]) > 0 for row in rows.values())


def test_without_a_file_the_contract_is_moved(demonstrated: Ended) -> None:
    content = (data_folder("schema") / "operations.yaml").read_bytes()

    assert _said(demonstrated, "file").startswith("schema/operations.yaml of nbxrt itself, ")
    assert _said(demonstrated, "SHA-256") == _digest(content)


def test_a_users_file_is_moved(bare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "mine.bin").write_bytes(bytes(range(256)) * 5)

    ended = bare("demo", "mine.bin")

    assert ended.code == 0
    assert _said(ended, "file") == "mine.bin, 1.2 KiB, repeated to 64 MiB"
    assert _said(ended, "SHA-256") == _digest(bytes(range(256)) * 5)


def test_a_file_larger_than_one_piece_is_moved_as_it_is(bare: CommandLine, tmp_path: Path) -> None:
    content = hashlib.sha256(b"seed").digest() * ((PIECE + 4096) // 32) + b"end"
    (tmp_path / "large.bin").write_bytes(content)

    ended = bare("demo", "large.bin")

    assert ended.code == 0
    assert "repeated" not in _said(ended, "file")
    assert _said(ended, "SHA-256") == hashlib.sha256(content).hexdigest()


def test_the_operations_that_were_used_are_named(demonstrated: Ended) -> None:
    used = demonstrated.out.partition("  used ")[2].partition("\n\n")[0].replace("\n", " ").replace(",", "").split()

    assert {"malloc", "malloc_host", "memcpy", "memcpy_async", "free", "free_host"} <= set(used)


@pytest.mark.parametrize("content", [b"", None], ids=["empty file", "folder"])
def test_what_has_no_bytes_is_misuse(bare: CommandLine, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "mine.bin").write_bytes(content)

    ended = bare("demo", "mine.bin" if content is not None else tmp_path)

    assert (ended.code, ended.out) == (2, "")


def test_a_forced_backend_is_used_and_the_variable_named(bare: CommandLine) -> None:
    ended = bare("demo", NBX_GPU_BACKEND="host")

    assert _said(ended, "why") == "NBX_GPU_BACKEND says so"
    assert "not used" not in ended.out


def test_an_unknown_forced_backend_is_misuse(bare: CommandLine) -> None:
    ended = bare("demo", NBX_GPU_BACKEND="hots")

    assert ended.code == 2
    assert ended.err.startswith("error[backend-not-found]: NBX_GPU_BACKEND='hots' is not a known backend")


@on_linux
@pytest.mark.needs("cc")
def test_a_gpu_is_preferred_and_described(toy: Toy) -> None:
    run = toy.add()

    ended = run("demo")

    assert ended.code == 0
    assert _said(ended, "backend") == "toy (Toy)"
    assert _said(ended, "device") == "0 of 2, Toy 0, 3 GiB of 4 GiB free, PCI 0000:01:00.0"
    assert "no GPU" not in ended.out
    assert ended.out.endswith("64 MiB went there and back by toy, and every byte is the same.\n")


@on_linux
@pytest.mark.needs("cc")
def test_bytes_that_differ_are_a_finding(toy: Toy) -> None:
    run = toy.add(operations={"memcpy": "toyWrong"})

    ended = run("demo")

    assert ended.code == 1
    assert _said(ended, "pageable") == "differs"
    assert _said(ended, "pinned") == "the same SHA-256 after the round trip"
    assert ended.out.endswith("Bytes differ after the round trip by toy.\n")


@on_linux
@pytest.mark.needs("cc")
def test_a_backend_without_pinned_memory_moves_the_bytes_by_pageable_memory(toy: Toy) -> None:
    run = toy.add(without=["malloc_host", "free_host"])

    ended = run("demo")

    assert ended.code == 0
    assert _said(ended, "pinned") == "not tried: Toy offers no pinned memory"


@on_linux
@pytest.mark.needs("cc")
def test_a_card_whose_runtime_counts_no_device_is_not_used_and_its_words_are_quoted(toy: Toy) -> None:
    run = toy.add(operations={"device_count": "toyNone", "mem_get_info": "toyNoDevice"})

    ended = run("demo")

    assert ended.code == 0
    assert _said(ended, "backend") == "host (Host memory)"
    assert "but its runtime counts no device: `mem_get_info` failed: TOY_OTHER (100)" in " ".join(ended.out.split())
