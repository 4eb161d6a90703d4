"""Kernels: packing arguments, launching, and standing in for Triton's own driver and launcher.

`nbxrt.launch` is this package and the function that launches: calling the one is calling the other.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Package(type(sys)):  # type: ignore[misc]  # ModuleType, without importing `types` for its name
    def __call__(self, *given: "Any", **named: "Any") -> None:
        from nbxrt.launch.module import launch as function

        function(*given, **named)


launch = sys.modules[__name__]
launch.__class__ = _Package
