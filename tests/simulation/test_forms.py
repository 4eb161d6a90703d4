"""Every form of the format, from the binder's arguments through C and back, with a vendor that uses them all."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import nbxrt
from nbxrt import descriptions
from nbxrt.catalogue.compiling import compile_backend
from nbxrt.catalogue.model import structure

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

BACKEND = """
contract: 1
name: odd
title: Odd vendor
abi: c
platforms: [linux, macos]
priority: 500
libraries:
  runtime:
    names:
      - {major: 3, linux: libodd.so.3, macos: libodd.3.dylib}
      - {major: 2, linux: libodd.so.2, macos: libodd.2.dylib}
    search: [system]
    version: {call: oddVersion, args: [{int: 1}, {out: version}], digits: [100, 1]}
    init: {call: oddInit, args: [null, {uint64: 5}], tolerates: [already_initialized]}
    close: {call: oddFinish, returns: nothing}
    driver_version: {call: oddDriver, returns: code, digits: [100, 1]}
    has_context: {call: oddIsInUse, args: [device], returns: code}
    status:
      success: 1000
      clear: {call: oddClear}
      name: {call: oddName, args: [{out: text}, code]}
      text: {call: oddSentence, args: [code, {buffer: text, bytes: 80}, {size: 80}]}
      kinds: {invalid_value: [-7, -8], out_of_memory: -2, no_device: -3, not_ready: -4, unknown: -99}
  driver: {same_as: runtime}
  management:
    names: [{linux: libodd-manage.so.1, macos: libodd-manage.dylib}]
    search: [system]
    status: {success: 0, kinds: {insufficient_size: 5, not_found: 6, invalid_value: 7}}
structs:
  Copy: {bytes: 40, fields: {to: [8, pointer], source: [16, pointer], size: [24, uint64], way: [32, int]},
         constants: {}}
  Place: {bytes: 16, fields: {kind: [0, int], id: [4, int], zero: [8, uint64]}, constants: {kind: 4}}
  Free: {bytes: 24, fields: {total: [4, uint64], free: [12, uint64]}}
  Key: {bytes: 64}
  Row: {bytes: 24, fields: {id: [4, uint], bytes: [16, uint64]}}
enums:
  memcpy_kind: {host_to_host: 40, host_to_device: 30, device_to_host: 20, device_to_device: 10}
  event_flags: {timing: 8, blocking: 16}
  stream_flags: {not_non_blocking: 1}
  mem_access: {read_write: 6}
operations:
  device_count: {call: oddCount, returns: {result: count}}
  set_device: {call: oddSelect, args: [{param: device, type: uint8}]}
  get_device: {call: oddSelected, args: [{error: int}], returns: {result: device}}
  sync: {call: oddSync, args: [{current_device: uint}], returns: ignored}
  mem_get_info: {call: oddMemory, args: [{struct: Free, out: {free: free, total: total}}]}
  pci_bus_id: {call: oddBus, args: [device, {int: 32}, {buffer: pci_bus_id, bytes: 32}]}
  malloc: {call: oddAllocate, args: [nbytes, {int: 1}], returns: {pointer: address}}
  malloc_managed: {call: oddAllocate, args: [nbytes, {int: 3}], returns: {pointer: address}}
  free: {call: oddRelease, args: [address], returns: nothing}
  memcpy: {call: oddCopy, args: [{struct: Copy, by_pointer: {to: dst, source: src, size: nbytes, way: kind}}]}
  memcpy_async: {call: oddCopyLater, args: [dst, nbytes, src, nbytes, kind, stream]}
  memset: {call: oddFill, args: [{pointer_to: address, type: uint64}, {param: value, type: int64}, nbytes]}
  mem_prefetch: {call: oddMove, args: [address, nbytes, {struct: Place, by_value: {id: device}}, stream]}
  stream_create: {call: oddStream, args: [{out: stream}]}
  stream_create_flags: {call: oddStreamFor, args: [{flags: stream_flags, type: uint64}, {out: stream, type: uint64}]}
  stream_destroy: oddStreamEnd
  stream_sync: oddStreamSync
  stream_query:
    call: oddStreamState
    args: [stream, {out: state, type: int}]
    result: {done: {of: state, equals: 0}}
  event_create: oddEvent
  event_create_flags: {call: oddEventFor, args: [{out: event}, {flags: event_flags}]}
  event_destroy: oddEventEnd
  event_record: {call: oddMark, args: [stream, event]}
  event_sync: oddEventSync
  event_query: {call: oddEventState, args: [event, {error: int}], returns: nothing}
  get_last_error: oddLastError
  ipc_get_mem_handle: {call: oddShare, args: [{struct: Key, out: handle}, address, nbytes]}
  ipc_open_mem_handle: {call: oddOpen, args: [{struct: Key, by_value: handle}, nbytes, {out: address}]}
  ipc_close_mem_handle: {call: oddClose, args: [address], ignores: [handle]}
  module_load: {call: oddLoad, args: [image, {length: image, type: uint}, {out: module}]}
  module_get_function: {call: oddFind, args: [name, module], returns: {result: function}}
  launch_kernel:
    call: oddLaunch
    args: [stream, function, {axes: block}, {axes: grid}, {packed: arguments, as: pointers}, null, shared_memory]
  monitor_by_pci_bus_id: {call: manageFind, args: [{pci: pci_bus_id, bits: [3, 5, 8, 16]}, {out: monitor}]}
  monitor_processes:
    call: manageList
    args: [{rows: Row, as: processes, fields: [id, bytes]}, {count: uint64}, monitor]
"""


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return described()


def described(**operations: Any) -> dict[str, Any]:
    contract = descriptions.contract()
    data = yaml.safe_load(BACKEND)
    data["operations"] |= operations
    given = {entry["group"] for name, entry in contract["operations"].items() if name not in data["operations"]}
    data["absent"] = dict.fromkeys(sorted(given), "the test does not need it")
    return compile_backend(structure(data, file="odd.yaml"), contract)


@pytest.fixture
def odd(description: dict[str, Any], simulate: Callable[..., Simulation]) -> Simulation:
    return simulate(description, "3.21")


@pytest.fixture
def runtime(odd: Simulation) -> Runtime:
    return odd.open()


def arguments(simulation: Simulation, operation: str) -> dict[str, Any]:
    """The arguments of the last call of an operation."""
    return [call.arguments for call in simulation.log() if call.operation == operation][-1]


def bytes_at(runtime: Runtime, address: int, nbytes: int) -> bytes:
    received = ctypes.create_string_buffer(nbytes)
    runtime.memcpy(ctypes.addressof(received), address, nbytes, "device_to_host")
    return received.raw


def test_the_library_is_found_under_the_names_of_its_major(odd: Simulation) -> None:
    assert {role: path.name for role, path in odd.paths.items()} == {
        "runtime": "libodd.so.3",
        "driver": "libodd.so.3",
        "management": "libodd-manage.so.1",
    }


def test_the_version_call_takes_its_constants(runtime: Runtime) -> None:
    assert runtime.version() == (3, 21)


def test_a_library_answers_by_what_its_functions_return(runtime: Runtime) -> None:
    before = runtime.has_context(0)
    runtime.malloc(8)

    assert runtime.library().driver_version == (3, 21)
    assert (before, runtime.has_context(0)) == (False, True)


def test_the_first_call_is_made_before_all_others(runtime: Runtime, odd: Simulation) -> None:
    runtime.device_count()

    operations = [call.operation for call in odd.log() if call.operation != "runtime.version"]
    assert operations == ["runtime.init", "device_count"]


def test_a_library_that_was_not_started_says_so(odd: Simulation) -> None:
    library = ctypes.CDLL(str(odd.paths["runtime"]))

    library.oddSync()

    assert odd.log()[-1].kind == "not_initialized"


def test_results_come_by_value_by_buffer_and_by_structure(runtime: Runtime, odd: Simulation) -> None:
    assert runtime.device_count() == 2
    assert runtime.pci_bus_id(1) == "0000:11:00.0"
    assert runtime.mem_get_info() == (odd.memory, odd.memory)


def test_a_status_comes_out_of_a_cell_beside_the_value(runtime: Runtime) -> None:
    runtime.set_device(1)

    assert runtime.get_device() == 1


def test_a_null_pointer_is_out_of_memory(runtime: Runtime, odd: Simulation) -> None:
    odd.memory = 100

    with pytest.raises(nbxrt.OutOfMemoryError):
        runtime.malloc(101)
    assert runtime.malloc(100)


def test_constants_tell_the_operations_of_one_function_apart(runtime: Runtime, odd: Simulation) -> None:
    runtime.malloc(8)
    runtime.malloc_managed(8)

    assert sorted(live.kind for live in odd.ledger()) == ["device", "managed"]
    assert {call.symbol for call in odd.log() if "malloc" in call.operation} == {"oddAllocate"}


def test_arguments_travel_in_a_structure(runtime: Runtime, odd: Simulation) -> None:
    sent, address = ctypes.create_string_buffer(b"x", 1), runtime.malloc(1)

    runtime.memcpy(address, ctypes.addressof(sent), 1, "host_to_device")

    source = ctypes.addressof(sent)
    assert arguments(odd, "memcpy") == {"dst": address, "src": source, "nbytes": 1, "kind": "host_to_device"}
    assert bytes_at(runtime, address, 1) == b"x"


def test_a_parameter_that_is_passed_twice_must_agree(runtime: Runtime) -> None:
    address, other = runtime.malloc(8), runtime.malloc(8)

    runtime.memcpy_async(address, other, 8, "device_to_device", 0)

    assert runtime.oddCopyLater(address, 8, other, 8, 10, 0) == 1000
    assert runtime.oddCopyLater(address, 8, other, 7, 10, 0) == -7


def test_a_word_that_the_vendor_has_no_number_for_is_refused(runtime: Runtime) -> None:
    assert runtime.oddCopyLater(runtime.malloc(8), 8, runtime.malloc(8), 8, 4, 0) == -7


def test_a_parameter_travels_behind_a_pointer(runtime: Runtime) -> None:
    address = runtime.malloc(4)

    runtime.memset(address, -1, 4)

    assert bytes_at(runtime, address, 4) == b"\xff" * 4


def test_a_structure_travels_by_value_in_registers(runtime: Runtime, odd: Simulation) -> None:
    address, stream = runtime.malloc_managed(8), runtime.stream_create()

    runtime.mem_prefetch(address, 8, 1, stream)

    assert arguments(odd, "mem_prefetch") == {"address": address, "nbytes": 8, "device": 1, "stream": stream}


def test_a_large_structure_travels_by_value_in_memory(runtime: Runtime) -> None:
    address = runtime.malloc(8)
    handle = runtime.ipc_get_mem_handle(address, 8)
    other = runtime.ipc_open_mem_handle(handle, 8)

    runtime.memset(other, 3, 8)

    assert len(handle) == 64
    assert bytes_at(runtime, address, 8) == b"\x03" * 8
    runtime.ipc_close_mem_handle(other, handle)


@pytest.mark.parametrize(("non_blocking", "bits"), [(True, 0), (False, 1)])
def test_a_flag_may_be_set_where_the_boolean_is_false(
    runtime: Runtime, odd: Simulation, non_blocking: bool, bits: int
) -> None:
    runtime.stream_create_flags(non_blocking)

    assert arguments(odd, "stream_create_flags") == {"stream_flags": bits}


def test_flags_that_nobody_knows_are_refused(runtime: Runtime) -> None:
    cell = ctypes.c_size_t()

    assert runtime.oddEventFor(ctypes.byref(cell), 8 | 16) == 1000
    assert runtime.oddEventFor(ctypes.byref(cell), 32) == -7


def test_a_vendor_without_a_current_device_is_told_it_by_each_function(simulate: Callable[..., Simulation]) -> None:
    here = {"current_device": "uint8", "as": "value"}
    allocate = {"call": "oddAllocateOn", "args": [here, "nbytes"], "returns": {"pointer": "address"}}
    kept = {"policy": "current_device"}
    simulation = simulate(described(set_device=kept, get_device=kept, malloc=allocate), "3.21")
    runtime = simulation.open()
    runtime.set_device(1)

    runtime.malloc(8)

    assert [live.device for live in simulation.ledger()] == [1]


def test_what_the_contract_tells_by_status_the_vendor_tells_by_a_cell(runtime: Runtime) -> None:
    stream, event = runtime.stream_create(), runtime.event_create()
    runtime.memcpy_async(runtime.malloc(8), runtime.malloc(8), 8, "device_to_device", stream)
    runtime.event_record(event, stream)

    answers = [runtime.stream_query(stream), runtime.event_query(event), runtime.stream_query(stream)]

    assert answers == [False, False, True]
    assert runtime.event_query(event)


def test_the_functions_own_value_may_tell_it_as_well(simulate: Callable[..., Simulation]) -> None:
    state = {
        "call": "oddStreamState",
        "args": ["stream", {"error": "int"}],
        "returns": {"result": "state", "type": "uint8"},
        "result": {"done": {"of": "state", "equals": 0}},
    }
    is_past = {"call": "oddEventPast", "args": ["event"], "returns": {"result": "done", "type": "uint8"}}
    runtime = simulate(described(stream_query=state, event_query=is_past), "3.21").open()
    stream, event = runtime.stream_create(), runtime.event_create()
    runtime.memcpy_async(runtime.malloc(8), runtime.malloc(8), 8, "device_to_device", stream)
    runtime.event_record(event, stream)

    answers = [runtime.stream_query(stream), runtime.event_query(event), runtime.stream_query(stream)]

    assert answers == [False, False, True]
    assert runtime.event_query(event)


def test_arguments_come_in_the_vendors_order(runtime: Runtime, odd: Simulation) -> None:
    module = runtime.module_load(b"nbxrt simulated module\nkernel store 8 1 = store\n")
    address, stream = runtime.malloc(8), runtime.stream_create()

    given = (ctypes.c_uint64(address), ctypes.c_uint8(6))
    runtime.launch_kernel(runtime.module_get_function(module, "store"), (4, 1, 1), (2, 1, 1), 5, stream, given)
    runtime.stream_sync(stream)

    (launch,) = odd.launches()
    assert (launch.grid, launch.block, launch.shared_memory) == ((4, 1, 1), (2, 1, 1), 5)
    assert bytes_at(runtime, address, 8) == b"\x06" * 8


def test_an_image_is_read_to_the_length_that_is_passed(runtime: Runtime) -> None:
    image = b"nbxrt simulated module\nkernel one\nkernel two\n"
    module = ctypes.c_size_t()

    assert runtime.oddLoad(image, image.index(b"kernel two"), ctypes.byref(module)) == 1000
    assert runtime.module_get_function(module.value, "one")
    assert not runtime.module_get_function(module.value, "two")


def test_an_address_on_pci_travels_as_one_integer(runtime: Runtime) -> None:
    monitor = runtime.monitor_by_pci_bus_id("0000:11:00.0")

    assert monitor
    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.monitor_by_pci_bus_id("0001:11:00.0")
    assert caught.value.kind == "not_found"


@pytest.mark.parametrize("count", [0, 1, 64, 65, 200])
def test_a_list_fills_the_fields_of_its_rows(runtime: Runtime, odd: Simulation, count: int) -> None:
    processes = [(pid, pid << 33) for pid in range(count)]
    odd.set_processes(0, processes)

    assert runtime.monitor_processes(runtime.monitor_by_pci_bus_id("0000:10:00.0")) == processes


def test_a_call_that_has_no_status_is_simply_made(runtime: Runtime, odd: Simulation) -> None:
    address = runtime.malloc(8)

    runtime.free(address)
    runtime.sync()

    assert odd.ledger() == []


def test_errors_of_this_vendor_read_like_any_other(runtime: Runtime, odd: Simulation) -> None:
    with pytest.raises(nbxrt.DeviceError) as caught:
        runtime.stream_sync(12345)

    assert (caught.value.code, caught.value.kind, caught.value.name) == (-7, "invalid_value", "INVALID_VALUE")
    assert [call.kind for call in odd.log() if call.operation == "runtime.text"] == ["success"]
    assert runtime.get_last_error() == 1000
