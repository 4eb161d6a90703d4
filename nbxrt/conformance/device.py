"""Checks of the group `device`: how many there are, which is current, and what is known of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbxrt.conformance.checking import Skipped, Wrong, check, expect, expect_that
from nbxrt.locks import in_another_thread

if TYPE_CHECKING:
    from nbxrt.conformance.bench import Bench

#: What a fact of a device must lie between, where more is known than that it is an int.
LIMITS = {
    "max_threads_per_block": (1, 1 << 20),
    "max_shared_memory_per_block": (0, 1 << 30),
    "max_shared_memory_per_block_optin": (0, 1 << 30),
    "max_shared_memory_per_multiprocessor": (0, 1 << 30),
    "warp_size": (1, 1024),
    "multiprocessor_count": (1, 1 << 20),
    "compute_capability_major": (1, 100000),
    "compute_capability_minor": (0, 100000),
    "l2_cache_size": (0, 1 << 40),
    **dict.fromkeys(("max_grid_x", "max_grid_y", "max_grid_z"), (1, 1 << 32)),
    "clock_rate": (0, 1 << 31),
    **dict.fromkeys(
        (
            "integrated", "can_map_host_memory", "unified_addressing", "managed_memory", "concurrent_managed_access",
            "pageable_memory_access", "memory_pools_supported", "virtual_memory_supported",
        ),
        (0, 1),
    ),
}  # fmt: skip


@check("device", ("device_count",))
def devices_are_counted(bench: Bench) -> str:
    """The count is a positive int, the same each time."""
    count = bench.runtime.device_count()
    expect_that(type(count) is int and count >= 1, f"device_count: expected a positive int, came {count!r}")
    expect(bench.runtime.device_count(), count, "device_count, asked again")
    return f"{count}"


@check("device", ("set_device", "get_device"))
def the_device_that_was_set_is_the_current_one(bench: Bench) -> None:
    """Every device that is there can be set."""
    for device in range(bench.devices):
        bench.runtime.set_device(device)
        expect(bench.runtime.get_device(), device, "get_device after set_device")


@check("device", ("set_device", "get_device"))
def each_thread_has_its_own_current_device(bench: Bench) -> None:
    """A new thread begins at device 0, and what it sets does not change another thread's."""
    runtime = bench.runtime
    last = bench.devices - 1

    def other() -> tuple[int, int]:
        before = runtime.get_device()
        runtime.set_device(0)
        return before, runtime.get_device()

    runtime.set_device(last)
    seen = in_another_thread(other)

    expect(seen, (0, 0), "a new thread's device, before and after set_device(0)")
    expect(runtime.get_device(), last, "this thread's device after the other set its own")


@check("device", ("sync",))
def waiting_for_an_idle_device_returns(bench: Bench) -> None:
    """An idle device can be waited for twice."""
    expect(bench.runtime.sync(), None, "sync")
    expect(bench.runtime.sync(), None, "sync, again")


@check("device", ("mem_get_info",))
def free_memory_is_part_of_the_total(bench: Bench) -> str:
    """Free and total memory are bytes, and neither is 0."""
    free, total = bench.runtime.mem_get_info()
    expect_that(0 < free <= total, f"mem_get_info: expected 0 < free <= total, came {free}, {total}")
    return f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB"


@check("device", ("mem_get_info", "malloc", "free", "memset"))
def free_memory_falls_with_an_allocation_and_rises_again(bench: Bench) -> None:
    """It changes by half of the allocation at least; others use the device too, so it is tried three times."""
    if bench.runtime.kind == "cpu":
        raise Skipped("the host's memory is everybody's")
    nbytes = 64 << 20
    seen: tuple[int, ...] = ()
    for _attempt in range(3):
        before = bench.runtime.mem_get_info()[0]
        address = bench.runtime.malloc(nbytes)
        try:
            during = bench.runtime.mem_get_info()[0]
        finally:
            bench.runtime.free(address)
        after = bench.runtime.mem_get_info()[0]
        if before - during >= nbytes // 2 and after - during >= nbytes // 2:
            return
        seen = (before, during, after)
    raise Wrong(f"free memory before, with and after an allocation of {nbytes} bytes: {seen}")


@check("device", ("device_name",))
def every_device_has_a_name(bench: Bench) -> str:
    """A name is some printable text."""
    names = [bench.runtime.device_name(device) for device in range(bench.devices)]
    for name in names:
        expect_that(isinstance(name, str) and name.isprintable() and bool(name.strip()), f"device_name: came {name!r}")
    return ", ".join(names)


@check("device", ("device_uuid",))
def every_device_has_an_identity_of_its_own(bench: Bench) -> str:
    """It is 16 bytes, not all 0, another one for each device, the same each time."""
    identities = [bench.runtime.device_uuid(device) for device in range(bench.devices)]
    for identity in identities:
        expect_that(isinstance(identity, bytes) and len(identity) == 16, f"device_uuid: came {identity!r}")
        expect_that(any(identity), "device_uuid: all 16 bytes are 0")
    expect(len(set(identities)), bench.devices, "different identities")
    expect([bench.runtime.device_uuid(device) for device in range(bench.devices)], identities, "device_uuid, again")
    return ", ".join(identity.hex() for identity in identities)


@check("device", ("pci_bus_id",))
def every_device_has_its_place_on_pci(bench: Bench) -> str:
    """It is spelled domain:bus:device.function, in hexadecimal."""
    places = [bench.runtime.pci_bus_id(device) for device in range(bench.devices)]
    for place in places:
        spelled = re.fullmatch(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]", place)
        expect_that(spelled is not None, f"pci_bus_id: expected dddd:bb:dd.f, came {place!r}")
    return ", ".join(places)


@check("device", ("device_attribute",))
def every_fact_that_the_file_names_is_answered(bench: Bench) -> str:
    """Each is an int within what is possible."""
    facts = {word: bench.runtime.device_attribute(word, bench.device) for word in named_attributes(bench)}
    for word, value in facts.items():
        low, high = LIMITS.get(word, (-(2**31), 2**31 - 1))
        expect_that(type(value) is int and low <= value <= high, f"{word}: expected {low} to {high}, came {value!r}")
    return ", ".join(f"{word} {value}" for word, value in facts.items())


def named_attributes(bench: Bench) -> list[str]:
    """The words of `device_attribute` that the backend gives a number to."""
    rows = bench.runtime.description["enums"].get("device_attribute", ())
    mapped = {word for _since, _before, words in rows for word in words}
    return [word for word in bench.runtime.contract["enums"]["device_attribute"][1] if word in mapped]


@check("device", ("device_attribute", "pci_bus_id"))
def the_facts_agree_with_the_place_on_pci(bench: Bench) -> None:
    """The attributes of bus, device and domain say what the text says, of every device."""
    if not {"pci_domain", "pci_bus", "pci_device"} <= set(named_attributes(bench)):
        raise Skipped("the file names no attributes for it")
    for device in range(bench.devices):
        domain, bus, rest = bench.runtime.pci_bus_id(device).split(":")
        place = [int(part, 16) for part in (domain, bus, rest.split(".")[0])]
        facts = [bench.runtime.device_attribute(word, device) for word in ("pci_domain", "pci_bus", "pci_device")]
        expect(facts, place, f"domain, bus and device of device {device} by attribute")
