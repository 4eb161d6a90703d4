"""The shipped files beside the vendors' own headers and libraries, and the check itself, which can fail."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nbxrt.catalogue.sources import data_folder
from nbxrt.verifying import State
from releases import RELEASES, Release

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.needs("cxx"),
    pytest.mark.needs("headers"),
    pytest.mark.needs("pyelftools"),
    pytest.mark.skipif(sys.platform != "linux", reason="headers and libraries for Linux"),
]

NAMES = [release.name for release in RELEASES]
CUDA, HIP, ASCEND, LEVEL_ZERO, OPENCL = RELEASES[1], RELEASES[4], RELEASES[5], RELEASES[6], RELEASES[7]

#: A change of a file that makes it wrong, and where that is seen.
MUTATIONS = {
    "cuda, an argument more": (
        CUDA,
        "  malloc: cudaMalloc",
        "  malloc: {call: cudaMalloc, args: [{out: address}, nbytes, {uint: 0}]}",
        "operations.malloc",
    ),
    "cuda, a width": (CUDA, "allocation: uint64}", "allocation: uint}", "operations.mem_release"),
    "cuda, a number": (
        CUDA,
        "device_to_host: 2, device_to_device: 3",
        "device_to_host: 3, device_to_device: 2",
        "enums.memcpy_kind",
    ),
    "cuda, a code": (CUDA, "out_of_memory: 2\n", "out_of_memory: 6\n", "libraries.runtime.status"),
    "cuda, a place": (CUDA, "location_id: [12, int]", "location_id: [16, int]", "structs.CUmemAllocationProp"),
    "cuda, a symbol": (CUDA, "  sync: cudaDeviceSynchronize", "  sync: cudaDeviceSynchronise", "operations.sync"),
    "cuda, a place of the launch": (
        CUDA,
        "attributes: 40, attribute_count: 48}",
        "attributes: 48, attribute_count: 40}",
        "launch.configuration",
    ),
    "cuda, a number of the launch": (CUDA, "cooperative: {id: 2}", "cooperative: {id: 3}", "launch.attributes"),
    "hip, an argument less": (
        HIP,
        "args: [{out: address}, nbytes, {uint: 0}]}     # the flags default",
        "args: [{out: address}, nbytes]}     # the flags default",
        "operations.malloc_host",
    ),
    "hip, a width": (
        HIP,
        "  monitor_memory_used: {call: amdsmi_get_gpu_memory_usage, args: [monitor, {int: 0}, {out: used}]}",
        "  monitor_memory_used: {call: amdsmi_get_gpu_memory_usage, args: [monitor, {uint64: 0}, {out: used}]}",
        "operations.monitor_memory_used",
    ),
    "hip, a code": (HIP, "        not_found: 31\n", "        not_found: 33\n", "libraries.management.status"),
    "hip, a size": (HIP, "bytes: 704, fields: {pid", "bytes: 712, fields: {pid", "structs.amdsmi_proc_info_t"),
    "hip, an argument of collectives more": (
        HIP,
        "  comm_destroy: ncclCommDestroy",
        "  comm_destroy: {call: ncclCommDestroy, args: [communicator, {int: 0}]}",
        "operations.comm_destroy",
    ),
    "hip, a number": (HIP, "warp_size: 87", "warp_size: 86", "enums.device_attribute"),
    "hip, a place": (
        HIP,
        "hostPointer: [16, pointer]}",
        "hostPointer: [24, pointer]}",
        "structs.hipPointerAttribute_t",
    ),
    "ascend, an order": (
        ASCEND,
        "args: [address, {out: device_address}, {uint: 0}]",
        "args: [{out: device_address}, {uint: 0}, address]",
        "operations.host_get_device_pointer",
    ),
    "ascend, an argument less": (
        ASCEND,
        "  stream_sync: aclrtSynchronizeStream",
        "  stream_sync: {call: aclrtSynchronizeStream, args: [], ignores: [stream]}",
        "operations.stream_sync",
    ),
    "ascend, a number": (ASCEND, "    float16: 3\n", "    float16: 13\n", "enums.datatype"),
    "ascend, a width": (
        ASCEND,
        "{out: value, type: int64}",
        "{out: value, type: int}",
        "operations.device_attribute",
    ),
    "ascend, a code": (ASCEND, "no_device: 207004", "no_device: 207005", "libraries.runtime.status"),
    "ascend, a place": (
        ASCEND,
        "location_id: [4, uint], location_type: [8, int]",
        "location_id: [8, uint], location_type: [4, int]",
        "structs.aclrtMemAccessDesc",
    ),
    "level_zero, an argument more": (
        LEVEL_ZERO,
        "[{call: zeVirtualMemUnmap, args: [state.context, address, nbytes]}]",
        "[{call: zeVirtualMemUnmap, args: [state.context, address, nbytes, {uint: 0}]}]",
        "operations.mem_unmap",
    ),
    "level_zero, a width": (
        LEVEL_ZERO,
        "address, {pointer_to: value, type: uint8}, {size: 1}, nbytes",
        "address, {pointer_to: value, type: uint8}, {uint: 1}, nbytes",
        "operations.memset",
    ),
    "level_zero, a number": (LEVEL_ZERO, "read_write: 1, read: 2}", "read_write: 2, read: 1}", "enums.mem_access"),
    "level_zero, a code": (LEVEL_ZERO, "not_ready: 1\n", "not_ready: 2\n", "libraries.runtime.status"),
    "level_zero, a place": (
        LEVEL_ZERO,
        "format: [16, uint], inputSize: [24, size]",
        "format: [20, uint], inputSize: [24, size]",
        "structs.ze_module_desc_t",
    ),
    "opencl, an argument more": (
        OPENCL,
        "release: [{call: clReleaseContext, args: [context]}]",
        "release: [{call: clReleaseContext, args: [context, {uint: 0}]}]",
        "state.context",
    ),
    "opencl, a width": (
        OPENCL,
        "{steps: [{call: clGetKernelInfo, args: [function, {uint: 0x1191}, {size: 4}",
        "{steps: [{call: clGetKernelInfo, args: [function, {uint: 0x1191}, {uint: 4}",
        "policies.kernels.count",
    ),
    "opencl, a number": (OPENCL, "l2_cache_size: 0x101E", "l2_cache_size: 0x101D", "enums.device_attribute"),
    "level_zero, a number in a structure": (
        LEVEL_ZERO,
        "constants: {stype: 0x16}",
        "constants: {stype: 0x15}",
        "headers.constants.ze_host_mem_alloc_desc_t",
    ),
    "opencl, a number in a call": (OPENCL, "{uint: 0x102B}", "{uint: 0x102C}", "operations.device_name"),
    "opencl, a number of a policy": (OPENCL, "busy: [1, 2, 3]      ", "busy: [1, 2, 4]      ", "policies.queues"),
    "level_zero, a number of a policy": (
        LEVEL_ZERO,
        "    complete: 0\n    busy: [1]\n  marks:",
        "    complete: 1\n    busy: [0]\n  marks:",
        "policies.queues",
    ),
    "opencl, a code": (OPENCL, "not_ready: -7 ", "not_ready: -9 ", "libraries.runtime.status"),
}  # fmt: skip


def test_every_backend_with_a_header_is_mutated() -> None:
    assert {release.backend for release, *_change in MUTATIONS.values()} == {release.backend for release in RELEASES}


@pytest.mark.parametrize("release", RELEASES, ids=NAMES)
def test_everything_that_a_file_states_agrees(wheels: Path, release: Release) -> None:
    result = release.verified(wheels)

    assert {row.subject: row.faults for row in result.faults} == {}
    assert result.ok


@pytest.mark.parametrize("release", RELEASES, ids=NAMES)
def test_every_operation_of_a_role_whose_header_is_given_is_verified(wheels: Path, release: Release) -> None:
    result = release.verified(wheels)

    unverified = [row for row in result.rows if row.state is State.UNVERIFIED and row.subject.startswith("operations.")]
    lacking = {"no header of `collectives` was given", "no header of `management` was given"}
    assert {note for row in unverified for note in row.notes} <= (lacking if release.name == "hip 5.2" else set())


@pytest.mark.parametrize(("release", "old", "new", "subject"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_file_with_one_mistake_is_found_out(
    wheels: Path, tmp_path: Path, release: Release, old: str, new: str, subject: str
) -> None:
    text = (data_folder("backends") / f"{release.backend}.yaml").read_text("utf-8")
    assert old in text
    file = tmp_path / "mistaken.yaml"
    mistaken = re.sub(rf"(?m)^name: {release.backend}$", "name: mistaken", text.replace(old, new, 1))
    file.write_text(mistaken, "utf-8")

    result = release.verified(wheels, file)

    assert subject in {row.subject for row in result.faults}
    assert not result.ok


@pytest.mark.checkout
def test_the_page_of_vendors_and_the_signatures_are_current(root: Path) -> None:
    command = [sys.executable, str(root / "scripts" / "vendors_table.py"), "--check"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "current\n")
