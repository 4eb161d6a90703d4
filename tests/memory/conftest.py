"""Accounts over simulated devices, and what they leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import simulations
from nbxrt import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.simulation import Simulation

POLICIES = ("direct", "caching", "stream_ordered", "expandable")
#: What counts as memory on the books of a simulated library.
MEMORY = {"device", "pool", "mapped", "pinned", "allocation", "range"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    simulations.mark(items, "memory")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    """A vendor library, built once for the tests of a module."""
    return simulations.built("cuda", tmp_path_factory.mktemp("library"), version="12.9")


@pytest.fixture
def simulation(library: Simulation, no_garbage: None) -> Simulation:
    """The library as new, with two devices of 1 GiB."""
    library.reset()
    library.memory = 1 << 30
    return library


@pytest.fixture
def runtime(simulation: Simulation) -> Iterator[nbxrt.Runtime]:
    """The runtime in force, which is the simulation's."""
    with nbxrt.use(simulation.open()) as runtime:
        yield runtime


@pytest.fixture(params=POLICIES)
def account(request: pytest.FixtureRequest, runtime: nbxrt.Runtime) -> nbxrt.DeviceAllocator:
    """The account of the runtime in force, with each policy."""
    runtime.account = nbxrt.DeviceAllocator(runtime, request.param)
    return memory.account()


@pytest.fixture(params=["caching", "expandable"])
def pool(request: pytest.FixtureRequest, runtime: nbxrt.Runtime) -> nbxrt.DeviceAllocator:
    """An account whose policy keeps a pool of its own."""
    return nbxrt.DeviceAllocator(runtime, request.param)


@pytest.fixture
def left(simulation: Simulation) -> Callable[[], list[Any]]:
    """What the vendor's library has on its books beside handles, once all work is done."""

    def ask() -> list[Any]:
        simulation.advance()
        return [live for live in simulation.ledger() if live.kind in MEMORY]

    return ask


@pytest.fixture
def calls(simulation: Simulation) -> Callable[[], list[str]]:
    """The operations that were called since the last look."""

    def ask() -> list[str]:
        made = [call.operation for call in simulation.log()]
        simulation.clear()
        return made

    return ask


@pytest.fixture
def run(library: Simulation) -> Callable[..., tuple[int, str]]:
    """Runs a program in a process of its own on the simulation; its exit code and what it wrote to standard error."""

    def program(text: str, **settings: object) -> tuple[int, str]:
        own = {name: str(settings.pop(name)) for name in list(settings) if name.startswith("NBXRT_")}
        done = simulations.run(text, library.environment(**settings) | own | {"NBX_GPU_BACKEND": "cuda"})
        return done.returncode, done.stderr

    return program
