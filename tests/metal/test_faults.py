"""Messages that are made to fail, and the record of those that were sent."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
import objective_c
import simulations
from nbxrt import descriptions
from nbxrt.simulation import read_log
from nbxrt.simulation.messages import failing

if TYPE_CHECKING:
    from objective_c import Stub

pytestmark = [
    pytest.mark.skipif(not objective_c.IS_FOR_THIS_MACHINE, reason=objective_c.FOR_WHICH),
    pytest.mark.needs("gobjc"),
]

SOURCE = (Path(__file__).parents[2] / "scripts" / "images" / "metal.msl").read_bytes()


def test_an_operation_fails_by_its_name_as_often_as_was_asked_for(stub: Stub, metal: Any) -> None:
    stub.built.fail("malloc", 2, "out_of_memory")
    kept = [metal.malloc(64)]

    with pytest.raises(nbxrt.OutOfMemoryError, match="newBufferWithLength:options:"):
        metal.malloc(64)
    kept.append(metal.malloc(64))

    for address in kept:
        metal.free(address)


def test_a_message_fails_by_its_selector_and_its_error_object_says_so(stub: Stub, metal: Any) -> None:
    stub.built.fail("newLibraryWithSource:options:error:", 1, "no_binary")
    stub.built.fail("newCommandQueue", 1)

    with pytest.raises(nbxrt.DeviceError, match="the simulation was told to fail") as caught:
        metal.module_load(SOURCE)
    with pytest.raises(nbxrt.DeviceError, match="newCommandQueue"):
        metal.stream_create()

    assert caught.value.kind == "no_binary"
    metal.module_unload(metal.module_load(SOURCE))
    metal.stream_destroy(metal.stream_create())


def test_work_fails_on_the_device_that_was_named(stub: Stub, metal: Any) -> None:
    stub.devices(2)
    nbxrt.reset()
    runtime: Any = nbxrt.open("metal")
    stub.built.fail("work", 1, "device_unavailable", device=1)
    for device in range(2):
        runtime.set_device(device)
        address = runtime.malloc(64)
        runtime.memset_async(address, 1, 64, 0)
        if device:
            with pytest.raises(nbxrt.DeviceError, match="busy or in a mode that forbids"):
                runtime.sync()
        runtime.sync()
        runtime.free(address)
    runtime.set_device(0)


def test_messages_are_recorded_in_order_with_what_they_were_given(stub: Stub, metal: Any) -> None:
    address, host = metal.malloc(5000), ctypes.create_string_buffer(64)
    stub.built.clear()

    metal.memset_async(address, 7, 64, 0)
    metal.memcpy(ctypes.addressof(host), address, 64, "device_to_host")

    said = [(call.symbol, call.arguments) for call in stub.built.log()]
    names = [symbol for symbol, _arguments in said]
    assert names.index("blitCommandEncoder") < names.index("fillBuffer:range:value:") < names.index("commit")
    filled = dict(said)["fillBuffer:range:value:"]
    assert (filled["to"], filled["value"]) == ("StubBlitEncoder", 7)
    assert {call.operation for call in stub.built.log()} == {"driver.send"}
    metal.free(address)


@pytest.mark.parametrize("selector", sorted({*failing(descriptions.built_in("metal"))}))
def test_whichever_message_fails_nothing_is_left_behind_and_the_next_try_works(
    stub: Stub, metal: Any, selector: str
) -> None:
    stub.built.fail(selector)

    for _again in range(2):
        with contextlib.suppress(nbxrt.NbxrtError), contextlib.ExitStack() as over:
            _use_everything(metal, over)
    over = contextlib.ExitStack()
    _use_everything(metal, over)
    over.close()


def _use_everything(metal: Any, over: contextlib.ExitStack) -> None:
    """Memory, a stream, an event, copies and a kernel; what was made ends with the stack."""
    address, stream, event = metal.malloc(64), 0, metal.event_create()
    over.callback(metal.free, address)
    over.callback(metal.event_destroy, event)
    stream = metal.stream_create()
    over.callback(metal.stream_destroy, stream)
    metal.memset_async(address, 1, 64, stream)
    metal.event_record(event, stream)
    metal.stream_wait_event(0, event)
    module = metal.module_load(SOURCE)
    over.callback(metal.module_unload, module)
    add = metal.module_get_function(module, "add")
    arguments = (*(ctypes.c_void_p(address) for _each in range(3)), ctypes.c_uint32(16))
    metal.launch_kernel(add, (1, 1, 1), (16, 1, 1), 0, stream, arguments)
    metal.stream_sync(stream)
    metal.sync()


def test_what_cannot_fail_is_refused(stub: Stub) -> None:
    with pytest.raises(nbxrt.ArgumentError, match="`sync` is no call of its own in Apple Metal"):
        stub.built.fail("sync")
    with pytest.raises(nbxrt.ArgumentError, match="`endEncoding` is nothing that can fail"):
        stub.built.fail("endEncoding")


@pytest.mark.tier("all")
def test_a_process_takes_faults_and_a_log_from_its_environment(stub: Stub, tmp_path: Path) -> None:
    program = """
        import nbxrt
        rt = nbxrt.open("metal")
        rt.free(rt.malloc(64))
        try: rt.malloc(64)
        except nbxrt.OutOfMemoryError as error: print(error.symbol)
    """
    settings = {"fail": "newBufferWithLength:options:@0:2+:out_of_memory", "log": tmp_path / "log"}

    done = simulations.run(program, stub.built.environment(**settings))

    assert (done.stdout.strip(), done.stderr) == ("newBufferWithLength:options:", "")
    asked = [call for call in read_log(tmp_path / "log") if call.symbol == "newBufferWithLength:options:"]
    assert [call.kind for call in asked] == ["success", "out_of_memory"]
    assert asked[0].arguments == {"to": "StubDevice", "newBufferWithLength": 4096, "options": 0}
