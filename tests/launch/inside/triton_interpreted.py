"""Kernels on the processor, through Triton's interpreter: the same user code, and no copies."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import nbxrt

nbxrt.triton.install("host")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, stride, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * stride + at, mask=at < columns, other=-float("inf"))
    raised = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * stride + at, raised / tl.sum(raised, axis=0), mask=at < columns)


@triton.jit
def multiply(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, tl.cdiv(k, BK)):
        inner = start * BK + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * k + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def normalise(x, weight, bias, out, n, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    row = tl.load(x + tl.program_id(0) * n + at, mask=inside, other=0.0)
    mean = tl.sum(row, axis=0) / n
    centred = tl.where(inside, row - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    scaled = centred * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + tl.program_id(0) * n + at, scaled, mask=inside)


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


@triton.jit
def larger(left, right):
    return tl.where(left > right, left, right)


@triton.jit
def largest(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, BLOCK)), 0, larger))


@pytest.fixture(scope="module")
def random():
    return np.random.default_rng(1)


def test_vectors_are_added_in_the_memory_of_numpy(random):
    x, y, out = random.random(1000, np.float32), random.random(1000, np.float32), np.zeros(1000, np.float32)

    add[(2,)](nbxrt.asarray(x), nbxrt.asarray(y), nbxrt.asarray(out), 1000, BLOCK=512)

    assert np.array_equal(out, x + y)


def test_rows_are_made_a_distribution(random):
    x = random.standard_normal((3, 100)).astype(np.float32)
    out = nbxrt.zeros((3, 100))

    softmax[(3,)](nbxrt.asarray(x), out, 100, out.stride(0), BLOCK=128)

    exact = np.exp(x.astype(np.float64)) / np.exp(x.astype(np.float64)).sum(1, keepdims=True)
    assert np.allclose(out.numpy(), exact, atol=1e-6)


def test_matrices_are_multiplied(random):
    a, b = random.standard_normal((32, 64), np.float32), random.standard_normal((64, 32), np.float32)
    c = nbxrt.empty((32, 32))

    multiply[(1, 1)](nbxrt.asarray(a), nbxrt.asarray(b), c, 32, 32, 64, BM=32, BN=32, BK=32)

    assert np.allclose(c.numpy(), a.astype(np.float64) @ b, atol=1e-4)


def test_rows_are_normalised(random):
    x, weight, bias = (random.standard_normal(shape, np.float32) for shape in ((2, 60), 60, 60))
    out = nbxrt.empty((2, 60))

    normalise[(2,)](*map(nbxrt.asarray, (x, weight, bias)), out, 60, 1e-5, BLOCK=64)

    centred = x - x.mean(1, keepdims=True, dtype=np.float64)
    assert np.allclose(out.numpy(), centred / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias, atol=1e-5)


def test_atomics_count(random):
    x = random.integers(0, 8, 300, np.int32)
    bins = nbxrt.zeros(8, "int32")

    count[(3,)](nbxrt.asarray(x), bins, 300, BLOCK=128)

    assert np.array_equal(bins.numpy(), np.bincount(x, minlength=8))


def test_a_reduction_of_the_users_own_runs(random):
    x, out = random.standard_normal(64, np.float32), nbxrt.empty(1)

    largest[(1,)](nbxrt.asarray(x), out, BLOCK=64)

    assert out.numpy()[0] == x.max()


def test_an_autotuner_needs_no_device(random):
    configs = [triton.Config({"BLOCK": size}) for size in (128, 256)]
    tuned = triton.autotune(configs, key=["n"], reset_to_zero=["out"])(add)
    x, out = random.random(256, np.float32), nbxrt.zeros(256)

    tuned[lambda meta: (triton.cdiv(256, meta["BLOCK"]),)](nbxrt.asarray(x), nbxrt.asarray(x), out, 256)

    assert np.array_equal(out.numpy(), 2 * x)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda given: [np.zeros(4, np.float32), *given[1:]], "argument `x` of `add` is ndarray"),
        (lambda given: [*given[:2], np.zeros(4), *given[3:]], "argument `out` of `add` is ndarray"),
    ],
)
def test_arrays_of_numpy_are_refused_by_the_arguments_name(change, says):
    given = [nbxrt.zeros(4), nbxrt.zeros(4), nbxrt.zeros(4), 4]

    with pytest.raises(nbxrt.ArgumentTypeError, match=says):
        add[(1,)](*change(given), BLOCK=4)


def test_a_negative_grid_is_refused():
    with pytest.raises(nbxrt.ArgumentValueError, match="the grid's x of `add` is -1"):
        add[(-1,)](*[nbxrt.zeros(4)] * 3, 4, BLOCK=4)


def test_a_closed_array_is_refused():
    closed = nbxrt.zeros(4)
    closed.buffer().close()

    with pytest.raises(nbxrt.ArgumentValueError, match="is closed"):
        add[(1,)](closed, closed, closed, 4, BLOCK=4)


LATE = """
import triton, nbxrt
try:
    nbxrt.triton.install("host")
except nbxrt.CapabilityError as error:
    print(error)
"""


def test_triton_that_was_imported_too_early_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET")

    said = subprocess.run([sys.executable, "-c", LATE], check=True, capture_output=True, text=True).stdout

    assert "Triton was imported before it could be told to interpret kernels" in said
    assert "call `nbxrt.triton.install()` before `import triton`" in said
