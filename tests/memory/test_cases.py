"""Public bug reports of comparable projects about memory, as cases; each test says which.

Others stand where their subject is: D01 (memory that is there and not had) and D14 (the context is lost) in
test_out_of_memory.py, D06 (threads and streams of their own) in test_pool.py, D04 (the end of the interpreter) in
test_processes.py, D07 (pinned memory) in test_pinned.py.
"""

from __future__ import annotations

import ctypes
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

POOLED = {"caching": "a part of a segment", "expandable": "a part of a VMM segment"}


def where_of(runtime: nbxrt.Runtime, address: int) -> Any:
    """The word for what the vendor's library says an address points to."""
    return runtime.pointer_attributes(address)[0]


# D03: virtual memory that is blocked, or asked for in other sizes than its own


def test_a_device_whose_profile_blocks_virtual_memory_falls_back_and_says_so(
    runtime: nbxrt.Runtime, simulation: Simulation, left: Callable[[], list[Any]]
) -> None:
    simulation.fail("mem_create", 1, "not_supported", onward=True)
    account = nbxrt.DeviceAllocator(runtime)

    ptr = account.malloc(1 << 20)

    assert account.stats(0)["policy"] == "caching"
    assert "virtual memory does not work here: `mem_create` failed" in account.stats(0)["why"]
    account.free(ptr)
    account.trim()
    assert left() == []


def test_sizes_are_rounded_up_to_the_granularity(runtime: nbxrt.Runtime, simulation: Simulation) -> None:
    granularity = runtime.mem_granularity(0)

    for nbytes, pieces in ((1, 1), (granularity, 1), (granularity + 1, 2)):
        account = nbxrt.DeviceAllocator(runtime, "expandable")
        account.limit(0, pieces * granularity)  # it grows by no more than it must then
        ptr = account.malloc(nbytes, 0)

        assert account.memory_reserved(0) == pieces * granularity
        account.free(ptr)
        account.trim()


def test_a_heap_grows_ahead_while_little_of_the_device_is_reserved(
    runtime: nbxrt.Runtime, simulation: Simulation
) -> None:
    simulation.memory = 64 << 30
    account = nbxrt.DeviceAllocator(runtime, "expandable")

    for _block in range(4):
        account.malloc(1 << 20, 0)

    ahead = runtime.description["expandable"]["ahead"]
    assert account.memory_reserved(0) == ahead
    simulation.fail("mem_create", 1, "out_of_memory")
    account.malloc(ahead - (2 << 20), 0)  # where more cannot be had, what is asked for can
    assert account.memory_reserved(0) == ahead + (2 << 20)


# D08: registration of host memory


@pytest.mark.parametrize("kind", ["out_of_memory", "already_registered", "not_registered", "invalid_value"])
@pytest.mark.parametrize("operation", ["host_register", "host_unregister"])
def test_every_code_of_a_registration_raises_with_its_address_and_leaves_no_error(
    runtime: nbxrt.Runtime, simulation: Simulation, operation: str, kind: str
) -> None:
    page = ctypes.create_string_buffer(4096)
    address = ctypes.addressof(page)
    arguments = (address, 4096) if operation == "host_register" else (address,)
    simulation.fail(operation, 1, kind)

    with pytest.raises(nbxrt.DeviceError) as caught:
        getattr(runtime, operation)(*arguments)

    assert caught.value.kind == kind
    assert f"address={address}" in str(caught.value)
    assert operation == "host_unregister" or "nbytes=4096" in str(caught.value)
    assert runtime.get_last_error() == 0
    runtime.free(runtime.malloc(64))


@pytest.mark.parametrize("offset", [0, 1, 511])
def test_memory_is_page_locked_from_a_registration_that_succeeded_to_its_end(
    runtime: nbxrt.Runtime, simulation: Simulation, offset: int
) -> None:
    page = ctypes.create_string_buffer(8192)
    address = ctypes.addressof(page) + offset
    simulation.fail("host_register", 1, "out_of_memory")
    seen = []

    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.host_register(address, 4096)
    seen.append(where_of(runtime, address))
    runtime.host_register(address, 4096)
    seen.append(where_of(runtime, address))
    runtime.host_unregister(address)
    seen.append(where_of(runtime, address))

    assert seen == ["unregistered", "host", "unregistered"]
    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.host_unregister(address)
    assert (caught.value.kind, runtime.get_last_error()) == ("not_registered", 0)


def test_a_registration_that_overlaps_another_is_refused_and_the_first_one_stays(runtime: nbxrt.Runtime) -> None:
    page = ctypes.create_string_buffer(8192)
    address = ctypes.addressof(page)
    runtime.host_register(address, 4096)

    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.host_register(address + 1024, 4096)

    assert (caught.value.kind, runtime.get_last_error()) == ("already_registered", 0)
    assert where_of(runtime, address) == "host"
    runtime.host_unregister(address)


def test_what_cannot_be_registered_is_refused(
    runtime: nbxrt.Runtime, account: nbxrt.DeviceAllocator, calls: Callable[[], list[str]]
) -> None:
    ptr = account.malloc(4096)
    calls()

    with pytest.raises(nbxrt.ArgumentError, match="nbytes"):
        runtime.host_register(4096, 0)
    assert calls() == []
    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.host_register(ptr, 4096)
    assert (caught.value.kind, runtime.get_last_error()) == ("invalid_value", 0)


# D09: memory of the host in copies that run later


def test_a_source_lives_until_an_event_after_its_copy_has_passed(runtime: nbxrt.Runtime) -> None:
    class Source(bytearray):
        pass

    stream, event, target = nbxrt.Stream(), nbxrt.Event(), nbxrt.Buffer(1024)
    source = Source(b"A" * 1024)
    there = weakref.ref(source)

    target.copy_from(source, stream=stream)
    del source
    gc.collect()
    garbage = [bytearray(b"z" * 1024) for _block in range(64)]
    kept = there() is not None
    event.record(stream)
    event.sync()
    gc.collect()

    assert (kept, there()) == (True, None)
    assert target.tobytes() == b"A" * 1024
    assert len(garbage) == 64


# D12: the direction of a copy


@pytest.mark.parametrize("kind", [7, -1, "device_to_hots", "", None, 1.0], ids=repr)
def test_a_direction_that_the_file_does_not_have_is_refused_before_any_call(
    runtime: nbxrt.Runtime, account: nbxrt.DeviceAllocator, calls: Callable[[], list[str]], kind: Any
) -> None:
    ptr, host = account.malloc(64), ctypes.create_string_buffer(64)
    calls()

    for call in (
        lambda: runtime.memcpy(ptr, ctypes.addressof(host), 64, kind),
        lambda: runtime.memcpy_async(ptr, ctypes.addressof(host), 64, kind, 0),
    ):
        with pytest.raises(nbxrt.ArgumentError, match="kind"):
            call()

    assert calls() == []


@pytest.mark.parametrize("kind", ["device_to_host", "host_to_host", "device_to_device"])
def test_a_direction_that_does_not_fit_is_told_with_both_sides_and_copies_nothing(
    runtime: nbxrt.Runtime, account: nbxrt.DeviceAllocator, kind: str
) -> None:
    ptr, host = account.malloc(64), ctypes.create_string_buffer(b"x" * 64, 64)
    runtime.memset(ptr, 0, 64)

    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.memcpy(ptr, ctypes.addressof(host), 64, kind)

    assert f"dst={ptr}" in str(caught.value)
    assert f"src={ctypes.addressof(host)}" in str(caught.value)
    assert kind in str(caught.value)
    assert runtime.get_last_error() == 0
    back = ctypes.create_string_buffer(b"y" * 64, 64)
    runtime.memcpy(ctypes.addressof(back), ptr, 64, "device_to_host")
    assert back.raw == bytes(64)


@pytest.mark.parametrize("reachable", [True, False], ids=["peers", "strangers"])
def test_copies_between_devices_need_no_direction_and_no_peers(
    account: nbxrt.DeviceAllocator, simulation: Simulation, reachable: bool
) -> None:
    for pair in ((0, 1), (1, 0)):
        simulation.set_peer(*pair, reachable)
    there, here = nbxrt.Buffer(256, device=1), nbxrt.Buffer(256, device=0)
    there.copy_from(bytes(range(256)))

    here.copy_from(there)

    assert here.tobytes() == bytes(range(256))


# D13: access to a peer


def test_enabling_a_peer_is_of_one_direction_and_again_is_success(
    account: nbxrt.DeviceAllocator, runtime: nbxrt.Runtime, simulation: Simulation
) -> None:
    first, second = nbxrt.devices()
    account.malloc(4096, 1)

    with ThreadPoolExecutor(2) as pool:
        failed = list(pool.map(lambda _n: first.enable_peer_access(second), range(2)))
    first.enable_peer_access(second)
    first.enable_peer_access(first)

    assert (failed, runtime.get_last_error()) == ([None, None], 0)
    pairs = {
        (call.device, call.arguments["peer"])
        for call in simulation.log()
        if call.operation == "device_enable_peer_access"
    }
    assert pairs == {(0, 1)}
    runtime.free(runtime.malloc(64))


def test_a_device_is_no_peer_of_its_own(account: nbxrt.DeviceAllocator, calls: Callable[[], list[str]]) -> None:
    account.malloc(4096, 0)
    calls()

    account.admit_peer(0, 0)

    assert not {"device_enable_peer_access", "mem_set_access"} & set(calls())


def test_a_pair_that_cannot_is_named_and_the_account_goes_on(
    account: nbxrt.DeviceAllocator, runtime: nbxrt.Runtime, simulation: Simulation
) -> None:
    simulation.set_peer(0, 1, False)

    with pytest.raises(nbxrt.DeviceError, match=r":0 cannot access the memory of .*:1") as caught:
        nbxrt.Device(0).enable_peer_access(1)

    assert (caught.value.kind, runtime.get_last_error()) == ("peer_unsupported", 0)
    account.free(account.malloc(4096, 1))


# D15: memory that is shared between processes


@pytest.mark.parametrize("policy", POOLED)
def test_pooled_memory_that_cannot_be_exported_says_what_it_is(
    runtime: nbxrt.Runtime, simulation: Simulation, policy: str
) -> None:
    simulation.fail("mem_create", 2, "not_supported")  # the second asks for memory with a file descriptor
    runtime.account = nbxrt.DeviceAllocator(runtime, policy)

    with pytest.raises(nbxrt.ArgumentValueError) as caught:
        nbxrt.Buffer(4096, device=1).ipc_handle()

    for said in ("`ipc_get_mem_handle`", POOLED[policy], "cuda:1", f"`{policy}`", "shareable=True"):
        assert said in str(caught.value)


def test_a_device_that_exports_nothing_says_so_when_memory_is_made_and_the_other_goes_on(
    account: nbxrt.DeviceAllocator, runtime: nbxrt.Runtime, simulation: Simulation, left: Callable[[], list[Any]]
) -> None:
    before = left()
    simulation.fail("ipc_get_mem_handle", 1, "invalid_value", onward=True, device=1)

    for _again in range(2):
        with pytest.raises(nbxrt.DeviceError, match=r"(?s)ipc_get_mem_handle.*device 1") as caught:
            nbxrt.Buffer(4096, device=1, shareable=True)
        assert (caught.value.kind, runtime.get_last_error()) == ("invalid_value", 0)
    shared = nbxrt.Buffer(4096, device=0, shareable=True)

    assert (shared.ipc_handle().device, shared[16:32].ipc_handle().offset) == (0, 16)
    shared.close()
    assert left() == before
    assert account.stats(1)["policy"] == account.stats(0)["policy"]
