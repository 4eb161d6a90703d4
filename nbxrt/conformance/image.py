"""The code that the module checks load, which is the caller's: every vendor's devices run another."""

from __future__ import annotations

from typing import NamedTuple


class ModuleImage(NamedTuple):
    """A module with one kernel: `add(a, b, out, n)`, `out[i] = a[i] + b[i]` for every i below n, an element a thread.

    Elements and n are unsigned integers of 32 bits; the index is that of the thread in a grid along x. `variable` names
    a global variable of 4 bytes that holds `value` when the module is loaded; it is empty when the module has none,
    and the value None when it is not known.
    """

    image: bytes
    kernel: str = "add"
    block: int = 64
    variable: str = ""
    value: int | None = None
