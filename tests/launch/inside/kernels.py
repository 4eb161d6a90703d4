"""Kernels with every kind of argument."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def scalars(out, a, b, c, d, e):
    tl.store(out + 0, (a + b + c + d + e).to(tl.float32))


@triton.jit
def annotated(
    out, a: tl.int8, b: tl.uint8, c: tl.int16, d: tl.uint16, e: tl.int32, f: tl.uint32, g: tl.int64, h: tl.uint64
):
    tl.store(out, (a + b + c + d + e + f + g + h).to(tl.float32))


@triton.jit
def floats(out, a, b: tl.float16, c: tl.bfloat16, d: tl.float32, e: tl.float64):
    tl.store(out, (a + b + c + d + e).to(tl.float32))


@triton.jit
def half(out, a: tl.float16):
    tl.store(out, a.to(tl.float32))


@triton.jit
def tuples(out, pair, n):
    tl.store(out + 0, (pair[0] + pair[1] + n).to(tl.float32))


@triton.jit(do_not_specialize=["n"])
def unspecialised(out, n):
    tl.store(out + n, 1.0)


@triton.jit(do_not_specialize_on_alignment=["n"])
def unaligned(out, n):
    tl.store(out + n, 1.0)


@triton.jit
def optional(out, bias, n):
    value = n.to(tl.float32) if bias is None else tl.load(bias + n)
    tl.store(out, value)


@triton.jit
def defaults(out, n=3, scale=2.0, BLOCK: tl.constexpr = 16):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, at * scale + n)


@triton.jit
def keyword_only(out, *, scale=2.0, n):
    tl.store(out + n, scale)


@triton.jit
def constant(out, value: tl.constexpr):
    tl.store(out, value)


@triton.jit
def first_of(pair, out):
    tl.store(out, tl.load(pair[0] + pair[1]))


@triton.jit
def copy_block(source, out):
    at = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out + at, source.load([0, 0]))


@triton.jit
def copy_blocks(first, n, second):
    second.store([n, 0], first.load([0, n]))


@triton.jit
def named(out, self, jit, arguments, _type, _Empty):
    tl.store(out, self + jit + arguments + _type + _Empty)


@triton.jit
def nothing():
    pass


@triton.jit
def multiply(
    a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + rows[:, None] * stride_am + inner[None, :] * stride_ak)
        right = tl.load(b + inner[:, None] * stride_bk + columns[None, :] * stride_bn)
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * stride_cm + columns[None, :] * stride_cn, total)
