"""Devices with buffer objects alone, as OpenCL 1.2 has them: addresses are nbxrt's own, and no driver sees one."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from opencl import spirv

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("opencl")]

DRIVERS = pytest.mark.parametrize("driver", ["pocl-buffers", "intel-buffers"])

#: A runtime, a way to write and to read memory, and how many buffers and parts of them the layer has given out.
BEGIN = """
import os
rt = nbxrt.open("opencl")
live = ctypes.c_int.in_dll(ctypes.CDLL(os.environ["OPENCL_LAYERS"]), "layer_live")
def write(address, content):
    host = ctypes.create_string_buffer(content, len(content))
    rt.memcpy(address, ctypes.addressof(host), len(content), "host_to_device")
def read(address, nbytes):
    host = ctypes.create_string_buffer(nbytes)
    rt.memcpy(ctypes.addressof(host), address, nbytes, "device_to_host")
    return host.raw
def refused(call, *given):
    try: call(*given)
    except nbxrt.NbxrtError as error: return [type(error).__name__, error.summary, error.hint]
"""


@DRIVERS
def test_copies_and_fills_are_the_devices_at_any_offset(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        BEGIN
        + """
one, other, stream = rt.malloc(5000), rt.malloc(5000), rt.stream_create()
write(one, bytes(range(250)) * 20)
rt.memset_async(other, 7, 5000, stream)
rt.memcpy_async(other + 3, one + 1, 100, "device_to_device", stream)
rt.memset_async(other + 50, 9, 3, stream)
rt.stream_sync(stream)
between = read(other, 104)
rt.memcpy(one + 5, one, 200, "device_to_device")
said(between=list(between), over_itself=read(one, 205) == bytes(range(5)) + bytes(range(200)), live=live.value)
rt.free(one); rt.free(other)
""",
    )

    expected = [7] * 3 + list(range(1, 101)) + [7]
    expected[50:53] = [9] * 3
    assert found == {"between": expected, "over_itself": True, "live": 2}


@DRIVERS
def test_copies_with_the_host_are_ordered_on_their_stream(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        BEGIN
        + """
address, stream = rt.malloc(1 << 20), rt.stream_create()
there, back = (ctypes.create_string_buffer(1 << 20) for _each in range(2))
wrong = 0
for value in range(50):
    ctypes.memset(there, value, 1 << 20)
    rt.memcpy_async(address, ctypes.addressof(there), 1 << 20, "host_to_device", stream)
    rt.memcpy_async(ctypes.addressof(back), address, 1 << 20, "device_to_host", stream)
    rt.stream_sync(stream)
    wrong += back.raw != there.raw
said(wrong=wrong)
""",
    )

    assert found == {"wrong": 0}


@DRIVERS
def test_a_kernel_takes_the_inside_of_an_allocation_where_the_device_can_begin(
    run: Callable[..., Any], driver: str
) -> None:
    """A buffer has no offset as an argument: what lies inside is a buffer of its own for the time of the launch."""
    found = run(
        driver,
        BEGIN
        + """
add = rt.module_get_function(rt.module_load(SOURCE), "add")
memory = rt.malloc(8192)
write(memory, bytes((ctypes.c_uint * 2048)(*range(2048))))
p, n = ctypes.c_void_p, ctypes.c_uint(64)
for _turn in range(3):
    rt.launch_kernel(add, (1, 1, 1), (64, 1, 1), 0, 0, (p(memory + 4096), p(memory), p(memory + 4096), n))
    kept = live.value
sums = list((ctypes.c_uint * 64).from_buffer_copy(read(memory + 4096, 256)))
said(sums=sums, kept=kept,
     inside=refused(rt.launch_kernel, add, (1,), (1,), 0, 0, (p(memory), p(memory), p(memory + 4), n)),
     unknown=refused(rt.launch_kernel, add, (1,), (1,), 0, 0, (p(memory), p(memory), p(memory + 8192), n)),
     left=live.value)
""",
    )

    assert found["sums"] == [1024 + 4 * index for index in range(64)]
    assert (found["kept"], found["left"]) == (1, 1)
    name, message, hint = found["inside"]
    assert (name, hint) == ("ArgumentValueError", "copy it to the start of an allocation")
    assert message == (
        "`launch_kernel`: argument 2 begins 4 bytes inside its allocation, and OpenCL takes there multiples of 128"
    )
    assert found["unknown"][0] == "ArgumentValueError"
    assert "lies in no memory of this backend" in found["unknown"][1]


@DRIVERS
def test_no_memory_is_an_argument_too(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        BEGIN
        + '''
module = rt.module_load(b"""__kernel void f(__global uint *out, __global uint *none) { out[0] = none ? 1 : 2; }""")
out = rt.malloc(4)
rt.launch_kernel(rt.module_get_function(module, "f"), (1,), (1,), 0, 0, (ctypes.c_void_p(out), ctypes.c_void_p(0)))
said(out=int.from_bytes(read(out, 4), "little"))
''',
    )

    assert found == {"out": 2}


@DRIVERS
def test_bad_addresses_never_reach_the_driver(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        BEGIN
        + """
address, gone, host = rt.malloc(4096), rt.malloc(4096), ctypes.create_string_buffer(8192)
rt.free(gone)
where = ctypes.addressof(host)
said(refused=[
    refused(rt.memset, address, 1, 4097),
    refused(rt.memset_async, address + 4000, 1, 100, 0),
    refused(rt.memset, gone, 1, 1),
    refused(rt.memcpy, where, address, 4097, "device_to_host"),
    refused(rt.memcpy, address + 1, where, 4096, "host_to_device"),
    refused(rt.memcpy_async, where, gone, 1, "default", 0),
    refused(rt.memcpy, gone, address, 1, "device_to_device"),
    refused(rt.memcpy, where, where + 64, 1, "device_to_host"),
    refused(rt.free, address + 1),
    refused(rt.free, gone),
], attributes=rt.pointer_attributes(address + 1)[0], nothing=rt.pointer_attributes(gone)[0])
""",
    )

    assert [each and each[0] for each in found["refused"]] == ["ArgumentValueError"] * 10
    assert "go beyond the end of the allocation" in found["refused"][0][1]
    assert (found["attributes"], found["nothing"]) == ("device", "unregistered")


def test_intermediate_code_goes_by_a_function_that_is_asked_for_by_name(run: Callable[..., Any]) -> None:
    """A driver of OpenCL 1.2 has no place for the other one; PoCL of Debian is built without a compiler for it."""
    program = f"""
        try: said(functions=rt.module_get_function(rt.module_load({spirv.module()!r}), "add") > 0)
        except nbxrt.DeviceError as error: said(operation=error.operation, symbol=error.symbol)
    """

    assert run("intel-buffers", BEGIN + textwrap.dedent(program)) == {"functions": True}
    assert run("pocl-buffers", BEGIN + textwrap.dedent(program)) == {
        "operation": "module_load",
        "symbol": "clCreateProgramWithILKHR",
    }
