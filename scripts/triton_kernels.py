"""Seven kernels of the kind that tutorials teach, written for nbxrt: what gpu_triton.py runs and checks."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    """Each program takes every n-th row."""
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        line = tl.load(x + row * x_stride + at, mask=at < columns, other=-float("inf"))
        raised = tl.exp(line - tl.max(line, axis=0))
        tl.store(out + row * out_stride + at, raised / tl.sum(raised, axis=0), mask=at < columns)


@triton.autotune(
    configs=[
        triton.Config({"BM": 128, "BN": 128, "BK": 64, "GROUP": 8}, num_stages=3, num_warps=8),
        triton.Config({"BM": 128, "BN": 64, "BK": 32, "GROUP": 8}, num_stages=4, num_warps=4),
        triton.Config({"BM": 64, "BN": 64, "BK": 32, "GROUP": 8}, num_stages=3, num_warps=4),
    ],
    key=["m", "n", "k"],
)
@triton.jit
def multiply(
    a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Blocks of C in groups of rows, so that what is read stays in the cache."""
    program, in_m, in_n = tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(n, BN)
    group = program // (GROUP * in_n)
    first = group * GROUP
    height = min(in_m - first, GROUP)
    block_m = first + (program % (GROUP * in_n)) % height
    block_n = (program % (GROUP * in_n)) // height
    rows = (block_m * BM + tl.arange(0, BM)) % m
    columns = (block_n * BN + tl.arange(0, BN)) % n
    inner = tl.arange(0, BK)
    left = a + rows[:, None] * stride_am + inner[None, :] * stride_ak
    right = b + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, tl.cdiv(k, BK)):
        rest = k - start * BK
        total = tl.dot(
            tl.load(left, mask=inner[None, :] < rest, other=0.0),
            tl.load(right, mask=inner[:, None] < rest, other=0.0),
            total,
        )
        left += BK * stride_ak
        right += BK * stride_bk
    rows = block_m * BM + tl.arange(0, BM)
    columns = block_n * BN + tl.arange(0, BN)
    place = c + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(place, total.to(tl.float16), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def product(
    a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One block a program, with the 15 arguments that launches are measured with."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + inner
        left = tl.load(a + rows[:, None] * stride_am + at[None, :] * stride_ak, mask=at[None, :] < k, other=0.0)
        right = tl.load(b + at[:, None] * stride_bk + columns[None, :] * stride_bn, mask=at[:, None] < k, other=0.0)
        total = tl.dot(left, right, total)
    place = c + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(place, total.to(tl.float16), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def described(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product whose blocks are copied by descriptors of the three matrices, which the host makes."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        total = tl.dot(a.load([row, start]), b.load([start, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def layer_norm(x, weight, bias, out, stride, n, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    row = tl.program_id(0)
    line = tl.load(x + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(line, axis=0) / n
    centred = tl.where(inside, line - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    scaled = centred * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + row * stride + at, scaled, mask=inside)


@triton.jit
def attention(q, k, v, out, scale, stride_head, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """The forward pass with the maxima and sums of rows kept as it goes; heads of n rows of D numbers, not causal."""
    head = tl.program_id(1) * stride_head
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    deep = tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + deep[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    mixed = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        key = tl.load(k + head + (start + columns)[None, :] * D + deep[:, None])
        scores = tl.dot(query, key) * scale
        above = tl.maximum(most, tl.max(scores, 1))
        raised = tl.exp(scores - above[:, None])
        fade = tl.exp(most - above)
        total = total * fade + tl.sum(raised, 1)
        value = tl.load(v + head + (start + columns)[:, None] * D + deep[None, :])
        mixed = mixed * fade[:, None] + tl.dot(raised.to(tl.float16), value)
        most = above
    tl.store(out + head + rows[:, None] * D + deep[None, :], (mixed / total[:, None]).to(tl.float16))


@triton.jit
def grouped(
    addresses_a, addresses_b, addresses_c, sizes, groups,
    PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Several products of matrices of different sizes by one launch: each program takes every n-th block of all."""
    block, done = tl.program_id(0), 0
    for group in range(groups):
        m = tl.load(sizes + 3 * group)
        n = tl.load(sizes + 3 * group + 1)
        k = tl.load(sizes + 3 * group + 2)
        in_n = tl.cdiv(n, BN)
        blocks = tl.cdiv(m, BM) * in_n
        while (block >= done) & (block < done + blocks):
            a = tl.load(addresses_a + group).to(tl.pointer_type(tl.float16))
            b = tl.load(addresses_b + group).to(tl.pointer_type(tl.float16))
            c = tl.load(addresses_c + group).to(tl.pointer_type(tl.float16))
            rows = (block - done) // in_n * BM + tl.arange(0, BM)
            columns = (block - done) % in_n * BN + tl.arange(0, BN)
            inner = tl.arange(0, BK)
            total = tl.zeros((BM, BN), dtype=tl.float32)
            for start in range(0, k, BK):
                at = start + inner
                left = tl.load(
                    a + rows[:, None] * k + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0
                )
                right = tl.load(
                    b + at[:, None] * n + columns[None, :], mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0
                )
                total = tl.dot(left, right, total)
            place = c + rows[:, None] * n + columns[None, :]
            tl.store(place, total.to(tl.float16), mask=(rows[:, None] < m) & (columns[None, :] < n))
            block += PROGRAMS
        done += blocks
