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
from arrays import Foreign  # noqa: E402


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
    ("call", "error", "says"),
    [
        (lambda x: add[(1,)](np.zeros(4, np.float32), x, x, 4, BLOCK=4), TypeError, "argument `x` of `add` is ndarray"),
        (lambda x: add[(1,)](x, x, np.zeros(4), 4, BLOCK=4), TypeError, "argument `out` of `add` is ndarray"),
        (lambda x: add[(1,)](x, x, "x", 4, BLOCK=4), TypeError, "argument `out` of `add` is str 'x', which no kernel"),
        (lambda x: add[(1,)](x, x, x.buffer(), 4, BLOCK=4), TypeError, "argument `out` of `add` is Buffer"),
        (lambda x: add[(1,)](x, nbxrt.zeros(4, "complex64"), x, 4, BLOCK=4), TypeError, "`y` of `add` has elements of"),
        (lambda x: add[(1,)](x, x, x, n=[4], BLOCK=4), TypeError, r"argument `n` of `add` is list \[4\], which no"),
        (lambda x: add[(1,)](x, x, x, (4, b"4"), BLOCK=4), TypeError, "argument `n` of `add` is bytes b'4', which no"),
        (lambda x: add[(1,)](x, x, x, np.int32(4), BLOCK=4), TypeError, "(?s)argument `n` of `add` is int32.*a Python"),
        (lambda x: add[(1,)](x, x, x, 4, BLOCK=x), TypeError, "argument `BLOCK` of `add` is a constant of the compila"),
        (
            lambda x: add[(1,)](x, x, x, 2**64, BLOCK=4),
            ValueError,
            "argument `n` of `add`: 1844.* not fit into 64 bits",
        ),
        (lambda x: add[(1,)](x, x, x, -(10**9999), BLOCK=4), ValueError, "`n` of `add`: <int of 33216 bits> does not"),
        (lambda x: add[(1,)](x, x, x, BLOCK=4), TypeError, "`add`: missing a required argument: 'n'"),
        (lambda x: add[(1,)](x, x, x, 4, 4, 4), TypeError, "`add`: too many positional arguments"),
        (lambda x: add[(1,)](x, x, x, 4, BLOCK=4, num_warp=4), ValueError, "(?s)`num_warp` is no para.*`num_warps`"),
        (lambda x: add[(1,)](x, x, x, 4, BLOCK=4, stream=0), ValueError, "(?s)`stream` is no parameter.*`with stream"),
        (lambda x: add[(-1,)](x, x, x, 4, BLOCK=4), ValueError, "the grid's x of `add` is -1"),
        (lambda x: add[lambda _meta: (1, -1)](x, x, x, 4, BLOCK=4), ValueError, "the grid's y of `add` is -1"),
        (
            lambda x: add[lambda _meta: 1](x, x, x, 4, BLOCK=4),
            TypeError,
            "the grid of `add` is a tuple of one to three",
        ),
    ],
)
def test_bad_input_is_refused_by_name_before_the_kernel_begins(call, error, says):
    x = nbxrt.from_numpy(np.ones(4, np.float32))

    with pytest.raises(error, match=says) as caught:
        call(x)

    assert isinstance(caught.value, nbxrt.ArgumentError)
    assert x.numpy().tolist() == [1] * 4


def test_a_grid_by_a_function_is_given_the_arguments_as_they_were_written():
    x, seen = nbxrt.zeros(4), []

    def grid(arguments):
        seen.append(arguments)
        return (triton.cdiv(arguments["n"], arguments["BLOCK"]), x.ndim)

    add[grid](x, y=x, out=x, n=4, BLOCK=4, num_warps=4)

    assert seen == [{"x": x, "y": x, "out": x, "n": 4, "BLOCK": 4}]


def test_a_truth_value_is_taken_or_refused_by_name():
    x = nbxrt.zeros(4)

    if triton.__version__.startswith(("3.6", "3.7")):
        with pytest.raises(nbxrt.ArgumentTypeError, match=r"(?s)argument `n` of `add` is True, and the .* pass 1, or"):
            add[(1,)](x, x, x, True, BLOCK=4)
    else:
        add[(1,)](x, x, x, True, BLOCK=4)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes")
def test_what_fails_in_a_kernel_tells_its_arguments_too():
    x = nbxrt.zeros(4)

    with pytest.raises(triton.runtime.errors.InterpreterError) as caught:
        add[(1,)](x, 5, x, 4, BLOCK=4)

    (note,) = caught.value.__notes__
    assert note.startswith("`add` was given these arguments: `x` is DeviceArray(shape=(4,), ")
    assert ", `y` is 5, `out` is " in note


def test_an_address_of_another_library_is_taken():
    x, out = np.arange(4, dtype=np.float32), nbxrt.zeros(4)

    add[(1,)](Foreign(x.ctypes.data), nbxrt.asarray(x), out, 4, BLOCK=4)

    assert out.numpy().tolist() == [0, 2, 4, 6]


def test_a_closed_array_is_refused():
    closed = nbxrt.zeros(4)
    closed.buffer().close()

    with pytest.raises(
        nbxrt.ArgumentValueError, match="argument `x` of `add` is device memory of host:0 that is closed"
    ):
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
