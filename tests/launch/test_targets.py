"""What kernels are compiled for, and how many threads a block of them has; H01, H06."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import nbxrt
from nbxrt.launch import targets, versions
from nbxrt.launch.launcher import Shape
from nbxrt.simulation import Simulation


@pytest.mark.needs("cc")
class TestArchitecture:
    @pytest.mark.parametrize(("capability", "architecture"), [((8, 6), 86), ((7, 5), 75), ((12, 1), 121)])
    def test_it_is_made_of_the_compute_capability(
        self, capability: tuple[int, int], architecture: int, simulate: Callable[..., Simulation]
    ) -> None:
        simulation = simulate("cuda")
        simulation.set_attribute("compute_capability_major", capability[0])
        simulation.set_attribute("compute_capability_minor", capability[1])

        assert targets.architecture(simulation.open(), 0) == architecture

    @pytest.mark.parametrize("lacking", [(), ("hipGetDevicePropertiesR0600",)])
    def test_it_is_asked_by_the_layout_that_the_library_has(
        self, lacking: tuple[str, ...], simulate: Callable[..., Simulation]
    ) -> None:
        simulation = simulate("hip", without=lacking)
        simulation.set_architecture("gfx90a:sramecc+:xnack-")

        assert targets.architecture(simulation.open(), 1) == "gfx90a"
        symbols = ["hipGetDevicePropertiesR0600", "hipGetDeviceProperties"]
        called = next(call.symbol for call in simulation.log() if call.symbol in symbols)
        assert called == symbols[len(lacking)]

    def test_a_library_that_does_not_tell_it_is_said_with_the_way_out(
        self, simulate: Callable[..., Simulation]
    ) -> None:
        with pytest.raises(nbxrt.CapabilityError, match="set TRITON_OVERRIDE_ARCH"):
            targets.architecture(simulate("hip").open(), 0)

    def test_the_user_has_the_last_word(
        self, simulate: Callable[..., Simulation], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runtime = simulate("cuda").open()
        monkeypatch.setenv("TRITON_OVERRIDE_ARCH", "100")

        assert targets.architecture(runtime, 0) == 100


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("cuda:90", ("cuda", 90, None)),
        ("hip:gfx942", ("hip", "gfx942", None)),
        ("hip: gfx942 :64", ("hip", "gfx942", 64)),
    ],
)
def test_a_target_is_a_backend_and_an_architecture(written: str, target: tuple[Any, ...]) -> None:
    assert targets.parsed(written) == target


@pytest.mark.parametrize("written", ["cuda", "", ":90", "cuda:", "a:b:c", "a:b:1:2", 90, None])
def test_what_is_no_target_is_refused(written: Any) -> None:
    with pytest.raises(nbxrt.ArgumentError):
        targets.parsed(written)


@pytest.mark.needs("cc")
@pytest.mark.parametrize(("own", "device", "threads"), [(32, 64, 128), (64, 32, 256), (None, 64, 256), (None, 32, 128)])
def test_a_warp_is_as_wide_as_the_kernel_says_else_as_the_devices(
    own: int | None, device: int, threads: int, simulate: Callable[..., Simulation]
) -> None:
    metadata = SimpleNamespace(name="add", shared=0, num_warps=4, num_ctas=1, warp_size=own)

    shape = Shape(simulate("hip").open(), ["*fp32"], metadata, versions.KNOWN[3, 9], "3.9.0", device)

    assert shape.threads == threads
