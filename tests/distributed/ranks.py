"""What the programs of ranks share: arrays in the backend's memory, and a directory in which they meet.

A rank's process runs `python scenarios.py NAME`; where no engine starts it, RANK, SIZE and MEET say its place.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import nbxrt
import nbxrt.distributed as dist
from nbxrt import errors

#: What NumPy keeps elements in; it has no small floats of its own beyond halves.
CARRIERS: dict[str, Any] = {
    **{name: getattr(np, name) for name in ("int8", "uint8", "int32", "uint32", "int64", "uint64")},
    **{name: getattr(np, name) for name in ("float16", "float32", "float64")},
    "bfloat16": np.uint16,
    "float8_e4m3": np.uint8,
    "float8_e5m2": np.uint8,
}
_BITS = {"bfloat16": (8, 7), "float8_e4m3": (4, 3), "float8_e5m2": (5, 2)}


def encoded(values: Any, datatype: str) -> Any:
    """Small whole numbers and quarters as elements of a type, which all types have exactly."""
    values = np.asarray(values)
    if datatype not in _BITS:
        return values.astype(CARRIERS[datatype])
    return np.array([_pattern(float(value), *_BITS[datatype]) for value in values.ravel()], CARRIERS[datatype])


def _pattern(value: float, exponent_bits: int, mantissa_bits: int) -> int:
    if not value:
        return 0
    bias, exponent = (1 << (exponent_bits - 1)) - 1, 0
    while value >= 2:
        value, exponent = value / 2, exponent + 1
    while value < 1:
        value, exponent = value * 2, exponent - 1
    fraction = (value - 1) * (1 << mantissa_bits)
    assert fraction == int(fraction)
    return (exponent + bias << mantissa_bits) + int(fraction)


class Part:
    """Elements in the runtime's memory, as a tensor tells what it is."""

    def __init__(self, address: int, elements: Any, device: int) -> None:
        self.address, self.elements, self.device = address, elements, device
        self.dtype = elements.dtype

    def data_ptr(self) -> int:
        return self.address

    def numel(self) -> int:
        return int(self.elements.size)

    def element_size(self) -> int:
        return int(self.elements.itemsize)

    def is_contiguous(self) -> bool:
        return True

    def get_device(self) -> int:
        return self.device


class Array(Part):
    """New memory of the runtime that holds elements."""

    def __init__(self, runtime: Any, elements: Any) -> None:
        elements = np.ascontiguousarray(elements)
        super().__init__(runtime.malloc(max(elements.nbytes, 1)), elements, runtime.get_device())
        self.runtime = runtime
        self.put(self.elements)

    def put(self, elements: Any) -> None:
        self.elements = np.ascontiguousarray(elements)
        self.runtime.memcpy(self.address, self.elements.ctypes.data, self.elements.nbytes, "host_to_device")

    def get(self) -> Any:
        fresh = np.empty_like(self.elements)
        self.runtime.memcpy(fresh.ctypes.data, self.address, fresh.nbytes, "device_to_host")
        return fresh

    def part(self, first: int, count: int) -> Part:
        return Part(self.address + first * self.elements.itemsize, self.elements[first : first + count], self.device)

    def close(self) -> None:
        self.runtime.free(self.address)


def meet(name: str, rank: int, say: bytes, ranks: list[int], seconds: float = 60) -> list[bytes]:
    """What each of the ranks says in a folder, for programs that no engine has started."""
    folder = Path(os.environ["MEET"])
    (folder / f".{name}-{rank}").write_bytes(say)
    (folder / f".{name}-{rank}").rename(folder / f"{name}-{rank}")
    names = [f"{name}-{other}" for other in ranks]
    wait_for_files(folder, names, seconds)
    return [(folder / each).read_bytes() for each in names]


def wait_for_files(folder: Path, names: list[str], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while missing := [name for name in names if not (folder / name).exists()]:
        assert time.monotonic() < end, f"{missing} did not come"
        time.sleep(0.002)


def join(name: str = "first", timeout: float = 60, ranks: list[int] | None = None) -> Any:
    """A communicator of these ranks, all by default; each on the device of its number."""
    rank, size = int(os.environ["RANK"]), int(os.environ["SIZE"])
    ranks = ranks or list(range(size))
    runtime = nbxrt.open(os.environ.get("BACKEND", "cuda"))
    runtime.set_device(rank)
    own = runtime.comm_unique_id() if rank == ranks[0] else b""
    identity = meet(name, rank, own, ranks)[0]
    return dist.join(identity, ranks.index(rank), len(ranks), timeout=timeout)


@contextlib.contextmanager
def took_at_most(seconds: float) -> Any:
    start = time.monotonic()
    yield
    took = time.monotonic() - start
    assert took < seconds, f"took {took:.1f} s"


def raised(call: Any, kind: type[Exception]) -> Any:
    """The error of a call. These programs also run where pytest is not."""
    try:
        call()
    except kind as error:
        return error
    message = f"nothing raised {kind.__name__}"
    raise AssertionError(message)


def refused(call: Any, kind: type[Exception], said: str) -> None:
    error = raised(call, kind)
    assert said in str(error), str(error)
    assert isinstance(error, errors.ArgumentError)
