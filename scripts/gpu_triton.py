"""Run seven kernels of Triton's on nbxrt and compare them with NumPy in double precision; prints JSON.

    python scripts/gpu_triton.py [BACKEND] [--small]

Torch must not come into the process, no C compiler may start, and no launch may fall back to Triton's own `run`: the
answer says so. With `--small` the matrices are small enough for the interpreter, on `host`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

import numpy as np

import nbxrt

_STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system")
_started: list[str] = []


def _watch(event: str, details: tuple[Any, ...]) -> None:
    if event in _STARTS:
        command = next(each for each in details if isinstance(each, (str, bytes, os.PathLike)))
        _started.append(Path(os.fsdecode(command)).name)


def _random(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def _error(got: nbxrt.DeviceArray, exact: np.ndarray[Any, Any]) -> float:
    """The largest difference, relative to the largest number."""
    return float(np.abs(got.numpy().astype(np.float64) - exact).max() / np.abs(exact).max())


def _add(kernels: Any, small: bool) -> float:
    n = 1000 if small else (1 << 20) + 17
    x, y = _random(n), _random(n, seed=1)
    out = nbxrt.empty(n)
    for _each in range(3):
        kernels.add[lambda meta: (math.ceil(n / meta["BLOCK"]),)](
            nbxrt.asarray(x), nbxrt.asarray(y), out, n, BLOCK=1024
        )
    return _error(out, x.astype(np.float64) + y)


def _softmax(kernels: Any, small: bool) -> float:
    rows, columns = (5, 200) if small else (1823, 781)
    x = _random(rows, columns)
    given, out = nbxrt.asarray(x), nbxrt.empty((rows, columns))
    block = 1 << (columns - 1).bit_length()
    for _each in range(3):
        kernels.softmax[(min(rows, 256),)](
            given, out, given.stride(0), out.stride(0), rows, columns, BLOCK=block, num_warps=4
        )
    raised = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return _error(out, raised / raised.sum(1, keepdims=True))


def _multiply(kernels: Any, small: bool) -> float:
    m, n, k = (64, 64, 64) if small else (1024, 768, 512)
    a, b = _random(m, k, dtype="float16"), _random(k, n, dtype="float16", seed=1)
    left, right, out = nbxrt.asarray(a), nbxrt.asarray(b), nbxrt.empty((m, n), "float16")
    for _each in range(3):
        kernels.multiply[lambda meta: (math.ceil(m / meta["BM"]) * math.ceil(n / meta["BN"]),)](
            left, right, out, m, n, k, *left.stride(), *right.stride(), *out.stride()
        )
    return _error(out, a.astype(np.float64) @ b.astype(np.float64))


def _described(kernels: Any, small: bool) -> float:
    """Edges of the matrices lie inside of blocks, and are left to the descriptors."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    m, n, k = (64, 40, 72) if small else (1000, 776, 520)
    block, deep = (32, 32) if small else (128, 64)
    a, b = _random(m, k, dtype="float16"), _random(k, n, dtype="float16", seed=1)
    left, right, out = nbxrt.asarray(a), nbxrt.asarray(b), nbxrt.empty((m, n), "float16")
    given = [
        TensorDescriptor(each, [*each.shape], [*each.stride()], shape)
        for each, shape in ((left, [block, deep]), (right, [deep, block]), (out, [block, block]))
    ]
    for _each in range(3):
        kernels.described[(math.ceil(m / block), math.ceil(n / block))](*given, k, BM=block, BN=block, BK=deep)
    return _error(out, a.astype(np.float64) @ b.astype(np.float64))


def _layer_norm(kernels: Any, small: bool) -> float:
    rows, n = (3, 100) if small else (1151, 1000)
    x, weight, bias = _random(rows, n), _random(n, seed=1), _random(n, seed=2)
    given = [nbxrt.asarray(each) for each in (x, weight, bias)]
    out = nbxrt.empty((rows, n))
    for _each in range(3):
        kernels.layer_norm[(rows,)](*given, out, n, n, 1e-5, BLOCK=1 << (n - 1).bit_length(), num_warps=4)
    wide = x.astype(np.float64)
    return _error(
        out, (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight + bias
    )


def _attention(kernels: Any, small: bool) -> float:
    heads, n, depth = (1, 64, 32) if small else (16, 1024, 64)
    block = 32 if small else 64
    q, k, v = (_random(heads, n, depth, dtype="float16", seed=seed) for seed in range(3))
    given, out = [nbxrt.asarray(each) for each in (q, k, v)], nbxrt.empty((heads, n, depth), "float16")
    for _each in range(3):
        kernels.attention[(n // block, heads)](*given, out, depth**-0.5, n * depth, n, BM=block, BN=block, D=depth)
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * depth**-0.5
    raised = np.exp(scores - scores.max(2, keepdims=True))
    return _error(out, raised / raised.sum(2, keepdims=True) @ v.astype(np.float64))


def _grouped(kernels: Any, small: bool) -> float:
    sizes = (
        [(32, 32, 32), (16, 32, 64)] if small else [(1024, 512, 256), (300, 700, 128), (64, 64, 2048), (513, 257, 96)]
    )
    block = 32 if small else 64
    a = [_random(m, k, dtype="float16", seed=m) for m, _n, k in sizes]
    b = [_random(k, n, dtype="float16", seed=n) for _m, n, k in sizes]
    left, right = [nbxrt.asarray(each) for each in a], [nbxrt.asarray(each) for each in b]
    out = [nbxrt.empty((m, n), "float16") for m, n, _k in sizes]
    addresses = [nbxrt.asarray(np.array([each.data_ptr() for each in some], np.int64)) for some in (left, right, out)]
    described = nbxrt.asarray(np.array(sizes, np.int32).reshape(-1))
    for _each in range(3):
        kernels.grouped[(4 if small else 84,)](
            *addresses, described, len(sizes), PROGRAMS=4 if small else 84, BM=block, BN=block, BK=32
        )
    exact = [x.astype(np.float64) @ y.astype(np.float64) for x, y in zip(a, b, strict=True)]
    return max(_error(got, wanted) for got, wanted in zip(out, exact, strict=True))


#: Kernel, what runs it and tells its error, and the largest error that its element type allows.
KERNELS: dict[str, tuple[Callable[[Any, bool], float], float]] = {
    "vector add": (_add, 1e-6),
    "fused softmax": (_softmax, 1e-5),
    "matmul with autotune": (_multiply, 2e-3),
    "matmul by tensor descriptors": (_described, 2e-3),
    "layer norm": (_layer_norm, 1e-5),
    "fused attention forward": (_attention, 5e-3),
    "grouped GEMM": (_grouped, 2e-3),
}


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("backend", nargs="?")
    given.add_argument("--small", action="store_true")
    arguments = given.parse_args()
    sys.addaudithook(_watch)
    runtime = nbxrt.triton.install(arguments.backend)
    import triton
    import triton_kernels as kernels

    answers = {}
    for name, (run, most) in KERNELS.items():
        start = time.perf_counter()
        try:
            error = run(kernels, arguments.small)
        except Exception as failure:  # noqa: BLE001  # the other kernels still tell something
            answers[name] = {"ok": False, "failed": f"{type(failure).__name__}: {failure}"}
            continue
        answers[name] = {
            "ok": error <= most, "error": error, "allowed": most, "seconds": round(time.perf_counter() - start, 2)
        }  # fmt: skip
    stats = nbxrt.triton.stats()
    compilers = sorted({name for name in _started if not name.startswith("ptxas")})
    facts = {
        "backend": runtime.name,
        "device": runtime.device_name(0),
        "triton": triton.__version__,
        "python": platform.python_version(),
        "torch installed": _is_installed("torch"),
        "torch imported": "torch" in sys.modules,
        "programs started besides ptxas": compilers,
        "stats": stats,
        "kernels": answers,
    }
    print(json.dumps(facts, indent=1))
    right = all(each["ok"] for each in answers.values())
    return 0 if right and "torch" not in sys.modules and not stats["fallbacks"] and not compilers else 1


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


if __name__ == "__main__":
    sys.exit(main())
