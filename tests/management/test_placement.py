"""Which device has the most free memory: without touching the others (B09)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt.management import DeviceIdentity, identity, pci_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Opened

    Open = Callable[..., Opened]

GIB = 1 << 30


class TestChoice:
    def test_it_is_the_device_with_the_most_free_memory(self, opened: Open) -> None:
        simulation, _runtime = opened(devices=3)
        simulation.set_memory(1, 24 * GIB)

        assert nbxrt.most_free_device() == 1

    def test_of_equal_ones_it_is_the_first(self, opened: Open) -> None:
        opened(devices=3)

        assert nbxrt.most_free_device() == 0

    def test_only_the_chosen_device_gets_a_context(self, opened: Open) -> None:
        simulation, _runtime = opened(devices=3)
        simulation.set_memory(2, 24 * GIB)

        nbxrt.most_free_device()

        assert simulation.contexts() == {2}

    def test_what_its_own_context_takes_does_not_make_the_next_one_the_better(self, opened: Open) -> None:
        simulation, _runtime = opened(devices=3)
        simulation.set_context(500 << 20)

        assert nbxrt.most_free_device() == 0
        assert simulation.contexts() == {0}

    @pytest.mark.parametrize("backend", ["cuda", "hip"])
    def test_it_is_the_runtimes_device_whatever_the_management_library_counts(self, opened: Open, backend: str) -> None:
        simulation, _runtime = opened(backend, "12.9" if backend == "cuda" else "7.1", devices=3)
        simulation.set_memory(2, 24 * GIB)
        simulation.set_visible([2, 0])

        assert nbxrt.most_free_device() == 0
        assert simulation.contexts() == {2}

    def test_the_callers_device_stays_and_its_cache_is_forgotten(self, opened: Open) -> None:
        simulation, runtime = opened(devices=3)
        simulation.set_memory(2, 24 * GIB)
        nbxrt.ensure_triton_device(1)
        runtime.set_device(0)

        nbxrt.most_free_device()
        before = runtime.get_device()
        nbxrt.ensure_triton_device(1)

        assert (before, runtime.get_device()) == (0, 1)

    def test_without_a_management_library_the_runtime_is_asked(self, opened: Open) -> None:
        simulation, runtime = opened(devices=3)
        simulation.fail("management.init", kind="driver_mismatch", onward=True)
        simulation.set_memory(2, 24 * GIB)
        runtime.set_device(1)

        assert nbxrt.most_free_device() == 2
        assert runtime.get_device() == 1

    def test_a_part_that_the_management_library_does_not_know_is_asked_of_the_runtime(self, opened: Open) -> None:
        simulation, _runtime = opened(devices=2)
        simulation.set_part(1, known=False)
        simulation.set_memory(1, 24 * GIB)

        assert nbxrt.most_free_device() == 1

    def test_any_thread_may_ask(self, opened: Open) -> None:
        simulation, _runtime = opened(devices=2)
        simulation.set_memory(1, 24 * GIB)
        chosen: list[int] = []

        threads = [threading.Thread(target=lambda: chosen.append(nbxrt.most_free_device())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert chosen == [1, 1, 1, 1]


class TestBusy:
    """B09: a card that another process has for itself."""

    def test_a_busy_device_is_passed_over_and_the_reason_recorded(self, opened: Open) -> None:
        simulation, runtime = opened(devices=3)
        simulation.set_memory(0, 24 * GIB)
        simulation.fail("context", kind="device_unavailable", onward=True, device=0)

        choice = nbxrt.most_free_device_report()

        assert choice.index == 1
        assert choice.devices[0].reason.startswith("busy (46): another process has the card for itself")
        assert choice.devices[0].nbytes is None
        assert simulation.contexts() == {1}
        assert runtime.get_device() == 0

    def test_detecting_and_counting_make_no_context(self, opened: Open) -> None:
        simulation, runtime = opened(devices=3)

        nbxrt.detect()
        runtime.device_count()

        assert simulation.contexts() == set()

    def test_when_every_device_is_busy_the_error_says_it_of_each(self, opened: Open) -> None:
        simulation, _runtime = opened(devices=2)
        simulation.fail("context", kind="device_unavailable", onward=True)

        with pytest.raises(nbxrt.NoDeviceError) as caught:
            nbxrt.most_free_device()

        assert "device 0: busy (46)" in str(caught.value)
        assert "device 1: busy (46)" in str(caught.value)

    def test_no_device_at_all_says_why(self, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        opened(devices=0)

        with pytest.raises(nbxrt.NoDeviceError, match="no NVIDIA card is visible"):
            nbxrt.most_free_device()


class TestIdentity:
    def test_a_device_is_its_name_its_uuid_and_its_place(self, opened: Open) -> None:
        _simulation, runtime = opened()

        found = identity(runtime, 1)

        assert repr(found) == (
            "<nbxrt device 1: Simulated device 1, 5b1d3f77-0c42-4e8a-9d61-202653494d01, 0000:11:00.0>"
        )

    @pytest.mark.parametrize(
        ("text", "numbers"),
        [
            ("0000:3b:00.0", (0, 0x3B, 0, 0)),
            ("00000000:3B:00.0", (0, 0x3B, 0, 0)),
            ("3b:00.1", (0, 0x3B, 0, 1)),
            ("0001:3B:1f", (1, 0x3B, 0x1F, 0)),
            ("", None),
            ("3b", None),
            ("gpu0:00.0", None),
            ("1:2:3:4.5", None),
        ],
    )
    def test_places_on_pci_are_compared_as_numbers(self, text: str, numbers: tuple[int, ...] | None) -> None:
        assert pci_numbers(text) == numbers

    def test_two_are_one_device_by_uuid_and_else_by_place(self) -> None:
        mine = DeviceIdentity(0, uuid=b"a" * 16, pci_bus_id="0000:3b:00.0")

        assert mine.is_same_as(DeviceIdentity(3, uuid=b"a" * 16, pci_bus_id="0000:99:00.0"))
        assert mine.is_same_as(DeviceIdentity(3, pci_bus_id="3B:00.0"))
        assert not mine.is_same_as(DeviceIdentity(3, uuid=b"b" * 16, pci_bus_id="0000:3b:00.0"))
        assert not DeviceIdentity(0).is_same_as(DeviceIdentity(0))
