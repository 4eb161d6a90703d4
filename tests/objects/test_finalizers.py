"""Finalizers run in the middle of anything: nothing waits for itself, is lost, or used too late."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import objective_c
import simulations
from nbxrt.objects import state

if TYPE_CHECKING:
    from nbxrt.runtime import Runtime

#: A backend, and the models of its simulated devices where there are several.
KINDS = {
    "host": ("host", ()),
    "cuda": ("cuda", ()),
    "level_zero": ("level_zero", ()),
    "opencl": ("opencl", ()),
    "opencl with coarse memory": ("opencl", ("coarse_svm",)),
    "opencl with buffer objects": ("opencl", ("buffers",)),
    "metal": ("metal", ()),
}
NEEDS = {"metal": [pytest.mark.needs("gobjc")], "host": []}
#: Each so many calls; the numbers have no common divisor with how often a loop comes round.
STRIDES = {"fast": 211, "all": 11, "nightly": 1}
#: Every single call takes minutes on some kinds.
SECONDS = {"fast": 100, "all": 100, "nightly": 1200}
TIER = os.environ.get("NBXRT_TEST_TIER", "fast")


def kinds() -> list[Any]:
    fast = ("cuda", "opencl")
    return [
        pytest.param(
            kind, marks=[*NEEDS.get(kind, simulations.NEEDED), *([] if kind in fast else [pytest.mark.tier("all")])]
        )
        for kind in KINDS
    ]


@pytest.mark.timeout(SECONDS[TIER] + 20)
@pytest.mark.parametrize("kind", kinds())
def test_finalizers_run_in_the_middle_of_any_call(kind: str) -> None:
    name, models = KINDS[kind]
    environment = objective_c.Stub(objective_c.compiled()).environment() if name == "metal" else {}
    program = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import finalizing

        finalizing.on({name!r}, {STRIDES[TIER]}, *{models})
    """

    done = simulations.run(program, environment, SECONDS[TIER])

    assert (done.returncode, done.stderr) == (0, "")


def test_a_finalizer_that_needs_what_is_just_made_does_not_wait_for_it(
    host: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    make = state.State.__init__

    def making(self: Any, runtime: Runtime) -> None:
        if not made:
            made.append(self)
            made.append(state.state_of(runtime))  # as the finalizer of an object does
        make(self, runtime)

    monkeypatch.setattr(state.State, "__init__", making)
    monkeypatch.setattr(host, "objects", None)

    assert state.state_of(host) is made[1] is host.objects
