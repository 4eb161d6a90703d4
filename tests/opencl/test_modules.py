"""Modules and launches as people write them (`nbxrt.Module`, `nbxrt.launch`) on real drivers of OpenCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opencl import spirv

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("opencl")]

DRIVERS = pytest.mark.parametrize("driver", ["pocl", "intel", "pocl-buffers", "intel-buffers"])

#: Kernels with arguments of every kind.
KINDS = """
KINDS = b'''
__kernel void scaled(__global const float *in, __global float *out, float by, long shift, uchar most,
                     __local float *mine) {
    size_t i = get_global_id(0);
    mine[get_local_id(0)] = in[i] * by;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = most == 255 ? mine[get_local_id(0)] + shift : -1;
}'''
import numpy as np
nbxrt.open("opencl")
"""


@DRIVERS
def test_a_kernel_takes_arrays_scalars_and_memory_of_a_block(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        KINDS
        + """
scaled = nbxrt.Module(KINDS).get_function("scaled")
source, out = nbxrt.from_numpy(np.arange(8, dtype="float32")), nbxrt.zeros(8)
nbxrt.launch(scaled, (2,), (4,), [source, out, ("fp32", 0.5), ctypes.c_int64(-3), np.uint8(255), ("u32", 16)])
said(out=out.numpy().tolist(), threads=scaled.attribute("max_threads_per_block") > 0)
""",
    )

    assert found == {"out": [index * 0.5 - 3 for index in range(8)], "threads": True}


@DRIVERS
def test_a_kernel_runs_on_the_stream_that_is_given_or_current(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        import numpy as np
        nbxrt.open("opencl")
        add = nbxrt.Module(SOURCE.decode()).get_function("add")
        ones, sums = nbxrt.from_numpy(np.ones(4096, "uint32")), nbxrt.zeros(4096, "uint32")
        nbxrt.Device(0).sync()          # no stream waits for the default one
        with nbxrt.Stream() as stream:
            for _turn in range(5): nbxrt.launch(add, (64,), (64,), [sums, ones, sums, ("u32", 4096)])
        for _turn in range(5): nbxrt.launch(add, (64,), (64,), [sums, ones, sums, ("u32", 4096)], stream=stream)
        stream.sync()
        said(sums=sorted(set(sums.numpy().tolist())))
        """,
    )

    assert found == {"sums": [10]}


@DRIVERS
def test_what_is_wrong_with_a_module_or_a_launch_is_said(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        nbxrt.open("opencl")
        module = nbxrt.Module(SOURCE)
        add, refused = module.get_function("add"), []
        def no_such(): module.get_function("no_such")
        def no_global(): module.get_global("table")
        def too_few(): nbxrt.launch(add, (1,), (1,), [nbxrt.zeros(1)])
        def untyped(): nbxrt.launch(add, (1,), (1,), [1])
        def no_code(): nbxrt.Module("__kernel void f(\\n")
        def closed(): module.close(); nbxrt.launch(add, (1,), (1,), [])
        for use in (no_such, no_global, too_few, untyped, no_code, closed):
            try: use()
            except nbxrt.NbxrtError as error: refused.append([type(error).__name__, error.summary])
        said(refused=refused)
        """,
    )

    assert [kind for kind, _said in found["refused"]] == [
        "DeviceError", "CapabilityError", "ArgumentValueError", "ArgumentTypeError", "DeviceError",
        "ArgumentValueError",
    ]  # fmt: skip
    assert "the kernel takes 4 arguments, not 1" in found["refused"][2][1]


def test_a_module_of_spirv_is_loaded_where_the_driver_takes_it(run: Callable[..., Any]) -> None:
    program = f"""
        import numpy as np
        nbxrt.open("opencl")
        add = nbxrt.Module({spirv.module()!r}).get_function("add")
        ones, sums = nbxrt.from_numpy(np.ones(64, "uint32")), nbxrt.zeros(64, "uint32")
        nbxrt.launch(add, (1,), (64,), [ones, ones, sums, ("u32", 64)])
        said(sums=sorted(set(sums.numpy().tolist())))
    """

    assert run("intel", program) == {"sums": [2]}


@DRIVERS
def test_a_module_goes_with_what_uses_it(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        """
        runtime = nbxrt.open("opencl")
        add = nbxrt.Module(SOURCE).get_function("add")
        policy = runtime._binder.policy("kernels")
        before = len(policy._modules), len(policy._functions)
        del add
        said(before=before, after=(len(policy._modules), len(policy._functions)))
        """,
    )

    assert found == {"before": [1, 1], "after": [0, 0]}
