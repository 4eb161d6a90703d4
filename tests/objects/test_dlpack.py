"""DLPack in both directions: protocols old and new, capsules' lifetimes, kinds of memory, streams."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import struct
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
import toys
from nbxrt import descriptions
from nbxrt.objects import dlpack
from nbxrt.runtime import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

CODES = {"host": (1, 1, 1), "cuda": (2, 3, 13), "hip": (10, 11, 10)}


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def name_of(capsule: Any) -> str:
    """What a capsule is called now."""
    ask = ctypes.pythonapi.PyCapsule_GetName
    ask.argtypes, ask.restype = (ctypes.py_object,), ctypes.c_char_p
    return str((ask(capsule) or b"").decode())


def structure_of(capsule: Any) -> int:
    ask = ctypes.pythonapi.PyCapsule_GetPointer
    ask.argtypes, ask.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    return int(ask(capsule, name_of(capsule).encode()) or 0)


class Producer:
    """An array of another library, as old or as new as its methods are."""

    def __init__(self, array: nbxrt.DeviceArray, place: tuple[int, int] | None = None) -> None:
        self.array, self.place, self.asked = array, place, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place or self.array.__dlpack_device__()


class New(Producer):
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.asked.append((stream, max_version))
        return self.array.__dlpack__(stream=-1, max_version=max_version)


class Middle(Producer):
    def __dlpack__(self, *, stream: Any = None) -> Any:
        self.asked.append((stream,))
        return self.array.__dlpack__(stream=-1)


class Old(Producer):
    def __dlpack__(self) -> Any:
        self.asked.append(())
        return self.array.__dlpack__(stream=-1)


class Hosted(Producer):
    """Memory of a device, as its copy on the host."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_asked: Any) -> Any:
        return self.array.__dlpack__(dl_device=(1, 0), max_version=(1, 0))


class Wordless(Hosted):
    """The same with the buffer protocol, which has no word for its elements; before Python 3.12 it has none at all."""

    def __buffer__(self, _flags: int) -> memoryview:
        raise BufferError


class TestProtocols:
    @pytest.mark.parametrize("kind", [New, Middle, Old])
    def test_producers_of_every_age_are_asked_as_they_can_be(self, runtime: Runtime, kind: type[Producer]) -> None:
        producer = kind(nbxrt.from_numpy(np.arange(6.0).reshape(2, 3)))

        taken = nbxrt.from_dlpack(producer)

        assert taken.ptr == producer.array.ptr
        assert taken.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]

    @pytest.mark.parametrize(
        ("max_version", "name"),
        [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((2, 0), "dltensor_versioned")],
    )
    def test_the_newest_form_that_the_consumer_knows_is_given(
        self, runtime: Runtime, max_version: Any, name: str
    ) -> None:
        assert name_of(nbxrt.empty(3).__dlpack__(max_version=max_version)) == name

    def test_a_capsule_of_a_later_major_version_is_refused_and_not_used_up(self, host: Runtime) -> None:
        capsule = nbxrt.empty(3).__dlpack__(max_version=(1, 0))
        ctypes.c_uint32.from_address(structure_of(capsule)).value = 2

        with pytest.raises(BufferError, match=r"of DLPack 2\.[01], and this nbxrt knows 1\.1"):
            nbxrt.from_dlpack(capsule)

        assert name_of(capsule) == "dltensor_versioned"

    def test_a_capsule_is_taken_once(self, runtime: Runtime) -> None:
        capsule = nbxrt.empty(3).__dlpack__()

        taken = nbxrt.from_dlpack(capsule)

        assert (name_of(capsule), taken.shape) == ("used_dltensor", (3,))
        with pytest.raises(nbxrt.ExchangeError, match="taken already"):
            nbxrt.from_dlpack(capsule)

    def test_a_capsule_is_not_used_up_for_what_cannot_be_had(self, cuda: Simulation) -> None:
        capsule = nbxrt.empty(3, device=1).__dlpack__(max_version=(1, 0))
        old = nbxrt.empty(3).__dlpack__()

        for given in (capsule, old):
            for wanted in ({"device": 7}, {"device": "x"}, {"copy": "x"}, {"stream": "x"}):
                with pytest.raises(nbxrt.NbxrtError, match=r"`Device`|`from_dlpack`|`stream`"):
                    nbxrt.from_dlpack(given, **wanted)
        with pytest.raises(nbxrt.ArgumentValueError, match=r"not on cuda:0, and `copy=False`"):
            nbxrt.from_dlpack(capsule, device=0, copy=False)
        with pytest.raises(nbxrt.ArgumentValueError, match=r"not on cuda:1, and `copy=False`"):
            nbxrt.from_dlpack(old, device=1, copy=False)

        assert nbxrt.from_dlpack(capsule, device=1, copy=False).device.index == 1
        assert nbxrt.from_dlpack(old, device=0, copy=False).device.index == 0

    def test_an_array_that_does_not_say_where_it_is_is_refused(self, runtime: Runtime) -> None:
        class Silent:
            def __dlpack__(self, **_asked: Any) -> Any:
                raise AssertionError

        for take in (nbxrt.from_dlpack, nbxrt.asarray):
            with pytest.raises(nbxrt.ArgumentTypeError, match=r"takes an array.*, not Silent"):
                take(Silent())

    @pytest.mark.parametrize("value", [3, [1.0], b"bytes", None])
    def test_what_has_no_dlpack_is_refused(self, host: Runtime, value: Any) -> None:
        with pytest.raises(nbxrt.ArgumentTypeError, match="`__dlpack__` and `__dlpack_device__`"):
            nbxrt.from_dlpack(value)

    def test_a_capsule_of_something_else_is_refused(self, host: Runtime) -> None:
        new = ctypes.pythonapi.PyCapsule_New
        new.argtypes, new.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object

        with pytest.raises(nbxrt.ExchangeError, match="is no capsule of DLPack"):
            nbxrt.from_dlpack(new(64, b"something else", None))

    def test_a_damaged_capsule_is_refused(self, host: Runtime) -> None:
        for offset, form, value, said in [
            (16, "i", 65, "65 dimensions"),
            (20, "B", 77, "class 77"),
            (22, "H", 4, "4 lanes"),
        ]:
            array = nbxrt.empty(3)
            capsule = array.__dlpack__()
            at = structure_of(capsule) + offset
            (ctypes.c_char * 4).from_address(at)[: struct.calcsize(form)] = struct.pack(form, value)

            with pytest.raises(nbxrt.ExchangeError, match=said):
                nbxrt.from_dlpack(capsule)

    @pytest.mark.parametrize("place", [None, 2, (2,), ("2", 0), (2.0, 0), (True, 0)])
    def test_a_place_that_is_none_is_refused(self, cuda: Simulation, place: Any) -> None:
        producer = New(nbxrt.empty(3))
        producer.__dlpack_device__ = lambda: place  # type: ignore[method-assign]

        for take in (nbxrt.from_dlpack, nbxrt.asarray):
            with pytest.raises(nbxrt.ArgumentError, match="`__dlpack_device__` takes a pair"):
                take(producer)

    def test_a_place_with_large_numbers_is_refused(self, cuda: Simulation) -> None:
        with pytest.raises(nbxrt.ExchangeError, match=f"2 and {2**40} are no device type and id of DLPack"):
            nbxrt.from_dlpack(New(nbxrt.empty(3), (2, 2**40)))

    def test_what_a_producer_gives_must_be_a_capsule(self, cuda: Simulation) -> None:
        producer = New(nbxrt.empty(3))
        producer.__dlpack__ = lambda **_asked: 5  # type: ignore[method-assign, assignment]

        with pytest.raises(nbxrt.ExchangeError, match="`__dlpack__` of New gives 5, no capsule"):
            nbxrt.from_dlpack(producer)

    @pytest.mark.parametrize(
        ("form", "at", "value", "said"),
        [
            ("q", 0, -1, r"the shape \(-1, 3\)"),
            ("q", 0, 2**62, "in no memory"),
            ("P", 24, 0, "has no shape"),
            ("Q", 40, 2**64 - 8, "in no memory"),
        ],
    )
    def test_a_capsule_that_says_what_no_array_has_is_refused_and_not_used_up(
        self, host: Runtime, form: str, at: int, value: int, said: str
    ) -> None:
        capsule = nbxrt.empty((2, 3)).__dlpack__()
        address = structure_of(capsule)
        if form == "q":
            address = ctypes.c_void_p.from_address(address + 24).value or 0
        ctypes.memmove(address + at, struct.pack(f"@{form}", value), 8)

        with pytest.raises(nbxrt.ExchangeError, match=said):
            nbxrt.from_dlpack(capsule)

        assert name_of(capsule) == "dltensor"


class TestThreads:
    def test_one_thread_alone_gets_a_capsule_that_many_take(self, host: Runtime, switching: None) -> None:
        told: list[int] = []
        count = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(told.append)
        array, together = nbxrt.empty(3), threading.Barrier(4)
        capsules = [array.__dlpack__() for _each in range(40)]
        for capsule in capsules:
            at = structure_of(capsule) + 56
            ctypes.c_void_p.from_address(at).value = ctypes.cast(count, ctypes.c_void_p).value

        def take(_number: int) -> int:
            taken = 0
            for capsule in capsules:
                together.wait()
                with contextlib.suppress(nbxrt.ExchangeError):
                    nbxrt.from_dlpack(capsule)
                    taken += 1
            return taken

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(take, range(4))) == len(told) == len(capsules)

    def test_the_first_export_may_be_asked_for_by_many_threads(self, host: Runtime, switching: None) -> None:
        together = threading.Barrier(4)
        arrays = [nbxrt.empty((number, 3)) for number in range(1, 40)]

        def export(_number: int) -> list[Any]:
            made = []
            for array in arrays:
                together.wait()
                made.append(array.__dlpack__(stream=-1, max_version=(1, 0)))
            return made

        with ThreadPoolExecutor(4) as pool:
            capsules = list(pool.map(export, range(4)))
        filler = [nbxrt.empty((77, 77)).__dlpack__() for _each in range(100)]

        for made in capsules:
            assert [nbxrt.from_dlpack(each).shape for each in made] == [array.shape for array in arrays]
        del filler


class TestLayouts:
    @pytest.mark.parametrize(
        "index",
        [..., (slice(None, None, -1),), (slice(1, None, 2), slice(None, None, -2)), (0,), (0, 0, 0), slice(0, 0)],
    )
    def test_every_layout_arrives_as_it_was(self, runtime: Runtime, index: Any) -> None:
        whole = np.arange(24.0).reshape(2, 3, 4)
        array = nbxrt.from_numpy(whole)[index]

        for given in ({}, {"max_version": (1, 0)}):
            taken = nbxrt.from_dlpack(array.__dlpack__(**given))
            assert (taken.shape, taken.strides, taken.dtype) == (array.shape, array.strides, array.dtype)
            assert taken.numpy().tolist() == whole[index].tolist()

    def test_absent_strides_mean_that_it_is_contiguous_and_an_offset_is_added(self, host: Runtime) -> None:
        capsule = nbxrt.from_numpy(np.arange(6.0).reshape(2, 3)).__dlpack__()
        structure = structure_of(capsule)
        ctypes.c_void_p.from_address(structure + 32).value = None
        shape = ctypes.c_void_p.from_address(structure + 24).value
        ctypes.c_int64.from_address(shape or 0).value = 1
        ctypes.c_uint64.from_address(structure + 40).value = 24

        taken = nbxrt.from_dlpack(capsule)

        assert (taken.shape, taken.strides) == ((1, 3), (24, 8))
        assert taken.numpy().tolist() == [[3, 4, 5]]

    @pytest.mark.parametrize("strides_at", [16, 40, 512, 4000, 8, 0, -64])
    def test_shape_and_strides_may_lie_anywhere(self, host: Runtime, strides_at: int) -> None:
        room = ctypes.create_string_buffer(8192)
        shape_at = ctypes.addressof(room) + 128
        extents = (
            {128: (2, 2), 128 + strides_at: (2, 1)} if strides_at >= 16 else {128: (2, 2), 128 + strides_at: (2, 2)}
        )
        if strides_at == 8:
            extents = {128: (2, 2, 2)}
        for at, pair in extents.items():
            struct.pack_into(f"@{len(pair)}q", room, at, *pair)
        array = nbxrt.from_numpy(np.arange(8, dtype="int32"))[:4].reshape(2, 2)

        for _each in range(2):  # the first is looked at, the second one is known
            capsule = array.__dlpack__()
            struct.pack_into(
                "@PP", (ctypes.c_char * 40).from_address(structure_of(capsule)), 24, shape_at, shape_at + strides_at
            )
            taken = nbxrt.from_dlpack(capsule)
            assert (taken.shape, taken.strides) == ((2, 2), (8, 4) if strides_at >= 16 else (8, 8))

    def test_an_array_of_no_dimensions_needs_neither_shape_nor_strides(self, host: Runtime) -> None:
        for _each in range(2):
            capsule = nbxrt.from_numpy(np.float32(2.5)).__dlpack__()
            ctypes.memset(structure_of(capsule) + 24, 0, 16)
            taken = nbxrt.from_dlpack(capsule)
            assert (taken.shape, taken.strides, taken.numpy().tolist()) == ((), (), 2.5)

    @pytest.mark.parametrize("zeros", [8, 16])
    def test_a_missing_shape_is_seen_also_where_the_like_was_taken_before(self, host: Runtime, zeros: int) -> None:
        array = nbxrt.empty((2, 3))
        nbxrt.from_dlpack(array.__dlpack__())
        capsule = array.__dlpack__()
        ctypes.memset(structure_of(capsule) + 24, 0, zeros)

        with pytest.raises(nbxrt.ExchangeError, match="has no shape"):
            nbxrt.from_dlpack(capsule)

    def test_strides_that_lead_below_address_0_are_refused(self, host: Runtime) -> None:
        for _each in range(2):
            capsule = nbxrt.empty(4)[::-1].__dlpack__()
            ctypes.c_void_p.from_address(structure_of(capsule)).value = 8

            with pytest.raises(nbxrt.ExchangeError, match="in no memory"):
                nbxrt.from_dlpack(capsule)

    @pytest.mark.parametrize(
        "dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64"]
    )
    def test_every_type_is_told(self, host: Runtime, dtype: str) -> None:
        assert nbxrt.from_dlpack(nbxrt.empty(4, dtype)).dtype == dtype

    def test_a_buffer_is_an_array_of_bytes(self, runtime: Runtime) -> None:
        buffer = nbxrt.Buffer(4)
        buffer.copy_from(b"abcd")

        taken = nbxrt.from_dlpack(buffer)

        assert (taken.dtype, taken.tobytes(), taken.ptr) == ("uint8", b"abcd", buffer.ptr)


class TestLifetime:
    def test_memory_lives_until_the_consumer_is_done(self, simulation: Simulation, held: Callable[[], int]) -> None:
        array = nbxrt.from_numpy(np.arange(3.0))
        taken = nbxrt.from_dlpack(array)
        part = taken[1:]
        del array, taken

        assert part.numpy().tolist() == [1, 2]
        del part
        assert held() == 0

    def test_a_capsule_that_nobody_takes_gives_its_memory_back(self, simulation: Simulation) -> None:
        for max_version in (None, (1, 0)):
            array = nbxrt.empty(8)
            seen = weakref.ref(array)
            capsule = array.__dlpack__(max_version=max_version)
            del array
            assert seen() is not None
            del capsule
            assert seen() is None

    def test_the_producer_is_told_exactly_once(self, host: Runtime) -> None:
        told: list[int] = []
        count = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(told.append)
        capsule = nbxrt.empty(3).__dlpack__()
        structure = structure_of(capsule)
        ctypes.c_void_p.from_address(structure + 56).value = ctypes.cast(count, ctypes.c_void_p).value

        taken = nbxrt.from_dlpack(capsule)
        part = taken[1:]
        del capsule, taken
        gc.collect()
        assert told == []
        del part

        assert told == [structure]

    def test_a_structure_without_a_function_is_taken_too(self, host: Runtime) -> None:
        capsule = nbxrt.empty(3).__dlpack__()
        ctypes.c_void_p.from_address(structure_of(capsule) + 56).value = None

        taken = nbxrt.from_dlpack(capsule)
        del taken

    def test_what_a_consumer_writes_into_a_structure_is_in_no_other_one(self, host: Runtime) -> None:
        one, like = nbxrt.empty((2, 3)), nbxrt.empty((2, 3))
        for versions in ({}, {"max_version": (1, 0)}):
            held = one.__dlpack__(**versions)
            at = structure_of(held) + (56 if versions else 24)
            ctypes.memset(ctypes.c_void_p.from_address(at).value or 0, 255, 32)  # shape and strides
            ctypes.memset(at, 0, 16)  # the pointers to them
            for array in (one, like, nbxrt.empty((2, 3))):
                taken = nbxrt.from_dlpack(array.__dlpack__(**versions))
                assert (taken.ptr, taken.shape, taken.strides) == (array.ptr, (2, 3), (12, 4))
            del held
            for _again in range(2):
                assert nbxrt.from_dlpack(one.__dlpack__(**versions)).shape == (2, 3)

    def test_many_exchanges_leave_nothing(self, host: Runtime) -> None:
        array = nbxrt.empty((2, 2))
        before = len(dlpack._held)
        for _each in range(300):
            nbxrt.from_dlpack(array)
            array.__dlpack__()

        assert len(dlpack._held) == before


class TestReadOnly:
    def test_memory_that_may_only_be_read_is_told_as_that_and_never_written(self, host: Runtime) -> None:
        owned = nbxrt.Buffer(4)
        readonly = nbxrt.asarray(nbxrt.Buffer.from_handle(owned.ptr, 4, owner=owned, readonly=True))

        taken = nbxrt.from_dlpack(readonly.__dlpack__(max_version=(1, 0)))

        assert taken.readonly
        with pytest.raises(nbxrt.ArgumentValueError, match="may only be read"):
            taken.copy_from(b"1234")
        with pytest.raises(BufferError, match=r"which DLPack can say from version 1\.0 on"):
            readonly.__dlpack__()


class TestPlaces:
    @pytest.mark.parametrize("kind", ["device", "pinned", "managed"])
    def test_codes_are_those_of_the_backends_file(self, runtime: Runtime, kind: str) -> None:
        array = nbxrt.empty(3, kind=kind)

        code = CODES[runtime.name][("device", "pinned", "managed").index(kind)]
        assert array.__dlpack_device__() == (code, 0)
        assert nbxrt.from_dlpack(array).ptr == array.ptr

    def test_the_devices_number_is_told(self, simulation: Simulation) -> None:
        array = nbxrt.empty(3, device=1)

        assert array.__dlpack_device__()[1] == 1
        assert nbxrt.from_dlpack(array).device is array.device

    def test_metal_has_the_code_of_metal_and_no_streams(self) -> None:
        interop = descriptions.built_in("metal")["interop"]

        assert (interop["dlpack"], interop["streams"]) == ({"device": 8}, None)

    @pytest.mark.parametrize(
        ("code", "whose"),
        [
            (1, "backend `host`"),
            (8, "backend `metal`"),
            (10, "backend `hip`"),
            (11, "backend `hip`"),
            (99, "no backend that is known"),
        ],
    )
    def test_memory_of_another_backend_is_refused_naming_both(self, cuda: Simulation, code: int, whose: str) -> None:
        with pytest.raises(nbxrt.ExchangeError, match=rf"device type {code} is .*{whose}.* and .*cuda"):
            nbxrt.from_dlpack(New(nbxrt.empty(3), (code, 0)))

    def test_an_array_of_another_backend_in_this_process_is_refused(self, cuda: Simulation) -> None:
        other = nbxrt.empty(3, device=nbxrt.Device(0, runtime=opened("host")))

        with pytest.raises(nbxrt.ExchangeError, match=r"`nbxrt\.asarray\(…, device=…\)` copies it to a device"):
            nbxrt.from_dlpack(other)
        other.buffer().fill(1)
        for each in (other, other[::2], other[:0], other.view("uint8")):
            copied = nbxrt.asarray(each, device=0)
            assert (copied.device, copied.dtype) == (nbxrt.Device(0), each.dtype)
            assert copied.numpy().tolist() == each.numpy().tolist()

    @pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "complex64", "bool"])
    def test_every_type_goes_to_the_host_and_comes_from_there(self, simulation: Simulation, dtype: str) -> None:
        whole = nbxrt.from_numpy(np.arange(32, dtype="uint8")).view(dtype)

        for part in (whole, whole[::-2], whole[:0]):
            for given in (Hosted(part), Wordless(part)):
                come = nbxrt.asarray(given)
                assert (come.dtype, come.shape, come.device) == (dtype, part.shape, nbxrt.Device(0))
                assert come.tobytes() == part.tobytes()
        with pytest.raises(nbxrt.ArgumentTypeError, match="no memory on the host"):
            whole.copy_from(Wordless(whole))

    def test_the_host_is_one_place(self, runtime: Runtime) -> None:
        with pytest.raises(nbxrt.ExchangeError, match=r"is not in DLPack's device \(1, 1\)"):
            nbxrt.empty(3).__dlpack__(dl_device=(1, 1))

    def test_a_device_that_is_not_there_is_named(self, cuda: Simulation) -> None:
        with pytest.raises(nbxrt.DeviceIndexError, match=r"7, and there are 2"):
            nbxrt.from_dlpack(New(nbxrt.empty(3), (2, 7)))

    def test_a_consumer_may_ask_for_a_copy_and_for_the_host(self, runtime: Runtime) -> None:
        array = nbxrt.from_numpy(np.arange(3.0))

        copied = nbxrt.from_dlpack(array.__dlpack__(copy=True, max_version=(1, 0)))
        hosted = nbxrt.from_dlpack(array, device=0, copy=True)

        assert array.ptr not in (copied.ptr, hosted.ptr)
        assert copied.numpy().tolist() == hosted.numpy().tolist() == [0, 1, 2]
        with pytest.raises(nbxrt.ExchangeError, match=r"is not in DLPack's device \(77, 0\)"):
            array.__dlpack__(dl_device=(77, 0))

    def test_a_device_gives_a_copy_on_the_host_when_that_is_asked_for(self, simulation: Simulation) -> None:
        array = nbxrt.from_numpy(np.arange(3.0))

        on_host = np.from_dlpack(Hosted(array))

        assert on_host.tolist() == [0, 1, 2]
        with pytest.raises(nbxrt.ExchangeError):
            array.__dlpack__(dl_device=(1, 0), copy=False)

    def test_a_copy_that_is_forbidden_is_not_made(self, simulation: Simulation) -> None:
        with pytest.raises(nbxrt.ArgumentValueError, match="`copy=False`"):
            nbxrt.from_dlpack(nbxrt.empty(3), device=1, copy=False)

    def test_a_backend_whose_file_gives_no_numbers_exchanges_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_force: Callable[[Runtime], Runtime]
    ) -> None:
        in_force(toys.open_toy(tmp_path, monkeypatch))
        array = nbxrt.empty(3)

        for name in ("__cuda_array_interface__", "__array_interface__"):
            assert not hasattr(array, name)
        with pytest.raises(nbxrt.ExchangeError, match="Toy has no DLPack number for device memory"):
            array.__dlpack__()

    def test_a_users_backend_has_what_its_file_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_force: Callable[[Runtime], Runtime]
    ) -> None:
        said = {"dlpack": {"device": 777}, "array_interface": "__toy_array__", "streams": {"default": 1}}
        in_force(toys.open_toy(tmp_path, monkeypatch, interop=said))
        array = nbxrt.empty(3)

        assert array.__dlpack_device__() == (777, 0)
        assert array.__toy_array__["data"] == (array.ptr, False)
        assert not hasattr(array, "__cuda_array_interface__")


class TestStreams:
    """A consumer says in which stream it goes on; a producer makes the memory ready there."""

    def order(self, simulation: Simulation) -> list[tuple[str, Any]]:
        """What was given to which stream, in order."""
        names = ("event_record", "stream_wait_event")
        return [(call.operation, call.arguments["stream"]) for call in simulation.log() if call.operation in names]

    def test_the_consumers_stream_waits_for_the_current_one(self, simulation: Simulation) -> None:
        array, ours, theirs = nbxrt.empty(3), nbxrt.Stream(), nbxrt.Stream()
        with ours:
            simulation.clear()
            array.__dlpack__(stream=theirs.handle)

        assert self.order(simulation) == [("event_record", ours.handle), ("stream_wait_event", theirs.handle)]

    def test_none_is_the_default_stream_and_minus_one_asks_for_no_order(self, simulation: Simulation) -> None:
        array = nbxrt.empty(3)
        with nbxrt.Stream() as ours:
            simulation.clear()
            array.__dlpack__()
            waits = self.order(simulation)
            simulation.clear()
            array.__dlpack__(stream=-1)

        assert waits == [("event_record", ours.handle), ("stream_wait_event", 0)]
        assert self.order(simulation) == []

    @pytest.mark.parametrize(
        ("backend", "taken", "refused"),
        [("cuda", [1, 2], [0, -2]), ("hip", [0], [1, 2, -2]), ("host", [], [0, 1, 2, 512])],
    )
    def test_numbers_mean_what_the_backends_file_says(
        self, request: pytest.FixtureRequest, backend: str, taken: list[int], refused: list[int],
        in_force: Callable[[Runtime], Runtime],
    ) -> None:  # fmt: skip
        if backend == "host":
            in_force(opened("host"))
        else:
            in_force(request.getfixturevalue("simulated")(backend).open())
        array = nbxrt.empty(3)

        for number in (*taken, None, -1):
            array.__dlpack__(stream=number)
        for number in (*refused, True, "1", 1.0):
            with pytest.raises(nbxrt.ExchangeError, match="`__dlpack__`: `stream`"):
                array.__dlpack__(stream=number)

    def test_a_producer_is_told_the_number_of_our_stream(self, simulation: Simulation) -> None:
        producer = New(nbxrt.empty(3))
        stream = nbxrt.Stream()

        nbxrt.from_dlpack(producer)
        nbxrt.from_dlpack(producer, stream=stream)

        default = {"cuda": 1, "hip": 0}[simulation.name]
        assert producer.asked == [(default, dlpack.VERSION), (stream.handle, dlpack.VERSION)]

    def test_a_producer_without_streams_is_told_none(self, host: Runtime) -> None:
        producer = New(nbxrt.empty(3))

        nbxrt.from_dlpack(producer)

        assert producer.asked == [(None, dlpack.VERSION)]

    def test_work_is_seen_by_the_consumer_in_its_order(self, simulation: Simulation) -> None:
        ours, theirs = nbxrt.Stream(non_blocking=True), nbxrt.Stream(non_blocking=True)
        buffer, seen = nbxrt.Buffer(4), bytearray(4)
        with ours:
            buffer.fill(9)
            capsule = buffer.__dlpack__(stream=theirs.handle)
        nbxrt.from_dlpack(capsule, stream=theirs).copy_to(seen, stream=theirs)
        theirs.sync()

        assert bytes(seen) == b"\x09" * 4


class TestNumPy:
    """NumPy is a real consumer and producer of memory of the host."""

    @pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float16", "float64", "complex128"])
    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
    def test_arrays_go_there_and_back_without_a_copy(self, host: Runtime, dtype: str, shape: tuple[int, ...]) -> None:
        given = np.ones(shape, dtype)

        ours = nbxrt.from_dlpack(given)
        back = np.from_dlpack(ours)

        assert (back.shape, back.dtype, ours.shape, ours.dtype) == (shape, given.dtype, shape, dtype)
        if given.size:
            back[...] = 0
            assert not given.any()

    def test_strides_of_any_sign_go_there_and_back(self, host: Runtime) -> None:
        given = np.arange(24.0).reshape(2, 3, 4)[:, ::-1, ::2]

        assert np.from_dlpack(nbxrt.from_dlpack(given)).tolist() == given.tolist()

    @pytest.mark.parametrize("shape", [(2, 1), (3,), (3, 4), (2, 3, 1), (3, 1, 4)])
    def test_elements_that_are_repeated_are_read_as_often_as_they_are_seen(
        self, host: Runtime, shape: tuple[int, ...]
    ) -> None:
        for axis, extent in enumerate(shape):
            once = np.arange(np.prod(shape) / extent).reshape((*shape[:axis], 1, *shape[axis + 1 :]))
            given = np.broadcast_to(once, shape)

            taken = nbxrt.from_dlpack(given)

            assert taken.numpy().tolist() == given.tolist()
            assert taken.tobytes() == taken.copy().tobytes() == taken.contiguous().tobytes() == given.tobytes()
            assert nbxrt.asarray(given).tobytes() == given.tobytes()

    def test_memory_outlives_the_array_that_numpy_took_it_from(self, host: Runtime) -> None:
        ours = nbxrt.from_numpy(np.arange(1000.0))
        theirs = np.from_dlpack(ours)
        del ours
        filler = [nbxrt.zeros(1000, "float64") for _each in range(10)]

        assert theirs.tolist() == list(range(1000))
        del filler

    def test_pinned_memory_of_a_device_is_shared_with_the_host(self, cuda: Simulation) -> None:
        pinned = nbxrt.from_numpy(np.arange(4.0), kind="pinned")

        theirs = np.from_dlpack(pinned)
        theirs[0] = 7

        assert pinned.numpy().tolist() == [7, 1, 2, 3]

    def test_what_numpy_may_not_write_is_read_only_here(self, host: Runtime) -> None:
        given = np.arange(3.0)
        given.flags.writeable = False

        assert nbxrt.asarray(given).readonly


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_memory_is_given_back_where_a_consumer_refuses_its_device(cuda: Simulation) -> None:
    before, array = len(dlpack._held), nbxrt.empty(4)

    with pytest.raises((SystemError, RuntimeError, BufferError)):  # which one is the consumer's matter
        np.from_dlpack(Old(array))

    assert len(dlpack._held) == before


def test_numpy_is_told_what_it_cannot_take_and_what_to_do(cuda: Simulation, in_force: Any) -> None:
    before = len(dlpack._held)

    with pytest.raises(nbxrt.ExchangeError, match=r"the host does not reach DeviceArray[^$]*`array\.numpy\(\)`"):
        np.from_dlpack(nbxrt.empty(4))
    with pytest.raises(nbxrt.ExchangeError, match="NumPy takes no bfloat16 by DLPack"):
        np.from_dlpack(nbxrt.empty(4, "bfloat16", kind="pinned"))
    in_force(opened("host"))
    with pytest.raises(BufferError, match="NumPy takes no float8_e5m2 by DLPack"):
        np.from_dlpack(nbxrt.empty(4, "float8_e5m2"))

    assert len(dlpack._held) == before


@pytest.mark.parametrize(
    "asked",
    [
        {"max_version": "x"}, {"max_version": 1}, {"max_version": (1,)}, {"max_version": ("1", 0)},
        {"max_version": (1, 0, 0)}, {"max_version": (1.0, 0)}, {"dl_device": 1}, {"dl_device": (1, None)},
    ],
)  # fmt: skip
def test_a_question_of_a_wrong_form_is_refused_by_name(host: Runtime, asked: dict[str, Any]) -> None:
    with pytest.raises(nbxrt.ArgumentTypeError, match=f"`__dlpack__`: `{next(iter(asked))}` takes a pair of integers"):
        nbxrt.empty(3).__dlpack__(**asked)


@pytest.mark.parametrize("given", ["extents", (1, 1, 0), [1, "0"], (np.array(1), np.array([1, 2])), (1.5, 0), {}])
def test_a_wrong_version_is_refused_also_after_an_export(host: Runtime, given: Any) -> None:
    array = nbxrt.empty(3)
    for version in (None, (1, 1), [1, 1], (np.int64(1), np.array(1))):
        assert array.__dlpack__(stream=-1, max_version=version)

    with pytest.raises(nbxrt.ArgumentTypeError, match="`__dlpack__`: `max_version` takes a pair of integers"):
        array.__dlpack__(stream=-1, max_version=given)


@pytest.mark.parametrize("stream", [np.array([1, 2]), [], "1", [-1], True, -1.0])
def test_what_is_no_streams_number_is_refused_by_name(cuda: Simulation, stream: Any) -> None:
    with pytest.raises(nbxrt.ExchangeError, match="`__dlpack__`: `stream` takes a stream's number, not "):
        nbxrt.empty(3).__dlpack__(stream=stream)


def test_closed_memory_is_not_exported_and_nothing_reaches_the_vendor(cuda: Simulation) -> None:
    array, stream = nbxrt.empty(3), nbxrt.Stream()
    array.__dlpack__(stream=-1)
    array.memory.close()

    with stream:
        cuda.clear()
        for asked in ({}, {"stream": -1}, {"stream": stream.handle}, {"copy": True}, {"dl_device": (1, 0)}):
            with pytest.raises(nbxrt.ArgumentValueError, match="the device memory of cuda:0 is closed"):
                array.__dlpack__(**asked)

    assert [call.operation for call in cuda.log()] == []
