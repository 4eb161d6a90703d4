"""The surface of the module this project grows out of: its own call patterns run unchanged."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from toys import open_toy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def host() -> Iterator[nbxrt.Runtime]:
    nbxrt.reset()
    yield nbxrt.open("host")
    nbxrt.reset()


class Tensor:
    """What an engine hands over: where it is, in the engine's own token."""

    def __init__(self, device: Any = "cuda", index: Any = 0) -> None:
        if device is not None:
            self._device = device
        if index is not None:
            self._device_idx = index


def test_the_public_names_are_these() -> None:
    assert nbxrt.__all__ == [
        "ArgumentError",
        "ArgumentIndexError",
        "ArgumentTypeError",
        "ArgumentValueError",
        "BackendNotFoundError",
        "BackendReport",
        "Buffer",
        "CapabilityError",
        "DType",
        "DescriptionError",
        "Detection",
        "Device",
        "DeviceAllocator",
        "DeviceArray",
        "DeviceChoice",
        "DeviceError",
        "DeviceIndexError",
        "DeviceProcess",
        "DeviceProcesses",
        "DoubleFreeError",
        "DriverError",
        "Event",
        "ExchangeError",
        "Function",
        "Graph",
        "InteriorPointerError",
        "LibraryBrokenError",
        "LibraryNotFoundError",
        "LimitError",
        "Module",
        "NbxrtError",
        "NoDeviceError",
        "OutOfMemoryError",
        "PointerError",
        "ProcessMemory",
        "Runtime",
        "SizeError",
        "Stream",
        "SymbolNotFoundError",
        "UnknownPolicyError",
        "UntestedVersionError",
        "asarray",
        "backend_table",
        "current_device",
        "current_stream",
        "describe",
        "detect",
        "device_label",
        "device_memory",
        "devices",
        "dtype",
        "empty",
        "empty_like",
        "ensure_triton_device",
        "from_dlpack",
        "from_numpy",
        "gpu_backend",
        "gpu_runtime",
        "invalidate_current_device_cache",
        "launch",
        "load_kernel",
        "most_free_device",
        "most_free_device_report",
        "open",
        "process_memory",
        "process_memory_report",
        "processes",
        "reset",
        "set_device",
        "trace",
        "triton",
        "use",
        "validate",
        "zeros",
        "zeros_like",
    ]
    assert all(getattr(nbxrt, name) is not None for name in nbxrt.__all__)


class TestCallsBySymbol:
    """`getattr(gpu_runtime(), backend_table()[operation])` with `byref`, as engines do it."""

    def test_memory_is_allocated_copied_and_freed(self, host: nbxrt.Runtime) -> None:
        table, runtime = nbxrt.backend_table(), nbxrt.gpu_runtime()
        pointer = ctypes.c_void_p()
        there, back = ctypes.create_string_buffer(b"abc"), ctypes.create_string_buffer(4)

        statuses = [
            getattr(runtime, table["malloc"])(ctypes.byref(pointer), ctypes.c_size_t(4)),
            getattr(runtime, table["memcpy"])(pointer, ctypes.c_void_p(ctypes.addressof(there)), ctypes.c_size_t(4), 1),
            getattr(runtime, table["memcpy"])(ctypes.c_void_p(ctypes.addressof(back)), pointer, ctypes.c_size_t(4), 2),
            getattr(runtime, table["memset"])(pointer, ctypes.c_int(0), ctypes.c_size_t(4)),
            getattr(runtime, table["free"])(pointer),
        ]

        assert statuses == [0] * 5
        assert back.value == b"abc"

    def test_devices_and_memory_are_asked_for(self, host: nbxrt.Runtime) -> None:
        table, runtime = nbxrt.backend_table(), nbxrt.gpu_runtime()
        count, free, total = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t()

        assert getattr(runtime, table["device_count"])(ctypes.byref(count)) == 0
        assert getattr(runtime, table["mem_get_info"])(ctypes.byref(free), ctypes.byref(total)) == 0
        assert getattr(runtime, table["set_device"])(ctypes.c_int(0)) == 0
        assert getattr(runtime, table["set_device"])(7) != 0
        assert count.value == 1
        assert 0 < free.value <= total.value

    def test_streams_and_events_are_made_and_timed(self, host: nbxrt.Runtime) -> None:
        table, runtime = nbxrt.backend_table(), nbxrt.gpu_runtime()
        stream, start, end = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        elapsed = ctypes.c_float(-1)

        statuses = [
            getattr(runtime, table["stream_create"])(ctypes.byref(stream)),
            getattr(runtime, table["event_create"])(ctypes.byref(start)),
            getattr(runtime, table["event_create_flags"])(ctypes.byref(end), 0),
            getattr(runtime, table["event_record"])(start, stream),
            getattr(runtime, table["event_record"])(end, stream),
            getattr(runtime, table["stream_wait_event"])(stream, end, 0),
            getattr(runtime, table["event_sync"])(end),
            getattr(runtime, table["event_elapsed"])(ctypes.byref(elapsed), start, end),
            getattr(runtime, table["event_destroy"])(start),
            getattr(runtime, table["stream_destroy"])(stream),
            getattr(runtime, table["get_last_error"])(),
        ]

        assert statuses == [0] * 11
        assert elapsed.value >= 0

    def test_a_row_with_a_vendor_symbol_is_the_typed_function(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runtime = open_toy(tmp_path, monkeypatch)
        table = nbxrt.backend_table()

        function = getattr(runtime, table["malloc"])

        assert table["malloc"] == "toyMalloc"
        assert function.argtypes == [ctypes.c_void_p, ctypes.c_size_t]
        assert function.restype is ctypes.c_int
        nbxrt.reset()

    def test_a_call_that_needs_more_than_the_contracts_arguments_is_adapted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        c = "int hostMalloc(void **p, size_t n, unsigned flags) { *p = (void *)0x10; return flags == 5 ? 0 : 1; }"
        form = {"call": "hostMalloc", "args": [{"out": "address"}, "nbytes", {"uint": 5}]}
        runtime = open_toy(tmp_path, monkeypatch, c, operations={"malloc_host": form})
        pointer = ctypes.c_void_p()

        status = getattr(runtime, nbxrt.backend_table()["malloc_host"])(ctypes.byref(pointer), ctypes.c_size_t(8))

        assert (status, pointer.value) == (0, 0x10)
        nbxrt.reset()

    def test_the_table_has_every_operation_and_the_three_lists_and_cannot_be_written(self, host: nbxrt.Runtime) -> None:
        table = nbxrt.backend_table()

        assert set(host.contract["operations"]) < set(table)
        assert {"rt_libs", "driver_libs", "management_libs"} < set(table)
        assert table["driver_libs"] == ()
        with pytest.raises(TypeError):
            table["malloc"] = "other"  # type: ignore[index]


class TestDevices:
    def test_set_device_takes_an_index_or_what_has_one(self, host: nbxrt.Runtime) -> None:
        nbxrt.set_device(0)
        nbxrt.set_device(Tensor(index=0))

        assert host.get_device() == 0

    @pytest.mark.parametrize(
        "target",
        [None, "0", 1.0, True, object(), Tensor(index=None), Tensor(index="1")],
        ids=["None", "text", "float", "bool", "object", "no index", "an index of text"],
    )
    def test_set_device_refuses_everything_else(self, host: nbxrt.Runtime, target: Any) -> None:
        with pytest.raises(TypeError, match="set_device takes an index"):
            nbxrt.set_device(target)

    def test_a_device_that_is_not_there_leaves_the_current_one(self, host: nbxrt.Runtime) -> None:
        nbxrt.set_device(0)

        with pytest.raises(nbxrt.DeviceIndexError):
            nbxrt.set_device(1)

        assert host.get_device() == 0

    def test_the_current_device_is_per_thread_and_a_warm_cache_of_another_thread_does_not_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runtime = open_toy(tmp_path, monkeypatch)
        seen: list[int] = []
        nbxrt.ensure_triton_device(1)

        def work() -> None:
            before = runtime.get_device()
            nbxrt.ensure_triton_device(1)
            seen.extend([before, runtime.get_device()])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

        assert seen == [0, 1]
        nbxrt.reset()

    def test_the_cache_is_trusted_until_it_is_told_otherwise(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runtime = open_toy(tmp_path, monkeypatch)
        nbxrt.ensure_triton_device(1)
        runtime.toySetDevice(0)  # behind our back

        nbxrt.ensure_triton_device(1)
        trusted = runtime.get_device()
        nbxrt.invalidate_current_device_cache()
        nbxrt.ensure_triton_device(1)

        assert (trusted, runtime.get_device()) == (0, 1)
        nbxrt.reset()

    def test_nothing_is_trusted_once_a_variable_says_so_and_again_when_it_no_longer_does(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runtime = open_toy(tmp_path, monkeypatch)
        nbxrt.ensure_triton_device(0)
        after: list[int] = []

        for value in ("1", "0"):
            monkeypatch.setenv("NBXRT_CHECK_DEVICE", value)
            nbxrt.invalidate_current_device_cache()
            nbxrt.ensure_triton_device(1)
            runtime.toySetDevice(0)  # behind our back
            nbxrt.ensure_triton_device(1)
            after.append(runtime.get_device())

        assert after == [1, 0]
        nbxrt.reset()

    def test_a_switch_by_the_runtimes_own_operation_is_noticed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runtime = open_toy(tmp_path, monkeypatch)
        nbxrt.set_device(1)
        runtime.set_device(0)

        nbxrt.set_device(1)

        assert runtime.get_device() == 1
        nbxrt.reset()

    def test_triton_is_told_only_if_its_driver_is_active_already(
        self, host: nbxrt.Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import sys
        import types

        told: list[int] = []
        module: Any = types.ModuleType("triton.runtime.driver")
        module.driver = types.SimpleNamespace(_active=None)
        monkeypatch.setitem(sys.modules, "triton.runtime.driver", module)

        nbxrt.ensure_triton_device(0)
        nbxrt.invalidate_current_device_cache()
        module.driver._active = types.SimpleNamespace(set_current_device=told.append)
        nbxrt.ensure_triton_device(0)
        nbxrt.ensure_triton_device(0)

        assert told == [0]


class TestLabels:
    @pytest.mark.parametrize(
        ("tensor", "label"),
        [
            (Tensor("cuda", 1), "host:1"),
            (Tensor("cpu", 0), "cpu:0"),
            (Tensor("cuda", None), "host:?"),
            (Tensor(None, 3), "?"),
            (object(), "?"),
        ],
    )
    def test_a_placement_reads_as_the_backend_that_was_found(
        self, host: nbxrt.Runtime, tensor: Any, label: str
    ) -> None:
        assert nbxrt.device_label(tensor) == label

    def test_a_label_is_never_an_error(self) -> None:
        class Hostile:
            @property
            def _device(self) -> str:
                raise ValueError("no")

        assert nbxrt.device_label(Hostile()) == "?"


class TestInForce:
    def test_a_substituted_runtime_is_seen_at_once_and_by_every_thread(
        self, host: nbxrt.Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        toy = open_toy(tmp_path, monkeypatch)
        nbxrt.open("host")
        seen: list[Any] = []

        with nbxrt.use(toy):
            thread = threading.Thread(target=lambda: seen.append(nbxrt.gpu_runtime()))
            thread.start()
            thread.join()
            seen += [nbxrt.device_memory().runtime, nbxrt.gpu_backend()]

        assert seen == [toy, toy, "toy"]
        assert nbxrt.gpu_runtime() is host

    def test_the_memory_primitives_are_the_memory_operations_and_nothing_else(self, host: nbxrt.Runtime) -> None:
        memory = nbxrt.device_memory()
        address = memory.malloc(64)

        memory.memset(address, 0, 64)
        memory.free(address)

        assert memory.mem_get_info()[1] > 0
        with pytest.raises(AttributeError):
            memory.launch_kernel  # noqa: B018
