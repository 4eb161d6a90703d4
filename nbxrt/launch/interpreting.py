"""Triton's driver where kernels are interpreted: there is no device, and only autotuners ask for anything."""

from nbxrt.launch.benchmarking import measure_on_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.runtime import Runtime


class HostDriver:
    """Triton's active driver while kernels are interpreted on the processor."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: int) -> None:
        """There is one."""

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_benchmarker(self) -> "Callable[..., Any]":
        """What the autotuner measures with: the host's clock."""
        return measure_on_host
