"""Devices of two drivers, which know nothing of each other's memory: by two kinds of addresses, and by none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opencl import drivers
from opencl.test_conformance import CONFORM

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("opencl")]

#: The drivers, what the layer before them is for, and the models of their devices.
PAIRS = {
    "shared and unified": ("both", {}, ["svm", "usm"]),
    "buffers and unified": ("both-buffers", {"LAYER_FOR": "PoCL"}, ["buffers", "usm"]),
    "buffers on both": ("both-buffers", {}, ["buffers", "buffers"]),
}
PAIR = pytest.mark.parametrize("pair", PAIRS)

BEGIN = """
rt = nbxrt.open("opencl")
host = ctypes.create_string_buffer(4096)
where = ctypes.addressof(host)
memory, streams = [], []
for device in range(2):
    rt.set_device(device)
    memory.append(rt.malloc(4096))
    streams.append(rt.stream_create())
def read(address, nbytes):
    rt.memcpy(where, address, nbytes, "device_to_host")
    return host.raw[:nbytes]
def refused(call, *given):
    try: call(*given)
    except nbxrt.NbxrtError as error: return type(error).__name__
"""


def _run(pair: str, folder: Path, program: str) -> dict[str, Any]:
    driver, more, _models = PAIRS[pair]
    return drivers.run(driver, folder, BEGIN + program, more)


@PAIR
def test_the_whole_suite_passes_and_skips_nothing(pair: str, tmp_path: Path) -> None:
    """On one device alone, it skips that each has memory and streams of its own."""
    report = _run(pair, tmp_path, CONFORM)

    assert report["wrong"] == []
    assert report["skipped"] == []


@PAIR
def test_memory_is_copied_between_two_devices_whichever_is_current(pair: str, tmp_path: Path) -> None:
    found = _run(
        pair,
        tmp_path,
        """
copied = []
for current in range(2):
    rt.set_device(current)
    for source, target in (0, 1), (1, 0):
        for copy, more in [(rt.memcpy, ())] + [(rt.memcpy_async, (each,)) for each in (0, *streams)]:
            rt.memset(memory[source], 10 + source, 4096)
            rt.memset(memory[target], 0, 4096)
            copy(memory[target] + 100, memory[source] + 7, 1000, "device_to_device", *more)
            for stream in (0, *streams): rt.stream_sync(stream)
            copied.append(read(memory[target], 1200) == bytes(100) + bytes([10 + source]) * 1000 + bytes(100))
            assert rt.get_device() == current
said(copied=copied, models=sorted(state.model for state in rt._binder.listed().all()))
""",
    )

    assert found == {"copied": [True] * 16, "models": PAIRS[pair][2]}


@PAIR
def test_what_names_memory_goes_to_its_device(pair: str, tmp_path: Path) -> None:
    """Fills and copies with the host, on the current device's default stream and on a stream of the other device."""
    found = _run(
        pair,
        tmp_path,
        """
right = []
for current in range(2):
    rt.set_device(current)
    for at, value in (0, 3), (1, 4):
        for given in ((), (streams[0],), (streams[1],)):
            fill, copy = (rt.memset_async, rt.memcpy_async) if given else (rt.memset, rt.memcpy)
            fill(memory[at], value, 4096, *given)
            for stream in (0, *streams): rt.stream_sync(stream)
            rt.sync()
            copy(where, memory[at], 4096, "device_to_host", *given)
            for stream in (0, *streams): rt.stream_sync(stream)
            right.append(host.raw == bytes([value]) * 4096)
for address in memory: rt.free(address)
said(right=right, refused=[refused(rt.memset, address, 1, 8) for address in memory],
     left=len(rt._binder.addresses))
""",
    )

    assert found == {"right": [True] * 12, "refused": ["ArgumentValueError"] * 2, "left": 0}


@PAIR
def test_a_copy_between_two_devices_that_goes_beyond_an_end_is_refused(pair: str, tmp_path: Path) -> None:
    found = _run(
        pair,
        tmp_path,
        """
said(refused=[refused(rt.memcpy, memory[0] + 1, memory[1], 4096, "default"),
              refused(rt.memcpy_async, memory[0], memory[1] + 4000, 97, "default", streams[0])])
""",
    )

    assert found == {"refused": ["ArgumentValueError"] * 2}


@PAIR
def test_a_launch_takes_memory_of_its_own_device_alone(pair: str, tmp_path: Path) -> None:
    found = _run(
        pair,
        tmp_path,
        """
p, refusals = ctypes.c_void_p, []
for at in range(2):
    rt.set_device(at)
    add = rt.module_get_function(rt.module_load(SOURCE), "add")
    rt.launch_kernel(add, (1,), (1,), 0, 0, (p(memory[at]), p(memory[at]), p(memory[at]), ctypes.c_uint(1)))
    rt.sync()
    refusals.append(refused(rt.launch_kernel, add, (1,), (1,), 0, 0,
                            (p(memory[at]), p(memory[1 - at]), p(memory[at]), ctypes.c_uint(1))))
said(refusals=refusals)
""",
    )

    assert found == {"refusals": ["ArgumentValueError"] * 2}
