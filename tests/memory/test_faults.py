"""Every call of a scenario fails once: nothing is lost, nothing is owned twice, and the account stays right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

import nbxrt
import simulations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.simulation import Simulation

MIB = 1 << 20


def scenario(account: nbxrt.DeviceAllocator, streams: list[int]) -> None:
    """A bit of everything; errors of the vendor's library are taken as they come."""
    runtime, held, pinned = account.runtime, [], []

    def attempt(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except nbxrt.DeviceError:
            return None

    for nbytes, device, stream in (
        (40 * MIB, 0, 0), (700, 1, 0), (5 * MIB, 0, streams[0]), (30 * MIB, 1, 0), (3 * MIB, 0, 0), (60 * MIB, 0, 0),
    ):  # fmt: skip
        ptr = attempt(lambda nbytes=nbytes, device=device, stream=stream: account.malloc(nbytes, device, stream))
        held += [ptr] if ptr else []
    ptr = attempt(lambda: account.malloc_host(6000))
    pinned += [ptr] if ptr else []
    for ptr in held[:3]:
        account.record_use(ptr, streams[0])
        attempt(lambda ptr=ptr: account.free(ptr))
    ptr = attempt(lambda: account.malloc(50 * MIB, 0))
    held += [ptr] if ptr else []
    attempt(lambda: account.trim(0, keep=10 * MIB))
    for ptr in held[3:]:
        attempt(lambda ptr=ptr: account.free(ptr))
    for ptr in pinned:
        attempt(lambda ptr=ptr: account.free_host(ptr))
    attempt(runtime.sync)
    attempt(account.trim)


@pytest.mark.parametrize("kind", ["unknown", pytest.param("out_of_memory", marks=pytest.mark.tier("all"))])
def test_whatever_fails_nothing_is_lost(
    account: nbxrt.DeviceAllocator, simulation: Simulation, left: Callable[[], list[Any]], kind: str
) -> None:
    runtime = account.runtime
    policy = account.stats(0)["policy"]
    account.policy(1)
    step = 1 if hypothesis.settings.default.max_examples > 50 else 7  # the fast tier takes every seventh call
    count, calls = 1 - step, 0
    while count <= calls:
        count += step
        fresh = nbxrt.DeviceAllocator(runtime, policy)
        fresh.policy(0), fresh.policy(1)
        streams = [runtime.stream_create()]
        simulation.clear()
        simulation.fail("*", count, kind)

        scenario(fresh, streams)

        calls = max(calls, len(simulation.log()))
        simulation.mend()
        runtime.stream_destroy(streams[0])
        for device in (1, 0):
            runtime.set_device(device)
            runtime.sync()
        fresh.trim()
        assert left() == [], f"call {count} failed"
        assert [fresh.memory_allocated(device) for device in (0, 1)] == [0, 0], f"call {count} failed"
        assert [fresh.policy(device).tally.reserved for device in (0, 1)] == [0, 0], f"call {count} failed"


@pytest.mark.parametrize("backend", ["cuda", "level_zero", "ascend"])
def test_a_handle_whose_memory_would_go_with_it_is_kept_until_that_is_unmapped(backend: str, tmp_path: Path) -> None:
    simulated = simulations.built(backend, tmp_path, memory=1 << 30)
    runtime = simulated.open()
    account = nbxrt.DeviceAllocator(runtime, "expandable")
    assert account.stats(0)["policy"] == "expandable"
    simulated.clear()
    simulated.fail("mem_set_access", 2, "unknown")  # one is undone half way

    first = account.malloc(3 * MIB, 0)
    with pytest.raises(nbxrt.DeviceError):
        account.malloc(50 * MIB, 0)
    second = account.malloc(60 * MIB, 0)
    for ptr in (first, second):
        account.free(ptr)
    simulated.advance()
    account.trim()

    order = [call.operation for call in simulated.log() if call.operation in ("mem_unmap", "mem_release")]
    released_first = any(
        order[:at].count("mem_release") > order[:at].count("mem_unmap") for at in range(len(order) + 1)
    )
    assert released_first == (backend == "cuda")
    assert order.count("mem_release") == order.count("mem_unmap") > 3
    assert [live for live in simulated.ledger() if live.kind in ("mapped", "allocation", "range")] == []
