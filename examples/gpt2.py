"""One block of GPT-2 from Triton's kernels and nbxrt's arrays, compared with NumPy: no torch, no compiler of C.

    python examples/gpt2.py [BACKEND] [--width N] [--heads N] [--length N]

On a GPU it runs there; on `host` Triton interprets the same kernels on the memory of NumPy's arrays. It needs Triton
and NumPy.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import nbxrt

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

EPS = 1e-5


def parameters(width: int) -> dict[str, Array]:
    """Weights as GPT-2 begins with."""
    random = np.random.default_rng(1)
    shapes = {"qkv": (width, 3 * width), "mix": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    made = {name: 0.2 * random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    made |= {f"{name}_bias": 0.1 * random.standard_normal(shape[1], np.float32) for name, shape in shapes.items()}
    for norm in ("first", "second"):
        made[norm] = 1 + 0.1 * random.standard_normal(width, np.float32)
        made[f"{norm}_bias"] = 0.1 * random.standard_normal(width, np.float32)
    return made


class Block:
    """The block on a device: weights stay there, and what lies between the kernels is allocated once."""

    def __init__(self, weights: Mapping[str, Array], heads: int, length: int) -> None:
        import gpt2_kernels

        self.kernels = gpt2_kernels
        self.weights = {name: nbxrt.asarray(each) for name, each in weights.items()}
        self.width, self.heads, self.length = weights["mix"].shape[0], heads, length
        self.normed, self.mixed, self.between = (nbxrt.empty((length, self.width)) for _each in range(3))
        self.qkv = nbxrt.empty((length, 3 * self.width))
        self.wide = nbxrt.empty((length, 4 * self.width))

    def __call__(self, x: nbxrt.DeviceArray) -> nbxrt.DeviceArray:
        out = nbxrt.empty_like(x)
        self.norm(x, "first")
        self.linear(self.normed, "qkv", self.qkv)
        depth = self.width // self.heads
        self.kernels.attention[(-(-self.length // 16), self.heads)](
            self.qkv, self.mixed, self.length, depth**-0.5, WIDTH=self.width, D=depth, BM=16, BN=16
        )
        self.linear(self.mixed, "mix", self.between, residual=x)
        self.norm(self.between, "second")
        self.linear(self.normed, "up", self.wide, gelu=True)
        self.linear(self.wide, "down", out, residual=self.between)
        return out

    def norm(self, x: nbxrt.DeviceArray, name: str) -> None:
        weight, bias = self.weights[name], self.weights[f"{name}_bias"]
        block = 1 << (self.width - 1).bit_length()
        self.kernels.layer_norm[(self.length,)](x, weight, bias, self.normed, self.width, EPS, BLOCK=block)

    def linear(
        self,
        x: nbxrt.DeviceArray,
        name: str,
        out: nbxrt.DeviceArray,
        *,
        gelu: bool = False,
        residual: nbxrt.DeviceArray | None = None,
    ) -> None:
        rows, columns = out.shape
        self.kernels.linear[lambda meta: (-(-rows // meta["BM"]), -(-columns // meta["BN"]))](
            x, self.weights[name], self.weights[f"{name}_bias"], out if residual is None else residual, out,
            rows, columns, x.shape[1], GELU=gelu, ADD=residual is not None, BM=32, BN=64, BK=32,
        )  # fmt: skip


def exact(x: Array, weights: Mapping[str, Array], heads: int) -> Array:
    """The same in double precision, by NumPy."""
    w = {name: each.astype(np.float64) for name, each in weights.items()}

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(1, keepdims=True) + EPS) * w[name] + w[f"{name}_bias"]

    length, width = x.shape
    qkv = norm(x.astype(np.float64), "first") @ w["qkv"] + w["qkv_bias"]
    q, k, v = (part.reshape(length, heads, -1).transpose(1, 0, 2) for part in np.split(qkv, 3, axis=1))
    scores = q @ k.transpose(0, 2, 1) * (width // heads) ** -0.5
    scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    raised = np.exp(scores - scores.max(2, keepdims=True))
    mixed = (raised / raised.sum(2, keepdims=True) @ v).transpose(1, 0, 2).reshape(length, width)
    between = x + mixed @ w["mix"] + w["mix_bias"]
    up = norm(between, "second") @ w["up"] + w["up_bias"]
    bent = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
    return between + bent @ w["down"] + w["down_bias"]


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("backend", nargs="?")
    given.add_argument("--width", type=int, default=64)
    given.add_argument("--heads", type=int, default=4)
    given.add_argument("--length", type=int, default=32)
    arguments = given.parse_args()
    runtime = nbxrt.triton.install(arguments.backend)
    weights = parameters(arguments.width)
    x = np.random.default_rng(2).standard_normal((arguments.length, arguments.width), np.float32)
    block = Block(weights, arguments.heads, arguments.length)

    start = time.perf_counter()
    out = block(nbxrt.asarray(x)).numpy()
    taken = time.perf_counter() - start

    wanted = exact(x, weights, arguments.heads)
    error = float(np.abs(out - wanted).max() / np.abs(wanted).max())
    print(f"on {runtime.name}: one block of {arguments.length} tokens in {taken * 1e3:.0f} ms, compiling included")
    print(f"largest difference from NumPy in double precision: {error:.1e}")
    print(f"torch in the process: {'yes' if 'torch' in sys.modules else 'no'}")
    return 0 if error < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
