"""Floats that neither NumPy nor MPI adds up: they are widened to 32 bits, and rounded to the nearest afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

#: Exponent and mantissa bits, and whether there are infinities, of types that are tabulated.
_TABULATED = {"float8_e4m3": (4, 3, False), "float8_e5m2": (5, 2, True)}
#: What NumPy keeps the elements of each type in; the bits of the types that it does not know.
CARRIERS: dict[str, Any] = {
    **{name: np.dtype(name) for name in ("int8", "uint8", "int32", "uint32", "int64", "uint64")},
    **{name: np.dtype(name) for name in ("float16", "float32", "float64")},
    "bfloat16": np.dtype("uint16"),
    "float8_e4m3": np.dtype("uint8"),
    "float8_e5m2": np.dtype("uint8"),
}


def is_small(datatype: str) -> bool:
    """Whether elements of the type are widened."""
    return datatype in _WIDEN


def widened(elements: Any, datatype: str) -> Any:
    """Elements as 32-bit floats, exactly."""
    return _WIDEN[datatype](elements)


def narrowed(values: Any, datatype: str) -> Any:
    """32-bit floats as elements, rounded to the nearest, ties to even; too large is infinite, or NaN without one."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _NARROW[datatype](values)


def _wide_brain(bits: Any) -> Any:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _narrow_brain(values: Any) -> Any:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def _table(exponent_bits: int, mantissa_bits: int, has_infinities: bool) -> Any:
    """The value of each pattern without a sign, in ascending order of both; NaN where a pattern is none."""
    bias = (1 << (exponent_bits - 1)) - 1
    patterns = np.arange(128)
    exponent, fraction = patterns >> mantissa_bits, patterns & ((1 << mantissa_bits) - 1)
    scale = np.exp2(np.maximum(exponent, 1) - bias - mantissa_bits)
    values = (fraction + (exponent > 0) * (1 << mantissa_bits)) * scale
    top = exponent == (1 << exponent_bits) - 1
    if has_infinities:
        values = np.where(top, np.where(fraction == 0, np.inf, np.nan), values)
    else:
        values[-1] = np.nan
    return values.astype(np.float32)


def _by_table(layout: tuple[int, int, bool]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    magnitudes = _table(*layout)
    every = np.concatenate([magnitudes, -magnitudes])
    finite = magnitudes[np.isfinite(magnitudes)].astype(np.float64)
    # Beyond the largest number by half a step is too large; the pattern behind it says so.
    limit = np.append(finite, 2 * finite[-1] - finite[-2])
    middles = (limit[1:] + limit[:-1]) / 2

    def narrow(values: Any) -> Any:
        size = np.abs(values.astype(np.float64))
        found = np.searchsorted(middles, size)
        is_tie = (found < len(middles)) & (middles[np.minimum(found, len(middles) - 1)] == size)
        found = np.where(is_tie, found + (found & 1), found)
        found = np.where(np.isnan(values), 127, found)
        return (found | np.where(np.signbit(values), 128, 0)).astype(np.uint8)

    return lambda bits: every[bits], narrow


_WIDEN: dict[str, Callable[[Any], Any]] = {"float16": lambda halves: halves.astype(np.float32), "bfloat16": _wide_brain}
_NARROW: dict[str, Callable[[Any], Any]] = {
    "float16": lambda values: values.astype(np.float16),
    "bfloat16": _narrow_brain,
}
for _name, _layout in _TABULATED.items():
    _WIDEN[_name], _NARROW[_name] = _by_table(_layout)
