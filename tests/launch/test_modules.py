"""Code of a vendor's own kind: modules, functions, launches with typed arguments."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbxrt
from nbxrt.simulation import Simulation

pytestmark = pytest.mark.needs("cc")

IMAGE = b"nbxrt simulated module\nkernel store 8 4 = store\nkernel many 8 4 8 2 1\nglobal table 64\n"


@pytest.fixture(params=["cuda", "hip"])
def simulation(request: pytest.FixtureRequest, simulate: Callable[..., Simulation]) -> Iterator[Simulation]:
    simulation = simulate(request.param)
    with nbxrt.use(simulation.open()):
        yield simulation


def test_a_kernel_is_launched_with_typed_arguments(simulation: Simulation) -> None:
    module, array = nbxrt.Module(IMAGE), nbxrt.zeros(64)
    many = module.get_function("many")

    nbxrt.launch(many, (2, 3), (32,), [array, ("i32", -5), ctypes.c_double(0.5), ("fp16", 1.5), ("u8", 255)], 16)
    nbxrt.current_device().sync()

    (launch,) = simulation.launches()
    assert launch[3:6] == ((2, 3, 1), (32, 1, 1), 16)
    assert launch.arguments == (
        struct.pack("<Q", array.ptr), struct.pack("<i", -5), struct.pack("<d", 0.5), struct.pack("<e", 1.5), b"\xff",
    )  # fmt: skip


def test_a_kernel_writes_an_array(simulation: Simulation) -> None:
    store, array = nbxrt.Module(IMAGE).get_function("store"), nbxrt.zeros(6, "int32")

    nbxrt.launch(store, (2,), (2,), [array, ("i32", 7)])

    assert array.tobytes() == struct.pack("<6i", 7, 7, 7, 7, 0, 0)


def test_a_kernel_runs_on_the_stream(simulation: Simulation) -> None:
    store, array = nbxrt.Module(IMAGE).get_function("store"), nbxrt.zeros(1, "int32")

    with nbxrt.current_device().create_stream() as stream:
        nbxrt.launch(store, (1,), (1,), [array, ("i32", 1)])
    other = nbxrt.current_device().create_stream()
    nbxrt.launch(store, (1,), (1,), [array, ("i32", 1)], stream=other)
    nbxrt.current_device().sync()

    assert {launch.stream for launch in simulation.launches()} == {stream.handle, other.handle}


def test_scalars_of_numpy_say_their_type(simulation: Simulation) -> None:
    store, array = nbxrt.Module(IMAGE).get_function("store"), nbxrt.zeros(1, "int32")

    nbxrt.launch(store, (1,), (1,), [array, np.int32(-3)])

    assert array.numpy()[0] == -3


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        (5, "argument 1 of `store` is int 5, which does not say its type"),
        (True, "argument 1 of `store` is bool True"),
        ([1, 2], "argument 1 of `store` is list"),
        (np.zeros((2, 2)), "argument 1 of `store` is ndarray, and an array on the device is wanted"),
        (("i33", 1), "argument 1 of `store`: `i33` is no type"),
        (("i32", "x"), "argument 1 of `store` is passed as `i32`, and 'x' is none"),
        (("i32", 2**64), "argument 1 of `store` is passed as `i32`, and 18446744073709551616 is none"),
        (("i32", 2**32), "argument 1 of `store` is passed as `i32`, and 4294967296 is none"),
        (("u8", 256), "argument 1 of `store` is passed as `u8`, and 256 is none"),
        (("i8", -129), "argument 1 of `store` is passed as `i8`, and -129 is none"),
        (np.datetime64(1, "s"), "argument 1 of `store` is datetime64"),
    ],
)
def test_an_argument_without_a_type_is_refused_by_its_place(argument: Any, says: str, simulation: Simulation) -> None:
    store, array = nbxrt.Module(IMAGE).get_function("store"), nbxrt.zeros(1, "int32")

    with pytest.raises(nbxrt.ArgumentTypeError) as caught:
        nbxrt.launch(store, (1,), (1,), [array, argument])

    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "`store` takes 2 arguments, and 0 are given"),
        ([None], "`store` takes 2 arguments, and 1 are given"),
        ([None, ("i32", 1), ("i32", 2)], "`store` takes 2 arguments, and 3 are given"),
        ([None, ("i16", 1)], "argument 1 of `store` has 2 bytes, and the kernel reads 4"),
        ([("i32", 1), ("i32", 1)], "argument 0 of `store` has 4 bytes, and the kernel reads 8"),
    ],
)
def test_arguments_that_are_not_the_kernels_are_refused_where_the_vendor_tells_them(
    given: list[Any], says: str, simulate: Callable[..., Simulation]
) -> None:
    simulation = simulate("cuda")
    with nbxrt.use(simulation.open()):
        store = nbxrt.Module(IMAGE).get_function("store")

        with pytest.raises(nbxrt.ArgumentTypeError, match=says):
            nbxrt.launch(store, (1,), (1,), given)

    assert not [call for call in simulation.log() if call.operation == "launch_kernel"]


@pytest.mark.parametrize("address", [-1, 2**64])
def test_an_address_has_64_bits(address: int, simulation: Simulation) -> None:
    store = nbxrt.Module(IMAGE).get_function("store")

    with pytest.raises(nbxrt.ArgumentValueError, match=rf"argument 0 of `store`: {address} is no address of 64 bits"):
        nbxrt.launch(store, (1,), (1,), [("*i32", address), ("i32", 1)])


@pytest.mark.parametrize("ask", ["get_function", "get_global"])
def test_a_name_that_is_no_text_is_refused(ask: str, simulation: Simulation) -> None:
    with pytest.raises(nbxrt.ArgumentValueError, match="`name` must be Unicode text"):
        getattr(nbxrt.Module(IMAGE), ask)("\ud800")


def test_grid_and_block_are_told_apart_where_one_is_refused(simulation: Simulation) -> None:
    store = nbxrt.Module(IMAGE).get_function("store")

    with pytest.raises(nbxrt.ArgumentTypeError, match=r"the grid of `store` is a tuple") as grid:
        nbxrt.launch(store, 1, (1,))
    with pytest.raises(nbxrt.ArgumentValueError, match=r"the block's y of `store` is -1"):
        nbxrt.launch(store, (1,), (1, -1))

    assert grid.value.hint == "write `(n,)`"


@pytest.mark.parametrize("name", ["cuda", "hip"])
def test_a_grid_is_refused_along_an_axis_where_the_device_takes_less(
    name: str, simulate: Callable[..., Simulation]
) -> None:
    simulation = simulate(name)
    simulation.set_attribute("max_grid_y", 7)
    with nbxrt.use(simulation.open()):
        store = nbxrt.Module(IMAGE).get_function("store")
        target = nbxrt.empty(1, "int32")

        nbxrt.launch(store, (1, 7), (1,), [target, ("i32", 1)])
        with pytest.raises(nbxrt.ArgumentValueError, match=r"the grid's y of `store` is 8, which is not in 0 … 7") as y:
            nbxrt.launch(store, (1, 8), (1,), [target, ("i32", 1)])

    assert y.value.hint == "the device takes up to 2147483647 along x"
    assert len([call for call in simulation.log() if call.operation == "launch_kernel"]) == 1


def test_a_module_is_not_copied_since_one_copy_would_unload_it_under_the_other(simulation: Simulation) -> None:
    with pytest.raises(nbxrt.ArgumentTypeError, match="`pickle` takes plain data, not Module"):
        copy.copy(nbxrt.Module(IMAGE))


def test_an_array_on_another_device_is_refused(simulation: Simulation) -> None:
    store = nbxrt.Module(IMAGE).get_function("store")

    with pytest.raises(nbxrt.ArgumentValueError, match=r"argument 0 of `store` is on .*:1, and the kernel on .*:0"):
        nbxrt.launch(store, (1,), (1,), [nbxrt.zeros(1, device=1), ("i32", 1)])


def test_a_stream_of_another_device_is_refused(simulation: Simulation) -> None:
    store = nbxrt.Module(IMAGE).get_function("store")

    with pytest.raises(nbxrt.ArgumentValueError, match=r":1> is of another device than `store`, which is on .*:0"):
        nbxrt.launch(store, (1,), (1,), [], stream=nbxrt.Stream(1))


def test_a_closed_module_is_refused(simulation: Simulation) -> None:
    with nbxrt.Module(IMAGE) as module:
        store = module.get_function("store")

    with pytest.raises(nbxrt.ArgumentValueError, match="the module is closed"):
        nbxrt.launch(store, (1,), (1,), [])
    with pytest.raises(nbxrt.ArgumentValueError, match="the module is closed"):
        store.attribute("registers")


def test_closed_memory_is_refused_by_its_place(simulation: Simulation) -> None:
    store, array = nbxrt.Module(IMAGE).get_function("store"), nbxrt.zeros(1, "int32")
    array.buffer().close()

    for given in (array, ("*i32", array)):
        with pytest.raises(nbxrt.ArgumentValueError, match=r"argument 0 of `store` is device memory .* that is closed"):
            nbxrt.launch(store, (1,), (1,), [given, ("i32", 1)])


def test_a_module_is_unloaded_with_what_uses_it(simulation: Simulation) -> None:
    store = nbxrt.Module(IMAGE).get_function("store")
    assert [live.kind for live in simulation.ledger() if live.kind in ("module", "function")]

    del store

    assert [live.kind for live in simulation.ledger() if live.kind in ("module", "function")] == []


@pytest.mark.parametrize("when", ["during the capture", "after it", "during two captures"])
@pytest.mark.parametrize("how", ["dropped", "closed"])
def test_a_module_is_unloaded_after_the_graphs_that_may_launch_it(how: str, when: str, simulation: Simulation) -> None:
    def loaded() -> int:
        return sum(live.kind == "module" for live in simulation.ledger())

    def let_go() -> None:
        modules[0].close() if how == "closed" else None
        modules.clear()

    modules, array, stream, other = [nbxrt.Module(IMAGE)], nbxrt.zeros(2, "int32"), nbxrt.Stream(), nbxrt.Stream()
    arguments = [array, ("i32", 7)]
    with contextlib.ExitStack() as captures:
        graph = captures.enter_context(stream.capture("relaxed"))
        if when == "during two captures":
            captures.enter_context(other.capture("relaxed"))
        nbxrt.launch(modules[0].get_function("store"), (1,), (2,), arguments, stream=stream)
        if "during" in when:
            let_go()
    let_go() if modules else None

    graph.launch(stream)
    during = loaded()
    stream.sync()

    assert (array.tobytes(), during) == (struct.pack("<2i", 7, 7), 1)
    graph.close()
    assert loaded() == 0


def test_a_module_that_was_loaded_after_a_capture_is_not_kept_by_its_graph(simulation: Simulation) -> None:
    with nbxrt.Stream().capture() as graph:
        pass

    nbxrt.Module(IMAGE).close()

    assert [live.kind for live in simulation.ledger() if live.kind == "module"] == []
    graph.close()


def test_a_variable_of_a_module_is_a_buffer(simulation: Simulation) -> None:
    table = nbxrt.Module(IMAGE).get_global("table")

    table.fill(1)

    assert (table.nbytes, table.tobytes()) == (64, b"\1" * 64)


def test_what_is_no_image_is_refused() -> None:
    with pytest.raises(nbxrt.ArgumentTypeError, match="`Module` takes the bytes of a binary, not int"):
        nbxrt.Module(5)  # type: ignore[arg-type]
    with pytest.raises(nbxrt.ArgumentTypeError, match="not PosixPath") as caught:
        nbxrt.Module(Path("kernel.cubin"))  # type: ignore[arg-type]
    assert caught.value.hint == "`pathlib.Path(…).read_bytes()` reads a file"
    with pytest.raises(nbxrt.ArgumentValueError, match="and there are none"):
        nbxrt.Module(b"")
    for name in (
        "/a/kernel.ptx",
        b"/a/kernel.ptx",
        b"kernel.cubin",
        "/my folder/kernel.ptx",
        __file__,
        __file__.encode(),
    ):
        with pytest.raises(nbxrt.ArgumentValueError, match="is the name of a file"):
            nbxrt.Module(name)


@pytest.mark.parametrize("given", [None, 5, "ab", {"a": 1}])
def test_arguments_that_are_no_list_are_refused(given: Any, simulation: Simulation) -> None:
    store = nbxrt.Module(IMAGE).get_function("store")

    with pytest.raises(
        nbxrt.ArgumentTypeError, match=r"`launch` takes a list of arguments, not (NoneType|int|str|dict)"
    ):
        nbxrt.launch(store, (1,), (1,), given)


def test_a_block_of_more_threads_than_a_kernel_can_have_is_refused_by_the_limit(simulation: Simulation) -> None:
    store = nbxrt.Module(IMAGE).get_function("store")

    with pytest.raises(nbxrt.ArgumentValueError, match="the block of `store` has 2048 threads, and at most 1024 are"):
        nbxrt.launch(store, (1,), (32, 64), [nbxrt.zeros(1, "int32"), ("i32", 1)])
    assert simulation.launches() == []


def test_pointers_can_say_their_type(simulation: Simulation) -> None:
    store, array = nbxrt.Module(IMAGE).get_function("store"), nbxrt.zeros(1, "int32")

    for pointer in (array, array.ptr):
        nbxrt.launch(store, (1,), (1,), [("*i32", pointer), ("i32", 5)])

    assert array.numpy()[0] == 5
    assert len({launch.arguments for launch in simulation.launches()}) == 1
