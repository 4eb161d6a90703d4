"""Arrays in device memory, as small as a kernel's argument can be."""

from __future__ import annotations

from typing import Any

SIZES = {"fp64": 8, "float64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int8": 1}


class Array:
    """Memory of a runtime with an element type; `offset` bytes into its allocation."""

    launch_key: int | None = None

    def __init__(self, runtime: Any, count: int, dtype: str = "float32", *, device: int = 0, offset: int = 0) -> None:
        self.dtype = dtype
        self.nbytes = count * SIZES[dtype]
        self._device_idx = device
        self.runtime_key = runtime.name
        before = runtime.get_device()
        runtime.set_device(device)
        self.ptr = runtime.malloc(self.nbytes + offset) + offset
        runtime.set_device(before)

    def data_ptr(self) -> int:
        return int(self.ptr)

    def ptr_range(self) -> int:
        return self.nbytes


class Foreign:
    """An address with an element type and nothing else, as another library's array."""

    def __init__(self, address: int, dtype: str = "float32") -> None:
        self.address = address
        self.dtype = dtype

    def data_ptr(self) -> int:
        return self.address
