"""Launching one compiled kernel: what Triton's driver calls `launcher_cls`, in Python, with no compiler.

This is the way for every kernel. The generated functions of `fast` are a shorter one for most of them; both write the
same bytes.
"""

import struct

from nbxrt import errors
from nbxrt.launch import checking, packing, scratch, signature, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nbxrt.launch.versions import Facts
    from nbxrt.runtime import Runtime


class Shape:
    """How a compiled kernel is launched: what its metadata and its signature come to on a runtime.

    `kinds` are the types of all parameters in order; `types` those that reach the kernel.
    Raises: UntestedVersionError for metadata that lacks what every kernel has; CapabilityError for an attribute that
    the backend does not offer.
    """

    def __init__(
        self,
        runtime: "Runtime",
        kinds: "Sequence[Any]",
        metadata: "Any",
        facts: "Facts",
        version: str,
        warp_size: int,
        opaque: "Sequence[Any]" = (),
    ) -> None:
        def field(name: str, default: "Any" = 0) -> "Any":
            value = versions.field(metadata, name, facts, version)
            return default if value is None else value

        self.kinds = tuple(kinds)
        self.facts = facts
        self.opaque = tuple(opaque)
        self.types = tuple(signature.flattened(self.kinds, facts, self.opaque))
        self.name: str = field("name")
        self.shared: int = field("shared")
        self.clusters: int = field("num_ctas", 1)
        self.threads: int = field("num_warps") * field("warp_size", warp_size)
        self.scratch = tuple((field(f"{hidden}_size"), field(f"{hidden}_align", 1), hidden) for hidden in facts.hidden)
        self.needs_scratch = any(size for size, _align, _hidden in self.scratch)
        asks = {
            "programmatic": int(bool(field("launch_pdl"))),
            "cooperative": int(bool(field("launch_cooperative_grid"))),
            "cluster": self.clusters,
            "shared_memory": self.shared,
        }
        self.call, self._attributes = runtime.launches.of(asks)
        self.slots = self.room()

    def room(self, placed: "Sequence[int]" = ()) -> packing.Slots:
        """New room for launches; `placed` is the order in which the values lie there."""
        return packing.Slots(
            self.call,
            self.types,
            len(self.facts.hidden),
            self._attributes,
            fixed={"block": packing.grid_bytes(self.threads, 1, 1), "shared_memory": struct.pack("=I", self.shared)},
            hidden_written=self.needs_scratch,
            placed=placed,
        )

    def grid_bytes(self, grid: "tuple[int, ...]") -> bytes:
        """The extents of a launch on this grid of clusters, as the configuration has them.

        Raises: ArgumentValueError for more blocks along x than the configuration holds.
        """
        if grid[0] * self.clusters > checking.MOST_BLOCKS:
            raise errors.ArgumentValueError(
                f"the grid of `{self.name}` has {grid[0]} clusters of {self.clusters} blocks along x, and at most "
                f"{checking.MOST_BLOCKS} blocks are possible",
                parameter="grid",
                value=grid,
            )
        return packing.grid_bytes(grid[0] * self.clusters, grid[1], grid[2])


class Launcher:
    """Launches one kernel by its shape, with whatever arguments fit it."""

    def __init__(self, runtime: "Runtime", shape: Shape) -> None:
        self.runtime = runtime
        self.shape = shape
        self._pack = struct.Struct(shape.slots.format).pack_into
        self._types = (*shape.types, *["*"] * (len(shape.scratch) if shape.needs_scratch else 0))

    def launch(
        self, grid: "tuple[int, int, int]", stream: int, function: "Any", given: "Sequence[Any]", names: "Sequence[str]"
    ) -> None:
        """Launch with the values of all parameters; an empty grid launches nothing. `names` are for errors.

        Raises: ArgumentTypeError, ArgumentValueError naming an argument; DeviceError.
        """
        if not all(grid):
            return
        shape = self.shape
        values = signature.flattened_values(shape.kinds, given, shape.facts, shape.opaque)
        with scratch.room(self.runtime, shape, grid, stream) as hidden:
            values += hidden
            converted = self._converted(values, given, names)
            self._call(grid, stream, function, converted)

    def _converted(self, values: "Sequence[Any]", given: "Sequence[Any]", names: "Sequence[str]") -> "list[Any]":
        try:
            return [packing.converted(kind, value) for kind, value in zip(self._types, values, strict=True)]
        except (TypeError, OverflowError, AttributeError, struct.error):
            self._refuse(given, names)
            raise

    def _refuse(self, given: "Sequence[Any]", names: "Sequence[str]") -> None:
        """Say which argument does not fit its type."""
        shape = self.shape
        opaque = iter(shape.opaque)
        for name, kind, value in zip(names, shape.kinds, given, strict=False):
            parts = list(signature.values(kind, value, shape.facts, opaque))
            for each, part in zip(signature.types(kind, shape.facts, iter(shape.opaque)), parts, strict=False):
                _refuse_one(shape.name, name, each, part)

    def _call(self, grid: "tuple[int, int, int]", stream: int, function: "Any", values: "Sequence[Any]") -> None:
        shape, slots = self.shape, self.shape.slots
        try:
            slot = slots.pool.pop()
        except IndexError:
            slot = slots.fresh()
        buffer, configuration, arguments = slot
        call = shape.call
        parts: dict[str | bytes, Any] = {"grid": shape.grid_bytes(grid), "stream": stream}
        self._pack(buffer, slots.begin, *values, *(parts.get(each, each) for each in slots.order))
        given: tuple[Any, ...] = (configuration, function, arguments, None)
        if configuration is None:
            x, y, z = grid[0] * shape.clusters, grid[1], grid[2]
            given = (function, x, y, z, shape.threads, 1, 1, shape.shared, _pointer(stream), arguments, None)
        code = call.function(*given)
        if code and call.enter(code):
            code = call.function(*given)
        slots.pool.append(slot)
        if code:
            raise failure(shape, code, grid, stream)


def _pointer(address: int) -> "Any":
    import ctypes

    return ctypes.c_void_p(address)


def _refuse_one(kernel: str, name: str, kind: str, value: "Any") -> None:
    try:
        packing.converted(kind, value)
    except OverflowError as error:
        raise errors.ArgumentValueError(
            f"argument `{name}` of `{kernel}`: {error}", parameter=name, value=value
        ) from None
    except (TypeError, AttributeError, struct.error):
        raise errors.ArgumentTypeError(
            f"argument `{name}` of `{kernel}` is passed as `{kind}`, and {type(value).__name__} {value!r} is none",
            parameter=name,
            value=value,
        ) from None


def failure(shape: Shape, code: int, grid: "tuple[int, int, int]", stream: int) -> errors.DeviceError:
    """The error of a launch that the vendor refused."""
    given: Mapping[str, Any] = {
        "kernel": shape.name,
        "grid": grid,
        "block": (shape.threads, 1, 1),
        "shared_memory": shape.shared,
        "stream": stream,
    }
    return shape.call.failure(code, given)
