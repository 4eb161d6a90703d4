"""Arrays for kernels: of nbxrt, and what another library's array is at least."""

from __future__ import annotations

from typing import Any

import nbxrt


def array(runtime: Any, count: int, dtype: str = "float32", *, device: int = 0, offset: int = 0) -> nbxrt.DeviceArray:
    """An array of a runtime; `offset` elements into its memory."""
    whole = nbxrt.empty(count + offset, dtype, device=nbxrt.Device(device, runtime=runtime))
    return whole[offset:] if offset else whole


class Foreign:
    """An address with an element type and nothing else, as another library's array."""

    def __init__(self, address: int, dtype: Any = "float32") -> None:
        self.address = address
        self.dtype = dtype

    def data_ptr(self) -> int:
        return self.address
