"""Checks of the group `management`: what the vendor's management library knows of the device."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.conformance.checking import Skipped, check, expect, expect_error, expect_that

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

FIND = ("monitor_by_pci_bus_id", "pci_bus_id")


def _monitor(bench: Bench) -> int:
    monitor: int = bench.runtime.monitor_by_pci_bus_id(bench.runtime.pci_bus_id(bench.device))
    return monitor


@check("management", FIND)
def the_device_is_found_by_its_place_on_pci(bench: Bench) -> None:
    """The handle is the same each time."""
    monitor = _monitor(bench)
    expect_that(type(monitor) is int and monitor != 0, f"monitor_by_pci_bus_id: came {monitor!r}")
    expect(_monitor(bench), monitor, "monitor_by_pci_bus_id, again")


@check("management", ("monitor_by_uuid",))
def a_uuid_that_no_device_has_is_not_found(bench: Bench) -> str:
    """The error's kind says so."""
    error = expect_error(
        errors.DeviceError, "monitor_by_uuid", bench.runtime.monitor_by_uuid, "no device has this UUID"
    )
    expect_that(error.kind in ("not_found", "invalid_value"), f"kind of the error: came {error.kind!r} ({error.code})")
    return f"{error.kind} ({error.code})"


@check("management", (*FIND, "monitor_memory_total", "mem_get_info"))
def total_memory_is_what_the_runtime_says(bench: Bench) -> str:
    """Within a tenth: drivers keep a part for themselves, and one library counts it while the other does not."""
    managed, (_free, total) = bench.runtime.monitor_memory_total(_monitor(bench)), bench.runtime.mem_get_info()
    expect_that(0.9 * managed <= total <= 1.1 * managed, f"total memory: {managed} here, {total} by the runtime")
    return f"{managed} bytes, {total} by the runtime"


@check("management", (*FIND, "monitor_memory_used", "monitor_memory_total", "malloc", "free"))
def used_memory_is_part_of_the_total(bench: Bench) -> str:
    """Some is in use, since we use it."""
    bench.memory(1 << 20)
    monitor = _monitor(bench)
    used, total = bench.runtime.monitor_memory_used(monitor), bench.runtime.monitor_memory_total(monitor)
    expect_that(0 < used <= total, f"expected 0 < used <= total, came {used}, {total}")
    return f"{used} of {total} bytes"


@check("management", (*FIND, "monitor_bus_distance", "monitor_direct_link"), devices=2)
def two_devices_are_as_far_apart_either_way(bench: Bench) -> str:
    """Distances are words; links of their own join both or neither."""
    one, other = (bench.runtime.monitor_by_pci_bus_id(bench.runtime.pci_bus_id(device)) for device in range(2))
    distance = bench.runtime.monitor_bus_distance(one, other)
    expect_that(distance in bench.runtime.contract["enums"]["bus_distance"][1], f"the distance: came {distance!r}")
    expect(bench.runtime.monitor_bus_distance(other, one), distance, "the distance the other way")
    direct = bench.runtime.monitor_direct_link(one, other)
    expect(
        bench.runtime.monitor_direct_link(other, one), direct, "whether a link of their own joins them, the other way"
    )
    return f"{distance}, {'with' if direct else 'without'} links of their own"


@check("management", (*FIND, "monitor_processes", "malloc", "free"))
def this_process_is_among_those_that_use_the_device(bench: Bench) -> str:
    """Where the library sees process ids as this process does: in a container it often does not."""
    bench.memory(1 << 20)
    processes = bench.runtime.monitor_processes(_monitor(bench))
    for entry in processes:
        expect_that(len(entry) == 2 and all(type(part) is int for part in entry), f"monitor_processes: came {entry!r}")
    own = [used for pid, used in processes if pid == os.getpid()]
    if not own:
        pids = ", ".join(str(pid) for pid, _used in processes) or "none"
        raise Skipped(f"this process is {os.getpid()} and the list has {pids}: {_namespace()}")
    return f"{own[0]} bytes of this process, {len(processes)} processes"


def _namespace() -> str:
    """What the system says of this process's ids."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            ids = [line.split()[1:] for line in file if line.startswith("NSpid:")]
    except OSError:
        return "the system does not say whether process ids have namespaces"
    if ids and len(ids[0]) > 1:
        return f"this process is {' and '.join(ids[0])} in nested namespaces"
    return "process ids of a container are its own"
