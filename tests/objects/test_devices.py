"""Devices as objects: what they say of themselves, and which one is current for whom."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
import simulations

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


class TestFacts:
    def test_a_device_is_one_object(self, runtime: Runtime) -> None:
        assert nbxrt.Device(0) is nbxrt.Device(0)
        assert nbxrt.devices()[0] is nbxrt.Device(0)
        assert pickle.loads(pickle.dumps(nbxrt.Device(0))) is nbxrt.Device(0)  # noqa: S301
        assert str(nbxrt.Device(0)) == f"{runtime.name}:0"

    def test_a_device_says_what_the_operations_say(self, simulation: Simulation) -> None:
        device = nbxrt.Device(1)
        runtime = device.runtime

        assert device.name == runtime.device_name(1)
        assert device.uuid.replace("-", "") == runtime.device_uuid(1).hex()
        assert device.pci_bus_id == runtime.pci_bus_id(1)
        assert device.compute_capability == tuple(
            runtime.device_attribute(f"compute_capability_{part}", 1) for part in ("major", "minor")
        )
        assert device.attributes["warp_size"] == runtime.device_attribute("warp_size", 1)
        assert device.supports("malloc_managed")
        assert device.memory_info[1] == simulation.memory

    def test_what_a_backend_does_not_know_is_named(self, host: Runtime) -> None:
        device = nbxrt.Device(0)

        assert (device.name, device.attributes) == ("host memory", {})
        with pytest.raises(nbxrt.CapabilityError, match="the host has no UUID of its own"):
            _ = device.uuid

    @pytest.mark.parametrize("index", [2, -1, 2**31, 2**70])
    def test_an_index_that_is_not_there_is_named_with_the_count(self, cuda: Simulation, index: int) -> None:
        with pytest.raises(nbxrt.DeviceIndexError, match=f"{index}, and there are 2 devices"):
            nbxrt.Device(index)

        assert nbxrt.current_device().runtime.get_last_error() == 0
        assert nbxrt.current_device().index == 0

    @pytest.mark.parametrize("index", [True, 1.0, "0", b"0", [0]])
    def test_what_is_no_integer_is_no_index(self, cuda: Simulation, index: Any) -> None:
        with pytest.raises(nbxrt.ArgumentTypeError, match="takes an index or a Device"):
            nbxrt.Device(index)

    def test_integers_of_numpy_are_indices(self, cuda: Simulation) -> None:
        assert nbxrt.Device(np.int64(1)) is nbxrt.Device(1)

    def test_without_any_device_the_reason_is_raised(
        self, simulated: Callable[..., Simulation], in_force: Callable[[Runtime], Runtime]
    ) -> None:
        in_force(simulated("cuda", devices=0).open())

        assert nbxrt.devices() == ()
        with pytest.raises(nbxrt.NoDeviceError):
            nbxrt.Device(0)

    def test_what_cannot_be_called_is_refused_before_the_device_is_made_current(self, simulation: Simulation) -> None:
        for value in (5, None, "sync", []):
            with pytest.raises(nbxrt.ArgumentTypeError, match=r"`Device.on` takes a function and its arguments, not "):
                nbxrt.Device(1).on(value)  # type: ignore[arg-type]

        assert "set_device" not in {call.operation for call in simulation.log()}


class TestCurrent:
    def test_inside_the_block_it_is_current_and_after_it_what_was(self, simulation: Simulation) -> None:
        runtime = nbxrt.current_device().runtime
        runtime.set_device(1)

        with nbxrt.Device(0) as device:
            assert (runtime.get_device(), nbxrt.current_device()) == (0, device)

        assert (runtime.get_device(), nbxrt.current_device().index) == (1, 1)

    def test_blocks_nest_and_errors_restore_too(self, simulation: Simulation) -> None:
        runtime = nbxrt.current_device().runtime
        runtime.set_device(0)
        seen = []

        def fail() -> None:
            with nbxrt.Device(1):
                with nbxrt.Device(0), nbxrt.Device(1), nbxrt.Device(1):
                    seen.append(runtime.get_device())
                seen.append(runtime.get_device())
                raise KeyError

        with pytest.raises(KeyError):
            fail()

        assert (seen, runtime.get_device()) == ([1, 1], 0)

    def test_a_switch_inside_the_block_is_undone_as_well(self, simulation: Simulation) -> None:
        runtime = nbxrt.current_device().runtime

        with nbxrt.Device(1):
            runtime.set_device(0)
            nbxrt.set_device(1)
            nbxrt.set_device(0)

        assert runtime.get_device() == 0

    def test_the_current_device_is_each_threads_own(self, cuda: Simulation) -> None:
        runtime = nbxrt.current_device().runtime
        nbxrt.Device(1).set_current()

        def work(index: int) -> list[int]:
            before = nbxrt.current_device().index
            with nbxrt.Device(index):
                nbxrt.empty(16)
                inside = runtime.get_device()
            # what the vendor is left on hangs on whether another thread has made the context of device 0 by now
            return [before, inside - index, nbxrt.current_device().index]

        with ThreadPoolExecutor(8) as pool:
            seen = list(pool.map(work, [0, 1, 1, 0, 1] * 10))

        assert (runtime.get_device(), nbxrt.current_device().index) == (1, 1)
        assert seen == [[0, 0, 0]] * 50

    def test_every_thread_allocates_on_its_own_device(self, cuda: Simulation) -> None:
        def work(index: int) -> tuple[int, int]:
            with nbxrt.Device(index):
                made = nbxrt.empty(8)
                return index, made.runtime.pointer_attributes(made.ptr)[1]

        with ThreadPoolExecutor(8) as pool:
            places = list(pool.map(work, [0, 1] * 20))

        assert all(wanted == found for wanted, found in places)

    def test_work_on_one_device_makes_no_context_on_another(self, simulation: Simulation) -> None:
        device = nbxrt.Device(1)

        stream, event = device.create_stream(), device.create_event()
        buffer = device.allocate(64, stream=stream)
        buffer.copy_from(bytes(64), stream=stream)
        event.record(stream)
        event.sync()
        buffer.close()
        _ = device.memory_info
        stream.close()

        assert simulation.contexts() == {1}

    def test_a_block_in_a_fresh_thread_makes_no_context_on_the_device_that_it_found(
        self, simulation: Simulation, in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        def work() -> list[int]:
            seen = []
            for _each in range(2):
                with nbxrt.Device(1):
                    nbxrt.empty(8)
                    seen.append(nbxrt.current_device().index)
                seen.append(nbxrt.current_device().index)
            nbxrt.Buffer(8, device=1).close()
            return [*seen, nbxrt.current_device().index, nbxrt.current_stream().device.index]

        assert in_thread(work) == [1, 0, 1, 0, 0, 0]
        assert simulation.contexts() == {1}
        knows = nbxrt.Device(0).runtime.has_context(0) is not None
        chosen = {call.arguments["device"] for call in simulation.log() if call.operation == "set_device"}
        assert chosen == ({1} if knows else {0, 1})

    def test_after_such_a_block_the_device_of_the_thread_is_used_when_it_is_asked_for(
        self, simulation: Simulation, in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        def work() -> list[Any]:
            with nbxrt.Device(1):
                pass
            first = nbxrt.empty(8)
            with nbxrt.Device(1), nbxrt.Device(0):
                inner = nbxrt.empty(8)
            switched = nbxrt.current_device().index
            first.runtime.set_device(1)
            return [first.device.index, inner.device.index, switched, nbxrt.current_device().index]

        assert in_thread(work) == [0, 0, 0, 1]

    def test_a_device_that_is_in_use_comes_back_after_a_block(
        self, cuda: Simulation, in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        runtime = nbxrt.current_device().runtime
        runtime.free(runtime.malloc(8))

        def work() -> list[int]:
            with nbxrt.Device(1):
                inside = runtime.get_device()
            return [inside, runtime.get_device()]

        assert (runtime.has_context(0), in_thread(work)) == (True, [1, 0])

    def test_calls_let_other_threads_run(self, cuda: Simulation) -> None:
        assert simulations.others_run_while(cuda, "sync", nbxrt.Device(0).sync)


class TestPeers:
    def test_a_device_reaches_itself_and_those_that_it_can(self, simulation: Simulation) -> None:
        simulation.set_peer(0, 1, False)
        first, second = nbxrt.devices()

        assert (first.can_access(first), first.can_access(second), second.can_access(first)) == (True, False, True)

    def test_access_is_enabled_in_one_direction_and_twice_is_success(self, simulation: Simulation) -> None:
        first, second = nbxrt.devices()

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _n: first.enable_peer_access(second), range(2)))
        first.runtime.set_device(0)
        first.runtime.device_enable_peer_access(1)

        assert first.runtime.get_last_error() == 0
        enabled = [call for call in simulation.log() if call.operation == "device_enable_peer_access"]
        assert {(call.device, call.arguments["peer"]) for call in enabled} == {(0, 1)}

    def test_a_pair_without_access_is_named(self, simulation: Simulation) -> None:
        simulation.set_peer(0, 1, False)

        with pytest.raises(nbxrt.DeviceError, match=r":0 cannot access the memory of .*:1"):
            nbxrt.Device(0).enable_peer_access(1)

    def test_a_backend_of_one_device_has_no_peers(self, host: Runtime) -> None:
        assert nbxrt.Device(0).can_access(0)
        assert nbxrt.Device(0).copy_path(0) == "same device"

    @pytest.mark.parametrize(("reachable", "way"), [(True, "peer"), (False, "staged")])
    def test_copies_between_devices_say_their_way_and_arrive(
        self, simulation: Simulation, reachable: bool, way: str
    ) -> None:
        for pair in ((0, 1), (1, 0)):
            simulation.set_peer(*pair, reachable)
        there = nbxrt.from_numpy(np.arange(6.0), device=1)

        here = nbxrt.asarray(there, device=0)

        assert nbxrt.Device(1).copy_path(0) == way
        assert (here.device.index, here.numpy().tolist()) == (0, [0, 1, 2, 3, 4, 5])
