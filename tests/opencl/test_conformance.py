"""The conformance suite on real drivers: PoCL by shared virtual memory, Intel's by unified, and both by less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opencl import spirv

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("opencl")]

CONFORM = """
from nbxrt import conformance
report = conformance.run(nbxrt.open("opencl"), module_image=conformance.ModuleImage(SOURCE))
said(
    wrong=[[row.check, row.detail] for row in report.wrong],
    skipped=[row.check for row in report.rows if row.outcome.value == "skipped"],
    works={row.group for row in report.rows if row.outcome.value == "works"} and
          sorted({row.group for row in report.rows if row.outcome.value == "works"}),
    counts=report.counts,
    model=nbxrt.open("opencl")._binder.listed().all()[0].model,
)
"""


@pytest.mark.parametrize(("driver", "model"), [("pocl", "svm"), ("intel", "usm")])
def test_the_whole_suite_passes(run: Callable[..., Any], driver: str, model: str) -> None:
    report = run(driver, CONFORM)

    assert report["model"] == model
    assert report["wrong"] == []
    assert report["skipped"] == ["each device has its own memory and streams"]
    assert {"device", "memory", "pinned", "managed", "stream", "event", "module"} <= set(report["works"])
    assert report["counts"]["works"] >= 73


#: Devices that no driver at hand has: a layer before the driver makes it so, and refuses what asks for more.
LESS = {
    "coarse": ("coarse_svm", "the host may not touch their memory without mapping it"),
    "buffers": ("buffers", "their memory is buffer objects, which have no address that host and device share"),
}


@pytest.mark.parametrize("driver", ["pocl", "intel"])
@pytest.mark.parametrize("layer", LESS)
def test_the_suite_passes_on_devices_with_less(run: Callable[..., Any], driver: str, layer: str) -> None:
    """Memory that the host may not touch without mapping it, or buffer objects alone and calls of OpenCL 1.2."""
    report = run(f"{driver}-{layer}", CONFORM)

    assert report["model"] == LESS[layer][0]
    assert report["wrong"] == []
    assert report["counts"]["works"] >= 50
    assert {"pinned", "managed"} & set(report["works"]) == set()
    assert {"device", "memory", "stream", "event", "module"} <= set(report["works"])


@pytest.mark.parametrize("driver", ["pocl", "intel"])
@pytest.mark.parametrize("layer", LESS)
def test_what_such_a_device_does_not_have_is_refused_with_the_reason(
    run: Callable[..., Any], driver: str, layer: str
) -> None:
    model, why = LESS[layer]
    program = """
        rt = nbxrt.open("opencl")
        refused = []
        for operation, given in (("malloc_host", (64,)), ("malloc_managed", (64,)), ("mem_prefetch", (4096, 64, 0, 0))):
            try: getattr(rt, operation)(*given)
            except nbxrt.CapabilityError as error: refused.append(error.summary)
        said(refused=refused, offered=[rt.supports(name) for name in ("malloc_host", "malloc_managed", "mem_prefetch")])
    """

    found = run(f"{driver}-{layer}", program)

    assert found["offered"] == [False] * 3
    assert found["refused"] == [
        f"`{operation}` is not offered by OpenCL for devices of the model `{model}`: {why}"
        for operation in ("malloc_host", "malloc_managed", "mem_prefetch")
    ]


def test_two_drivers_are_one_list_of_devices(run: Callable[..., Any]) -> None:
    found = run(
        "both",
        """
        rt = nbxrt.open("opencl")
        names = []
        for device in range(rt.device_count()):
            rt.set_device(device)
            source, target = ctypes.create_string_buffer(b"x" * 5000, 5000), ctypes.create_string_buffer(5000)
            address, stream = rt.malloc(5000), rt.stream_create()
            rt.memcpy_async(address, ctypes.addressof(source), 5000, "host_to_device", stream)
            rt.memcpy_async(ctypes.addressof(target), address, 5000, "device_to_host", stream)
            rt.stream_sync(stream)
            rt.set_device(0)             # what follows finds the device of the memory and the stream by itself
            rt.stream_destroy(stream)
            rt.free(address)
            names.append([rt.device_name(device), source.raw == target.raw])
        models = [state.model for state in rt._binder.listed().all()]
        said(names=names, models=models, pinned=[rt.free_host(rt.malloc_host(64))])
        """,
    )

    assert sorted(found["models"]) == ["svm", "usm"]
    assert [copied for _name, copied in found["names"]] == [True, True]
    assert len({name for name, _copied in found["names"]}) == 2


def test_kernels_of_spirv_run_where_the_driver_takes_them(run: Callable[..., Any]) -> None:
    """PoCL of Debian is built without; its answer is an error, and no crash."""
    program = f"""
        from nbxrt import conformance
        image = {spirv.module()!r}
        rt = nbxrt.open("opencl")
        report = conformance.run(rt, groups=["module"], module_image=conformance.ModuleImage(image))
        said(wrong=[[row.check, row.detail] for row in report.wrong],
             works=[row.check for row in report.rows if row.outcome.value == "works"])
    """

    found = run("intel", program)

    assert found["wrong"] == []
    assert {"a kernel adds two vectors", "a launch is ordered on its stream"} <= set(found["works"])
    refused = run(
        "pocl",
        f"""
        try: nbxrt.open("opencl").module_load({spirv.module()!r})
        except nbxrt.DeviceError as error: said(operation=error.operation, symbol=error.symbol)
        """,
    )
    assert refused == {"operation": "module_load", "symbol": "clCreateProgramWithIL"}
