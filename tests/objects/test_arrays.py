"""Arrays: making them, looking at parts of them, and copying them to and from the host."""

from __future__ import annotations

import array
import itertools
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
from nbxrt.objects import dtypes, layout
from nbxrt.runtime import opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation


def numbers(*shape: int, dtype: str = "float32") -> Any:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


class TestMaking:
    def test_an_array_has_the_shape_and_type_that_were_asked_for(self, runtime: Runtime) -> None:
        made = nbxrt.empty((2, 3), "float16")

        assert (made.shape, made.dtype, made.strides, made.nbytes) == ((2, 3), "float16", (6, 2), 12)
        assert (made.ndim, made.size, made.itemsize, len(made)) == (2, 6, 2, 2)
        assert made.device is nbxrt.current_device()

    def test_zeros_are_zeros(self, runtime: Runtime) -> None:
        assert nbxrt.zeros((3, 5), "int32").numpy().tolist() == [[0] * 5] * 3

    def test_like_takes_shape_type_and_device_of_another(self, runtime: Runtime) -> None:
        other = nbxrt.empty((4, 2), "int8")

        made = [nbxrt.empty_like(other), nbxrt.zeros_like(other), nbxrt.empty_like(numbers(4, 2, dtype="int8"))]

        assert {(each.shape, each.dtype, each.device) for each in made} == {((4, 2), other.dtype, other.device)}
        assert nbxrt.empty_like(other, "float64").dtype == "float64"

    @pytest.mark.parametrize("kind", ["device", "pinned", "managed"])
    def test_memory_may_be_of_any_kind(self, runtime: Runtime, kind: str) -> None:
        made = nbxrt.from_numpy(numbers(7), kind=kind)

        assert made.kind == kind
        assert made.numpy().tolist() == numbers(7).tolist()

    @pytest.mark.parametrize("dtype", [name for name in dtypes.DTYPES if "float8" not in name and name != "bfloat16"])
    def test_every_type_that_numpy_has_comes_back_unchanged(self, host: Runtime, dtype: str) -> None:
        given = numbers(2, 3).astype(dtype)

        back = nbxrt.from_numpy(given).numpy()

        assert back.dtype == given.dtype
        assert (back == given).all()

    @pytest.mark.skipif(find_spec("ml_dtypes") is not None, reason="about machines without `ml_dtypes`")
    def test_a_type_that_numpy_has_not_says_what_it_needs(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.CapabilityError, match="hint: `pip install ml_dtypes`"):
            nbxrt.zeros(3, "bfloat16").numpy()

    def test_an_array_that_is_not_contiguous_is_copied_in_its_own_order(self, runtime: Runtime) -> None:
        given = numbers(4, 6).T[::2, ::-1]

        assert nbxrt.from_numpy(given).numpy().tolist() == given.tolist()

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (1, 1, 1)])
    def test_shapes_without_dimensions_or_elements_are_arrays(self, runtime: Runtime, shape: tuple[int, ...]) -> None:
        given = np.ones(shape, "float32")

        made = nbxrt.from_numpy(given)

        assert (made.shape, made.numpy().shape) == (shape, shape)
        assert (made.numpy() == given).all()
        assert bool(made.ptr) == bool(given.size)

    def test_a_buffer_of_any_library_is_an_array(self, runtime: Runtime) -> None:
        made = nbxrt.asarray(array.array("d", [1.5, 2.5]))

        assert (made.dtype, made.shape, made.numpy().tolist()) == ("float64", (2,), [1.5, 2.5])

    def test_a_buffer_of_the_device_is_an_array_of_bytes_or_of_the_type_that_is_asked_for(
        self, runtime: Runtime
    ) -> None:
        buffer = nbxrt.Device().allocate(8)
        buffer.copy_from(np.array([1, 2], "int32"))

        assert nbxrt.asarray(buffer).dtype == "uint8"
        assert nbxrt.asarray(buffer, "int32").numpy().tolist() == [1, 2]
        assert nbxrt.asarray(buffer, "int32").ptr == buffer.ptr

    def test_an_array_is_given_again_and_copied_only_when_that_is_asked_for(self, runtime: Runtime) -> None:
        made = nbxrt.from_numpy(numbers(3))

        assert nbxrt.asarray(made) is made
        copied = nbxrt.asarray(made, copy=True)
        assert copied.ptr != made.ptr
        assert copied.numpy().tolist() == made.numpy().tolist()

    def test_memory_of_the_host_is_shared_where_it_is_the_devices(self, host: Runtime) -> None:
        given = numbers(3)

        shared, copied = nbxrt.asarray(given), nbxrt.asarray(given, copy=True)
        given[0] = 7

        assert (shared.numpy()[0], copied.numpy()[0]) == (7, 0)

    def test_memory_of_the_host_is_never_shared_with_a_device_of_its_own_memory(self, simulation: Simulation) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match="in memory of the host"):
            nbxrt.asarray(numbers(3), copy=False)

    def test_no_element_is_converted(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match=r"is not of float64, and no element is converted here"):
            nbxrt.asarray(numbers(3), "float64")

    @pytest.mark.parametrize("value", [[1, 2], 3.5, None, "text", object()])
    def test_what_is_no_array_is_refused(self, host: Runtime, value: object) -> None:
        with pytest.raises(nbxrt.ArgumentTypeError):
            nbxrt.asarray(value)

    @pytest.mark.parametrize(
        ("shape", "said"),
        [(-1, "not negative"), ((2, -3), "not negative"), ((1 << 40, 1 << 40), "more elements than any memory")],
    )
    def test_a_shape_that_cannot_be_is_refused_before_any_call(self, host: Runtime, shape: Any, said: str) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match=said):
            nbxrt.empty(shape)

    @pytest.mark.parametrize("shape", [1.0, "3", None, (2, True), (2, 1.5)])
    def test_a_shape_of_another_type_is_refused(self, host: Runtime, shape: Any) -> None:
        with pytest.raises(nbxrt.ArgumentTypeError, match="a shape takes integers"):
            nbxrt.empty(shape)

    def test_types_are_known_by_the_spelling_of_other_libraries(self) -> None:
        class torch:  # noqa: N801
            class Type:
                itemsize = 2

                def __str__(self) -> str:
                    return "torch.bfloat16"

        spelled = ["float32", np.float32, np.dtype("f4"), "<f4", nbxrt.dtype("float32")]

        assert {nbxrt.dtype(each) for each in spelled} == {nbxrt.dtype("float32")}
        assert nbxrt.dtype(torch.Type()) == "bfloat16"
        assert [str(nbxrt.dtype(each)) for each in (bool, int, float, complex)] == [
            "bool", "int64", "float64", "complex128",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("given", "kind", "said"),
        [
            ("flaot32", nbxrt.ArgumentValueError, "did you mean `float32`"),
            (np.dtype("U4"), nbxrt.ArgumentValueError, "no element type"),
            (3, nbxrt.ArgumentTypeError, "an element type or its name"),
            (None, nbxrt.ArgumentTypeError, "an element type or its name"),
        ],
    )
    def test_a_type_that_does_not_fit_is_refused(self, given: Any, kind: type[Exception], said: str) -> None:
        with pytest.raises(kind, match=said):
            nbxrt.dtype(given)


class TestFacts:
    def test_a_launcher_reads_what_it_needs_as_plain_attributes(self, runtime: Runtime) -> None:
        made = nbxrt.empty((4, 4))

        part = made[1:, 1:]

        assert made.data_ptr() == made.ptr
        assert part.ptr == made.ptr + 20
        assert (made.is_aligned, part.is_aligned) == (True, False)
        assert (part.element_size(), part.numel(), part.stride(), part.stride(0)) == (4, 9, (4, 1), 4)
        assert nbxrt.device_label(made) == f"{runtime.name}:0"

    def test_people_can_read_it(self, host: Runtime) -> None:
        made = nbxrt.empty((2, 3), kind="pinned")

        assert repr(made) == "DeviceArray(shape=(2, 3), dtype=float32, device=host:0, kind=pinned)"
        assert repr(made.T) == "DeviceArray(shape=(3, 2), dtype=float32, device=host:0, strides=(4, 12), kind=pinned)"

    def test_it_is_not_iterated_over_and_not_copied_in_passing(self, cuda: Simulation) -> None:
        made = nbxrt.empty(3)

        with pytest.raises(TypeError, match="not iterated over"):
            list(made)
        with pytest.raises(TypeError, match=r"`array.numpy\(\)` makes one"):
            np.asarray(made)


class TestViews:
    @pytest.mark.parametrize(
        "index",
        [
            0, -1, (1, 2), (1, 2, 3), slice(None), slice(1, 3), (slice(None, None, -1), 1), (..., 0),
            (0, ..., slice(1, 4, 2)),
            None, (None, 1, None), (slice(5, 2), 0), (slice(2, None, -2), slice(None, None, 3), slice(-3, -1)),
        ],
    )  # fmt: skip
    def test_a_part_is_the_part_that_numpy_gives(self, runtime: Runtime, index: Any) -> None:
        whole = numbers(3, 4, 5)

        part = nbxrt.from_numpy(whole)[index]

        assert part.numpy().tolist() == whole[index].tolist()
        assert part.shape == whole[index].shape

    def test_a_part_shares_the_memory_and_keeps_it(self, simulation: Simulation, held: Callable[[], int]) -> None:
        part = nbxrt.from_numpy(numbers(8))[4:]

        assert held() == 1
        assert part.numpy().tolist() == [4, 5, 6, 7]

    @pytest.mark.parametrize("index", [[0, 1], True, 1.0, np.array([1]), "x"])
    def test_an_index_that_would_need_a_copy_is_refused(self, host: Runtime, index: Any) -> None:
        with pytest.raises(nbxrt.ArgumentTypeError, match=r"CuPy, PyTorch and JAX index by arrays, through DLPack"):
            nbxrt.empty((2, 2))[index]

    @pytest.mark.parametrize("index", [3, -4, (0, 2)])
    def test_an_index_outside_is_an_index_error(self, host: Runtime, index: Any) -> None:
        with pytest.raises(IndexError, match="is outside an extent"):
            nbxrt.empty((3, 2))[index]

    def test_too_many_indices_are_refused(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match="3 indices are too many for 2 dimensions"):
            nbxrt.empty((3, 2))[0, 0, 0]

    @pytest.mark.parametrize("shape", [*itertools.permutations((2, 3, 4)), (24,), (-1,), (6, -1), (2, 1, 12), 24])
    def test_another_shape_has_the_same_elements(self, host: Runtime, shape: Any) -> None:
        whole = numbers(2, 3, 4)

        assert nbxrt.from_numpy(whole).reshape(shape).numpy().tolist() == whole.reshape(shape).tolist()

    def test_a_shape_that_would_need_a_copy_is_refused(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match=r"without a copy[^$]*hint: `array.contiguous\(\).reshape"):
            nbxrt.from_numpy(numbers(2, 3)).T.reshape(6)

    @pytest.mark.parametrize("shape", [5, (2, 2), (-1, 5), (-1, 0)])
    def test_a_shape_of_another_size_is_refused(self, host: Runtime, shape: Any) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match="6 elements do not have the shape"):
            nbxrt.empty((2, 3)).reshape(shape)

    def test_the_bytes_can_be_seen_as_another_type(self, host: Runtime) -> None:
        whole = numbers(2, 4)

        seen = nbxrt.from_numpy(whole).view("uint16")

        assert (seen.shape, seen.numpy().tolist()) == ((2, 8), whole.view("uint16").tolist())
        assert seen.view("float64").numpy().tolist() == whole.view("float64").tolist()

    def test_bytes_that_do_not_make_whole_elements_are_refused(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match="cannot be seen as elements of float64"):
            nbxrt.empty((2, 3)).view("float64")

    def test_a_contiguous_array_is_given_itself_and_another_is_copied(self, runtime: Runtime) -> None:
        whole = nbxrt.from_numpy(numbers(4, 6))

        assert whole.contiguous() is whole
        assert whole[:, 1:3].contiguous().is_contiguous()
        assert whole[:, 1:3].contiguous().numpy().tolist() == numbers(4, 6)[:, 1:3].tolist()

    def test_a_copy_of_many_small_pieces_is_right_too(self, runtime: Runtime) -> None:
        whole = numbers(40, 50)

        assert nbxrt.from_numpy(whole).T.contiguous().numpy().tolist() == whole.T.tolist()


class TestClosed:
    def test_a_closed_array_reaches_no_vendor(self, simulation: Simulation) -> None:
        made = nbxrt.from_numpy(numbers(8))
        part = made[2:]
        made.buffer().close()
        simulation.clear()

        for use in (part.data_ptr, part.numpy, part.tobytes, part.__dlpack__, lambda: part.copy_from(numbers(6))):
            with pytest.raises(nbxrt.ArgumentValueError, match=r"the device memory of .* is closed"):
                use()
        assert simulation.log() == []

    def test_sizes_that_differ_are_refused(self, host: Runtime) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match=r"sides of one size, not 16 bytes .* and 12 bytes"):
            nbxrt.empty(3).copy_from(numbers(4))

    def test_an_array_of_another_backend_is_refused(self, cuda: Simulation) -> None:
        here, there = nbxrt.empty(3), nbxrt.empty(3, device=nbxrt.Device(0, runtime=opened("host")))

        with pytest.raises(nbxrt.ArgumentValueError, match=r"cuda.*and.*host.* is at work"):
            there.copy_from(here)


def test_numpy_is_imported_only_where_it_is_asked_for(run: Any) -> None:
    done = run(
        """
        import sys
        import nbxrt
        nbxrt.open()
        made = nbxrt.zeros((2, 3))
        made.copy_from(bytes(24))
        assert nbxrt.asarray(bytearray(4)).shape == (4,)
        assert made[:, 1:].contiguous().tobytes() == bytes(16)
        assert nbxrt.from_dlpack(made).T.reshape(3, 2).tobytes() == bytes(24)
        print("numpy" in sys.modules)
        made.numpy()
        """
    )

    assert (done.returncode, done.stderr, done.stdout) == (0, "", "False\n")


def test_layouts_are_told_from_each_other() -> None:
    assert layout.is_contiguous((2, 1, 3), (12, 99, 4), 4)
    assert not layout.is_contiguous((2, 3), (16, 4), 4)
    assert layout.span_of((2, 3), (-12, 4), 4) == (-12, 12)
