"""Laws of shapes and strides: whatever is asked of an array, the answer is NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbxrt
from nbxrt.objects import layout

shapes = st.lists(st.integers(0, 5), min_size=0, max_size=4).map(tuple)
ends = st.one_of(st.none(), st.integers(-7, 7))
slices = st.builds(slice, ends, ends, st.one_of(st.none(), st.integers(-3, 3).filter(bool)))
indices = st.lists(st.one_of(st.integers(-5, 4), slices, st.just(...), st.none()), max_size=5).map(tuple)


def whole(shape: tuple[int, ...]) -> Any:
    return np.arange(int(np.prod(shape)), dtype="int16").reshape(shape)


def part_of(array: Any, index: tuple[Any, ...]) -> Any:
    """NumPy's view, which with `...` is one also where nothing but integers is given; None where there is none."""
    try:
        return array[index if ... in index else (*index, ...)]
    except IndexError:
        return None


@given(shapes, indices)
def test_indexing_is_that_of_numpy(shape: tuple[int, ...], index: tuple[Any, ...]) -> None:
    array = whole(shape)
    expected = part_of(array, index) if sum(each is ... for each in index) < 2 else None

    if expected is None:
        with pytest.raises((IndexError, nbxrt.ArgumentValueError)):
            layout.indexed(array.shape, array.strides, index)
        return
    offset, new_shape, strides = layout.indexed(array.shape, array.strides, index)

    seen = np.lib.stride_tricks.as_strided(
        array.reshape(-1)[offset // 2 :] if array.size else array, new_shape, strides
    )
    assert new_shape == expected.shape
    if expected.size:
        assert (seen == expected).all()


@given(shapes, st.permutations(range(4)), indices, st.data())
def test_a_shape_without_a_copy_is_what_numpy_sees(
    shape: tuple[int, ...], order: list[int], index: tuple[Any, ...], data: st.DataObject
) -> None:
    array = whole(shape).transpose([axis for axis in order if axis < len(shape)])
    array = part_of(array, index if sum(each is ... for each in index) < 2 else ())
    if array is None:
        return
    factors = [array.size] if array.size else [0]
    for factor in (2, 3, 5):
        if factors[-1] and factors[-1] % factor == 0:
            factors[-1:] = [factors[-1] // factor, factor]
    wanted = tuple(data.draw(st.permutations(factors)))

    new, strides = layout.reshaped(array.shape, array.strides, 2, wanted)

    if strides is None:
        assert not np.shares_memory(array.reshape(wanted), array)
    elif array.size:
        seen = np.lib.stride_tricks.as_strided(array, new, strides)
        assert (seen == array.reshape(wanted)).all()


@given(shapes, indices)
def test_pieces_and_spans_cover_what_is_there(shape: tuple[int, ...], index: tuple[Any, ...]) -> None:
    array = whole(shape)
    part = part_of(array, index if sum(each is ... for each in index) < 2 else ())
    if part is None or not part.size:
        return
    nbytes, offsets = layout.runs(part.shape, part.strides, 2)
    first, last = layout.span_of(part.shape, part.strides, 2)
    start = part.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    raw = array.tobytes()

    pieces = [raw[start + offset : start + offset + nbytes] for offset in offsets]

    assert b"".join(pieces) == part.tobytes()
    assert 0 <= start + first < start + last <= len(raw)
    assert layout.is_contiguous(part.shape, part.strides, 2) == part.flags.c_contiguous


@given(st.lists(st.integers(0, 6), max_size=5).map(tuple), st.sampled_from([1, 2, 8]))
def test_strides_of_a_new_array_are_contiguous(shape: tuple[int, ...], itemsize: int) -> None:
    strides = layout.strides_of(shape, itemsize)

    assert layout.is_contiguous(shape, strides, itemsize)
    if 0 not in shape:
        assert strides == np.empty(shape, f"V{itemsize}").strides
        assert layout.span_of(shape, strides, itemsize) == (0, int(np.prod(shape)) * itemsize)


def test_every_order_of_dimensions_reshapes_as_numpy_does() -> None:
    array = whole((2, 3, 2, 1))
    for order, wanted in itertools.product(
        itertools.permutations(range(4)), [(12,), (6, 2), (2, 6), (2, 3, 2), (3, 4)]
    ):
        turned = array.transpose(order)
        _new, strides = layout.reshaped(turned.shape, turned.strides, 2, wanted)
        assert (strides is not None) == np.shares_memory(turned.reshape(wanted), turned), (order, wanted)
