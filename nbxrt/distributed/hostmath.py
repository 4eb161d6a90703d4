"""Elements in host memory: views of addresses, and what reductions make of them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from nbxrt.distributed.smallfloats import CARRIERS, is_small, narrowed, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

_JOINED = {"sum": np.add, "avg": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def elements_at(address: int, count: int, datatype: str) -> Any:
    """The elements at an address, which are written to when the array is. Bits, of types that NumPy does not know."""
    carrier = CARRIERS[datatype]
    if not count:
        return np.empty(0, carrier)
    return np.frombuffer((ctypes.c_char * (count * carrier.itemsize)).from_address(address), carrier)


def computable(elements: Any, datatype: str) -> Any:
    """Elements as numbers that can be computed with: small floats as wide ones, the others as they are."""
    return widened(elements, datatype) if is_small(datatype) else elements


def stored(values: Any, target: Any, datatype: str) -> None:
    """Write numbers into the elements of a target."""
    target[...] = narrowed(values, datatype) if is_small(datatype) else values


def mean(values: Any, ranks: int) -> Any:
    """A sum over the ranks as their mean; of integers without its fraction."""
    if values.dtype.kind in "iu":
        return np.sign(values) * (np.abs(values) // ranks)
    return values / values.dtype.type(ranks)


def reduced(rows: Sequence[Any], datatype: str, reduction: str) -> Any:
    """What the elements of all ranks make, as numbers. Integers wrap, as they do on devices."""
    total = np.array(computable(rows[0], datatype))
    with np.errstate(all="ignore"):
        for row in rows[1:]:
            _JOINED[reduction](total, computable(row, datatype), out=total)
        return mean(total, len(rows)) if reduction == "avg" else total
