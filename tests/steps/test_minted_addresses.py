"""Memory of objects without addresses: the host does not see it, and copies read and write it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Shelf

pytestmark = pytest.mark.needs("cc")

HERE = Path(__file__).parent


@pytest.fixture
def unseen(shelf: Callable[..., Shelf]) -> Shelf:
    base, shared, code, minted = (
        yaml.safe_load((HERE / f"{name}.yaml").read_text("utf-8")) for name in ("shelf", "shared", "code", "minted")
    )
    policies: dict[str, Any] = shared["policies"] | {"budget": base["policies"]["budget"]}
    policies["transfers"] |= minted["transfers"]
    policies["kernels"] = code["kernels"] | minted["kernels"]
    launches = {name: {"policy": "kernels"} for name in ("module_load", "module_get_function", "launch_kernel")}
    return shelf(operations=shared["operations"] | launches | minted["operations"], policies=policies)


def _written(runtime: Any, content: bytes) -> int:
    address: int = runtime.malloc(len(content))
    host = ctypes.create_string_buffer(content, len(content))
    runtime.memcpy(address, ctypes.addressof(host), len(content), "host_to_device")
    return address


def _read(runtime: Any, address: int, nbytes: int) -> bytes:
    host = ctypes.create_string_buffer(nbytes)
    runtime.memcpy(ctypes.addressof(host), address, nbytes, "device_to_host")
    return host.raw


def test_copies_with_the_host_read_and_write_at_any_offset(unseen: Shelf) -> None:
    runtime = unseen.runtime
    address = _written(runtime, bytes(range(64)))

    assert _read(runtime, address + 3, 61) == bytes(range(3, 64))


@pytest.mark.parametrize(
    ("there", "here", "nbytes", "by_device"), [(64, 0, 64, True), (65, 1, 7, False), (8, 0, 32, False)]
)
def test_what_the_device_does_not_copy_goes_through_the_host(
    unseen: Shelf, there: int, here: int, nbytes: int, by_device: bool
) -> None:
    runtime, expected = unseen.runtime, bytearray(range(128))
    address = _written(runtime, bytes(expected))
    expected[there : there + nbytes] = expected[here : here + nbytes]

    runtime.memcpy_async(address + there, address + here, nbytes, "device_to_device", 0)

    assert unseen["copies"] == by_device
    assert _read(runtime, address, 128) == bytes(expected)


def test_fills_that_the_device_does_not_do_are_written(unseen: Shelf) -> None:
    runtime = unseen.runtime
    address = _written(runtime, bytes(64))

    runtime.memset(address + 1, 0x1FF, 3)

    assert _read(runtime, address, 8) == b"\0\xff\xff\xff\0\0\0\0"


def test_a_copy_between_two_devices_goes_through_the_host(unseen: Shelf) -> None:
    runtime = unseen.runtime
    here = _written(runtime, bytes(range(64)))
    runtime.set_device(1)
    there = runtime.malloc(64)

    runtime.memcpy(there, here, 64, "device_to_device")

    assert _read(runtime, there, 64) == bytes(range(64))


def test_the_host_never_touches_an_address_that_stands_for_nothing_any_more(unseen: Shelf) -> None:
    runtime, host = unseen.runtime, ctypes.create_string_buffer(64)
    address = _written(runtime, bytes(64))
    runtime.free(address)

    for target, source in ((ctypes.addressof(host), address), (address, ctypes.addressof(host))):
        for kind in ("default", "host_to_host"):
            with pytest.raises(nbxrt.ArgumentValueError, match="lies in no memory of this backend"):
                runtime.memcpy(target, source, 64, kind)


@pytest.mark.parametrize("function", ["shelfOut", "shelfIn"])
def test_a_copy_that_fails_in_the_middle_leaves_nothing_in_flight(unseen: Shelf, function: str) -> None:
    runtime = unseen.runtime
    address = _written(runtime, bytes(64))
    runtime.sync()
    before = unseen["live"]
    unseen.fail(function)

    with pytest.raises(nbxrt.DeviceError):
        runtime.memcpy(address + 1, address + 8, 7, "device_to_device")

    assert unseen["live"] == before
    assert _read(runtime, address, 64) == bytes(64)


@pytest.mark.parametrize("offset", [0, 64])
def test_a_kernel_takes_an_object_or_for_a_while_a_part_of_it(unseen: Shelf, offset: int) -> None:
    runtime = unseen.runtime
    function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
    address = _written(runtime, bytes(200))
    runtime.sync()
    before = unseen["live"]

    runtime.launch_kernel(function, (1,), (9,), 0, 0, (ctypes.c_void_p(address + offset), ctypes.c_uint8(5)))
    runtime.sync()

    assert _read(runtime, address, 200) == bytes(offset) + b"\5" * 9 + bytes(191 - offset)
    assert unseen["live"] == before


def test_a_part_of_an_object_goes_when_the_launch_fails(unseen: Shelf) -> None:
    runtime = unseen.runtime
    function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
    address = _written(runtime, bytes(200))
    before = unseen["live"]
    unseen.fail("shelfSetBuffer")

    with pytest.raises(nbxrt.DeviceError):
        runtime.launch_kernel(function, (1,), (9,), 0, 0, (ctypes.c_void_p(address + 64), ctypes.c_uint8(5)))

    assert unseen["live"] == before


@pytest.mark.parametrize(
    ("offset", "device", "said"),
    [
        (63, 0, "argument 0 begins 63 bytes inside its allocation, and Shelf takes there multiples of 64"),
        (200, 0, "lies in no memory of this backend"),
        (0, 1, "argument 0 is memory of device 0, and the stream is of device 1"),
    ],
)
def test_memory_that_a_kernel_cannot_take_is_refused_by_its_place(
    unseen: Shelf, offset: int, device: int, said: str
) -> None:
    runtime = unseen.runtime
    function = runtime.module_get_function(runtime.module_load(b"ok"), "fill")
    address = _written(runtime, bytes(200))
    runtime.set_device(device)

    with pytest.raises(nbxrt.ArgumentValueError, match=said):
        runtime.launch_kernel(function, (1,), (9,), 0, 0, (ctypes.c_void_p(address + offset), ctypes.c_uint8(5)))


def test_arrays_are_as_on_every_backend(unseen: Shelf) -> None:
    array = nbxrt.zeros((3, 5), "uint8")
    array.copy_from(bytes(range(15)))

    assert array.T.contiguous().tobytes() == bytes(column + 5 * row for column in range(5) for row in range(3))
