"""How a kernel's finder launches by itself, without another function: for values that were seen before.

What the values come to as bytes is kept with them. A launch then writes addresses, floats, the grid and the stream
anew, and these bytes between them.
"""

import ctypes
import struct

from nbxrt.launch import keys, packing, signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nbxrt.launch.launcher import Shape

ARRAY, FLOAT, BYTES, NOTHING = "array", "float", "bytes", "nothing"

#: What `seen` holds for each combination of values, by the names that the finder gives them; runs and tails follow.
FIELDS = ("take", "give", "fresh", "pack", "function", "kernel", "device")


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

    `written` are the expressions of what is packed, `names` those of the bytes in them that go with the values.
    """

    def __init__(self, roles: "Mapping[str, str]", order: "Sequence[str | bytes]") -> None:
        self.arrays = [name for name, role in roles.items() if role == ARRAY]
        self.written: list[str] = []
        self.names: list[str] = []
        self._absent: list[int] = []
        self._groups: list[tuple[str, list[int]]] = []
        for at, (name, role) in enumerate(roles.items()):
            if role == NOTHING:
                self._absent.append(at)
            elif role != BYTES:
                self.written.append(f"{name}.ptr" if role == ARRAY else name)
                self._groups.append((role, [at]))
            elif self._groups and self._groups[-1][0] == BYTES:
                self._groups[-1][1].append(at)
            else:
                self._bytes(f"_nbx_run{at}")
                self._groups.append((role, [at]))
        for at, part in enumerate(order):
            if isinstance(part, bytes):
                self._bytes(f"_nbx_tail{at}")
            else:
                self.written.append("_nbx_grid[3]" if part == "grid" else "_nbx_s")

    def _bytes(self, name: str) -> None:
        self.written.append(name)
        self.names.append(name)

    def passed_on(self, launch: "Any") -> "tuple[Any, ...]":
        """What is kept for values that are launched by a function of their own."""
        return (None, None, None, None, None, launch, -1, *[None] * len(self.names))

    def prepared(
        self, shape: "Shape", compiled: "Any", device: int, values: "Sequence[Any]"
    ) -> "tuple[Any, ...] | None":
        """What is kept for these values; None where one pack and one call do not launch them."""
        if any(shape.kinds[at] != signature.CONSTANT for at in self._absent):
            return None
        letters, runs = "=", []
        for role, places in self._groups:
            kinds = [(shape.kinds[at], values[at]) for at in places if shape.kinds[at] != signature.CONSTANT]
            if role != BYTES and (
                len(kinds) != 1 or (kinds[0][0][0] == "*") != (role == ARRAY) or kinds[0][0] == "bf16"
            ):
                return None
            parts = [packing.format_of(kind) for kind, _value in kinds]
            if role == BYTES and any(value.__class__ is not int for _kind, value in kinds):
                return None
            if role == BYTES:
                converted = [packing.converted(*each) for each in kinds]
                runs.append(struct.pack("=" + "".join(parts), *converted))
                parts = [f"{len(runs[-1])}s"]
            letters += "".join(parts)
        slots = shape.slots
        tails = [part for part in slots.order if isinstance(part, bytes)]
        pack = struct.Struct(letters + slots.configuration_format).pack_into
        function = ctypes.c_void_p(compiled.function)
        return slots.pool.pop, slots.pool.append, slots.fresh, pack, function, compiled, device, *runs, *tails
