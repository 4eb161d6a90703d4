"""Accounts over simulated devices, and what they leave behind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.simulation import Simulation


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "memory":
            item.add_marker(pytest.mark.needs("cc"))
            item.add_marker(
                pytest.mark.skipif(sys.platform == "win32", reason="simulations are built on Linux and macOS")
            )


@pytest.fixture
def simulation(simulate: Callable[..., Simulation]) -> Simulation:
    """A vendor library with two devices of 1 GiB."""
    return simulate("cuda", "12.9", devices=2, memory=1 << 30)


@pytest.fixture
def account(simulation: Simulation) -> Iterator[nbxrt.DeviceAllocator]:
    """The account of the runtime in force, which is the simulation's."""
    with nbxrt.use(simulation.open()):
        yield memory.account()
