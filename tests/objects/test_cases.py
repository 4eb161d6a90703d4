"""Situations that other projects reported, of devices and threads (C) and of exchange (E), each by its number."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
import simulations
import toys
from nbxrt import descriptions
from nbxrt.objects import dlpack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbxrt.simulation import Simulation

INTERFACE = "__cuda_array_interface__"


# C01: the current device is each thread's own


def test_every_thread_works_on_the_device_that_it_chose(cuda: Simulation) -> None:
    nbxrt.set_device(1)

    def work(index: int) -> bool:
        nbxrt.ensure_triton_device(index)
        pointer = nbxrt.current_device().allocate(64)
        found = pointer.runtime.pointer_attributes(pointer.ptr)[1]
        return found == pointer.device.index == nbxrt.current_device().index == index

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(work, random.Random(1).choices([0, 1], k=50)))  # noqa: S311  # the same each time
    assert nbxrt.current_device().index == 1


# C04: a context on a device that nobody asked for


@pytest.mark.parametrize("refuses", [False, True], ids=["", "while the first one is full"])
def test_work_on_the_second_device_touches_no_other(
    simulation: Simulation, refuses: bool, in_thread: Callable[[Callable[[], Any]], Any]
) -> None:
    if refuses:
        simulation.fail("context", kind="out_of_memory", onward=True, device=0)

    def work() -> None:
        device = nbxrt.Device(1)
        stream, event, buffer = device.create_stream(), device.create_event(), device.allocate(64)
        buffer.copy_from(bytes(64), stream=stream)
        stream.record(event)
        event.sync()
        assert device.memory_info[1] == simulation.memory
        for each in (buffer, event, stream):
            each.close()

    def work_inside() -> None:
        with nbxrt.Device(1):
            work()
        nbxrt.Device(1).sync()

    def take() -> None:
        array = nbxrt.empty(3, device=1)
        described = getattr(array, INTERFACE, None)
        if described:  # another library says nothing of the device in it
            foreign = nbxrt.asarray(type("Foreign", (), {INTERFACE: described})())
            assert (foreign.device.index, foreign.ptr) == (1, array.ptr)

    in_thread(work)
    in_thread(take)
    in_thread(work_inside)

    assert simulation.contexts() == {1}


# C05: a device that is not there


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        *((index, nbxrt.DeviceIndexError) for index in (2, -1, 2**31)),
        *((index, nbxrt.ArgumentTypeError) for index in (True, 1.0, "0", np.array([0]), np.bool_(True), int, [])),
    ],
)
def test_a_device_that_is_not_there_is_named_and_changes_nothing(cuda: Simulation, index: Any, kind: Any) -> None:
    runtime = nbxrt.current_device().runtime
    nbxrt.set_device(1)
    said = f"{index}, and there are 2 devices" if kind is nbxrt.DeviceIndexError else "not "

    def ask(it: Any) -> bool:
        return runtime.supports("malloc", it)

    for use in (nbxrt.Device, nbxrt.set_device, lambda it: nbxrt.empty(3, device=it), runtime.set_device, ask):
        with pytest.raises(kind, match=said):
            use(index)

    assert (runtime.get_last_error(), runtime.get_device(), nbxrt.current_device().index) == (0, 1, 1)
    assert nbxrt.Device(np.int64(0)).index == 0


# C07: the interpreter's lock and the driver's


def test_other_threads_go_on_while_a_call_blocks_and_no_callback_can_deadlock(cuda: Simulation) -> None:
    stream = nbxrt.Stream()

    assert simulations.others_run_while(cuda, "stream_sync", stream.sync)
    assert not hasattr(stream, "callback")


# E02: protocols old and new, and the life of a capsule


class Producer:
    """An array of another library, which takes these arguments of a question and no others."""

    def __init__(self, array: nbxrt.DeviceArray, *takes: str, major: int = 1) -> None:
        self.array, self.takes, self.major = array, takes, major

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **asked: Any) -> Any:
        if set(asked) - set(self.takes):
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(stream=-1, max_version=asked.get("max_version"))


@pytest.mark.parametrize("takes", [(), ("stream",), ("stream", "max_version")], ids=["oldest", "older", "new"])
def test_a_producer_is_asked_as_it_can_be_and_gives_its_memory_back_once(
    simulation: Simulation, takes: tuple[str, ...]
) -> None:
    before = len(dlpack._held)
    producer = Producer(nbxrt.from_numpy(np.arange(3.0)), *takes)

    taken = nbxrt.from_dlpack(producer)
    capsule = producer.array.__dlpack__()
    again = nbxrt.from_dlpack(capsule)
    with pytest.raises(nbxrt.ExchangeError, match="taken already"):
        nbxrt.from_dlpack(capsule)
    never = producer.array.__dlpack__(max_version=(1, 0))

    assert taken.ptr == again.ptr == producer.array.ptr
    del taken, again, capsule, never
    assert len(dlpack._held) == before


# E03: numbers of device types


@pytest.mark.parametrize("code", [1, 8, 10, 11, 99])
def test_memory_of_another_kind_of_device_is_refused_naming_whose_it_is(cuda: Simulation, code: int) -> None:
    producer = Producer(nbxrt.empty(3), "max_version", "stream")
    producer.__dlpack_device__ = lambda: (code, 0)  # type: ignore[method-assign]
    whose = {1: "host", 8: "metal", 10: "hip", 11: "hip"}.get(code, "no backend that is known here")

    with pytest.raises(nbxrt.ExchangeError, match=f"device type {code} .*{whose}.*cuda"):
        nbxrt.from_dlpack(producer)


def test_numbers_of_devices_come_from_the_backends_files() -> None:
    numbers = {name: descriptions.built_in(name)["interop"]["dlpack"] for name in ("cuda", "hip", "metal", "host")}

    assert numbers["cuda"] == {"device": 2, "pinned": 3, "managed": 13}
    assert (numbers["hip"]["device"], numbers["hip"]["pinned"], numbers["metal"]) == (10, 11, {"device": 8})


# E05: array interfaces of nothing, and of what is not contiguous


@pytest.mark.parametrize(
    ("index", "empty", "contiguous"),
    [(slice(0, 0), True, True), ((slice(None), slice(0, 0)), True, True), ((0, 0), False, True),
     ((slice(None), slice(None, None, 2)), False, False)],
)  # fmt: skip
def test_an_interface_tells_no_address_of_nothing_and_strides_only_where_there_are_gaps(
    cuda: Simulation, index: Any, empty: bool, contiguous: bool
) -> None:
    array = nbxrt.zeros((3, 4))[index]
    described = array.__cuda_array_interface__

    assert (described["data"][0] == 0, described["strides"] is None) == (empty, contiguous)
    foreign = type(
        "Foreign", (), {INTERFACE: {**described, "version": 2, "data": (described["data"][0] or None, False)}}
    )
    assert nbxrt.asarray(foreign()).shape == array.shape


# E06: the number 0 for a stream


def test_a_stream_of_number_0_is_refused_and_never_given(cuda: Simulation) -> None:
    array, stream = nbxrt.zeros(3), nbxrt.Stream()
    described = array.__cuda_array_interface__

    assert described["stream"] == 1
    for number in (None, 1, 2, stream.handle):
        assert nbxrt.asarray(type("Foreign", (), {INTERFACE: {**described, "stream": number}})()).ptr == array.ptr
    for number in (0, -1):
        with pytest.raises(nbxrt.ExchangeError, match=f"`{INTERFACE}`: `stream` is {number}"):
            nbxrt.asarray(type("Foreign", (), {INTERFACE: {**described, "stream": number}})())


# E07: a backend without a protocol of the vendor's


def test_only_what_a_backends_file_says_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_force: Any, kept: Any
) -> None:
    in_force(kept("hip").runtime)
    assert not hasattr(nbxrt.empty(3), INTERFACE)
    assert not hasattr(nbxrt.Buffer(3), INTERFACE)

    in_force(toys.open_toy(tmp_path, monkeypatch, interop={"dlpack": {"device": 777}}))
    array = nbxrt.empty(3)
    assert not hasattr(array, INTERFACE)
    for stream in (None, -1):
        assert nbxrt.from_dlpack(array.__dlpack__(stream=stream)).ptr == array.ptr
    with pytest.raises(nbxrt.ExchangeError, match="other libraries know no streams of Toy"):
        array.__dlpack__(stream=1)
