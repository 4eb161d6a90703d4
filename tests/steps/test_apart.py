"""Devices that know nothing of each other's memory: what names memory goes to its device, whichever is current."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

pytestmark = pytest.mark.needs("cc")

PAIRS = pytest.mark.parametrize(
    "models", [("usm", "usm"), ("svm", "usm"), ("buffers", "svm"), ("buffers", "buffers")], ids="-".join
)


class Two:
    """A simulation with two devices, 4096 bytes on each, and a stream of each."""

    def __init__(self, simulation: Simulation, models: tuple[str, ...]) -> None:
        simulation.devices = 2
        simulation.set_models(*models)
        self.runtime: Any = simulation.open()
        self.memory: list[int] = []
        self.streams: list[int] = []
        for device in range(2):
            self.runtime.set_device(device)
            self.memory.append(self.runtime.malloc(4096))
            self.streams.append(self.runtime.stream_create())

    def read(self, address: int, nbytes: int) -> bytes:
        host = ctypes.create_string_buffer(nbytes)
        self.runtime.memcpy(ctypes.addressof(host), address, nbytes, "device_to_host")
        return host.raw

    def finish(self) -> None:
        for stream in self.streams:
            self.runtime.stream_sync(stream)
        for device in range(2):
            self.runtime.set_device(device)
            self.runtime.sync()


@pytest.fixture
def two(simulate: Callable[..., Simulation]) -> Callable[..., Two]:
    return lambda models: Two(simulate("opencl"), models)


@PAIRS
def test_memory_is_copied_between_two_devices_through_the_host(
    two: Callable[..., Two], models: tuple[str, ...]
) -> None:
    here = two(models)
    for current in range(2):
        for stream in (None, 0, *here.streams):
            for source, target in ((0, 1), (1, 0)):
                here.runtime.memset(here.memory[source], 10 + source, 4096)
                here.runtime.memset(here.memory[target], 0, 4096)
                here.finish()
                here.runtime.set_device(current)
                given = (here.memory[target] + 100, here.memory[source] + 7, 1000, "device_to_device")

                if stream is None:
                    here.runtime.memcpy(*given)
                else:
                    here.runtime.memcpy_async(*given, stream)

                assert here.runtime.get_device() == current
                here.finish()
                expected = bytes(100) + bytes([10 + source]) * 1000 + bytes(100)
                assert here.read(here.memory[target], 1200) == expected


@PAIRS
def test_memory_is_filled_by_its_own_device(two: Callable[..., Two], models: tuple[str, ...]) -> None:
    here = two(models)
    here.runtime.set_device(0)

    here.runtime.memset(here.memory[1], 3, 4096)
    here.runtime.memset_async(here.memory[0], 4, 4096, here.streams[1])
    here.finish()

    assert [here.read(address, 4096) for address in here.memory] == [b"\4" * 4096, b"\3" * 4096]


def test_what_a_device_offers_follows_from_its_model(two: Callable[..., Two]) -> None:
    here = two(("svm", "buffers"))

    assert here.runtime.supports("malloc_host")
    assert [here.runtime.supports("malloc_host", device) for device in range(2)] == [True, False]
    here.runtime.set_device(1)
    with pytest.raises(nbxrt.CapabilityError, match="for devices of the model `buffers`: their memory is buffer"):
        here.runtime.malloc_host(64)


def test_a_copy_between_two_devices_beyond_an_end_is_refused(two: Callable[..., Two]) -> None:
    here = two(("svm", "usm"))

    with pytest.raises(nbxrt.ArgumentValueError, match="go beyond the end of the allocation"):
        here.runtime.memcpy(here.memory[0] + 1, here.memory[1], 4096, "default")
