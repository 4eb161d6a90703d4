"""A small transformer block with its gradients, from Triton kernels on nbxrt's arrays. No torch.

    y = x + attention(norm(x)) Wo        z = y + relu(norm(y) W1) W2        loss = mean((z - target)**2)

data_parallel.py trains it over several ranks. On the backend `host` Triton interprets the kernels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import nbxrt

nbxrt.triton.install()

import triton  # noqa: E402  # whether kernels are interpreted is decided when Triton is imported
import triton.language as tl  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

SIDE = 16


@triton.jit
def matmul(a, b, c, m, n, k, sa, am, ak, sb, bk, bn, sc, ADD: tl.constexpr, TILE: tl.constexpr):
    """`c = a @ b`, or `c += a @ b`, for each of a batch; strides say what is transposed."""
    across = tl.cdiv(n, TILE)
    rows = (tl.program_id(0) // across) * TILE + tl.arange(0, TILE)
    columns = (tl.program_id(0) % across) * TILE + tl.arange(0, TILE)
    a += tl.program_id(1) * sa
    b += tl.program_id(1) * sb
    c += tl.program_id(1) * sc
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, TILE):
        inner = start + tl.arange(0, TILE)
        left = (rows[:, None] < m) & (inner[None, :] < k)
        right = (inner[:, None] < k) & (columns[None, :] < n)
        one = tl.load(a + rows[:, None] * am + inner[None, :] * ak, mask=left, other=0.0)
        other = tl.load(b + inner[:, None] * bk + columns[None, :] * bn, mask=right, other=0.0)
        total += tl.dot(one, other, input_precision="ieee")
    place, inside = c + rows[:, None] * n + columns[None, :], (rows[:, None] < m) & (columns[None, :] < n)
    if ADD:
        total += tl.load(place, mask=inside, other=0.0)
    tl.store(place, total, mask=inside)


@triton.jit
def softmax(scores, weights, length, scale, TILE: tl.constexpr):
    """One row of attention a program: what comes later has no weight."""
    row = tl.program_id(0)
    at = tl.arange(0, TILE)
    seen = (at < length) & (at <= row % length)
    values = tl.load(scores + row * length + at, mask=seen, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(weights + row * length + at, powers / tl.sum(powers, 0), mask=at < length)


@triton.jit
def softmax_gradient(weights, outer, inner, length, scale, TILE: tl.constexpr):
    """What goes back through `softmax`, row by row."""
    row = tl.program_id(0)
    at = tl.arange(0, TILE)
    inside = at < length
    weight = tl.load(weights + row * length + at, mask=inside, other=0.0)
    gradient = tl.load(outer + row * length + at, mask=inside, other=0.0)
    tl.store(inner + row * length + at, scale * weight * (gradient - tl.sum(weight * gradient, 0)), mask=inside)


@triton.jit
def norm(x, out, deviation, width, TILE: tl.constexpr):
    """One row a program: less its mean, over its deviation, which is kept for the gradient."""
    row = tl.program_id(0)
    at = tl.arange(0, TILE)
    inside = at < width
    values = tl.load(x + row * width + at, mask=inside, other=0.0)
    centred = tl.where(inside, values - tl.sum(values, 0) / width, 0.0)
    one = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / width + 1e-5)
    tl.store(out + row * width + at, centred * one, mask=inside)
    tl.store(deviation + row, one)


@triton.jit
def norm_gradient(out, deviation, outer, inner, width, TILE: tl.constexpr):
    """What goes back through `norm`, added to what is there: the gradient of the path around it."""
    row = tl.program_id(0)
    at = tl.arange(0, TILE)
    inside = at < width
    values = tl.load(out + row * width + at, mask=inside, other=0.0)
    gradient = tl.load(outer + row * width + at, mask=inside, other=0.0)
    made = gradient - tl.sum(gradient, 0) / width - values * (tl.sum(gradient * values, 0) / width)
    before = tl.load(inner + row * width + at, mask=inside, other=0.0)
    tl.store(inner + row * width + at, before + made * tl.load(deviation + row), mask=inside)


@triton.jit
def relu(x, n, TILE: tl.constexpr):
    """In place."""
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(x + at, tl.where(values > 0, values, 0.0), mask=at < n)


@triton.jit
def relu_gradient(out, gradient, n, TILE: tl.constexpr):
    """What goes back through `relu`, in place."""
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(out + at, mask=at < n, other=0.0)
    tl.store(gradient + at, tl.where(values > 0, tl.load(gradient + at, mask=at < n, other=0.0), 0.0), mask=at < n)


@triton.jit
def square_loss(z, target, gradient, loss, n, TILE: tl.constexpr):
    """One program sums all, so that the order is the same on every run."""
    total = tl.zeros((TILE,), tl.float32)
    for start in range(0, n, TILE):
        at = start + tl.arange(0, TILE)
        less = tl.load(z + at, mask=at < n, other=0.0) - tl.load(target + at, mask=at < n, other=0.0)
        tl.store(gradient + at, 2.0 * less / n, mask=at < n)
        total += less * less
    tl.store(loss, tl.sum(total, 0) / n)


@triton.jit
def add(x, y, n, scale, TILE: tl.constexpr):
    """`x += scale * y`."""
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x + at, mask=at < n, other=0.0) + scale * tl.load(y + at, mask=at < n, other=0.0)
    tl.store(x + at, values, mask=at < n)


def product(
    a: Any, b: Any, out: Any, *, left: bool = False, right: bool = False, batch: int = 1, more: bool = False
) -> Any:
    """`out = a @ b` for matrices, or batches of them; `left` and `right` transpose, `more` adds to `out`."""
    (m, n), k = out.shape[-2:], a.shape[-2] if left else a.shape[-1]
    am, ak = (1, a.shape[-1]) if left else (a.shape[-1], 1)
    bk, bn = (1, b.shape[-1]) if right else (b.shape[-1], 1)
    sa, sb, sc = (array.size // batch if batch > 1 else 0 for array in (a, b, out))
    grid = (-(-m // SIDE) * -(-n // SIDE), batch)
    matmul[grid](a, b, out, m, n, k, sa, am, ak, sb, bk, bn, sc, ADD=more, TILE=SIDE)
    return out


def flat(array: Any) -> tuple[int]:
    """The grid of a kernel that goes over all elements."""
    return (-(-array.size // 256),)


class Block:
    """The weights, and the gradients in one piece of memory, so that one collective adds up all of them."""

    def __init__(self, width: int, hidden: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        shapes = dict.fromkeys(("q", "k", "v", "o"), (width, width)) | {"in": (width, hidden), "out": (hidden, width)}
        self.weights = {
            name: nbxrt.from_numpy((random.standard_normal(shape) / math.sqrt(shape[0])).astype(np.float32))
            for name, shape in shapes.items()
        }
        self.gradient = nbxrt.zeros(sum(array.size for array in self.weights.values()))
        self.gradients, first = {}, 0
        for name, array in self.weights.items():
            self.gradients[name] = self.gradient[first : first + array.size].reshape(array.shape)
            first += array.size

    def step(self, x: Any, target: Any) -> Any:
        """The loss on a batch of sequences, an array of one element; the gradients are those of this batch."""
        kept = self._forward(x)
        loss, z = nbxrt.empty(1), kept["z"]
        kept["dz"] = nbxrt.empty_like(z)
        square_loss[(1,)](z, target, kept["dz"], loss, z.size, TILE=256)
        self._backward(x, kept)
        return loss

    def update(self, rate: float) -> None:
        """Go down the gradient."""
        for name, weight in self.weights.items():
            add[flat(weight)](weight, self.gradients[name], weight.size, -rate, TILE=256)

    def _forward(self, x: Any) -> dict[str, Any]:
        batch, length, width = x.shape
        rows, w, each = x.reshape((batch * length, width)), self.weights, (batch * length,)
        kept: dict[str, Any] = {"n1": nbxrt.empty_like(rows), "d1": nbxrt.empty(batch * length)}
        norm[each](rows, kept["n1"], kept["d1"], width, TILE=_power(width))
        for name in ("q", "k", "v"):
            kept[name] = product(kept["n1"], w[name], nbxrt.empty_like(rows)).reshape(x.shape)
        scores = product(kept["q"], kept["k"], nbxrt.empty((batch, length, length)), right=True, batch=batch)
        kept["p"] = nbxrt.empty_like(scores)
        softmax[each](scores, kept["p"], length, 1 / math.sqrt(width), TILE=_power(length))
        kept["c"] = product(kept["p"], kept["v"], nbxrt.empty_like(x), batch=batch).reshape(rows.shape)
        kept["y"] = product(kept["c"], w["o"], rows.copy(), more=True)
        kept |= {"n2": nbxrt.empty_like(rows), "d2": nbxrt.empty(batch * length)}
        norm[each](kept["y"], kept["n2"], kept["d2"], width, TILE=_power(width))
        kept["h"] = product(kept["n2"], w["in"], nbxrt.empty((batch * length, w["in"].shape[1])))
        relu[flat(kept["h"])](kept["h"], kept["h"].size, TILE=256)
        kept["z"] = product(kept["h"], w["out"], kept["y"].copy(), more=True)
        return kept

    def _backward(self, x: Any, kept: Mapping[str, Any]) -> None:
        batch, length, width = x.shape
        w, g, dz, each = self.weights, self.gradients, kept["dz"], (batch * length,)
        product(kept["h"], dz, g["out"], left=True)
        dh = product(dz, w["out"], nbxrt.empty_like(kept["h"]), right=True)
        relu_gradient[flat(dh)](kept["h"], dh, dh.size, TILE=256)
        product(kept["n2"], dh, g["in"], left=True)
        dn, dy = product(dh, w["in"], nbxrt.empty_like(dz), right=True), dz.copy()
        norm_gradient[each](kept["n2"], kept["d2"], dn, dy, width, TILE=_power(width))
        product(kept["c"], dy, g["o"], left=True)
        dc = product(dy, w["o"], nbxrt.empty_like(dz), right=True).reshape(x.shape)
        dv = product(kept["p"], dc, nbxrt.empty_like(x), left=True, batch=batch)
        dp = product(dc, kept["v"], nbxrt.empty_like(kept["p"]), right=True, batch=batch)
        ds = nbxrt.empty_like(dp)
        softmax_gradient[each](kept["p"], dp, ds, length, 1 / math.sqrt(width), TILE=_power(length))
        dq = product(ds, kept["k"], nbxrt.empty_like(x), batch=batch)
        dk = product(ds, kept["q"], nbxrt.empty_like(x), left=True, batch=batch)
        for name, gradient in (("q", dq), ("k", dk), ("v", dv)):
            product(kept["n1"], gradient.reshape(dz.shape), g[name], left=True)


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length()
