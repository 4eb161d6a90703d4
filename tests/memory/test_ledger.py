"""The account agrees with the vendor's own books to the byte, whatever is done and whatever fails."""

from __future__ import annotations

import contextlib
import gc
import itertools
from typing import TYPE_CHECKING, Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import nbxrt
from nbxrt.distributed.devicelink import DeviceLink
from nbxrt.launch.benchmarking import Cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.simulation import Simulation

MIB = 1 << 20
POLICIES = ("direct", "caching", "stream_ordered", "expandable")
MEMORY = {"device", "pool", "mapped", "pinned", "allocation", "range"}
OPERATIONS = (
    "malloc", "free", "malloc_async", "free_async", "mem_create", "mem_map", "mem_unmap", "mem_set_access",
    "mem_release", "mem_address_reserve", "mem_address_free", "event_record", "event_create_flags", "stream_sync",
    "malloc_host", "free_host",
)  # fmt: skip

sizes = st.one_of(
    st.sampled_from([1, 512, 513, 128 << 10, (128 << 10) + 1, MIB, 2 * MIB, 10 * MIB, 25 * MIB]),
    st.integers(1, 300 << 10),
    st.integers(1, 40 * MIB),
)
indexes = st.integers(0, 1 << 16)


def booked(simulation: Simulation, *kinds: str, device: int | None = None) -> int:
    """Bytes that the vendor's library has on its books."""
    return sum(live.nbytes for live in simulation.ledger() if live.kind in kinds and device in (None, live.device))


class Books(RuleBasedStateMachine):
    """Random use of one account, held against the ledger of the simulated library after every step."""

    policy = "direct"
    simulation: Simulation

    @initialize()
    def begin(self) -> None:
        self.simulation.reset()
        self.simulation.memory = 128 * MIB
        self.runtime = self.simulation.open()
        self.account = nbxrt.DeviceAllocator(self.runtime, self.policy)
        self.streams = {0: [0], 1: [0]}
        for device in (1, 0):
            self.runtime.set_device(device)
            self.streams[device].append(self.runtime.stream_create())
        self.held: list[tuple[int, int, int]] = []
        self.pinned: list[tuple[int, int]] = []
        self.captured = 0
        self.is_faulty = False

    def tolerated(self) -> Any:
        return contextlib.suppress(nbxrt.DeviceError, nbxrt.LimitError)

    @rule(nbytes=sizes, device=st.integers(0, 1), stream=st.integers(0, 1))
    def malloc(self, nbytes: int, device: int, stream: int) -> None:
        with self.tolerated():
            ptr = self.account.malloc(nbytes, device, self.streams[device][stream])
            self.held.append((ptr, nbytes, device))

    @rule(nbytes=st.sampled_from([3 * MIB, 64 << 10, 700]), times=st.integers(2, 6))
    def malloc_alike(self, nbytes: int, times: int) -> None:
        for _time in range(times):
            self.malloc(nbytes, 0, 0)

    @precondition(lambda self: self.held)
    @rule(index=indexes, other=st.booleans())
    def free(self, index: int, other: bool) -> None:
        ptr, _nbytes, device = self.held.pop(index % len(self.held))
        with self.tolerated():
            self.account.free(ptr, self.streams[device][1] if other else None)

    @precondition(lambda self: self.held)
    @rule(index=indexes)
    def record_use(self, index: int) -> None:
        ptr, _nbytes, device = self.held[index % len(self.held)]
        self.account.record_use(ptr, self.streams[device][1])

    @rule(device=st.sampled_from([None, 0, 1]), keep=st.sampled_from([0, 0, MIB, 30 * MIB]))
    def trim(self, device: int | None, keep: int) -> None:
        with self.tolerated():
            self.account.trim(device, keep)

    @rule(device=st.integers(0, 1), nbytes=st.sampled_from([None, 20 * MIB, 100 * MIB]))
    def limit(self, device: int, nbytes: int | None) -> None:
        with self.tolerated():
            self.account.limit(device, nbytes)

    @rule(nbytes=st.integers(1, 3 * MIB))
    def malloc_host(self, nbytes: int) -> None:
        with self.tolerated():
            self.pinned.append((self.account.malloc_host(nbytes), nbytes))

    @precondition(lambda self: self.pinned)
    @rule(index=indexes)
    def free_host(self, index: int) -> None:
        with self.tolerated():
            self.account.free_host(self.pinned.pop(index % len(self.pinned))[0])

    @precondition(lambda self: not self.captured)
    @rule(device=st.integers(0, 1), mode=st.sampled_from(["global", "thread_local", "relaxed"]))
    def begin_capture(self, device: int, mode: str) -> None:
        self.runtime.set_device(device)
        self.captured = self.streams[device][1]
        self.runtime.stream_begin_capture(self.captured, mode)
        self.runtime.set_device(0)

    @precondition(lambda self: self.captured)
    @rule()
    def end_capture(self) -> None:
        self.simulation.mend()
        stream, self.captured = self.captured, 0
        try:
            self.runtime.graph_destroy(self.runtime.stream_end_capture(stream))
        except nbxrt.DeviceError:  # the graph is spoilt only where the vendor's library failed
            assert self.is_faulty
        self.is_faulty = False

    @rule(
        operation=st.sampled_from(OPERATIONS),
        nth=st.integers(1, 3),
        kind=st.sampled_from(["out_of_memory", "unknown", "not_supported"]),
    )
    def fault(self, operation: str, nth: int, kind: str) -> None:
        self.simulation.mend()
        self.simulation.fail(operation, nth, kind)
        self.is_faulty = True

    @rule()
    def mend(self) -> None:
        self.simulation.mend()

    @rule()
    def finish_work(self) -> None:
        self.simulation.advance()

    @invariant()
    def what_is_allocated_is_what_was_asked_for(self) -> None:
        unit = 512 if self.policy in ("caching", "expandable") else 1
        for device in (0, 1):
            asked = sum(-(-nbytes // unit) * unit for _ptr, nbytes, where in self.held if where == device)
            assert self.account.policy(device).tally.allocated == asked

    @invariant()
    def what_is_reserved_is_on_the_books(self) -> None:
        if self.policy == "stream_ordered":  # what is freed is freed when its stream comes to it
            self.simulation.advance()
        for device in (0, 1):
            booked_there = booked(self.simulation, "device", "mapped", "pool", device=device)
            assert self.account.policy(device).tally.reserved == booked_there
        if self.account.stats(0)["pinned_reserved"]:
            assert self.account.stats(0)["pinned_reserved"] == booked(self.simulation, "pinned")

    @invariant()
    def no_byte_is_held_twice_or_without_memory_behind_it(self) -> None:
        blocks = sorted((ptr, nbytes) for ptr, nbytes, _device in self.held)
        for (ptr, nbytes), (following, _nbytes) in itertools.pairwise(blocks):
            assert ptr + nbytes <= following
        pieces = sorted(
            (live.handle, live.nbytes) for live in self.simulation.ledger() if live.kind in MEMORY - {"range"}
        )
        for ptr, nbytes in blocks:
            assert covered(ptr, nbytes, pieces) == nbytes

    def teardown(self) -> None:
        if not hasattr(self, "account"):
            return
        if self.captured:
            self.end_capture()
        self.simulation.mend()
        for ptr, _nbytes, _device in self.held:
            self.account.free(ptr)
        for ptr, _nbytes in self.pinned:
            self.account.free_host(ptr)
        for device in (0, 1):
            self.runtime.set_device(device)
            self.runtime.sync()
        self.account.trim()
        self.simulation.advance()
        assert [live for live in self.simulation.ledger() if live.kind in {*MEMORY, "event"}] == []
        assert [self.account.memory_allocated(device) for device in (0, 1)] == [0, 0]


def covered(ptr: int, nbytes: int, pieces: list[tuple[int, int]]) -> int:
    """How many bytes of a block have memory behind them."""
    return sum(max(0, min(ptr + nbytes, address + size) - max(ptr, address)) for address, size in pieces)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_account_agrees_with_the_books_after_every_step(library: Simulation, policy: str) -> None:
    machine = type("Machine", (Books,), {"policy": policy, "simulation": library})
    examples = hypothesis.settings.default.max_examples // 10

    hypothesis.stateful.run_state_machine_as_test(
        machine, settings=hypothesis.settings(max_examples=examples, stateful_step_count=30)
    )


def collected(runtime: nbxrt.Runtime) -> object:
    """What a communicator of one rank keeps for messages of its own."""
    link = DeviceLink.join(runtime, 0, runtime.comm_unique_id(), 0, 1, 10)
    link.gather(b"12345678", 1, runtime.stream_sync)
    return link


#: What makes each kind of object that has memory of its own.
OBJECTS: dict[str, Callable[[nbxrt.Runtime], object]] = {
    "a buffer": lambda _runtime: nbxrt.Buffer(5000),
    "a page-locked buffer": lambda _runtime: nbxrt.Buffer(5000, kind="pinned"),
    "a shareable buffer": lambda _runtime: nbxrt.Buffer(5000, shareable=True),
    "an array": lambda _runtime: nbxrt.zeros((30, 50), "float32"),
    "an array of NumPy's": lambda _runtime: nbxrt.from_numpy(np.arange(3000)),
    "what clears the cache between measurements": Cache,
    "a communicator": collected,
}


@pytest.mark.parametrize(
    "policy", ["expandable", *(pytest.param(each, marks=pytest.mark.tier("all")) for each in POLICIES[:-1])]
)
@pytest.mark.parametrize("what", OBJECTS)
def test_what_objects_take_is_taken_through_the_account(
    runtime: nbxrt.Runtime, simulation: Simulation, policy: str, what: str
) -> None:
    runtime.account = account = nbxrt.DeviceAllocator(runtime, policy)
    account.policy(0)
    simulation.advance()
    before = booked(simulation, "device", "mapped", "pool", "pinned")

    made = OBJECTS[what](runtime)

    stats = account.stats(0)
    assert stats["allocated"] + stats["pinned_allocated"] > 0
    taken = account.policy(0).tally.reserved + stats["pinned_reserved"]
    assert booked(simulation, "device", "mapped", "pool", "pinned") - before == taken
    close = getattr(made, "close", None)
    if isinstance(made, DeviceLink):
        made.close(10)
    elif close is not None:
        close()
    del made
    gc.collect()
    simulation.advance()
    stats = account.stats(0)
    assert stats["allocated"] + stats["pinned_allocated"] == 0
