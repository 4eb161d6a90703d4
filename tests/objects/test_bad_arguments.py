"""What no function can use is refused with an error of nbxrt's, whichever public function gets it."""

from __future__ import annotations

import inspect
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
from nbxrt import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.simulation import Simulation


def released() -> memoryview:
    """A view of nothing any more: whatever is asked of it is an error."""
    view = memoryview(b"")
    view.release()
    return view


BAD = [
    *(None, 5, -1, 2**70, 1.5, float("nan"), True, b"x", b"\xff", "", "x\0y", "nope", "no/such.yaml", [], {}, ()),
    *(object(), int, io),
    *(np.array([0]), np.bool_(True), np.float64(2), np.ndarray, released()),
]

#: What only the library itself makes: it is right already.
MADE = {"DeviceArray", "Runtime", "BackendReport", "Detection", "DeviceChoice", "DeviceProcess", "DeviceProcesses"}
MADE |= {"ProcessMemory", "reset", "triton", *(name for name in nbxrt.__all__ if name.endswith("Error"))}
#: `detect` takes a yes or no, and starts processes for a yes; a launch is judged by what it launches.
FUNCTIONS = [name for name in nbxrt.__all__ if name not in MADE | {"detect", "launch"}]

OF_RUNTIMES = ["supports", "library", "version", "error_text"]
OF_ACCOUNTS = ["add_layer", "remove_layer", "holds", "owner", "register_reclaim_hook", "watch", "snapshot", "policy"]
OF_ACCOUNTS += ["limit", "trim", "stats", "record_use", "admit_peer", "set_device"]


@pytest.fixture(autouse=True)
def on_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NBX_GPU_BACKEND", "host")
    nbxrt.reset()
    with nbxrt.use(nbxrt.open("host")):
        yield
    nbxrt.reset()


def call_with_everything(function: Callable[..., Any], value: Any) -> None:
    """Call a function with a value for each argument that it demands, and for each of the others alone."""
    parameters = inspect.signature(function).parameters.values()
    needed = [each for each in parameters if each.default is each.empty and each.kind in (0, 1)]
    others = [each.name for each in parameters if each.default is not each.empty and each.kind in (1, 3)]
    calls: list[dict[str, Any]] = [{name: value} for name in others] if not needed else [{}]
    for named in calls:
        try:
            function(*[value] * len(needed), **named)
        except (nbxrt.NbxrtError, OSError):
            continue


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function(name: str) -> None:
    for value in BAD:
        call_with_everything(getattr(nbxrt, name), value)


@pytest.mark.parametrize("name", OF_RUNTIMES)
def test_a_function_of_a_runtime(name: str) -> None:
    for value in BAD:
        call_with_everything(getattr(nbxrt.open("host"), name), value)


@pytest.mark.parametrize("name", OF_ACCOUNTS)
def test_a_function_of_an_account(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a snapshot may be written
    account = nbxrt.DeviceAllocator(nbxrt.open("host"))

    for value in BAD:
        if not callable(value):
            call_with_everything(getattr(account, name), value)


def test_the_error_says_what_is_taken_and_what_was_given() -> None:
    with pytest.raises(
        nbxrt.ArgumentTypeError,
        match="`add_layer` takes a subclass of `Layer`, or a function that makes a layer, not int 5",
    ):
        memory.account().add_layer(5)
    with pytest.raises(nbxrt.ArgumentTypeError, match="`validate` takes the path of a file, not int 5"):
        nbxrt.validate(5)  # type: ignore[arg-type]
    with pytest.raises(nbxrt.ArgumentTypeError, match="`Device` takes a runtime, not str 'host'"):
        nbxrt.Device(0, runtime="host")  # type: ignore[arg-type]
    with pytest.raises(nbxrt.ArgumentTypeError, match="`supports` takes the name of an operation, not bytes b'x'"):
        nbxrt.open("host").supports(b"x")  # type: ignore[arg-type]


def test_a_stream_is_no_event_and_neither_is_the_class_of_events() -> None:
    stream = nbxrt.current_stream()

    for value in (stream, nbxrt.Event):
        with pytest.raises(nbxrt.ArgumentTypeError, match="`record` takes an Event, not "):
            stream.record(value)  # type: ignore[arg-type]


def test_a_class_of_arrays_is_no_array() -> None:
    for take in (nbxrt.from_dlpack, nbxrt.asarray):
        for value in (np.ndarray, nbxrt.DeviceArray):
            with pytest.raises(nbxrt.ArgumentTypeError, match="takes an array"):
                take(value)


def test_whether_to_copy_is_no_word() -> None:
    array = nbxrt.empty(3)

    for take in (nbxrt.from_dlpack, nbxrt.asarray, lambda it, copy: it.__dlpack__(copy=copy)):
        for copy in ("never", 0, 1.0, [False]):
            with pytest.raises(nbxrt.ArgumentTypeError, match="takes True or False for `copy`"):
                take(array, copy=copy)  # type: ignore[operator]


def test_elements_with_their_bytes_in_the_other_order_are_refused() -> None:
    other = np.arange(3, dtype=np.dtype("f4").newbyteorder())

    for take in (nbxrt.from_numpy, nbxrt.asarray, nbxrt.zeros_like, lambda it: nbxrt.empty(3, it.dtype)):
        with pytest.raises(nbxrt.NbxrtError, match=r"bytes in the other order[^$]*hint: `array\.astype"):
            take(other)


@pytest.mark.parametrize("axes", [("a", 1), (0, None), (1.0, 0), (True, 0), (0, 0), (0,)])
def test_an_order_of_dimensions_that_is_none_is_refused(axes: tuple[Any, ...]) -> None:
    with pytest.raises(nbxrt.ArgumentError, match=r"`transpose` takes integers|is no order of 2 dimensions"):
        nbxrt.empty((2, 3)).transpose(*axes)


#: Methods that look at a value only to compare it, or are for other objects of nbxrt.
APART = {
    "__eq__",
    "call",
    "captured",
    "check",
    "keep",
    "keep_owner",
    "on",
    "release",
    "side",
    "take_over",
    "launch_key",
}
APART |= {"usable_handle", "bytes_array", "argument", "memory", "runtime", "exports"}
SPECIAL = {
    "__getitem__",
    "__iter__",
    "__len__",
    "__sub__",
    "__dlpack__",
    "__dlpack_device__",
    "__array__",
    "__buffer__",
}
#: What may be asked before an argument is refused.
ASKED = {
    "runtime.version",
    "get_device",
    "device_count",
    "device_attribute",
    "pointer_attributes",
    "stream_is_capturing",
}


def objects(*, closed: bool) -> dict[str, Any]:
    """One object of each kind, by its name."""
    stream, buffer = nbxrt.Stream(), nbxrt.Buffer(64)
    with stream.capture() as graph:
        buffer.fill(1, stream=stream)
    made = {"Stream": stream, "Event": nbxrt.Event(), "Buffer": buffer, "Graph": graph}
    if closed:
        for each in made.values():
            each.close()
    array = nbxrt.empty((4, 4))
    if closed:
        array.buffer().close()
    return {**made, "DeviceArray": array, **({} if closed else {"Device": nbxrt.Device(0)})}


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("kind", ["Stream", "Event", "Buffer", "Graph", "DeviceArray", "Device"])
def test_a_method_of_an_object_refuses_before_any_call(cuda: Simulation, kind: str, closed: bool) -> None:
    made = objects(closed=closed).get(kind)
    names = [name for name in dir(made) if name in SPECIAL or (name[0] != "_" and name not in APART)]
    for name in names:
        try:
            method = getattr(objects(closed=closed)[kind], name)
            parameters = list(inspect.signature(method).parameters.values())
        except (nbxrt.NbxrtError, TypeError, ValueError):  # an attribute of what is closed, or no method
            continue
        needed = [each for each in parameters if each.default is each.empty and each.kind in (0, 1)]
        others = [each.name for each in parameters if each.default is not each.empty and each.kind in (1, 3)]
        for value in (*BAD, slice("a", None), slice(None, None, 0), (-1, -1), [2**40, 2**40], ["x"]):
            for named in [{}, *({other: value} for other in others)]:
                cuda.clear()
                try:
                    method(*[value] * len(needed), **named)
                except nbxrt.ArgumentError:
                    assert {call.operation for call in cuda.log()} <= ASKED, (name, value, named)
                except nbxrt.NbxrtError:
                    continue
