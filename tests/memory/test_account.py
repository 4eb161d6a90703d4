"""The account: what it gives, what it holds, what it refuses, whatever its policy."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
from nbxrt import memory
from nbxrt.memory import layers

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

MIB = 1 << 20
QUIET = {"get_device", "set_device", "mempool_get_attribute"}


def test_there_is_one_account_of_a_runtime(runtime: nbxrt.Runtime) -> None:
    assert memory.account() is memory.account()
    assert memory.account() is runtime.account


def test_what_is_allocated_is_held_until_it_is_freed(account: nbxrt.DeviceAllocator) -> None:
    ptr = account.malloc(MIB)

    assert account.holds(ptr)
    assert account.memory_allocated() == MIB
    account.free(ptr)
    assert not account.holds(ptr)
    assert account.memory_allocated() == 0
    assert account.peak_memory_allocated() == MIB


def test_peaks_start_anew(account: nbxrt.DeviceAllocator, simulation: Simulation) -> None:
    account.free(account.malloc(30 * MIB))
    simulation.advance()
    account.trim()

    account.reset_peak()

    assert (account.peak_memory_allocated(), account.peak_memory_reserved()) == (0, 0)


def test_memory_is_on_the_device_that_was_asked_for_and_the_current_one_stays(
    account: nbxrt.DeviceAllocator, left: Callable[[], list[Any]]
) -> None:
    ptr = account.malloc(MIB, device=1)

    assert account.runtime.get_device() == 0
    assert {live.device for live in left() if live.kind != "range"} == {1}
    assert (account.memory_allocated(0), account.memory_allocated(1)) == (0, MIB)
    account.free(ptr)
    account.trim()
    assert left() == []


def test_the_current_device_of_the_thread_is_meant_when_none_is_given(account: nbxrt.DeviceAllocator) -> None:
    nbxrt.set_device(1)

    ptrs = [account.malloc(MIB), account.malloc(MIB)]

    assert account.memory_allocated(1) == 2 * MIB
    assert [account.owner(ptr).device for ptr in ptrs] == [1, 1]
    nbxrt.set_device(0)
    assert account.owner(account.malloc(MIB)).device == 0


def test_no_bytes_are_address_0_and_freeing_it_does_nothing(account: nbxrt.DeviceAllocator) -> None:
    assert account.malloc(0) == 0
    account.free(0)
    assert account.malloc_host(0) == 0
    account.free_host(0)


def test_methods_called_on_the_class_are_those_of_the_account_in_force(runtime: nbxrt.Runtime) -> None:
    ptr = nbxrt.DeviceAllocator.malloc(MIB)

    assert memory.account().holds(ptr)
    nbxrt.DeviceAllocator.free(ptr)
    assert not nbxrt.DeviceAllocator.holds(ptr)
    assert nbxrt.DeviceAllocator.device_count() == 2


def test_the_owner_of_an_address_is_known_also_in_the_middle_of_a_block(account: nbxrt.DeviceAllocator) -> None:
    ptr, host = account.malloc(MIB, 1), account.malloc_host(MIB)

    owner = account.owner(ptr + 12345)

    assert (owner.kind, owner.address, owner.nbytes, owner.device) == ("device", ptr, MIB, 1)
    assert account.owner(host + 1).kind == "pinned"
    assert account.owner(ptr + MIB) is None


@pytest.mark.parametrize("nbytes", [-1, 1 << 61, 1 << 64])
def test_sizes_that_no_device_has_are_refused_before_any_call(
    account: nbxrt.DeviceAllocator, calls: Callable[[], list[str]], nbytes: int
) -> None:
    calls()

    for call in (account.malloc, account.malloc_host, lambda size: account.trim(0, size)):
        with pytest.raises(nbxrt.SizeError):
            call(nbytes)
    assert set(calls()) <= QUIET


@pytest.mark.parametrize("nbytes", [1024.0, True, "8", None])
def test_what_is_no_size_is_refused_also_where_a_block_of_it_waits(account: nbxrt.DeviceAllocator, nbytes: Any) -> None:
    account.free(account.malloc(1024))
    account.free(account.malloc(1))

    with pytest.raises(nbxrt.ArgumentTypeError):
        account.malloc(nbytes)


def test_a_second_free_is_told_from_a_wrong_address(
    account: nbxrt.DeviceAllocator, calls: Callable[[], list[str]]
) -> None:
    ptr, held = account.malloc(MIB), account.malloc(MIB)
    account.free(ptr)
    calls()

    with pytest.raises(nbxrt.DoubleFreeError):
        account.free(ptr)
    with pytest.raises(nbxrt.InteriorPointerError) as caught:
        account.free(held + 256)
    assert (caught.value.address, caught.value.nbytes) == (held, MIB)
    with pytest.raises(nbxrt.PointerError):
        account.free(12)
    with pytest.raises(nbxrt.PointerError):
        account.record_use(12, 0)
    with pytest.raises(nbxrt.PointerError, match="free_host"):
        account.free_host(held)
    with pytest.raises(nbxrt.ArgumentTypeError):
        account.free("12")  # type: ignore[arg-type]
    assert set(calls()) <= QUIET


def test_devices_and_streams_that_are_none_are_refused(account: nbxrt.DeviceAllocator) -> None:
    for device in (2, -1):
        with pytest.raises(nbxrt.DeviceIndexError):
            account.malloc(1, device=device)
    for arguments in ((1, "0"), (1, True), (1, 0, None), (1, 0, "0"), (1, 0, [])):
        with pytest.raises(nbxrt.ArgumentTypeError):
            account.malloc(*arguments)  # type: ignore[arg-type]
    with pytest.raises(nbxrt.ArgumentValueError):
        account.malloc(1, 0, -1)
    with pytest.raises(nbxrt.DeviceIndexError):
        account.memory_allocated(-1)


def test_a_block_that_is_freed_after_what_is_no_stream_stays_held(account: nbxrt.DeviceAllocator) -> None:
    ptr = account.malloc(1000)

    for stream in ("0", -1, 1.5):
        with pytest.raises(nbxrt.ArgumentError):
            account.free(ptr, stream)  # type: ignore[arg-type]

    assert account.holds(ptr)
    account.free(ptr)
    assert account.memory_allocated(0) == 0


WRONG: dict[str, Any] = {
    "add_layer": lambda account: account.add_layer(5),
    "add_layer, of what is no layer": lambda account: account.add_layer(lambda _below: object()),
    "add_layer, depth": lambda account: account.add_layer(layers.Tracking, depth=0),
    "add_layer, most": lambda account: account.add_layer(layers.History, most="all"),
    "add_layer, write": lambda account: account.add_layer(layers.Logging, None),
    "remove_layer": lambda account: account.remove_layer(5),
    "register_reclaim_hook": lambda account: account.register_reclaim_hook(5),
    "watch": lambda account: account.watch(None),
    "report_at_exit": lambda _account: layers.report_at_exit("leaks"),
    "holds": lambda account: account.holds([]),
    "owner": lambda account: account.owner("here"),
    "free": lambda account: account.free([]),
    "free_host": lambda account: account.free_host("here"),
    "free_host, a list": lambda account: account.free_host([]),
    "record_use": lambda account: account.record_use([], 0),
    "record_use, stream": lambda account: account.record_use(0, None),
    "forget_stream": lambda account: account.forget_stream("all"),
    "limit": lambda account: account.limit(0, "much"),
    "limit, device": lambda account: account.limit(None, 1.5),
    "trim": lambda account: account.trim(0, None),
    "trim, device": lambda account: account.trim("all"),
    "stats": lambda account: account.stats(1.0),
    "policy": lambda account: account.policy(False),
    "admit_peer": lambda account: account.admit_peer(0, "1"),
    "snapshot": lambda account: account.snapshot(7),
    "set_device": lambda account: account.set_device("first"),
    "event_elapsed_ms": lambda account: account.event_elapsed_ms("start", 0),
    "DeviceAllocator": lambda _account: nbxrt.DeviceAllocator("cuda"),
    "DeviceAllocator, policy": lambda account: nbxrt.DeviceAllocator(account.runtime, 5),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_of_no_use_to_a_method_is_refused_before_any_call(
    runtime: nbxrt.Runtime, calls: Callable[[], list[str]], what: str
) -> None:
    account = nbxrt.DeviceAllocator(runtime, "caching")
    account.policy(0)
    calls()

    with pytest.raises(nbxrt.ArgumentError):
        WRONG[what](account)

    assert set(calls()) <= QUIET
    assert account.layers() == ()


def test_integers_of_numpy_are_taken_for_sizes_devices_streams_and_addresses(account: nbxrt.DeviceAllocator) -> None:
    ptr = account.malloc(np.int64(1000), np.int32(0), np.uint64(0))

    account.record_use(np.uint64(ptr), np.int64(0))
    account.free(np.uint64(ptr), np.int64(0))

    assert account.memory_allocated(0) == 0


def test_the_current_device_is_asked_once_in_a_thread_that_never_chose_one(
    account: nbxrt.DeviceAllocator, calls: Callable[[], list[str]]
) -> None:
    seen: list[Any] = []

    def work() -> None:
        account.free(account.malloc(1000))
        account.free(account.malloc(1000))
        calls()
        seen.append([account.malloc(1000) for _block in range(20)])
        seen.append(calls().count("get_device"))
        nbxrt.invalidate_current_device_cache()
        account.runtime.set_device(1)
        seen.append(account.owner(account.malloc(1000)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert {account.owner(ptr).device for ptr in seen[0]} == {0}  # type: ignore[union-attr]
    assert seen[1] <= 3
    assert seen[2].device == 1


def test_an_unknown_policy_is_refused_by_name(runtime: nbxrt.Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(nbxrt.UnknownPolicyError, match="did you mean `caching`"):
        nbxrt.DeviceAllocator(runtime, "cashing")
    monkeypatch.setenv("NBXRT_ALLOCATOR", "fast")
    with pytest.raises(nbxrt.UnknownPolicyError, match="NBXRT_ALLOCATOR='fast'"):
        nbxrt.DeviceAllocator(runtime)


def test_the_variable_selects_the_policy(runtime: nbxrt.Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBXRT_ALLOCATOR", "caching")

    assert nbxrt.DeviceAllocator(runtime).stats(0)["policy"] == "caching"


def test_the_best_policy_is_found_by_trial(runtime: nbxrt.Runtime, simulation: Simulation) -> None:
    simulation.set_attribute("virtual_memory_supported", 0, device=1)

    account = nbxrt.DeviceAllocator(runtime)

    assert account.stats(0)["policy"] == "expandable"
    assert account.stats(1)["policy"] == "caching"
    assert "virtual memory does not work here" in account.stats(1)["why"]


def test_a_limit_is_kept_and_may_not_be_under_what_is_held(account: nbxrt.DeviceAllocator) -> None:
    ptr = account.malloc(10 * MIB)
    with pytest.raises(nbxrt.LimitError) as caught:
        account.limit(0, 9 * MIB)
    assert caught.value.held >= 10 * MIB

    account.limit(0, 40 * MIB)

    account.malloc(20 * MIB)
    with pytest.raises(nbxrt.OutOfMemoryError, match="limit of"):
        account.malloc(20 * MIB)
    account.free(ptr)
    account.malloc(10 * MIB)
    account.limit(0, None)
    account.malloc(30 * MIB)


def test_time_between_events_is_of_one_device(runtime: nbxrt.Runtime) -> None:
    account = memory.account()
    start = runtime.event_create()
    runtime.event_record(start, 0)
    runtime.set_device(1)
    end = runtime.event_create()
    runtime.event_record(end, 0)
    runtime.sync()

    with pytest.raises(nbxrt.ArgumentValueError, match="on one device"):
        account.event_elapsed_ms(start, end)
    assert account.event_elapsed_ms(end, end) == 0


def test_a_switch_by_the_account_makes_tritons_device_be_set_anew(runtime: nbxrt.Runtime) -> None:
    account = memory.account()
    account.ensure_triton_device(1)
    assert runtime.current.index == 1

    account.set_device(1)
    assert runtime.current.index == 1
    account.set_device(0)

    assert (account.get_device(), runtime.current.index) == (0, None)


class TestLayers:
    def test_a_limit_refuses_what_would_pass_it_and_lets_go_of_what_is_freed(
        self, account: nbxrt.DeviceAllocator
    ) -> None:
        limit = account.add_layer(layers.Limit, 3 * MIB)
        first = account.malloc(2 * MIB, 0)

        with pytest.raises(nbxrt.OutOfMemoryError, match="would pass the limit of 3145728 bytes") as caught:
            account.malloc(2 * MIB, 0)
        with pytest.raises(nbxrt.PointerError):
            account.free(first + 12345)
        account.malloc(MIB, 0)

        assert (caught.value.requested, limit.held) == (2 * MIB, 3 * MIB)
        account.free(first)
        account.malloc(2 * MIB, 0)

    def test_a_free_that_is_refused_leaves_the_call_site(self, account: nbxrt.DeviceAllocator) -> None:
        tracking = account.add_layer(layers.Tracking)
        ptr = account.malloc(1000, 0)

        with pytest.raises(nbxrt.ArgumentError):
            account.free(ptr, -1)

        assert tracking.leaks()[0][:2] == (ptr, 1000)

    def test_statistics_count_what_callers_do(self, account: nbxrt.DeviceAllocator) -> None:
        counts = account.add_layer(layers.Statistics)

        ptr = account.malloc(1000)
        account.malloc(1025)
        account.free(ptr)

        assert (counts.mallocs, counts.frees, counts.nbytes) == (2, 1, 2025)
        assert counts.sizes == {1024: 1, 2048: 1}

    def test_tracking_names_where_a_leak_was_allocated(self, account: nbxrt.DeviceAllocator) -> None:
        tracking = account.add_layer(layers.Tracking)
        account.free(account.malloc(MIB))
        leak = account.malloc(3 * MIB)

        ((ptr, nbytes, site),) = tracking.leaks()

        assert (ptr, nbytes) == (leak, 3 * MIB)
        assert "test_account.py" in site.split(" < ", 1)[0]
        assert tracking.report().startswith(f"{3 * MIB} bytes in 1 block allocated at\n")

    def test_logging_writes_a_line_for_every_event(self, account: nbxrt.DeviceAllocator) -> None:
        lines: list[str] = []
        account.add_layer(layers.Logging, lines.append)

        account.free(account.malloc(77))

        assert lines[0] == "time_ns,event,address,nbytes,device,stream\n"
        assert [line.split(",")[1] for line in lines[1:]] == ["malloc", "free"]

    def test_a_layer_of_ones_own_goes_between(self, account: nbxrt.DeviceAllocator) -> None:
        class Doubling(layers.Layer):
            def malloc(self, nbytes: int, device: int | None = None, stream: int = 0) -> int:
                return self.below.malloc(2 * nbytes, device, stream)

        counts = account.add_layer(layers.Statistics)
        doubling = account.add_layer(Doubling)

        account.malloc(MIB)
        account.remove_layer(doubling)
        account.malloc(MIB)

        assert counts.nbytes == 3 * MIB
        account.remove_layer(counts)
        account.malloc(MIB)
        assert counts.nbytes == 3 * MIB


def chain(error: BaseException | None) -> list[type[BaseException]]:
    """The classes of an error and of all that a traceback shows before it."""
    return [] if error is None else [type(error), *chain(error.__cause__), *chain(error.__context__)]


@pytest.mark.parametrize(
    "call",
    [
        lambda account, _ptr: account.malloc(-1, 0),
        lambda account, _ptr: account.malloc("1", 0),
        lambda account, _ptr: account.malloc([], 0),
        lambda account, _ptr: account.malloc(512, 7),
        lambda account, _ptr: account.malloc(512, 0, -1),
        lambda account, _ptr: account.malloc(1 << 40, 0),
        lambda account, _ptr: account.malloc(40 * MIB, 0),  # a size that has a bin
        lambda account, _ptr: account.malloc_alone(1 << 40, 0),
        lambda account, ptr: account.free(ptr + 8),
        lambda account, ptr: account.free(ptr, -1),
        lambda account, _ptr: account.free([]),
        lambda account, ptr: account.free_host(ptr),
        lambda account, _ptr: account.record_use(5, 0),
    ],
)
def test_an_error_shows_nothing_of_the_inside_of_the_account(
    account: nbxrt.DeviceAllocator, simulation: Simulation, call: Callable[[nbxrt.DeviceAllocator, int], object]
) -> None:
    simulation.memory = 64 * MIB
    ptr, _other = account.malloc(MIB, 0), account.malloc(40 * MIB, 0)

    with pytest.raises(nbxrt.NbxrtError) as caught:
        call(account, ptr)

    assert all(issubclass(each, nbxrt.NbxrtError) for each in chain(caught.value)), chain(caught.value)
