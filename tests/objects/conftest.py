"""Runtimes that objects are tried on: host memory and simulated vendors, each in force for one test."""

from __future__ import annotations

import ctypes
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import simulations
from nbxrt import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

VERSIONS = {"cuda": "12.9", "hip": "7.1"}


def needs_simulation(*values: str) -> list[Any]:
    """Backends as parameters; simulated ones need a compiler."""
    return [pytest.param(value, marks=simulations.NEEDED if value in VERSIONS else ()) for value in values]


@pytest.fixture
def simulated(simulate: Callable[..., Simulation]) -> Callable[..., Simulation]:
    """Builds the simulation of a backend by its name."""

    def build(backend: str, **options: Any) -> Simulation:
        return simulate(backend, VERSIONS[backend], **options)

    return build


@pytest.fixture
def in_force() -> Iterator[Callable[[Runtime], Runtime]]:
    """Puts a runtime in force until the end of the test."""
    used = []

    def put(runtime: Runtime) -> Runtime:
        used.append(nbxrt.use(runtime))
        used[-1].__enter__()
        return runtime

    yield put
    for each in reversed(used):
        each.__exit__(None, None, None)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Simulation]:
    """Builds each simulation once in a run and opens it once: most tests ask for one, and building takes longer."""
    built: dict[str, Simulation] = {}
    opened: dict[str, Runtime] = {}

    def fresh(name: str) -> Simulation:
        if name not in built:
            built[name] = simulations.built(name, tmp_path_factory.mktemp(name), version=VERSIONS[name])
            opened[name] = built[name].open()
            built[name].runtime = opened[name]  # type: ignore[attr-defined]
        built[name].reset()
        if name == "cuda":  # the runtime that stays open does not start its driver a second time
            ctypes.CDLL(str(built[name].paths["driver"])).cuInit(0)
            built[name].clear()
        opened[name].objects = opened[name].account = None
        vars(opened[name].current).clear()
        return built[name]

    return fresh


#: A backend whose drivers are real, such as a card's: the tests that are for any backend are run on it, and no others.
#: test_drivers.py names it to the runs that it starts.
ELSEWHERE = os.environ.get("NBXRT_TEST_OBJECTS_ON", "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ELSEWHERE:
        for_any = [item for item in items if {"runtime", "backend"} & set(getattr(item, "fixturenames", ()))]
        config.hook.pytest_deselected(items=[item for item in items if item not in for_any])
        items[:] = for_any


@pytest.fixture(params=[ELSEWHERE] if ELSEWHERE else needs_simulation("host", "cuda", "hip"))
def runtime(
    request: pytest.FixtureRequest,
    kept: Callable[[str], Simulation],
    in_force: Callable[[Runtime], Runtime],
    no_garbage: None,
) -> Runtime:
    """Host memory and each simulated vendor, in force."""
    if not ELSEWHERE and request.param != "host":
        return in_force(kept(request.param).runtime)  # type: ignore[attr-defined]
    opened = nbxrt.open(request.param)
    opened.set_device(0)
    opened.current.__dict__.clear()
    return in_force(opened)


@pytest.fixture(params=needs_simulation("cuda", "hip"))
def simulation(
    request: pytest.FixtureRequest,
    kept: Callable[[str], Simulation],
    in_force: Callable[[Runtime], Runtime],
    no_garbage: None,
) -> Simulation:
    """Each simulated vendor, whose runtime is in force; a test can ask it for its records."""
    built = kept(request.param)
    in_force(built.runtime)  # type: ignore[attr-defined]
    return built


def _backends() -> list[Any]:
    """Backends for tests that start processes; one is enough for the fast tier."""
    if ELSEWHERE:
        return [ELSEWHERE]
    full = pytest.mark.tier("all")
    return [
        pytest.param("cuda", marks=simulations.NEEDED),
        pytest.param("host", marks=full),
        pytest.param("hip", marks=[*simulations.NEEDED, full]),
    ]


@pytest.fixture(params=_backends())
def backend(request: pytest.FixtureRequest) -> Simulation | str:
    """A backend for other processes: the name of a real one, or a simulation."""
    if ELSEWHERE or request.param == "host":
        return str(request.param)
    built: Simulation = request.getfixturevalue("simulated")(request.param)
    return built


@pytest.fixture
def held(no_garbage: None) -> Callable[[], int]:
    """Says how many blocks of device memory somebody holds, as the account counts small ones."""

    def blocks() -> int:
        account = memory.account()
        return sum(account.memory_allocated(device) for device in range(account.device_count())) // 512

    return blocks


@pytest.fixture
def host(in_force: Callable[[Runtime], Runtime]) -> Runtime:
    """Host memory, in force."""
    return in_force(nbxrt.open("host"))


@pytest.fixture
def cuda(kept: Callable[[str], Simulation], in_force: Callable[[Runtime], Runtime], no_garbage: None) -> Simulation:
    """One simulated vendor in force, for what is not the vendor's business."""
    built = kept("cuda")
    in_force(built.runtime)  # type: ignore[attr-defined]
    return built


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in a process of its own, that uses a backend or a simulation; what became of it."""

    def program(text: str, backend: Simulation | str = "host", **settings: object) -> subprocess.CompletedProcess[str]:
        if isinstance(backend, str):
            libraries = {
                name: value for name, value in os.environ.items() if name.startswith(f"NBXRT_{backend.upper()}_")
            }
            return simulations.run(text, {"NBX_GPU_BACKEND": backend} | libraries)
        return simulations.run(text, {"NBX_GPU_BACKEND": backend.name} | backend.environment(**settings))

    return program


@pytest.fixture
def in_thread() -> Callable[[Callable[[], Any]], Any]:
    """Calls a function in a fresh thread; its answer, or its exception raised here."""

    def call(function: Callable[[], Any]) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(function).result()

    return call
