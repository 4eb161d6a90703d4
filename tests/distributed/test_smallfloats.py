"""Small floats as wide ones and back, against what their formats say."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

pytestmark = pytest.mark.needs("numpy")

FORMATS = {
    "float16": (5, 10, True),
    "bfloat16": (8, 7, True),
    "float8_e4m3": (4, 3, False),
    "float8_e5m2": (5, 2, True),
}


def value(bits: int, exponent_bits: int, mantissa_bits: int, infinities: bool) -> float:
    """What a pattern means."""
    top, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) & 1 else 1.0
    exponent, fraction = bits >> mantissa_bits & top, bits & ((1 << mantissa_bits) - 1)
    if exponent == top and infinities:
        return math.nan if fraction else sign * math.inf
    if exponent == top and fraction == (1 << mantissa_bits) - 1:
        return math.nan
    whole = fraction + (1 << mantissa_bits if exponent else 0)
    return sign * math.ldexp(whole, max(exponent, 1) - bias - mantissa_bits)


@pytest.mark.parametrize("datatype", FORMATS)
def test_every_pattern_means_what_its_format_says_and_comes_back(datatype: str) -> None:
    import numpy as np

    from nbxrt.distributed.smallfloats import CARRIERS, narrowed, widened

    carrier = CARRIERS[datatype]
    patterns = np.arange(1 << (8 * carrier.itemsize)).astype(f"u{carrier.itemsize}")
    wide = widened(patterns.view(carrier), datatype)

    expected = np.array([value(int(bits), *FORMATS[datatype]) for bits in patterns], np.float32)
    assert np.array_equal(wide, expected, equal_nan=True)
    back = narrowed(wide, datatype).view(f"u{carrier.itemsize}")
    assert np.array_equal(back[~np.isnan(wide)], patterns[~np.isnan(wide)])
    assert np.isnan(widened(narrowed(wide[np.isnan(wide)], datatype), datatype)).all()


@pytest.mark.parametrize("datatype", FORMATS)
def test_what_lies_between_two_numbers_goes_to_the_nearest_and_ties_to_the_even_one(datatype: str) -> None:
    import numpy as np

    from nbxrt.distributed.smallfloats import CARRIERS, narrowed, widened

    carrier = CARRIERS[datatype]
    numbers = np.arange(1 << (8 * carrier.itemsize - 1)).astype(f"u{carrier.itemsize}").view(carrier)
    wide = widened(numbers, datatype)
    wide = wide[np.isfinite(wide)][:-1][:: max(1, len(wide) // 200)]
    for lower in wide:
        pattern = narrowed(np.array([lower], np.float32), datatype).view(f"u{carrier.itemsize}")
        upper = float(widened((pattern + 1).astype(pattern.dtype).view(carrier), datatype)[0])
        middle = float((Fraction(float(lower)) + Fraction(upper)) / 2)
        if middle != np.float32(middle):
            continue
        even = float(lower) if int(pattern[0]) % 2 == 0 else upper
        around = np.array([middle, np.nextafter(np.float32(middle), np.float32(-1)), upper], np.float32)
        found = widened(narrowed(around, datatype), datatype)
        assert found.tolist() == [even, float(lower), upper]
