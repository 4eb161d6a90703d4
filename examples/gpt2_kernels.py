"""The kernels of gpt2.py: a matrix product with bias, GELU and addition in its end, layer norm, causal attention."""

import triton
import triton.language as tl


@triton.jit
def linear(
    x, weight, bias, residual, out, rows, columns, inner,
    GELU: tl.constexpr, ADD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """`out = x @ weight + bias`, then GELU or the addition of `residual`, in one pass over `out`."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, inner, BK):
        at = start + tl.arange(0, BK)
        left = tl.load(
            x + row[:, None] * inner + at[None, :], mask=(row[:, None] < rows) & (at[None, :] < inner), other=0.0
        )
        right = tl.load(
            weight + at[:, None] * columns + column[None, :],
            mask=(at[:, None] < inner) & (column[None, :] < columns),
            other=0.0,
        )
        total += tl.dot(left, right, input_precision="ieee")
    total += tl.load(bias + column, mask=column < columns, other=0.0)[None, :]
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    place = row[:, None] * columns + column[None, :]
    if GELU:  # by tanh, as GPT-2 has it
        bent = 0.7978845608028654 * (total + 0.044715 * total * total * total)
        total = total / (1 + tl.exp(-2 * bent))
    if ADD:
        total += tl.load(residual + place, mask=inside, other=0.0)
    tl.store(out + place, total, mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, width, eps, BLOCK: tl.constexpr):
    """One row a program."""
    at = tl.arange(0, BLOCK)
    inside = at < width
    start = tl.program_id(0) * width
    row = tl.load(x + start + at, mask=inside, other=0.0)
    centred = tl.where(inside, row - tl.sum(row, 0) / width, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / width + eps)
    scaled = centred * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + start + at, scaled, mask=inside)


@triton.jit
def attention(qkv, out, length, scale, WIDTH: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Causal attention of one head and BM rows a program; `qkv` has queries, keys and values side by side."""
    head = tl.program_id(1) * D
    row, deep = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(qkv + row[:, None] * 3 * WIDTH + head + deep[None, :], mask=row[:, None] < length, other=0.0)
    most = tl.full((BM,), -1.0e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    mixed = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        column = start + tl.arange(0, BN)
        known = column[None, :] < length
        key = tl.load(qkv + column[None, :] * 3 * WIDTH + WIDTH + head + deep[:, None], mask=known, other=0.0)
        scores = tl.dot(query, key, input_precision="ieee") * scale
        scores = tl.where(known & (column[None, :] <= row[:, None]), scores, -1.0e30)
        above = tl.maximum(most, tl.max(scores, 1))
        raised = tl.exp(scores - above[:, None])
        fade = tl.exp(most - above)
        total = total * fade + tl.sum(raised, 1)
        value = tl.load(
            qkv + column[:, None] * 3 * WIDTH + 2 * WIDTH + head + deep[None, :],
            mask=column[:, None] < length,
            other=0.0,
        )
        mixed = mixed * fade[:, None] + tl.dot(raised, value, input_precision="ieee")
        most = above
    place = out + row[:, None] * WIDTH + head + deep[None, :]
    tl.store(place, mixed / total[:, None], mask=row[:, None] < length)
