"""Which engine a process belongs to, where it belongs to none, or the engine's package is missing."""

from __future__ import annotations

import importlib.util

import pytest

import nbxrt.distributed as dist
from nbxrt import errors
from nbxrt.distributed.worlds import find_world


def test_a_process_that_no_engine_started_has_no_rank() -> None:
    with pytest.raises(errors.ArgumentValueError, match="no engine has started this process, so that it has no rank"):
        find_world(None, 1, {})


def test_an_engine_is_one_that_there_is() -> None:
    with pytest.raises(errors.ArgumentValueError, match="`engine` is one of mpi, ray, not 'nccl'"):
        dist.init("nccl")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_a_timeout_is_a_time(timeout: object) -> None:
    with pytest.raises(errors.ArgumentError, match="`timeout` is "):
        dist.init("mpi", timeout=timeout)  # type: ignore[arg-type]


def test_a_runtime_is_no_name_of_one() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="`unique_id` takes a runtime, not str 'cuda'"):
        dist.unique_id("cuda")  # type: ignore[arg-type]


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is not None, reason="mpi4py is installed here")
def test_the_package_of_the_engine_is_named_where_it_is_missing() -> None:
    with pytest.raises(
        errors.CapabilityError, match="PMI_SIZE is 4, and the package `mpi4py` is not installed"
    ) as caught:
        find_world(None, 1, {"PMI_SIZE": "4"})

    assert caught.value.hint == "`pip install nbxrt[mpi]`"


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
def test_workers_of_ray_need_ray() -> None:
    with pytest.raises(errors.CapabilityError, match="the package `ray` is not installed"):
        dist.ray.run(print, workers=2)
