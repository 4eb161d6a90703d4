"""The vendors and versions that simulations are built for, and programs that run in a process of their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import simulations

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

VERSIONS = [("cuda", "11.8"), ("cuda", "12.9"), ("cuda", "13.5"), ("hip", "5.2"), ("hip", "6.2"), ("hip", "7.1")]
#: What a change is told in two minutes by; the other versions differ from these in a few functions.
NEWEST = [("cuda", "13.5"), ("hip", "7.1")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    simulations.mark(items, "simulation")


@pytest.fixture(
    params=[
        pytest.param(each, id="-".join(each), marks=[] if each in NEWEST else pytest.mark.tier("all"))
        for each in VERSIONS
    ]
)
def simulation(request: pytest.FixtureRequest, simulate: Callable[..., Simulation]) -> Simulation:
    """Each vendor in each version."""
    backend, version = request.param
    return simulate(backend, version)


@pytest.fixture
def runtime(simulation: Simulation) -> Runtime:
    """The real binder on each vendor in each version."""
    return simulation.open()


@pytest.fixture
def cuda(simulate: Callable[..., Simulation]) -> Simulation:
    """One vendor, for what is the core's own business and not the vendor's."""
    return simulate("cuda", "12.9")


@pytest.fixture
def run() -> Callable[..., str]:
    """Runs a program in a process of its own that uses a simulation; what it printed. It must print no complaint."""

    def program(text: str, simulation: Simulation, **settings: object) -> str:
        done = simulations.run(text, simulation.environment(**settings))
        assert done.stderr == ""
        assert done.returncode == 0
        return done.stdout

    return program


@pytest.fixture
def run_in_thread() -> Callable[[Callable[[], Any]], Any]:
    """Calls a function in a fresh thread; its answer, or its exception raised here."""

    def run(function: Callable[[], Any]) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(function).result()

    return run
