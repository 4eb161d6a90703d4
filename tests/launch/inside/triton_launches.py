"""What `kernel[grid](…)` honours on nbxrt's launcher, and what it refuses."""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import dataclasses
import gc
import sys
import threading
import types
import weakref

import kernels
import numpy as np
import pytest
import triton
import triton.language as tl
from arrays import Foreign, array
from triton import knobs
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

import nbxrt
from nbxrt.memory.allocator import account_of

SCALE = tl.constexpr(2)


@triton.jit
def scaled(out):
    tl.store(out, 1.0 * SCALE)


@triton.jit
def described(x, out, n):
    source = tl.make_tensor_descriptor(x, shape=[n, 64], strides=[64, 1], block_shape=[16, 64])
    at = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out + at, source.load([0, 0]))


@pytest.fixture
def cuda(simulate):
    return simulate()


def _fallbacks():
    return nbxrt.triton.stats()["fallbacks"]


# devices and streams


def test_a_launch_runs_on_the_device_of_its_arrays(cuda):
    """G01, as what follows."""
    simulation, runtime = cuda
    there = array(runtime, 64, device=1)

    for _each in range(4):
        kernels.add[(1,)](there, there, there, 64, BLOCK=64)
    nbxrt.Device(1, runtime=runtime).sync()

    assert [launch.device for launch in simulation.launches()] == [1, 1, 1, 1]
    assert runtime.get_device() == 0


def test_arrays_of_two_devices_are_refused_by_name(cuda):
    _simulation, runtime = cuda
    here, there = array(runtime, 64), array(runtime, 64, device=1)

    with pytest.raises(nbxrt.ArgumentValueError, match="`x` is on device 0, and `y` on 1"):
        kernels.add[(1,)](here, there, here, 64, BLOCK=64)


def test_memory_of_the_host_is_refused_by_name(cuda):
    _simulation, runtime = cuda
    here, host = array(runtime, 64), np.zeros(64, np.float32)

    with pytest.raises(nbxrt.ArgumentTypeError, match="argument `y` of `add` is ndarray in host memory"):
        kernels.add[(1,)](here, host, here, 64, BLOCK=64)
    with pytest.raises(nbxrt.ArgumentValueError, match="argument `y` of `add` is in host memory"):
        kernels.add[(1,)](here, Foreign(host.ctypes.data), here, 64, BLOCK=64)


def test_arrays_of_another_runtime_are_refused_by_name(cuda):
    _simulation, runtime = cuda
    here, other = array(runtime, 64), array(nbxrt.open("host"), 64)

    with pytest.raises(nbxrt.ArgumentValueError, match=r"argument `out` of `add` is memory of <nbxrt.Runtime host"):
        kernels.add[(1,)](here, here, other, 64, BLOCK=64)


def test_addresses_of_other_libraries_are_taken(cuda):
    simulation, runtime = cuda
    own = array(runtime, 64)
    foreign = Foreign(own.ptr)

    for x in (own, foreign, own, foreign):
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    runtime.sync()

    assert len({launch.arguments for launch in simulation.launches()}) == 1


def test_memory_that_does_not_say_where_it_is_is_asked_for_at_every_launch(cuda):
    simulation, runtime = cuda
    device, host = nbxrt.Device(1, runtime=runtime), np.zeros(64, np.float32)
    here, there = array(runtime, 64), array(runtime, 64, device=1)
    near, far, outside = Foreign(here.ptr), Foreign(there.ptr), Foreign((host.ctypes.data + 15) & ~15)

    for _each in range(2):
        kernels.first_of[(1,)]((near, 5), near)
        for given in ((near, near, near), (far, far, far), (here, near, here), (there, far, there)):
            kernels.add[(1,)](*given, 64, BLOCK=64)
        for given, says in (
            ((here, far, here), "`x` is on device 0, and `y` on 1"),
            ((far, near, far), "`x` is on device 1, and `y` on 0"),
            ((here, outside, here), "argument `y` of `add` is in host memory"),
            ((outside, outside, outside), "argument `x` of `add` is in host memory"),
        ):
            with pytest.raises(nbxrt.ArgumentValueError, match=says):
                kernels.add[(1,)](*given, 64, BLOCK=64)
        with pytest.raises(nbxrt.ArgumentValueError, match="argument `pair` of `first_of` is in host memory"):
            kernels.first_of[(1,)]((outside, 5), near)
    runtime.sync()
    device.sync()

    assert sorted(launch.device for launch in simulation.launches()) == [0] * 6 + [1] * 4


def test_a_launch_goes_to_the_current_stream(cuda):
    simulation, runtime = cuda
    x = array(runtime, 64)
    stream = nbxrt.Device(0, runtime=runtime).create_stream()

    kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    with stream:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    runtime.sync()

    assert sorted(launch.stream for launch in simulation.launches()) == [0, 0, stream.handle]


def test_memory_of_another_stream_is_not_given_to_others_before_the_kernel_has_passed(cuda):
    simulation, runtime = cuda
    device = nbxrt.Device(0, runtime=runtime)
    mine, other = device.create_stream(), device.create_stream()
    x = nbxrt.empty(1024, device=device, stream=mine)
    address = x.ptr
    with other:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)

    del x
    again = nbxrt.empty(1024, device=device, stream=mine)

    assert simulation.pending() > 0
    assert again.ptr != address


def test_torchs_current_stream_is_shared_where_torch_is_in_use(cuda, monkeypatch):
    simulation, runtime = cuda
    x = array(runtime, 64)
    stream = runtime.stream_create()
    accelerator = types.SimpleNamespace(
        is_initialized=lambda: True, current_stream=lambda _device: types.SimpleNamespace(cuda_stream=stream)
    )
    torch = types.SimpleNamespace(cuda=accelerator, Tensor=type("Tensor", (), {}))

    kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    runtime.sync()

    assert sorted(launch.stream for launch in simulation.launches()) == [0, stream]


@pytest.mark.parametrize("vendor", ["cuda", "hip"])
def test_a_closed_stream_is_refused(vendor, simulate):
    simulation, runtime = simulate(vendor)
    x = array(runtime, 64)
    foreign, stream = Foreign(x.ptr, "float32"), nbxrt.Stream(nbxrt.Device(0, runtime=runtime))
    for each in (x, x, x, foreign, foreign, foreign):
        kernels.add[(1,)](each, each, each, 64, BLOCK=64)

    with stream:
        stream.close()
        for each in (x, foreign, x):
            with pytest.raises(nbxrt.ArgumentValueError, match=r"the stream of .* is closed"):
                kernels.add[(1,)](each, each, each, 64, BLOCK=64)
    runtime.sync()

    assert len(simulation.launches()) == 6


def test_a_closed_array_is_refused(cuda):
    simulation, runtime = cuda
    x, closed = array(runtime, 64), array(runtime, 64)
    for _each in range(3):
        kernels.add[(1,)](x, closed, x, 64, BLOCK=64)
    closed.buffer().close()

    never_launched, unknown = array(runtime, 64), JITFunction(kernels.add.fn)
    never_launched.buffer().close()

    for each in (closed, never_launched):
        for launch in (
            lambda each: kernels.add[(1,)](x, each, x, 64, BLOCK=64),
            lambda each: kernels.add[(1,)](x, each, each, 64.5, BLOCK=64),
            lambda each: kernels.add[lambda _meta: (1,)](x, each, x, 64, BLOCK=64, num_warps=2),
            lambda each: unknown[(1,)](x, each, x, 64, BLOCK=64),
        ):
            with pytest.raises(nbxrt.ArgumentValueError, match=r"argument `y` of `add` is device memory .* is closed"):
                launch(each)
        with pytest.raises(nbxrt.ArgumentValueError, match=r"argument `pair` of `first_of` is device memory .* closed"):
            kernels.first_of[(1,)]((each, 5), x)
    runtime.sync()
    assert len(simulation.launches()) == 3


def test_arrays_that_were_never_launched_go_the_short_way_too(cuda, called):
    simulation, runtime = cuda
    x = array(runtime, 64)
    for _each in range(3):
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    runtime.sync()
    simulation.clear()
    new = [array(runtime, 64, device=device) for device in (0, 0, 0, 1, 1, 1)]

    names = called(lambda: kernels.add[(1,)](*new[:3], 64, BLOCK=64))
    kernels.add[(1,)](*new[3:], 64, BLOCK=64)
    for device in nbxrt.devices(runtime):
        device.sync()

    assert "miss" not in names
    launches = simulation.launches()
    assert [launch.device for launch in launches] == [0, 1]
    pointers = [int.from_bytes(each, "little") for launch in launches for each in launch.arguments[:3]]
    assert pointers == [each.ptr for each in new]


# what Triton's run honours


def test_an_empty_grid_launches_nothing(cuda):
    simulation, runtime = cuda
    x = array(runtime, 64)

    for _each in range(2):
        assert kernels.add[(0,)](x, x, x, 64, BLOCK=64) is not None
    assert kernels.add[lambda _meta: (1, 0)](x, x, x, 64, BLOCK=64) is not None
    runtime.sync()

    assert simulation.launches() == []
    assert [call for call in simulation.log() if call.operation == "launch_kernel"] == []


def test_hooks_are_called_as_triton_calls_them(cuda):
    _simulation, runtime = cuda
    x, seen = array(runtime, 64), []

    def enter(metadata):
        seen.append(metadata.get()["name"])

    knobs.runtime.launch_enter_hook.add(enter)
    try:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
    kernels.add[(1,)](x, x, x, 64, BLOCK=64)

    assert seen == ["add"]
    assert _fallbacks() == {"launch hooks": 1}


@pytest.fixture
def called():
    """The names of the functions of Python that something calls, in order."""

    def names(call):
        found, before = [], sys.getprofile()
        sys.setprofile(lambda frame, event, _argument: found.append(frame.f_code.co_name) if event == "call" else None)
        try:
            call()
        finally:
            sys.setprofile(before)
        return found

    return names


@pytest.fixture
def hooks():
    """Adds hooks of launches, for the time of a test."""
    chains = {"enter": knobs.runtime.launch_enter_hook, "exit": knobs.runtime.launch_exit_hook}
    added = []

    def add(which, hook):
        chains[which].add(hook)
        added.append((chains[which], hook))

    yield add
    for chain, hook in added:
        chain.remove(hook)


@pytest.mark.parametrize("which", ["enter", "exit"])
@pytest.mark.parametrize("known", [False, True], ids=["first", "known"])
@pytest.mark.parametrize("way", ["behind nbxrt", "by nbxrt", "and fails"])
def test_a_hook_that_leaves_another_device_current_changes_neither_the_launch_nor_the_device(
    which, known, way, cuda, hooks
):
    simulation, runtime = cuda
    x = array(runtime, 64)
    for _each in range(3 if known else 0):
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    runtime.sync()
    simulation.clear()

    def switch(_metadata):
        (nbxrt.Device(1, runtime=runtime).set_current if way == "by nbxrt" else lambda: runtime.cudaSetDevice(1))()
        if way == "and fails":
            raise ZeroDivisionError

    hooks(which, switch)
    with pytest.raises(ZeroDivisionError) if way == "and fails" else contextlib.nullcontext():
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    assert runtime.cudaGetDevice(ctypes.byref(found := ctypes.c_int(-1))) == 0
    runtime.sync()

    assert found.value == 0
    assert [launch.device for launch in simulation.launches()] == [0] * (way != "and fails" or which == "exit")


@pytest.mark.parametrize("known", [False, True], ids=["first", "known"])
def test_a_pre_run_hook_that_switches_behind_nbxrt_does_not_move_the_launch(known, cuda):
    simulation, runtime = cuda
    nbxrt.Device(0, runtime=runtime).set_current()
    x = array(runtime, 64)
    if known:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    kernels.add.add_pre_run_hook(lambda *_given, **_named: runtime.cudaSetDevice(1))
    try:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    finally:
        kernels.add.pre_run_hooks.clear()
    assert runtime.cudaGetDevice(ctypes.byref(found := ctypes.c_int(-1))) == 0
    runtime.sync()

    assert found.value == 0
    assert [launch.device for launch in simulation.launches()] == [0] * (1 + known)


def test_what_is_left_to_triton_runs_on_the_device_of_its_arrays(cuda, hooks):
    simulation, runtime = cuda
    here, there = array(runtime, 64), array(runtime, 64, device=1)
    hooks("enter", lambda _metadata: None)

    for _each in range(2):
        kernels.add[(1,)](there, there, there, 64, BLOCK=64)
        kernels.add[(1,)](here, here, here, 64, BLOCK=64)
    kernels.add.add_pre_run_hook(lambda *_given, **_named: None)
    try:
        kernels.add[(1,)](there, there, there, 64, BLOCK=64)
    finally:
        kernels.add.pre_run_hooks.clear()
    for device in nbxrt.devices(runtime):
        device.sync()

    assert sorted(launch.device for launch in simulation.launches()) == [0, 0, 1, 1, 1]
    assert runtime.get_device() == 0


def test_what_is_left_to_triton_has_its_arguments_checked_too(cuda, hooks):
    simulation, runtime = cuda
    here, there, host = array(runtime, 64), array(runtime, 64, device=1), np.zeros(64, np.float32)
    hooks("enter", lambda _metadata: None)

    for other, says in (
        (there, "`x` is on device 0, and `y` on 1"),
        (Foreign(host.ctypes.data), "argument `y` of `add` is in host memory"),
        (host, "argument `y` of `add` is ndarray in host memory"),
    ):
        with pytest.raises(nbxrt.ArgumentError, match=says):
            kernels.add[(1,)](here, other, here, 64, BLOCK=64)
    runtime.sync()

    assert simulation.launches() == []


def test_memory_that_a_launch_left_to_triton_uses_is_kept_as_long(cuda, hooks):
    simulation, runtime = cuda
    device = nbxrt.Device(0, runtime=runtime)
    mine, other = device.create_stream(), device.create_stream()
    x = nbxrt.empty(1024, device=device, stream=mine)
    address = x.ptr
    hooks("enter", lambda _metadata: None)
    with other:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)

    del x

    assert nbxrt.empty(1024, device=device, stream=mine).ptr != address


def test_a_pre_run_hook_runs_once_a_launch(cuda):
    simulation, runtime = cuda
    x, seen = array(runtime, 64), []
    hook = lambda *given, **named: seen.append(named["BLOCK"])  # noqa: E731
    kernels.add.add_pre_run_hook(hook)
    try:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    finally:
        kernels.add.pre_run_hooks.clear()
    runtime.sync()

    assert seen == [64]
    assert len(simulation.launches()) == 1


def test_a_global_variable_that_changed_is_refused_as_triton_does(cuda, monkeypatch):
    _simulation, runtime = cuda
    out = array(runtime, 64)
    scaled[(1,)](out)
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(3))

    with pytest.raises(RuntimeError, match="Global variable SCALE has changed"):
        scaled[(1,)](out)


@triton.jit
def scaled_pair(out, pair):
    tl.store(out, (pair[0] + pair[1]) * SCALE)


def test_a_changed_global_variable_is_seen_by_every_kind_of_launch(cuda, monkeypatch):
    _simulation, runtime = cuda
    out = array(runtime, 64)
    scaled[(1,)](out)
    scaled_pair[(1,)](out, (1, 2.5))
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(3))

    for launch in (
        lambda: scaled[(0,)](out), lambda: scaled_pair[(1,)](out, (1, 2.5)),
        lambda: scaled[lambda _meta: (1,)](out), lambda: scaled[(1,)](out, num_warps=4),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="Global variable SCALE has changed"):
            launch()


def test_values_that_are_equal_and_not_the_same_are_told_apart(cuda):
    simulation, runtime = cuda
    out = array(runtime, 64)
    values = [1, True, 1.0, 0, False, 0.0, -0.0, 2, 2.0]

    for _each in range(3):
        for value in values:
            kernels.scalars[(1,)](out, value, 3, 3, 3, 3)
    runtime.sync()

    first, second, third = (simulation.launches()[at : at + len(values)] for at in (0, len(values), 2 * len(values)))
    assert first == second == third
    assert [launch.arguments[1].hex() for launch in first[1:8]] == [
        "01", "0000803f", "00000000", "00", "00000000", "00000080", "02000000",
    ]  # fmt: skip
    assert _fallbacks() == {}


def test_options_that_are_equal_and_not_the_same_are_told_apart(cuda):
    _simulation, runtime = cuda
    x = array(runtime, 64)
    asked = [
        {"num_warps": 1, "launch_cooperative_grid": False}, {"launch_cooperative_grid": False, "num_warps": 1},
        {"num_warps": 1, "launch_cooperative_grid": 0}, {"launch_cooperative_grid": 0, "num_warps": 1},
        {}, {"num_warps": 8},
    ]  # fmt: skip

    for each in asked * 2 + [options for options in asked for _each in range(3)]:
        metadata = kernels.add[(1,)](x, x, x, 64, BLOCK=64, **each).metadata
        wanted = {"num_warps": 4, "launch_cooperative_grid": False} | each
        assert repr({name: getattr(metadata, name) for name in wanted}) == repr(wanted)

    assert _fallbacks() == {}


@pytest.mark.parametrize("first", range(4))
def test_what_comes_first_does_not_say_what_comes_later(first, cuda):
    simulation, runtime = cuda
    out, arrays = array(runtime, 64), [array(runtime, 64) for _each in range(2)]
    biases = [None, *arrays, Foreign(arrays[0].ptr)]
    values = [True, False, 5, 2.5]
    biases.insert(0, biases.pop(first))
    values.insert(0, values.pop(first))

    for _each in range(4):
        for bias in biases:
            kernels.optional[(1,)](out, bias, 5)
    for _each in range(4):
        for value in values:
            kernels.scalars[(1,)](out, value, 3, 3, 3, 3)
    runtime.sync()

    launches = simulation.launches()
    wanted = [[] if bias is None else [bias.data_ptr()] for bias in biases] * 4
    assert [[int.from_bytes(each, "little") for each in launch.arguments[1:-3]] for launch in launches[:16]] == wanted
    hexadecimal = {True: "01", False: "00", 5: "05000000", 2.5: "00002040"}
    assert [launch.arguments[1].hex() for launch in launches[16:]] == [hexadecimal[value] for value in values] * 4


def test_constants_that_are_no_numbers_are_one_constant(cuda):
    _simulation, runtime = cuda
    x = array(runtime, 64)

    for _each in range(3):
        kernels.constant[(1,)](x, float("nan"))

    assert nbxrt.triton.stats()["compiled"] == 1


@dataclasses.dataclass(unsafe_hash=True)
class Size:
    number: int


@triton.jit
def sized(out, size: tl.constexpr):
    tl.store(out, size.number)


def test_a_constant_that_says_something_else_now_is_another_one(cuda):
    _simulation, runtime = cuda
    x, size = array(runtime, 64), Size(3)

    before = [sized[(1,)](x, size) for _each in range(4)]
    size.number = 4
    after = [sized[(1,)](x, size) for _each in range(4)]

    assert before == [before[0]] * 4
    assert after == [after[0]] * 4
    assert after[0] is not before[0]
    assert _fallbacks() == {}


def test_numbers_of_numpy_that_are_floats_are_left_to_triton(cuda):
    simulation, runtime = cuda
    x = array(runtime, 64)

    kernels.scalars[(1,)](x, np.float64(2.5), 3, 3, 3, 3)
    runtime.sync()

    assert simulation.launches()[0].arguments[1].hex() == "00002040"
    assert _fallbacks() == {"a float64": 1}


def test_who_clears_tritons_caches_has_kernels_compiled_anew(cuda):
    _simulation, runtime = cuda
    x = array(runtime, 64)

    first, second, _third = (kernels.add[(1,)](x, x, x, 64, BLOCK=64) for _each in range(3))
    before = kernels.add[(1,)]
    kernels.add.device_caches.clear()
    anew = before(x, x, x, 64, BLOCK=64)

    assert first is second
    assert anew is not first
    assert [kernels.add[(1,)](x, x, x, 64, BLOCK=64) for _each in range(3)] == [anew] * 3


def test_what_was_compiled_is_let_go_of_by_who_holds_a_launch_of_it(cuda):
    _simulation, runtime = cuda
    x = array(runtime, 64)
    kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    held = kernels.add[(1,)]
    for options in ({}, {"num_warps": 1}):
        alive = [weakref.ref(held(x, x, x, 64, BLOCK=64, **options)) for _each in range(4)]
        kernels.add.device_caches.clear()
        gc.collect()

        assert [each() for each in alive] == [None] * 4
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
        held = kernels.add[(1,)]


def test_caches_may_be_cleared_while_a_launch_is_refused(cuda):
    _simulation, runtime = cuda
    x, codes = array(runtime, 64), [0] * 4
    call, _attributes = runtime.launches.of({})

    def answer(*_given):
        if not codes:
            kernels.add.device_caches.clear()
        return codes.pop() if codes else 1

    call.function = answer
    for _each in range(4):
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)

    with pytest.raises(nbxrt.DeviceError, match="add"):
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)


@pytest.mark.parametrize("cleared", [False, True])
def test_launches_are_known_though_caches_were_cleared_during_the_first_one(cleared, cuda, called):
    _simulation, runtime = cuda
    x = array(runtime, 64)

    def clear(frame, _event, _argument):
        if cleared and frame.f_code.co_name == "finder":
            sys.settrace(None)
            kernels.add.device_caches.clear()

    before = sys.gettrace()
    sys.settrace(clear)
    try:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    finally:
        sys.settrace(before)
    for _each in range(4):
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    launch = kernels.add[(1,)]

    names = called(lambda: launch(x, x, x, 64, BLOCK=64))

    assert names[1] == "_nbx_launch"
    assert "miss" not in names


def test_memory_in_a_tuple_or_a_descriptor_is_kept_as_long_as_the_kernel_needs_it(cuda):
    from triton.tools.tensor_descriptor import TensorDescriptor

    _simulation, runtime = cuda
    device = nbxrt.Device(0, runtime=runtime)
    mine, other = device.create_stream(), device.create_stream()
    out = array(runtime, 1024)
    launches = (
        lambda x: kernels.first_of[(1,)]((x, 5), out),
        lambda x: kernels.copy_block[(1,)](TensorDescriptor(x, [16, 64], [64, 1], [16, 64]), out),
    )
    for launch in launches:
        x = nbxrt.empty(1024, device=device, stream=mine)
        address = x.ptr
        with other:
            launch(x)
        del x
        again = nbxrt.empty(1024, device=device, stream=mine)

        assert again.ptr != address


def test_debug_is_tritons(cuda, monkeypatch):
    _simulation, runtime = cuda
    x = array(runtime, 64)
    monkeypatch.setattr(knobs.runtime, "debug", True)

    compiled = kernels.add[(1,)](x, x, x, 64, BLOCK=64)

    assert compiled.metadata.debug
    assert _fallbacks() == {"debug": 1}


def test_more_threads_than_a_block_can_have_are_refused_by_the_limit(simulate):
    simulation, runtime = simulate("hip")
    x = array(runtime, 4096)

    kernels.add[(1,)](x, x, x, 64, BLOCK=4096, num_warps=16)
    with pytest.raises(OutOfResources, match="threads, Required: 2048, Hardware limit: 1024"):
        kernels.add[(1,)](x, x, x, 64, BLOCK=4096, num_warps=32)
    runtime.sync()

    assert [launch.block for launch in simulation.launches()] == [(1024, 1, 1)]


def test_kernels_that_the_device_cannot_hold_are_skipped_by_an_autotuner(simulate):
    simulation, runtime = simulate()
    simulation.set_attribute("max_shared_memory_per_block_optin", 60 << 10)
    a, b, c = array(runtime, 1 << 16, "float16"), array(runtime, 1 << 16, "float16"), array(runtime, 1 << 16)
    sizes = [{"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}, {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}]
    tuned = triton.autotune([triton.Config(size) for size in sizes], key=["k"])(kernels.multiply)

    tuned[(1, 1)](a, b, c, 256, 256, 256, 256, 1, 256, 1, 256, 1)

    assert tuned.best_config.kwargs["BLOCK_M"] == 32
    assert _fallbacks() == {}


def test_scratch_is_allocated_for_the_time_of_a_launch(cuda):
    simulation, runtime = cuda
    x, out = array(runtime, 1024), array(runtime, 1024)
    held = account_of(runtime).memory_allocated()

    compiled = described[(3,)](x, out, 16)
    runtime.sync()

    assert compiled.metadata.global_scratch_size > 0
    (launch,) = simulation.launches()
    assert int.from_bytes(launch.arguments[-2], "little") != 0
    assert int.from_bytes(launch.arguments[-2], "little") % compiled.metadata.global_scratch_align == 0
    assert account_of(runtime).memory_allocated() == held
    assert account_of(runtime).peak_memory_allocated() > held


def test_a_descriptor_is_passed_in_parts_where_there_is_no_unit(simulate):
    from triton.tools.tensor_descriptor import TensorDescriptor

    simulation, runtime = simulate()
    simulation.set_attribute("compute_capability_major", 8)
    x, out = array(runtime, 1024), array(runtime, 1024)

    for _each in range(2):
        kernels.copy_block[(1,)](TensorDescriptor(x, [16, 64], [64, 1], [16, 64]), out)
    runtime.sync()

    first, second = simulation.launches()
    numbers = [int.from_bytes(each, "little") for each in first.arguments]
    assert first == second
    assert numbers[:5] == [x.ptr, 16, 64, 64, 1]
    assert out.ptr in numbers
    assert _fallbacks() == {}


@pytest.mark.parametrize("major", [8, 9], ids=["in parts", "encoded"])
def test_a_descriptor_whose_extents_are_no_integers_is_refused_by_name(major, simulate):
    from triton.tools.tensor_descriptor import TensorDescriptor

    simulation, runtime = simulate()
    simulation.set_attribute("compute_capability_major", major)
    x, out = array(runtime, 1024), array(runtime, 1024)

    for shape in ([16.0, 64], [2**64, 64]):
        with pytest.raises(nbxrt.ArgumentError, match="argument `source` of `copy_block`"):
            kernels.copy_block[(1,)](TensorDescriptor(x, shape, [64, 1], [16, 64]), out)
    runtime.sync()

    assert simulation.launches() == []


def test_the_users_allocator_gives_scratch(cuda):
    simulation, runtime = cuda
    x, out, scratch, asked = array(runtime, 1024), array(runtime, 1024), array(runtime, 4096), []

    def allocate(size, alignment, stream):
        asked.append((size, alignment, stream))
        return scratch

    triton.set_allocator(allocate)
    compiled = described[(3,)](x, out, 16)
    runtime.sync()

    assert asked == [(3 * compiled.metadata.global_scratch_size, compiled.metadata.global_scratch_align, 0)]
    assert int.from_bytes(simulation.launches()[0].arguments[-2], "little") == scratch.ptr


def test_a_kernel_can_be_compiled_without_a_launch(cuda):
    simulation, runtime = cuda

    compiled = kernels.add.warmup("*fp32" and array(runtime, 64), array(runtime, 64), array(runtime, 64), 64,
                                  BLOCK=64, grid=(1,))  # fmt: skip

    assert compiled.name == "add"
    assert simulation.launches() == []
    compiled[(2, 1, 1)](*[array(runtime, 64)] * 3, 64, 64)
    runtime.sync()
    assert simulation.launches()[0].grid == (2, 1, 1)
    for y in (-1, 65536):
        with pytest.raises(nbxrt.ArgumentValueError, match=f"the grid's y of `add` is {y}"):
            compiled[(2, y, 1)](*[array(runtime, 64)] * 3, 64, 64)


def test_a_kernel_can_be_compiled_for_element_types_of_torch(cuda):
    _simulation, _runtime = cuda
    kind = type("dtype", (), {"__module__": "torch", "__str__": lambda _self: "torch.float32"})()

    assert kernels.add.warmup(kind, kind, kind, 64, BLOCK=64, grid=(1,)).src.signature["x"] == "*fp32"


def test_a_grid_is_as_large_as_the_device_says(cuda):
    simulation, runtime = cuda
    x = array(runtime, 64)

    kernels.add[(1, 65535, 2)](x, x, x, 64, BLOCK=64)
    kernels.add[(2**31 - 1,)](x, x, x, 64, BLOCK=64)
    runtime.sync()

    assert [launch.grid for launch in simulation.launches()] == [(1, 65535, 2), (2**31 - 1, 1, 1)]


def test_measuring_needs_no_torch(cuda):
    simulation, runtime = cuda
    x = array(runtime, 64)

    milliseconds = triton.testing.do_bench(lambda: kernels.add[(1,)](x, x, x, 64, BLOCK=64), warmup=1, rep=1)

    assert milliseconds > 0


# graphs


def _modules(simulation):
    return sum(live.kind == "module" for live in simulation.ledger())


@pytest.mark.parametrize("way", ["after the capture", "during the capture", "with nbxrt", "not at all"])
def test_a_graph_keeps_what_its_kernels_are_of(way, cuda):
    simulation, runtime = cuda
    x, stream = array(runtime, 64), nbxrt.Stream(nbxrt.Device(0, runtime=runtime))
    for _each in range(3):
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    runtime.sync()
    simulation.clear()

    def let_go():
        nbxrt.triton.uninstall() if way == "with nbxrt" else kernels.add.device_caches.clear()
        gc.collect()

    with stream, stream.capture("relaxed") as graph:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
        if "during" in way:
            let_go()
    if "during" not in way and way != "not at all":
        let_go()
    graph.launch(stream)
    stream.sync()

    assert len(simulation.launches()) == 1
    assert _modules(simulation) == 1
    graph.close()
    stream.sync()
    unloads = way == "with nbxrt" or (way != "not at all" and hasattr(triton.compiler.CompiledKernel, "__del__"))
    assert _modules(simulation) == (0 if unloads else 1)


def test_a_graph_keeps_a_saved_kernel(cuda, tmp_path):
    simulation, runtime = cuda
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": 64}
    nbxrt.triton.compile(kernels.add, signature, target="cuda:90").save(tmp_path / "add")
    x, stream = array(runtime, 64), nbxrt.Stream(nbxrt.Device(0, runtime=runtime))
    with nbxrt.use(runtime):
        saved = nbxrt.load_kernel(tmp_path / "add")
        saved[(1,)](x, x, x, 64)
        with stream, stream.capture("relaxed") as graph:
            saved[(1,)](x, x, x, 64)
    del saved
    graph.launch(stream)
    runtime.sync()

    assert [launch.kernel for launch in simulation.launches()] == ["add", "add"]
    assert _modules(simulation) == 1
    graph.close()
    assert _modules(simulation) == 0


@pytest.mark.parametrize("whose", ["nbxrt's", "the user's", "another library's"])
def test_a_graph_keeps_scratch(whose, cuda):
    simulation, runtime = cuda

    def allocate(size, _align, _stream):
        made = array(runtime, size, "uint8")
        alive.append(weakref.ref(made))
        if whose == "the user's":
            return made
        foreign = Foreign(made.ptr)
        foreign.owner = made
        return foreign

    alive = []
    x, out, stream = array(runtime, 1024), array(runtime, 1024), nbxrt.Stream(nbxrt.Device(0, runtime=runtime))
    context = contextvars.copy_context()
    if whose != "nbxrt's":
        context.run(triton.set_allocator, allocate)
    described[(3,)](x, out, 16)
    runtime.sync()
    simulation.clear()
    held = account_of(runtime).memory_allocated()

    with stream, stream.capture("relaxed") as graph:
        context.run(lambda: described[(3,)](x, out, 16))
    others = [array(runtime, 1 << 10) for _each in range(4)]
    graph.launch(stream)
    stream.sync()

    (launch,) = simulation.launches()
    scratch = int.from_bytes(launch.arguments[-2], "little")
    assert scratch
    assert scratch not in [each.ptr for each in others]
    assert [each() is None for each in alive] == ([] if whose == "nbxrt's" else [False])
    others.clear()
    graph.close()
    stream.sync()
    assert account_of(runtime).memory_allocated() == held


# what is refused


class Big(int):
    """An integer that is not Python's own."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: kernels.add[(1,)](x, x, x, BLOCK=64), nbxrt.ArgumentTypeError, r"`add`: missing .*argument: 'n'"),
        (lambda x: kernels.add[lambda _: (1,)](x, x, x), nbxrt.ArgumentTypeError, r"`add`: missing .*argument: 'n'"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, 64, 7), nbxrt.ArgumentTypeError, "`add`: too many positional arg"),
        (lambda x: kernels.add[lambda _: (1,)](x, x, x, 1, 64, 7), nbxrt.ArgumentTypeError, "`add`: too many positio"),
        (lambda x: kernels.add[(1,)](x, x, "x", 1, BLOCK=64), TypeError, "argument `out` of `add` is str"),
        (lambda x: kernels.constant[(1,)](x, [1, 2]), TypeError, r"`value` of `constant` is \[1, 2\], and unhashable"),
        (lambda x: kernels.constant[(1,)](x, (1, {})), TypeError, "argument `value` of `constant` is "),
        (lambda x: kernels.add[(1,)](x, x, x, np.int32(1), BLOCK=64), TypeError, "argument `n` of `add` is int32"),
        (lambda x: kernels.add[(1,)](x, x, x, 10**9999, BLOCK=64), ValueError, "`n` of `add`: <int of 33216 bits> "),
        (lambda x: kernels.add[(1,)](x, x, x, Big(2**64), BLOCK=64), ValueError, "`n` of `add`: 1844.* not fit"),
        (lambda x: kernels.add[(1,)](x, x, x, [0] * 999, BLOCK=64), TypeError, "`n` of `add` is list .{58}, which no"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, BLOCK=x), TypeError, "`BLOCK` of `add` is a constant of"),
        (lambda x: kernels.add.warmup(x, x, "x", 1, BLOCK=64, grid=(1,)), TypeError, "argument `out` of `add` is str"),
        (lambda x: kernels.add.warmup(x, x, 2**64, 1, BLOCK=64, grid=(1,)), ValueError, "`out` of `add`: 1844.* not"),
        (lambda x: kernels.add.warmup(x, x, 1, BLOCK=64, grid=(1,)), TypeError, "`add`: missing a required argument"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, BLOCK=64, num_warp=1), ValueError, "`num_warp` is no parameter"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, BLOCK=64, num_warps=3), ValueError, "num_warps must be a power of 2"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, BLOCK=64, num_warps="4"), ValueError, "`add`: the compiler for"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, BLOCK=64, num_warps=[4]), ValueError, "`add`: the compiler for"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, BLOCK=64, stream=0), ValueError, r"(?s)`stream` is no .*`with stream"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, BLOCK=64, grid=(1,)), ValueError, "`add`: `grid` is no parameter"),
        (lambda x: kernels.add[(1,)](x, x, x, 1, BLOCK=64, warmup=True), ValueError, "`add`: `warmup` is no parameter"),
        (lambda x: kernels.floats[(1,)](x, 1.0, 1e6, 1.0, 1.0, 1.0), ValueError, "argument `b` of `floats`"),
        (lambda x: kernels.half[(1,)](x, 10**6 + 1), ValueError, "argument `a` of `half`: float too large"),
        (lambda x: kernels.add[(1, -2)](x, x, x, 1, BLOCK=64), ValueError, "the grid's y of `add` is -2"),
        (lambda x: kernels.add[(1.5,)](x, x, x, 1, BLOCK=64), TypeError, "the grid's x of `add` is an integer"),
        (lambda x: kernels.add[1](x, x, x, 1, BLOCK=64), TypeError, "a tuple of one to three extents"),
        (lambda x: kernels.add[(1, 1, 1, 1)](x, x, x, 1, BLOCK=64), ValueError, "one to three extents, not 4"),
        (lambda x: kernels.add[(2**31,)](x, x, x, 1, BLOCK=64), ValueError, "is 2147483648, which is not in"),
        (lambda x: kernels.add[(1, 65536)](x, x, x, 1, BLOCK=64), ValueError, "y of `add` is 65536, which is not in 0"),
        (lambda x: kernels.add[1, 1, 65536](x, x, x, 1, BLOCK=64), ValueError, "the grid's z of `add` is 65536"),
        (lambda x: kernels.add[lambda _: [1, 65536]](x, x, x, 1, BLOCK=64), ValueError, "the grid's y of `add` is 655"),
        (lambda x: kernels.add[(2**30,)](x, x, x, 1, BLOCK=64, num_ctas=2), ValueError, "1073741824 clusters of 2 blo"),
        (lambda x: kernels.add[lambda _meta: (-1,)](x, x, x, 1, BLOCK=64), ValueError, "the grid's x of `add` is -1"),
        (lambda x: kernels.annotated[(1,)](x, 1, 1, 1, 1, 1.5, 1, 1, 1), TypeError, "argument `e` of `annotated`"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_known", [False, True], ids=["first", "known"])
def test_bad_input_is_refused_before_anything_is_launched(call, error, says, is_known, cuda):
    simulation, runtime = cuda
    x = array(runtime, 64)
    for _each in range(3 if is_known else 0):
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
        kernels.annotated[(1,)](x, 1, 1, 1, 1, 1, 1, 1, 1)
        kernels.half[(1,)](x, 3)
        runtime.sync()
        simulation.clear()

    with pytest.raises(error, match=says):
        call(x)

    runtime.sync()
    assert simulation.launches() == []


@pytest.mark.parametrize(
    "refused",
    [
        lambda kernel, x: kernel[(1,)](x, x, "x", 64, BLOCK=64),
        lambda kernel, x: kernel[(1,)](x, np.zeros(64, np.float32), x, 64, BLOCK=64),
        lambda kernel, x: kernel[(1,)](x, x, Foreign(np.zeros(64).ctypes.data), 64, BLOCK=64),
        lambda kernel, x: kernel[(1,)](x, x, array(x.runtime, 64, device=1), 64, BLOCK=64),
        lambda kernel, x: kernel[(1,)](x, x, array(x.runtime, 64, "complex64"), 64, BLOCK=64),
        lambda kernel, x: kernel[(1,)](x, x, x, 2**64, BLOCK=64),
        lambda kernel, x: kernel[(1,)](x, x, x, BLOCK=64),
        lambda kernel, x: kernel[(1,)](x, x, x, 64, BLOCK=[64]),
        lambda kernel, x: kernel[(1,)](x, x, x, 64, BLOCK=63),
        lambda kernel, x: kernel[(1,)](x, x, x, 64.5, BLOCK=None),
        lambda kernel, x: kernel[(1,)](x, x, x, 64, BLOCK=64, num_warp=1),
        lambda kernel, x: kernel[(1, -1)](x, x, x, 64, BLOCK=64),
    ],
)
def test_a_first_launch_that_is_refused_leaves_a_kernel_as_it_was(refused, cuda, called):
    simulation, runtime = cuda
    x, kernel = array(runtime, 64), JITFunction(kernels.add.fn)

    for _each in range(2):
        with pytest.raises(Exception):  # noqa: B017, PT011  # Triton's own errors too
            refused(kernel, x)
    for _each in range(3):
        kernel[(1,)](x, x, x, 64, BLOCK=64)
    names = called(lambda: kernel[(1,)](x, x, x, 64, BLOCK=64))
    runtime.sync()

    assert [name for name in names if name.startswith("_nbx")] == ["_nbx_launch"]
    assert len(names) <= 3
    assert len(simulation.launches()) == 4


def test_a_first_launch_that_the_vendor_refuses_leaves_a_kernel_as_it_was(cuda, called):
    _simulation, runtime = cuda
    x, kernel = array(runtime, 64), JITFunction(kernels.add.fn)
    call, _attributes = runtime.launches.of({})
    codes = [1]
    call.function = lambda *_given: codes.pop() if codes else 0
    with pytest.raises(nbxrt.DeviceError, match="add"):
        kernel[(1,)](x, x, x, 64, BLOCK=64)

    for _each in range(3):
        kernel[(1,)](x, x, x, 64, BLOCK=64)

    assert "miss" not in called(lambda: kernel[(1,)](x, x, x, 64, BLOCK=64))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes")
def test_what_the_compiler_refuses_tells_the_arguments_too(cuda):
    _simulation, runtime = cuda
    x = array(runtime, 64)

    with pytest.raises(triton.compiler.errors.CompilationError) as caught:
        kernels.add[(1,)](x, 5, x, 64, BLOCK=64)

    (note,) = caught.value.__notes__
    assert note.startswith("`add` was given these arguments: `x` is DeviceArray(shape=(64,), ")
    assert ", `y` is 5, `out` is " in note


def test_what_is_left_to_triton_has_its_constants_refused_by_name_too(cuda):
    _simulation, runtime = cuda
    x, kernel = array(runtime, 64), JITFunction(kernels.add.fn)
    kernel.add_pre_run_hook(lambda *_given, **_named: None)

    with pytest.raises(nbxrt.ArgumentTypeError, match=r"argument `BLOCK` of `add` is \[64\], and unhashable"):
        kernel[(1,)](x, x, x, 64, BLOCK=[64])


def test_what_is_left_to_triton_has_its_options_checked_too(cuda, monkeypatch):
    _simulation, runtime = cuda
    x = array(runtime, 64)
    monkeypatch.setattr(knobs.runtime, "debug", True)

    with pytest.raises(nbxrt.ArgumentValueError, match="`add`: `num_warp` is no parameter"):
        kernels.add[(1,)](x, x, x, 1, BLOCK=64, num_warp=1)


def test_parameters_and_kernels_may_have_any_name(cuda):
    simulation, runtime = cuda
    x = array(runtime, 64)
    renamed = JITFunction(kernels.unspecialised.fn)
    renamed.fn.__name__ = renamed.__name__ = "kernel-2"

    for _each in range(2):
        for grid in ((1,), lambda _meta: (1,)):
            kernels.named[grid](x, self=5, jit=6, arguments=7, _type=8, _Empty=9)
            renamed[grid](x, 5)
        kernels.named.run(x, self=5, jit=6, arguments=7, _type=8, _Empty=9, grid=(1,), warmup=False)
    runtime.sync()

    values = [[int.from_bytes(each, "little") for each in launch.arguments[1:-2]] for launch in simulation.launches()]
    assert values == [[5, 6, 7, 8, 9], [5], [5, 6, 7, 8, 9], [5], [5, 6, 7, 8, 9]] * 2
    assert _fallbacks() == {}


def test_a_kernel_that_is_written_anew_frees_the_former(cuda):
    simulation, runtime = cuda
    x = array(runtime, 64)
    kernel = JITFunction(kernels.unaligned.fn)
    for grid in ((1,), lambda _meta: (2,)):
        kernel[grid](x, 5)
    alive = weakref.ref(kernel)

    kernel = JITFunction(kernels.unaligned.fn)  # Triton keeps the latest of each name
    gc.collect()

    assert alive() is None
    unloads = hasattr(triton.compiler.CompiledKernel, "__del__")  # from 3.8 on
    assert [live.kind for live in simulation.ledger() if live.kind == "module"] == ([] if unloads else ["module"])
    assert nbxrt.triton.stats()["kernels"] == 1


def test_elements_that_triton_has_no_type_for_are_refused_by_name(cuda):
    _simulation, runtime = cuda
    x = array(runtime, 64)

    with pytest.raises(nbxrt.ArgumentTypeError, match="argument `y` of `add` has elements of complex64"):
        kernels.add[(1,)](x, array(runtime, 64, "complex64"), x, 64, BLOCK=64)


# threads


def test_no_launch_of_many_threads_is_torn(cuda, stub):
    _simulation, runtime = cuda
    arrays = [array(runtime, 64) for _each in range(4)]
    call, _attributes = runtime.launches.of({})
    call.function = stub.cuLaunchKernelEx
    for x in arrays:
        kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    stub.stub_check(1)
    failures = []

    def run(x):
        launch, n = kernels.add[((x.ptr >> 9) % 2 + 1,)], (x.ptr >> 4) % 1000 * 2 + 3  # two threads or more share one
        try:
            for _each in range(100_000):
                launch(x, x, x, n, BLOCK=64)
        except BaseException as error:  # a thread's failure is the test's
            failures.append(error)

    threads = [threading.Thread(target=run, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stub.stub_check(0)

    assert failures == []
    assert (stub.stub_launches(), stub.stub_torn()) == (400_000, 0)


# in and out


@pytest.mark.parametrize("devices", [0, 2])
def test_installing_asks_nothing_of_the_vendor_so_that_processes_can_be_forked_afterwards(devices, simulate):
    simulation, _runtime = simulate(devices=devices)

    assert simulation.log() == []


def test_taking_nbxrt_out_leaves_triton_as_it_was(simulate):
    before = JITFunction.run, JITFunction.__dict__.get("__getitem__"), triton.runtime.driver._active
    _simulation, runtime = simulate()
    x = array(runtime, 64)
    kernels.add[(1,)](x, x, x, 64, BLOCK=64)

    nbxrt.triton.uninstall()

    assert (JITFunction.run, JITFunction.__dict__.get("__getitem__"), triton.runtime.driver._active) == before
    assert nbxrt.triton.stats() == {"kernels": 0, "compiled": 0, "fallbacks": {}}


def test_what_was_bound_to_a_grid_before_does_not_launch_afterwards(simulate):
    simulation, runtime = simulate()
    x = array(runtime, 64)
    before = kernels.add[(1,)]
    before(x, x, x, 64, BLOCK=64)
    known = kernels.add[(1,)]
    runtime.sync()
    simulation.clear()

    nbxrt.triton.uninstall()

    for launch in (before, known):
        with pytest.raises(nbxrt.CapabilityError, match="nbxrt was taken out of Triton since"):
            launch(x, x, x, 64, BLOCK=64)
    assert simulation.launches() == []


def test_a_runtime_that_is_forgotten_is_kept_by_nothing_of_tritons(simulate):
    _simulation, runtime = simulate()
    x = array(runtime, 64)
    kernels.add[(1,)](x, x, x, 64, BLOCK=64)
    alive = weakref.ref(runtime)

    nbxrt.reset()
    assert JITFunction.run.__module__ == "triton.runtime.jit"
    del runtime, x, _simulation
    gc.collect()

    assert alive() is None


def test_a_compiled_kernel_outlives_the_installation(simulate):
    simulation, runtime = simulate()
    x = array(runtime, 64)
    compiled = kernels.add[(1,)](x, x, x, 64, BLOCK=64)

    nbxrt.triton.uninstall()

    assert compiled.module is None
    assert [live for live in simulation.ledger() if live.kind == "module"] == []
    nbxrt.triton.install(runtime)
    compiled[(3, 1, 1)](x, x, x, 64, 64)
    runtime.sync()
    assert simulation.launches()[-1].grid == (3, 1, 1)


def test_no_driver_of_tritons_is_asked_whether_it_is_active(simulate, monkeypatch):
    """G06: not even one that always says so, as that of a backend for processors, nor one that fails."""
    asked = []

    def fails():
        raise AssertionError("asked")

    for backend in triton.backends.backends.values():
        monkeypatch.setattr(backend.driver, "is_active", staticmethod(fails))
    claims = types.SimpleNamespace(is_active=lambda: asked.append("cpu") or True)
    compiler = types.SimpleNamespace(supports_target=lambda _target: False)
    monkeypatch.setitem(
        triton.backends.backends, "cpu", types.SimpleNamespace(compiler=compiler, driver=claims)
    )  # fmt: skip

    _simulation, runtime = simulate()
    x = array(runtime, 64)
    kernels.add[(1,)](x, x, x, 64, BLOCK=64)

    assert asked == []
    assert nbxrt.triton.stats()["compiled"] == 1


def test_a_backend_that_triton_does_not_know_is_refused(simulate, monkeypatch):
    _simulation, runtime = simulate()
    monkeypatch.delitem(triton.backends.backends, "nvidia")

    with pytest.raises(nbxrt.CapabilityError, match="the installed Triton does not compile for `cuda`: it has amd"):
        nbxrt.triton.install(runtime)


def test_a_backend_whose_file_names_no_target_is_refused(simulate, monkeypatch):
    _simulation, runtime = simulate()
    monkeypatch.setattr(runtime, "description", {**runtime.description, "triton": None, "name": "acme"})
    monkeypatch.setattr(runtime, "name", "acme")

    with pytest.raises(nbxrt.CapabilityError, match=r"Triton has no target for .*: .* names none"):
        nbxrt.triton.install(runtime)


def test_tritons_own_launcher_can_be_asked_for(simulate, monkeypatch):
    monkeypatch.setenv("NBX_LAUNCHER", "triton")
    run = JITFunction.run

    simulate()

    assert JITFunction.run is run
    monkeypatch.setenv("NBX_LAUNCHER", "other")
    with pytest.raises(nbxrt.ArgumentValueError, match="NBX_LAUNCHER='other' is no launcher"):
        nbxrt.triton.install("host")


def test_a_cache_that_cannot_be_written_is_named(simulate, monkeypatch, tmp_path):
    _simulation, runtime = simulate()
    x = array(runtime, 64)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file"))

    with pytest.raises(nbxrt.CapabilityError, match=r"cache in .*file: .*(exists|Not a directory)"):
        scaled[(1,)](x)
