"""Simulated machines with a management library, and the runtime of one in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import nbxrt
import simulations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nbxrt.simulation import Simulation

Opened = tuple["Simulation", nbxrt.Runtime]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    simulations.mark(items, "management")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/proc/self of a process that lives in no pid namespace; a test may write another one."""
    folder = tmp_path / "root" / "proc" / "self"
    folder.mkdir(parents=True)
    monkeypatch.setenv("NBXRT_SYSROOT", str(tmp_path / "root"))
    return folder


@pytest.fixture
def opened(simulate: Callable[..., Simulation], proc: Path) -> Iterator[Callable[..., Opened]]:
    """Opens a simulated backend and puts it in force until the end of the test."""
    used: list[nbxrt.use] = []

    def open_it(backend: str = "cuda", version: str | dict[str, str] = "12.9", **options: object) -> Opened:
        simulation = simulate(backend, version, **options)
        runtime = simulation.open()
        scope = nbxrt.use(runtime)
        scope.__enter__()
        used.append(scope)
        return simulation, runtime

    yield open_it
    for scope in reversed(used):
        scope.__exit__(None, None, None)
