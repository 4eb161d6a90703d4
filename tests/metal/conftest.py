"""The stand-in for Metal.framework, compiled once, as every test of this folder finds it: idle, with one device."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import objective_c

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def compiled_stub() -> objective_c.Stub:
    return objective_c.Stub(objective_c.compiled())


@pytest.fixture
def stub(compiled_stub: objective_c.Stub, no_garbage: None) -> Iterator[objective_c.Stub]:
    """Nothing may be left behind: no object, no reference to a device, nothing autoreleased without a pool."""
    compiled_stub.reset()
    before = (compiled_stub.live_by_class, compiled_stub.device_references, compiled_stub.unpooled)
    yield compiled_stub
    gc.collect()
    compiled_stub.reset()
    end = time.monotonic() + 60
    while compiled_stub.live_by_class != before[0] and time.monotonic() < end:
        time.sleep(0.001)  # the threads of the framework let go of what they worked at
    assert (compiled_stub.live_by_class, compiled_stub.device_references, compiled_stub.unpooled) == before


@pytest.fixture
def metal(stub: objective_c.Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The backend over the stand-in."""
    for name, value in stub.environment().items():
        monkeypatch.setenv(name, value)
    yield nbxrt.open("metal")
    nbxrt.reset()
