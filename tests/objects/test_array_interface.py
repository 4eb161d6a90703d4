"""The array interfaces: for memory of the host, and for a vendor's where its file names one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

NAME = "__cuda_array_interface__"


class Foreign:
    """An array of another library, by its interface alone."""

    def __init__(self, array: nbxrt.DeviceArray, without: tuple[str, ...] = (), **changes: Any) -> None:
        self.kept = array
        interface = {**array.__cuda_array_interface__, **changes}
        self.__cuda_array_interface__ = {key: value for key, value in interface.items() if key not in without}


class TestOut:
    @pytest.mark.parametrize(
        ("index", "shape", "strides"),
        [
            (..., (2, 3), None),
            ((0, 0), (), None),
            (slice(0, 0), (0, 3), None),
            ((slice(None), slice(None, None, 2)), (2, 2), (12, 8)),
            (slice(None, None, -1), (2, 3), (-12, 4)),
        ],
    )
    def test_an_array_describes_itself(self, cuda: Simulation, index: Any, shape: Any, strides: Any) -> None:
        array = nbxrt.empty((2, 3))[index]

        assert array.__cuda_array_interface__ == {
            "shape": shape,
            "typestr": "<f4",
            "data": (array.ptr, False),
            "strides": strides,
            "version": 3,
            "stream": 1,
        }
        assert bool(array.ptr) == bool(array.size)

    def test_the_stream_is_the_current_one_and_never_0(self, cuda: Simulation) -> None:
        array = nbxrt.empty(3)

        with nbxrt.Stream() as stream:
            array.buffer().fill(1)
            inside = array.__cuda_array_interface__["stream"]

        assert (inside, array.__cuda_array_interface__["stream"]) == (stream.handle, 1)

    def test_a_buffer_describes_its_bytes(self, cuda: Simulation) -> None:
        described = nbxrt.Buffer(8).__cuda_array_interface__

        assert (described["typestr"], described["shape"]) == ("|u1", (8,))

    @pytest.mark.parametrize("backend", ["hip", "host"])
    def test_no_other_backend_has_it(self, request: pytest.FixtureRequest, backend: str, in_force: Any) -> None:
        if backend == "host":
            request.getfixturevalue("host")
        else:
            in_force(request.getfixturevalue("simulated")(backend).open())

        for made in (nbxrt.empty(3), nbxrt.Buffer(3)):
            assert not hasattr(made, NAME)
            made.memory.close()
            assert not hasattr(made, NAME)

    def test_a_type_that_has_no_spelling_has_no_interface(self, cuda: Simulation) -> None:
        assert not hasattr(nbxrt.empty(3, "bfloat16"), NAME)

    def test_memory_of_the_host_has_the_hosts_interface(self, cuda: Simulation, in_force: Any) -> None:
        assert not hasattr(nbxrt.empty(3), "__array_interface__")
        assert not hasattr(nbxrt.empty(3, kind="pinned"), NAME)

        for kind in ("pinned", "managed"):
            shared = np.asarray(nbxrt.zeros((2, 3), kind=kind))
            assert (shared.shape, shared.tolist()) == ((2, 3), [[0] * 3] * 2)

    def test_numpy_shares_memory_of_the_host(self, host: Runtime) -> None:
        array = nbxrt.zeros((2, 3), "int32")

        np.asarray(array[::-1, 1:])[0, 0] = 5

        assert array.numpy().tolist() == [[0, 0, 0], [0, 5, 0]]


class TestIn:
    @pytest.mark.parametrize(
        "changes",
        [{}, {"strides": None}, {"version": 0}, {"version": 2}, {"stream": None}, {"stream": 1}, {"stream": 2}],
    )
    @pytest.mark.parametrize("without", [(), ("stream",), ("strides",)])
    def test_every_form_is_taken_without_a_copy(
        self, cuda: Simulation, changes: dict[str, Any], without: tuple[str, ...]
    ) -> None:
        foreign = Foreign(nbxrt.from_numpy(np.arange(6.0).reshape(2, 3)), without, **changes)

        taken = nbxrt.asarray(foreign)

        assert taken.ptr == foreign.kept.ptr
        assert taken.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_an_empty_array_may_have_no_address(self, cuda: Simulation) -> None:
        for data in ((None, False), (0, True), (64, False)):
            taken = nbxrt.asarray(Foreign(nbxrt.empty((3, 0)), data=data))
            assert (taken.ptr, taken.shape) == (0, (3, 0))

    def test_strides_of_any_sign_are_taken(self, cuda: Simulation) -> None:
        whole = nbxrt.from_numpy(np.arange(6.0).reshape(2, 3))

        assert nbxrt.asarray(Foreign(whole[::-1, ::2])).numpy().tolist() == [[3, 5], [0, 2]]

    def test_elements_that_are_repeated_are_read_as_often_as_they_are_seen(self, cuda: Simulation) -> None:
        source = nbxrt.from_numpy(np.arange(3, dtype="float32"))
        for shape, strides in (((2, 1), (0, 4)), ((4,), (0,)), ((2, 3), (0, 4)), ((3, 2), (4, 0))):
            expected = np.lib.stride_tricks.as_strided(np.arange(3, dtype="float32"), shape, strides)

            array = nbxrt.asarray(Foreign(source, shape=shape, strides=strides))

            assert array.numpy().tolist() == array.copy().numpy().tolist() == expected.tolist()

    def test_strides_that_lead_nowhere_hinder_no_exchange(self, cuda: Simulation) -> None:
        one, none = (nbxrt.asarray(Foreign(nbxrt.empty(3), shape=shape, strides=(13, 4))) for shape in ((1, 3), (2, 0)))

        for array in (one, none, one[:0]):
            taken = nbxrt.from_dlpack(array.__dlpack__())
            assert (taken.shape, taken.ptr, taken.is_contiguous()) == (array.shape, array.ptr, True)
        with pytest.raises(nbxrt.ExchangeError, match="no whole elements"):
            nbxrt.asarray(Foreign(nbxrt.empty(12), shape=(2, 3), strides=(13, 4))).__dlpack__()

    def test_memory_and_its_owner_live_as_long_as_the_view(self, cuda: Simulation, held: Callable[[], int]) -> None:
        taken = nbxrt.asarray(Foreign(nbxrt.from_numpy(np.arange(3.0))))

        assert taken.numpy().tolist() == [0, 1, 2]
        assert held() == 1

    @pytest.mark.parametrize(
        ("number", "said"), [(0, "is 0"), (-1, "is -1"), (2**64, f"is {2**64}"), ("1", "not str"), (1.0, "not float")]
    )
    def test_a_stream_that_is_none_is_refused_naming_the_field(self, cuda: Simulation, number: Any, said: str) -> None:
        with pytest.raises(nbxrt.ExchangeError, match=f"`{NAME}`: `stream` .*{said}"):
            nbxrt.asarray(Foreign(nbxrt.empty(3), stream=number))

    def test_our_stream_waits_for_the_producers(self, cuda: Simulation) -> None:
        theirs, ours = nbxrt.Stream(), nbxrt.Stream()
        foreign = Foreign(nbxrt.empty(3), stream=theirs.handle)
        cuda.clear()

        nbxrt.asarray(foreign, stream=ours)

        given = [
            (call.operation, call.arguments["stream"])
            for call in cuda.log()
            if call.operation in ("event_record", "stream_wait_event")
        ]
        assert given == [("event_record", theirs.handle), ("stream_wait_event", ours.handle)]

    @pytest.mark.parametrize(
        ("without", "changes", "said"),
        [
            (("typestr", "shape"), {}, "has no `shape`, `typestr`"),
            (("version",), {}, "has no `version`"),
            ((), {"version": 4}, "`version` is 4, and 3 is the last one known"),
            ((), {"mask": [True]}, "has a `mask`"),
            ((), {"typestr": "<U4"}, "`typestr` '<U4'"),
            ((), {"data": (0, False)}, "`data` has no address"),
        ],
    )
    def test_what_is_missing_or_unknown_is_named(
        self, cuda: Simulation, without: tuple[str, ...], changes: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(nbxrt.ExchangeError, match=said):
            nbxrt.asarray(Foreign(nbxrt.empty(3), without, **changes))

    @pytest.mark.parametrize(
        "changes",
        [
            {"shape": 3}, {"shape": (-1,)}, {"shape": (1.0,)}, {"shape": (True,)}, {"shape": (2**62, 2)},
            {"shape": None},
            {"strides": (4, 4)}, {"strides": 4}, {"strides": ("4",)}, {"strides": (2**62,)}, {"strides": (-(2**62),)},
            {"data": 5}, {"data": (1,)}, {"data": ("x", False)}, {"data": (-8, False)}, {"data": (2**64, False)},
            {"data": (True, False)}, {"data": (None, False)}, {"typestr": 5}, {"typestr": ">f4"}, {"typestr": ""},
            {"version": "3"}, {"version": [3]}, {"version": True}, {"version": 3.0}, {"version": np.array([3, 3])},
            {"data": (np.array([8, 8]), False)}, {"data": (64, np.array([True, False]))}, {"data": ([], False)},
        ],
    )  # fmt: skip
    def test_a_description_that_no_array_has_is_refused_by_its_key(self, cuda: Simulation, changes: Any) -> None:
        foreign = Foreign(nbxrt.empty(3), **changes)
        cuda.clear()

        with pytest.raises(nbxrt.ExchangeError, match=f"`{NAME}`|`typestr`"):
            nbxrt.asarray(foreign)

        assert {call.operation for call in cuda.log()} <= {"get_device"}

    def test_a_description_that_is_no_dictionary_is_refused(self, cuda: Simulation) -> None:
        foreign = Foreign(nbxrt.empty(3))
        foreign.__cuda_array_interface__ = [1]  # type: ignore[assignment]

        with pytest.raises(nbxrt.ExchangeError, match=f"`{NAME}` takes a dictionary, not list"):
            nbxrt.asarray(foreign)

    def test_a_description_of_the_host_that_numpy_does_not_take_is_refused(self, host: Runtime) -> None:
        class Lying:
            __array_interface__ = {"shape": (3,), "typestr": "<q9", "data": (0, False), "version": 3}  # noqa: RUF012

        with pytest.raises(nbxrt.ExchangeError, match="NumPy does not take Lying"):
            nbxrt.asarray(Lying())

    def test_memory_that_is_none_of_the_devices_is_refused(self, cuda: Simulation) -> None:
        given = np.arange(3.0)

        with pytest.raises(nbxrt.ExchangeError, match="is unregistered memory, and no memory of NVIDIA CUDA"):
            nbxrt.asarray(Foreign(nbxrt.empty(3, "float64"), data=(given.ctypes.data, False)))

    def test_memory_that_may_only_be_read_stays_that(self, cuda: Simulation) -> None:
        array = nbxrt.empty(3)

        assert nbxrt.asarray(Foreign(array, data=(array.ptr, True))).readonly
