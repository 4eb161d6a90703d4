"""Public bug reports of comparable projects, as cases; each test says which."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from nbxrt.simulation import read_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

# A19: an optional symbol is absent in an old library


@pytest.fixture
def old(simulate: Callable[..., Simulation]) -> Simulation:
    return simulate("cuda", "11.8", without=("cudaMallocAsync", "cudaDeviceGetPCIBusId"))


def test_a_library_without_an_optional_symbol_opens_and_does_the_rest(old: Simulation) -> None:
    runtime = old.open()

    assert not runtime.supports("malloc_async")
    assert not runtime.supports("pci_bus_id")
    assert runtime.supports("free_async")
    runtime.free(runtime.malloc(64))


def test_calling_an_absent_symbol_names_it_and_the_library(old: Simulation) -> None:
    with pytest.raises(nbxrt.SymbolNotFoundError) as caught:
        old.open().malloc_async(64, 0)

    assert caught.value.symbols == ("cudaMallocAsync",)
    assert caught.value.library == str(old.paths["runtime"])
    assert "`cudaMallocAsync`" in str(caught.value)


def test_a_library_without_a_required_symbol_does_not_open(simulate: Callable[..., Simulation]) -> None:
    with pytest.raises(nbxrt.SymbolNotFoundError, match="`cudaMalloc` is not exported"):
        simulate("cuda", "12.9", without=("cudaMalloc",)).open()


# A25: types that nobody declared


def test_all_bits_of_addresses_and_sizes_survive(simulation: Simulation) -> None:
    simulation.memory = 1 << 44
    runtime = simulation.open()

    address = runtime.malloc((1 << 33) + 5)
    runtime.memset(address + (1 << 33), 1, 5)
    runtime.free(address)

    said = {call.operation: call.arguments for call in simulation.log()}
    assert address > 2**32
    assert said["malloc"] == {"nbytes": (1 << 33) + 5}
    assert said["memset"] == {"address": address + (1 << 33), "value": 1, "nbytes": 5}
    assert said["free"] == {"address": address}


# B01: a toolkit without a card


@pytest.mark.parametrize("value", ["", "-1"])
def test_hidden_devices_are_no_devices_and_the_variable_is_named(
    cuda: Simulation, run: Callable[..., str], value: str
) -> None:
    program = f"""
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = {value!r}
        import nbxrt
        report = nbxrt.detect()["cuda"]
        print(report.library, report.device, nbxrt.detect().is_available())
        runtime = nbxrt.open("cuda")
        print(runtime.device_count())
        try:
            runtime.malloc(1)
        except nbxrt.NoDeviceError as error:
            print("CUDA_VISIBLE_DEVICES is set to {value!r}" in str(error), error.kind)
    """

    said = run(program, cuda, obey_visibility=1)

    assert said == "yes no False\n0\nTrue no_device\n"


def test_a_library_without_devices_opens_and_counts_none(simulate: Callable[..., Simulation]) -> None:
    runtime = simulate("cuda", "12.9", devices=0).open()

    assert runtime.device_count() == 0
    with pytest.raises(nbxrt.NoDeviceError):
        runtime.malloc(1)


# B04: on HIP an empty variable hides nothing


def test_the_number_of_devices_is_what_the_runtime_says(
    simulate: Callable[..., Simulation], run: Callable[..., str]
) -> None:
    program = """
        import os
        os.environ["HIP_VISIBLE_DEVICES"] = ""
        import nbxrt
        print(nbxrt.open("hip").device_count())
    """

    assert run(program, simulate("hip", "6.2", devices=1)) == "1\n"


# B07: a fork after the driver was initialised


def test_importing_and_validating_leave_a_later_fork_safe(
    cuda: Simulation, run: Callable[..., str], tmp_path: Path
) -> None:
    program = """
        import os
        import nbxrt
        nbxrt.describe("cuda")
        child = os.fork()
        if not child:
            os._exit(0 if nbxrt.open("cuda").malloc(64) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), os.getpid())
    """

    status, parent = run(program, cuda, log=tmp_path / "log").split()

    assert status == "0"
    assert [call for call in read_log(tmp_path / "log") if call.process == int(parent)] == []


def test_naming_a_backend_leaves_a_later_fork_safe(cuda: Simulation, run: Callable[..., str]) -> None:
    program = """
        import os
        import nbxrt
        runtime = nbxrt.open("cuda")
        child = os.fork()
        if not child:
            os._exit(0 if runtime.malloc(64) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """

    assert run(program, cuda) == "0\n"


def test_a_fork_after_the_driver_was_initialised_is_named(simulation: Simulation, run: Callable[..., str]) -> None:
    program = f"""
        import os
        import nbxrt
        runtime = nbxrt.open("{simulation.name}")
        runtime.device_count()
        child = os.fork()
        if not child:
            try:
                runtime.malloc(64)
            except nbxrt.DeviceError as error:
                said = str(error)
                os._exit(error.code if "forked after the driver was initialised" in said and "spawn" in said else 99)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """

    assert run(program, simulation) == "3\n"


def test_a_forked_child_releases_nothing_of_its_parent(cuda: Simulation, run: Callable[..., str]) -> None:
    program = """
        import ctypes, os
        import nbxrt
        runtime = nbxrt.open("cuda")
        address = runtime.malloc(64)
        child = os.fork()
        if not child:
            try:
                runtime.free(address)
            except nbxrt.DeviceError as error:
                os._exit(error.code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        runtime.memset(address, 0, 64)
        runtime.free(address)
    """

    assert run(program, cuda) == "3\n"


# B09: probing a busy device


def test_counting_devices_makes_no_context(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cuda", "12.9", devices=3)
    simulation.fail("context", 1, "device_unavailable", onward=True, device=0)
    runtime = simulation.open()

    count, attributes = runtime.device_count(), [runtime.device_attribute("warp_size", device) for device in range(3)]

    assert (count, attributes, simulation.contexts()) == (3, [32, 32, 32], set())
    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.malloc(1)
    assert (caught.value.code, caught.value.kind) == (46, "device_unavailable")
    runtime.set_device(1)
    assert runtime.malloc(1)


# C01: the current device is each thread's own


def test_every_thread_allocates_on_its_own_device(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate("cuda", "12.9", devices=4)
    runtime, pick = simulation.open(), random.Random(5)  # noqa: S311  # which device, not a secret
    together = threading.Barrier(50)

    def allocate(device: int) -> tuple[int, int, int]:
        together.wait()
        runtime.set_device(device)
        return threading.get_native_id(), device, runtime.malloc(64)

    with ThreadPoolExecutor(50) as pool:
        made = list(pool.map(allocate, [pick.randrange(4) for _thread in range(50)]))

    devices = {call.thread: call.device for call in simulation.log() if call.operation == "malloc"}
    assert devices == {thread: device for thread, device, _address in made}
    assert {live.handle: live.device for live in simulation.ledger()} == {
        address: device for _t, device, address in made
    }


def test_a_fresh_thread_begins_on_the_first_device(runtime: Runtime, run_in_thread: Callable[..., Any]) -> None:
    runtime.set_device(1)

    assert run_in_thread(runtime.get_device) == 0
    assert runtime.get_device() == 1


# C04: a context on a device that nobody asked for


@pytest.mark.parametrize("device_0_is_full", [False, True])
def test_work_on_one_device_makes_no_context_on_another(simulation: Simulation, device_0_is_full: bool) -> None:
    if device_0_is_full:
        simulation.fail("context", 1, "out_of_memory", onward=True, device=0)
    runtime = simulation.open()

    runtime.set_device(1)
    address, stream, event = runtime.malloc(64), runtime.stream_create(), runtime.event_create()
    runtime.memset_async(address, 0, 64, stream)
    runtime.event_record(event, stream)
    runtime.event_sync(event)
    runtime.mem_get_info()
    runtime.free(address)
    runtime.stream_destroy(stream)
    runtime.event_destroy(event)

    assert simulation.contexts() == {1}


# C05: a device that is not there


@pytest.mark.parametrize("index", [2, -1, 2**31, 2**64])
def test_an_index_out_of_range_names_the_index_and_the_count(simulation: Simulation, index: int) -> None:
    runtime = simulation.open()
    runtime.set_device(1)

    with pytest.raises(nbxrt.DeviceIndexError, match=rf"is {index}, and there are 2 devices"):
        runtime.set_device(index)

    assert runtime.get_last_error() == 0
    assert runtime.get_device() == 1


@pytest.mark.parametrize("index", [True, 1.0, "0", None], ids=repr)
def test_what_is_no_integer_is_no_index(runtime: Runtime, index: Any) -> None:
    with pytest.raises(TypeError):
        runtime.set_device(index)

    assert runtime.get_last_error() == 0


@pytest.mark.needs("numpy")
def test_integers_of_numpy_are_indices(runtime: Runtime) -> None:
    import numpy as np

    runtime.set_device(np.int64(1))

    assert runtime.get_device() == 1


# D01: out of memory


def test_out_of_memory_leaves_no_error_behind(simulation: Simulation) -> None:
    simulation.memory = 100 << 20
    runtime = simulation.open()

    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.malloc(200 << 20)

    assert runtime.get_last_error() == 0
    assert runtime.malloc(60 << 20)


# D08: registration of host memory


@pytest.mark.parametrize("kind", ["out_of_memory", "already_registered", "invalid_value"])
def test_a_registration_that_failed_raises_and_leaves_no_error(simulation: Simulation, kind: str) -> None:
    simulation.fail("host_register", 1, kind)
    runtime = simulation.open()

    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.host_register(4096, 64)

    assert caught.value.kind == kind
    assert "address=4096, nbytes=64" in str(caught.value)
    assert runtime.get_last_error() == 0


# D13: access to a peer that is enabled already


def test_enabling_a_peer_twice_is_success_and_leaves_no_error(
    simulation: Simulation, run_in_thread: Callable[..., Any]
) -> None:
    runtime = simulation.open()

    runtime.device_enable_peer_access(1)
    runtime.device_enable_peer_access(1)
    in_thread = run_in_thread(lambda: (runtime.device_enable_peer_access(1), runtime.get_last_error()))

    kinds = [call.kind for call in simulation.log() if call.operation == "device_enable_peer_access"]
    assert kinds == ["success", "already_enabled", "already_enabled"]
    assert (in_thread, runtime.get_last_error()) == ((None, 0), 0)


def test_access_is_of_an_ordered_pair(simulation: Simulation) -> None:
    runtime = simulation.open()
    runtime.device_enable_peer_access(1)

    runtime.set_device(1)
    runtime.device_disable_peer_access(0)

    assert simulation.log()[-2].kind == "not_enabled"
    runtime.device_enable_peer_access(0)
    runtime.device_disable_peer_access(0)


def test_a_pair_without_access_is_named(simulation: Simulation) -> None:
    simulation.set_peer(0, 1, reachable=False)
    runtime = simulation.open()

    assert not runtime.device_can_access_peer(0, 1)
    assert runtime.device_can_access_peer(1, 0)
    with pytest.raises(nbxrt.DeviceError, match=r"peer=1.*device 0") as caught:
        runtime.device_enable_peer_access(1)
    assert caught.value.kind == "peer_unsupported"
    assert runtime.get_last_error() == 0


def test_a_device_is_no_peer_of_itself(runtime: Runtime) -> None:
    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.device_enable_peer_access(0)

    assert caught.value.kind == "invalid_device"


# D14: the context is lost


def test_a_lost_context_is_named_and_stays_lost(simulation: Simulation) -> None:
    simulation.fail("memset_async", 1, "illegal_address")
    runtime = simulation.open()
    address = runtime.malloc(64)

    with pytest.raises(nbxrt.DeviceError, match="ILLEGAL_ADDRESS") as caught:
        runtime.memset_async(address, 0, 64, 0)

    assert caught.value.sticky
    assert caught.value.code == 700
    assert "the context is lost: restart the process" in str(caught.value)
    for call in (lambda: runtime.malloc(1), runtime.sync, lambda: runtime.free(address)):
        with pytest.raises(nbxrt.DeviceError, match="ILLEGAL_ADDRESS"):
            call()


def test_an_error_that_can_be_recovered_from_loses_nothing(simulation: Simulation) -> None:
    simulation.fail("malloc", 1, "out_of_memory")
    runtime = simulation.open()

    with pytest.raises(nbxrt.OutOfMemoryError) as caught:
        runtime.malloc(64)

    assert not caught.value.sticky
    assert runtime.malloc(64)


# H01: device properties whose layout differs by version


@pytest.mark.parametrize("version", ["5.2", "6.2", "7.1"])
def test_facts_of_a_device_do_not_depend_on_a_layout(simulate: Callable[..., Simulation], version: str) -> None:
    simulation = simulate("hip", version)
    simulation.set_attribute("warp_size", 64)
    runtime = simulation.open()

    assert runtime.device_name(0) == "Simulated device 0"
    assert runtime.device_attribute("warp_size", 0) == 64
    assert runtime.mem_get_info()[1] == simulation.memory
    assert [call.symbol for call in simulation.log() if "Properties" in call.symbol or "Props" in call.symbol] == []
