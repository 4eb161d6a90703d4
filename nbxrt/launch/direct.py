"""How a kernel's finder launches by itself, without another function: for values and a grid that were seen before.

What they come to as bytes is kept with them. A launch then writes addresses, floats and the stream anew, and these
bytes between them, which is why they lie together in its memory.
"""

import struct

from nbxrt.binding.prebuilt import argument
from nbxrt.launch import keys, packing, signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nbxrt.launch.kernel import Grid
    from nbxrt.launch.launcher import Shape

ARRAY, FLOAT, BYTES, NOTHING = "array", "float", "bytes", "nothing"

#: What is kept for values and a grid, by the names that the finder gives them; `after` where something follows.
_FIELDS = ("take", "give", "fresh", "pack", "before", "kernel", "device")


def role(value: "Any", is_constant: bool) -> str:
    """How the argument of which one value is known is written; empty where the finder cannot write it.

    As bytes only what is among the values that are looked up: constants, of which nothing is written, and integers.
    """
    kind = value.__class__
    if is_constant or kind is int:
        return BYTES
    if value is None:
        return NOTHING
    if kind is float:
        return FLOAT
    return ARRAY if hasattr(kind, keys.ATTRIBUTE) and hasattr(value, "data_ptr") else ""


class Plan:
    """The writing of one kernel's launches, by the roles of its parameters.

    `order` is that of `Slots`. `written` are the expressions of what is packed, `fields` the names of what is kept for
    each combination of values and a grid, `arrays` the parameters that are arrays.
    """

    def __init__(self, roles: "Mapping[str, str]", order: "Sequence[str | bytes]") -> None:
        after = ("after",) if order[-1] != "stream" else ()
        self.fields = (*_FIELDS, *after)
        self.roles = tuple(roles.values())
        self.arrays = [name for name, role in roles.items() if role == ARRAY]
        anew = [f"{name}.ptr" if role == ARRAY else name for name, role in roles.items() if role in (ARRAY, FLOAT)]
        self.written = [*anew, "_nbx_before", "_nbx_s", *(f"_nbx_{each}" for each in after)]

    def passed_on(self, launch: "Any") -> "tuple[Any, ...]":
        """What is kept for values that are launched by a function of their own."""
        return (None, None, None, None, b"", launch, -1, b"")[: len(self.fields)]

    def direct(self, shape: "Shape", compiled: "Any", device: int) -> "Direct | None":
        """How a compiled kernel is launched by it; None where one pack and one call do not."""
        for role, kind in zip(self.roles, shape.kinds, strict=True):
            is_constant = kind == signature.CONSTANT
            if role == NOTHING and not is_constant:
                return None
            if role in (ARRAY, FLOAT) and (is_constant or (kind[0] == "*") != (role == ARRAY) or kind == "bf16"):
                return None
        return Direct(self.roles, shape, compiled, device)


class Direct:
    """One compiled kernel that the finder launches: room for its launches, and how what is kept writes them."""

    def __init__(self, roles: "Sequence[str]", shape: "Shape", compiled: "Any", device: int) -> None:
        self._shape, self._compiled, self._device = shape, compiled, device
        passed = [each for each in zip(roles, shape.kinds, strict=True) if each[1] != signature.CONSTANT]
        anew = [at for at, (role, _kind) in enumerate(passed) if role != BYTES]
        numbers = [
            (at, kind) for at, kind in enumerate(shape.kinds) if kind != signature.CONSTANT and roles[at] == BYTES
        ]
        #: The places of what is written as bytes, and their types.
        self._places, self._kinds = [at for at, _kind in numbers], [kind for _at, kind in numbers]
        self._write = struct.Struct("=" + "".join(map(packing.format_of, self._kinds))).pack
        self._are_integers = all(map(packing.is_integer, self._kinds))
        self._slots = shape.room((*anew, *(at for at in range(len(passed)) if at not in anew)))
        letters = "".join(_POINTER if passed[at][0] == ARRAY else packing.format_of(passed[at][1]) for at in anew)
        order = self._slots.order
        self._before, self._after = (_around(part) for part in _parted(order))
        before, *after = self._fixed([0] * len(numbers), bytes(12))
        ends = "".join(f"{len(part)}s" for part in after)
        self._pack = struct.Struct(f"@{letters}{len(before)}s{_POINTER}{ends}").pack_into
        self._function = argument(compiled.function)
        self._pool: list[Any] = []

    def kept(self, values: "Sequence[Any]", grid: "Grid") -> "tuple[Any, ...] | None":
        """What is kept for these values of all parameters and this grid; None where they are no integers that fit."""
        numbers = [values[at] for at in self._places]
        for value in numbers:
            if value.__class__ is not int:
                return None
        extents = grid[3] if self._shape.clusters == 1 else self._shape.grid_bytes(grid[:3])
        try:
            before, *after = self._fixed(numbers, extents)
        except OverflowError:
            return None
        pool = self._pool
        return pool.pop, pool.append, self.fresh, self._pack, before, self._compiled, self._device, *after

    def fresh(self) -> "tuple[Any, tuple[Any, ...]]":
        """A new slot: its memory, and all that the launch function is called with."""
        buffer, configuration, arguments = self._slots.fresh()
        return buffer, (argument(configuration.value), self._function, arguments, None)

    def _fixed(self, numbers: "Sequence[int]", grid: bytes) -> "list[bytes]":
        """The bytes before the stream, and those after it where there are any."""
        before = self._written(numbers) + grid.join(self._before)
        after = grid.join(self._after)
        return [before, after] if after else [before]

    def _written(self, numbers: "Sequence[int]") -> bytes:
        if self._are_integers:
            try:
                return self._write(*numbers)
            except struct.error:  # one wraps
                pass
        return self._write(*map(packing.converted, self._kinds, numbers))


def _parted(order: "Sequence[str | bytes]") -> "tuple[Sequence[str | bytes], Sequence[str | bytes]]":
    """What is before the stream, and after it."""
    at = order.index("stream")
    return order[:at], order[at + 1 :]


def _around(parts: "Sequence[str | bytes]") -> "list[bytes]":
    """The bytes before and after the grid, between which it is joined; all of them where it is not there."""
    at = parts.index("grid") if "grid" in parts else len(parts)
    around = [b"".join(part for part in side if isinstance(part, bytes)) for side in (parts[:at], parts[at + 1 :])]
    return around if at < len(parts) else around[:1]


#: An address as `struct` writes it the quickest.
_POINTER = "N"
