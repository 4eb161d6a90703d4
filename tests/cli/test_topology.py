"""`nbxrt topology`: the devices of this host, and how they reach each other."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import simulations
from nbxrt.distributed.topology import numa_node

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import CommandLine
    from nbxrt.simulation import Simulation

pytestmark = [*simulations.NEEDED]


@pytest.fixture
def three(cli: CommandLine, simulate: Callable[..., Simulation]) -> CommandLine:
    """A machine with three simulated devices."""
    cli.environment |= simulate("cuda", "12.9", devices=3, memory=1 << 30).environment()
    return cli


def test_every_pair_of_devices_has_its_path(three: CommandLine) -> None:
    ended = three("topology", "cuda")

    lines = ended.out.splitlines()
    assert ended.code == 0
    assert lines[0] == f"NVIDIA CUDA on {socket.gethostname()}: 3 devices"
    assert [line.split(",")[0] for line in lines[1:4]] == [
        f"  {index}   Simulated device {index}" for index in range(3)
    ]
    assert lines[5:] == [
        "copies, from each row to each column",
        "      0     1     2",
        "  0   -     peer  peer",
        "  1   peer  -     peer",
        "  2   peer  peer  -",
        "",
        "what lies between them, by the management library",
        "      0                      1                      2",
        "  0   -                      own links, one switch  own links, system",
        "  1   own links, one switch  -                      own links, system",
        "  2   own links, system      own links, system      -",
    ]


@pytest.mark.tier("all")
def test_copies_are_measured_on_request(three: CommandLine) -> None:
    ended = three("topology", "cuda", "--measure", "--json")

    found = json.loads(ended.out)
    assert [(pair["from"], pair["to"], pair["path"]) for pair in found["pairs"]][:2] == [(0, 1, "peer"), (0, 2, "peer")]
    assert all(pair["gigabytes_per_second"] > 0 for pair in found["pairs"])
    assert re.search(r"peer \d+ GB/s", three("topology", "cuda", "--measure").out)


def test_looking_gives_no_device_a_context(three: CommandLine, tmp_path: Path) -> None:
    three("topology", "cuda", NBXRT_SIM_LOG=str(tmp_path / "log"))

    operations = {line.split("\t")[2] for line in (tmp_path / "log").read_text().splitlines()}
    assert operations.isdisjoint({"set_device", "malloc", "device_enable_peer_access", "sync"})


def test_the_host_is_one_device_and_reaches_nobody(cli: CommandLine) -> None:
    ended = cli("topology", "host")

    assert ended.code == 0
    assert ended.out == f"Host memory on {socket.gethostname()}: 1 device\n  0   host memory\n"


def test_the_system_says_which_memory_is_next_to_a_device(tmp_path: Path) -> None:
    folder = tmp_path / "sys" / "bus" / "pci" / "devices" / "0000:3b:00.0"
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text("1\n")

    assert numa_node("0000:3B:00.0", str(tmp_path)) == 1
    (folder / "numa_node").write_text("-1\n")
    assert numa_node("00000000:3b:00.0", str(tmp_path)) is None
    assert numa_node("", str(tmp_path)) is None
