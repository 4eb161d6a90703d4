"""Launches by a configuration in memory, as the vendors' files lay it out."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt.launch.packing import Slots, grid_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

IMAGE = b"nbxrt simulated module\nkernel store 8 4 = store\n"


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_a_launch_by_a_configuration_is_recorded_with_its_attributes(
    backend: str, simulate: Callable[..., Simulation]
) -> None:
    simulation = simulate(backend)
    runtime = simulation.open()
    address = runtime.malloc(64)
    function = runtime.module_get_function(runtime.module_load(IMAGE), "store")
    call, attributes = runtime.launches.of({"cooperative": 1, "cluster": 2, "shared_memory": 16})
    fixed = {"block": grid_bytes(4, 1, 1), "shared_memory": struct.pack("=I", 16)}
    slots = Slots(call, ["*i32", "i32"], 0, attributes, fixed=fixed)
    buffer, configuration, arguments = slots.fresh()
    grid, same, stream = slots.order
    assert (grid, stream) == ("grid", "stream")
    struct.pack_into(slots.format, buffer, slots.begin, address, -7, grid_bytes(2, 1, 1), same, 0)

    code = call.function(configuration, ctypes.c_void_p(function), arguments, None)
    runtime.sync()

    (launch,) = simulation.launches()
    assert code == 0
    assert launch[3:6] == ((2, 1, 1), (4, 1, 1), 16)
    assert launch.arguments == (address.to_bytes(8, "little"), (-7).to_bytes(4, "little", signed=True))
    spread = [(5, 1, 0, 0)] if backend == "cuda" else []
    assert launch.attributes == ((2, 1, 0, 0), (4, 2, 1, 1), *spread)


def test_a_launch_without_attributes_is_the_usual_call_where_the_file_says_so(
    simulate: Callable[..., Simulation],
) -> None:
    symbols = {name: simulate(name).open().launches.of({})[0].symbol for name in ("cuda", "hip")}

    assert symbols == {"cuda": "cuLaunchKernelEx", "hip": "hipModuleLaunchKernel"}


def test_what_a_backend_does_not_offer_is_refused_by_its_word(simulate: Callable[..., Simulation]) -> None:
    runtime = simulate("hip").open()

    with pytest.raises(nbxrt.CapabilityError, match="`programmatic`, which AMD ROCm HIP does not offer"):
        runtime.launches.of({"programmatic": 1})


def test_a_real_binary_can_be_read_by_a_test(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cuda")
    runtime = simulation.open()
    simulation.on_image(lambda address: "nbxrt simulated module\nkernel of_elf 8\n" if address else "")

    module = runtime.module_load(b"\x7fELF and so on")

    assert runtime.module_get_function(module, "of_elf")
    simulation.on_image(lambda _address: "")
    with pytest.raises(nbxrt.DeviceError, match="NO_BINARY"):
        runtime.module_load(b"\x7fELF and so on")
