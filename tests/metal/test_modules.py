"""Modules and launches as people write them (`nbxrt.Module`, `nbxrt.launch`) on the stand-in for Metal."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
from nbxrt import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objective_c import Stub

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("gobjc")]

SOURCE = (Path(__file__).parents[2] / "scripts" / "images" / "metal.msl").read_text("utf-8")
ONES = np.ones(64, "uint32")


@pytest.fixture
def metal(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in stub.environment().items():
        monkeypatch.setenv(name, value)
    yield nbxrt.open("metal")
    nbxrt.Device(0).sync()
    memory.account().trim()
    nbxrt.reset()


@pytest.mark.parametrize("image", [SOURCE, b"MTLB" + SOURCE.encode()], ids=["source", "metallib"])
def test_a_kernel_adds_arrays_and_a_part_of_one(metal: Any, image: Any) -> None:
    add = nbxrt.Module(image).get_function("add")
    ones, sums = nbxrt.from_numpy(ONES), nbxrt.zeros(64, "uint32")

    nbxrt.launch(add, (2,), (32,), [ones, ones, sums, ("u32", 64)])
    nbxrt.launch(add, (1,), (32,), [ones, sums[32:], sums[:32], np.uint32(32)])

    assert sums.numpy().tolist() == [3] * 32 + [2] * 32
    assert add.attribute("max_threads_per_block") > 0


def test_an_address_is_bound_as_memory_whatever_its_type(metal: Any) -> None:
    add = nbxrt.Module(SOURCE).get_function("add")
    ones, sums = nbxrt.from_numpy(ONES), nbxrt.zeros(64, "uint32")

    nbxrt.launch(
        add, (1,), (64,), [ctypes.c_void_p(ones.ptr), ctypes.c_uint64(ones.ptr), ("u64", sums.ptr), ("u32", 64)]
    )

    assert sums.numpy().tolist() == [2] * 64


def test_a_kernel_runs_on_the_stream_that_is_given_or_current(stub: Stub, metal: Any) -> None:
    add = nbxrt.Module(SOURCE).get_function("add")
    ones, sums = nbxrt.from_numpy(ONES), nbxrt.zeros(64, "uint32")
    nbxrt.Device(0).sync()  # no stream waits for the default one
    with stub.held():
        with nbxrt.Stream() as stream:
            for _turn in range(5):
                nbxrt.launch(add, (1,), (64,), [sums, ones, sums, ("u32", 64)])
        for _turn in range(5):
            nbxrt.launch(add, (1,), (64,), [sums, ones, sums, ("u32", 64)], stream=stream)
        is_done = stream.query()

    stream.sync()

    assert (is_done, sums.numpy().tolist()) == (False, [10] * 64)


def test_a_module_goes_with_what_uses_it(stub: Stub, metal: Any) -> None:
    nbxrt.Device(0).sync()
    before = stub.live_by_class
    add = nbxrt.Module(SOURCE).get_function("add")
    assert stub.live_by_class != before

    del add

    assert stub.live_by_class == before
