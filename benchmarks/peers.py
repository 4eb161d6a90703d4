"""Comparable libraries, as far as they are installed: how each allocates, and how each makes the hot calls."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Library: what to look for, and a program that allocates 1 MiB on the device.
FIRST_ALLOCATION = {
    "cuda.bindings": (
        "cuda.bindings",
        "from cuda.bindings import runtime as r; e, p = r.cudaMalloc(1 << 20); assert e == 0",
    ),
    "cuda.core": (
        "cuda.core",
        "from cuda.core import Device; d = Device(0); d.set_current(); a=d.allocate(1 << 20, stream=d.create_stream())",
    ),
    "CuPy": ("cupy", "import cupy; a = cupy.cuda.alloc(1 << 20)"),
    "numba": (
        "numba.cuda",
        "from numba import cuda; import numpy; a = cuda.device_array(1 << 20, dtype=numpy.uint8)",
    ),
    "PyTorch": ("torch", "import torch; a = torch.empty(1 << 20, dtype=torch.uint8, device='cuda')"),
}


def is_installed(module: str) -> bool:
    """Whether a module could be imported; its parents are, itself is not."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def hot_calls() -> dict[str, dict[str, Callable[[], Any]]]:
    """Workload (as calls.py names them) to library to its call, for the libraries that can be used here."""
    found: dict[str, dict[str, Callable[[], Any]]] = {}
    for name, calls in (("cuda.bindings", _bindings), ("CuPy", _cupy), ("PyTorch", _torch)):
        try:
            for workload, call in calls().items():
                call()
                found.setdefault(workload, {})[name] = call
        except Exception as error:  # noqa: BLE001  # a peer that does not work is no fault of ours
            print(f"{name} is not measured: {type(error).__name__}: {str(error).splitlines()[:1]}")
    return found


def _bindings() -> dict[str, Callable[[], Any]]:
    from cuda.bindings import runtime  # type: ignore[import-not-found,unused-ignore]

    stream, event = runtime.cudaStreamCreateWithFlags(1)[1], runtime.cudaEventCreateWithFlags(2)[1]

    def pool() -> None:
        _status, address = runtime.cudaMallocAsync(1 << 20, stream)
        runtime.cudaFreeAsync(address, stream)

    return {
        "get_device": runtime.cudaGetDevice,
        "set_device": lambda: runtime.cudaSetDevice(0),
        "event_record": lambda: runtime.cudaEventRecord(event, stream),
        "malloc_async + free_async": pool,
    }


def _cupy() -> dict[str, Callable[[], Any]]:
    import cupy  # type: ignore[import-not-found,unused-ignore]

    runtime, stream = cupy.cuda.runtime, cupy.cuda.Stream(non_blocking=True)
    event = cupy.cuda.Event(disable_timing=True)
    return {
        "get_device": runtime.getDevice,
        "set_device": lambda: runtime.setDevice(0),
        "event_record": lambda: event.record(stream),
        "malloc_async + free_async": lambda: cupy.cuda.alloc(1 << 20),
    }


def _torch() -> dict[str, Callable[[], Any]]:
    import torch  # type: ignore[import-not-found,unused-ignore]

    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    return {
        "get_device": torch.cuda.current_device,
        "set_device": lambda: torch.cuda.set_device(0),
        "event_record": lambda: event.record(stream),
        "malloc_async + free_async": lambda: torch.empty(1 << 20, dtype=torch.uint8, device="cuda"),
    }
