"""The suite can fail: copies of the simulator with one meaning broken each, and the check that finds it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nbxrt
import simulations
from nbxrt import conformance
from nbxrt.catalogue.sources import data_folder

pytestmark = [*simulations.NEEDED, pytest.mark.tier("all"), pytest.mark.checkout]

#: What is broken: a file of the simulator's core, what stands there, what is put there, and a check that finds it.
BROKEN: dict[str, tuple[str, str, str, str]] = {
    "a fill is one byte short": (
        "work.c", "item->value & 0xff, item->nbytes);", "item->value & 0xff, item->nbytes - 1);",
        "a fill writes the lowest byte of its value",
    ),
    "a fill takes the second byte of its value": (
        "work.c", "item->value & 0xff, item->nbytes);", "item->value >> 8 & 0xff, item->nbytes);",
        "asynchronous fills write the lowest byte of their value",
    ),
    "a copy is one byte short": (
        "work.c", "(const void *)(uintptr_t)item->src, item->nbytes);",
        "(const void *)(uintptr_t)item->src, item->nbytes - 1);",
        "copies at every alignment come back unchanged",
    ),
    "a large copy loses its end": (
        "work.c", "(const void *)(uintptr_t)item->src, item->nbytes);",
        "(const void *)(uintptr_t)item->src, item->nbytes > 1 << 20 ? 1 << 20 : item->nbytes);",
        "a large copy comes back unchanged",
    ),
    "waiting for a device waits for nothing": (
        "devices.c", "    sim_wait_device(device);\n", "", "waiting for the device waits for every stream",
    ),
    "waiting for a stream waits for nothing": (
        "streams.c", "    sim_wait_stream(waited, UINT64_MAX);\n", "", "asynchronous copies come back unchanged",
    ),
    "waiting for an event waits for nothing": (
        "events.c", "        sim_wait_stream(record->stream, record->number);\n", "",
        "an event that was waited for has the work before it",
    ),
    "a stream always says that it has finished": (
        "streams.c", "    if (!asked->first && !asked->busy)\n        return lost;", "    return lost;",
        "a stream that says it has finished has finished",
    ),
    "an event always says that it has passed": (
        "events.c", "    if (!record || record->done)\n        return sim_devices[device].lost;",
        "    return sim_devices[device].lost;",
        "an event that says it has passed has passed",
    ),
    "a stream does not wait for events": (
        "events.c", "    return sim_enqueue(waiting, item);", "    sim_item_free(item);\n    return KIND_SUCCESS;",
        "a stream that waits for an event sees the work before it",
    ),
    "times run backwards": (
        "events.c", "second->latest->time - first->latest->time", "first->latest->time - second->latest->time",
        "times are in order and add up",
    ),
    "times are in seconds": ("events.c", "/ 1e6)", "/ 1e9)", "times agree with the clock of the host"),
    "an event that was never recorded has a time": (
        "events.c", "    if (!first->latest || !second->latest)\n        return KIND_INVALID_HANDLE;",
        "    if (!first->latest || !second->latest)\n        return *elapsed = 0, KIND_SUCCESS;",
        "an event never recorded has no time",
    ),
    "an event stands for its first record": (
        "events.c", "        sim_record_drop(recorded->latest);\n    recorded->latest = record;",
        "        record->references--;\n    else\n        recorded->latest = record;",
        "an event that is recorded again stands for the later point",
    ),
    "an event without timing has a time": (
        "events.c", "!first->timing || !second->timing || ", "", "an event has its time only where the flags say so",
    ),
    "the current device is the process's": (
        "devices.c", "sim_thread()->device", "sim_the_device", "each thread has its own current device",
    ),
    "memory has no limit": (
        "blocks.c", "    if (nbytes > (uint64_t)1 << 44 || (counts_on_device(origin) && nbytes > free))\n",
        "    (void)free;\n    if (nbytes > (uint64_t)1 << 40)\n        nbytes = PAGE;\n    if (0)\n",
        "a request that cannot be met is out of memory and harms nothing",
    ),
    "out of memory is called another error": (
        "calls.c", "    call->code = sim_roles[call->role].codes[call->kind];",
        "    if (call->kind == KIND_OUT_OF_MEMORY)\n        call->kind = KIND_INVALID_VALUE;\n"
        "    call->code = sim_roles[call->role].codes[call->kind];",
        "a request that cannot be met is out of memory and harms nothing",
    ),
    "a stored error stays": (
        "calls.c", "    thread->last_kind = physical >= 0 ? sim_devices[physical].lost : KIND_SUCCESS;",
        "    (void)physical;",
        "a failure leaves no stored error",
    ),
    "free memory does not fall": (
        "devices.c", "    *free = device->used < device->memory ? device->memory - device->used : 0;",
        "    *free = device->memory;",
        "free memory falls with an allocation and rises again",
    ),
    "all devices have one identity": (
        "devices.c", "    memcpy(uuid, stem, 16);", "    physical = 0;\n    memcpy(uuid, stem, 16);",
        "every device has an identity of its own",
    ),
    "all devices have one place": (
        "devices.c", "    snprintf(pci_bus_id->text", "    physical = 0;\n    snprintf(pci_bus_id->text",
        "the facts agree with the place on pci",
    ),
    "pinned memory has another address on the device": (
        "memory.c", "    *device_address = address;\n", "    *device_address = address + 256;\n",
        "the device has an address for page locked memory",
    ),
    "device memory is taken for host memory": (
        "memory.c", "block ? block->memory : MEMORY_TYPE_UNREGISTERED",
        "block ? MEMORY_TYPE_HOST : MEMORY_TYPE_UNREGISTERED",
        "an address of device memory is known as such",
    ),
    "a copy between devices copies nothing": (
        "memory.c", "    item->known = KNOWN_DST | KNOWN_SRC;\n", "    item->nbytes = 0;\n",
        "copies between devices move the bytes",
    ),
    "asking twice for access is an error of another kind": (
        "devices.c", "        return KIND_ALREADY_ENABLED;", "        return KIND_INVALID_VALUE;",
        "access is gained and lost and asking twice is no error",
    ),
    "priorities are the other way": (
        "streams.c", "    *least = 0;\n    *greatest = -2;", "    *least = -2;\n    *greatest = 0;",
        "streams of every priority do their work",
    ),
    "captured work runs at once": (
        "work.c", "    if (stream->capture)\n        return sim_capture_append(stream, item);\n", "",
        "captured work runs when the graph is launched and not before",
    ),
    "a graph runs nothing": (
        "graphs.c", "item && !kind; item = item->next)", "item && kind; item = item->next)",
        "a graph is ordered on the stream that it is launched on",
    ),
    "the granularity is too small": (
        "virtual.c", "    *nbytes = GRANULARITY;", "    *nbytes = 4096;",
        "reserved ranges do not overlap and keep the alignment",
    ),
    "waiting inside a capture is allowed": (
        "streams.c",
        "    if (waited->capture) {\n        sim_capture_break(waited->capture);\n"
        "        return KIND_CAPTURE_UNSUPPORTED;\n    }\n",
        "", "waiting inside a capture is refused",
    ),
    "an update of a graph changes nothing": (
        "graphs.c", "    updated->body = from->body;\n", "    from->body->references--, updated->body->references++;\n",
        "an executable graph takes the parameters of another of its shape",
    ),
    "advice writes": (
        "memory.c", "    (void)advice;\n", "    (void)advice;\n    *(char *)(uintptr_t)address += 1;\n",
        "advice changes no bytes",
    ),
    "a maximum is a minimum": (
        "numbers.c", "    case REDUCTION_MAX: return larger ? one : other;",
        "    case REDUCTION_MAX: return larger ? other : one;",
        "two ranks receive the elements of both",
    ),
    "the management library counts other memory": (
        "devices.c", "    *total = sim_devices[physical].memory;\n    return KIND_SUCCESS;\n}\n\n/* Two",
        "    *total = sim_devices[physical].memory / 2;\n    return KIND_SUCCESS;\n}\n\n/* Two",
        "total memory is what the runtime says",
    ),
    "a distance depends on the direction": (
        "devices.c", "one / 2 == other / 2 ? BUS_DISTANCE_ONE_SWITCH", "one < other ? BUS_DISTANCE_ONE_SWITCH",
        "two devices are as far apart either way",
    ),
    "a name that a module lacks is found": (
        "modules.c", "while (found && (found->is_copy || strcmp(found->name, name)))",
        "while (found && found->is_copy)",
        "a kernel that is not in the module is not found",
    ),
    "a launch swaps blocks and threads": (
        "modules.c", "uint64_t stream, void **arguments)\n{\n    return sim_launch_with(function, grid, block,",
        "uint64_t stream, void **arguments)\n{\n    return sim_launch_with(function, block, grid,",
        "a grid may have more blocks than a block has threads",
    ),
    "a launch loses its arguments": (
        "modules.c", "        memcpy(launch->values[i], arguments[i], function->sizes[i]);",
        "        memset(launch->values[i], 0, function->sizes[i]);",
        "a kernel adds two vectors",
    ),
}  # fmt: skip

PROGRAM = """
import ctypes, json, sys
from pathlib import Path
from nbxrt import conformance
from nbxrt.simulation import build
def adding(_name, grid, block, arguments):
    places = [ctypes.cast(arguments[at], ctypes.POINTER(ctypes.c_uint64))[0] for at in range(3)]
    count = ctypes.cast(arguments[3], ctypes.POINTER(ctypes.c_uint32))[0]
    elements = ctypes.c_uint32 * min(count, grid[0] * block[0])
    left, right, out = map(elements.from_address, places)
    out[:] = [one + other for one, other in zip(left, right)]
simulation = build("cuda", "simulation", cache=Path("cache"))
simulation.on_launch(adding)
image = conformance.ModuleImage(b"nbxrt simulated module\\nkernel add 8 8 8 4\\n")
report = conformance.run(simulation.open(), [sys.argv[1]], module_image=image)
print(json.dumps([row.check for row in report.wrong]))
"""


def _copy(folder: Path, name: str, old: str, new: str) -> None:
    """The package with its data in a folder, with one text of the simulator's core replaced, wherever it stands."""
    package = folder / "nbxrt"
    shutil.copytree(Path(nbxrt.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for data in ("backends", "schema"):
        shutil.copytree(str(data_folder(data)), package / data, dirs_exist_ok=True)
    file = package / "simulation" / "core" / name
    text = file.read_text("utf-8")
    assert old in text
    head = "int sim_the_device;\n" if new == "sim_the_device" else ""
    file.write_text(head + text.replace(old, new), "utf-8")


@pytest.mark.parametrize(("file", "old", "new", "finder"), BROKEN.values(), ids=BROKEN)
def test_a_meaning_that_is_broken_is_found(tmp_path: Path, file: str, old: str, new: str, finder: str) -> None:
    _copy(tmp_path, file, old, new)
    group = next(check.group for check in conformance.checks() if check.name == finder)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, group],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert finder in json.loads(done.stdout)
