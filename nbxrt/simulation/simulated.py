"""A simulated library at hand: where it is, how a process is told to use it, its settings, faults and records."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from nbxrt import errors
from nbxrt.binding.machine import Machine
from nbxrt.runtime import Runtime
from nbxrt.simulation.controlling import Controlled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from nbxrt.simulation.plan import Plan

_LAUNCHED = ctypes.CFUNCTYPE(
    None,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)
_READ = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
#: Control functions that do not just take and return an int: what they return, and what they take.
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "reset": (None, ()),
    "release_all": (None, ()),
    "devices": (ctypes.c_int, ()),
    "set_devices": (None, (ctypes.c_int,)),
    "set_visible": (None, (ctypes.c_char_p,)),
    "set_no_driver": (None, (ctypes.c_int,)),
    "set_driver_version": (None, (ctypes.c_int,)),
    "set_context": (None, (ctypes.c_uint64,)),
    "set_architecture": (None, (ctypes.c_char_p,)),
    "set_models": (ctypes.c_int, (ctypes.c_char_p,)),
    "set_part": (None, (ctypes.c_int, ctypes.c_int)),
    "memory": (ctypes.c_uint64, (ctypes.c_int,)),
    "set_memory": (None, (ctypes.c_int, ctypes.c_uint64)),
    "set_attribute": (ctypes.c_int, (ctypes.c_int, ctypes.c_char_p, ctypes.c_int)),
    "set_peer": (None, (ctypes.c_int, ctypes.c_int, ctypes.c_int)),
    "set_processes": (None, (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
    "contexts": (ctypes.c_uint64, ()),
    "set_latency": (None, (ctypes.c_uint64,)),
    "advance": (ctypes.c_uint64, (ctypes.c_uint64,)),
    "pending": (ctypes.c_uint64, ()),
    "on_launch": (None, (ctypes.c_void_p, ctypes.c_void_p)),
    "on_image": (None, (ctypes.c_void_p, ctypes.c_void_p)),
    **dict.fromkeys(("launches", "ledger"), (ctypes.c_size_t, (ctypes.c_char_p, ctypes.c_size_t))),
}


class Launch(NamedTuple):
    """A kernel that a stream has come to; each argument as its bytes.

    `attributes` are those of a launch by a configuration: the vendor's number, and the first three words of the value.
    """

    kernel: str
    device: int
    stream: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_memory: int
    arguments: tuple[bytes, ...]
    attributes: tuple[tuple[int, int, int, int], ...]


class Live(NamedTuple):
    """Something that is not released: memory (`device`, `pool`, `pinned`, `mapped` …), a `stream`, an `event`."""

    kind: str
    handle: int
    nbytes: int
    device: int


class Simulation(Controlled):
    """A built simulation. It is loaded into this process at the first use of a method that asks or sets something.

    Every build is a library of its own with its own state. Safe to use from several threads.
    """

    def __init__(
        self,
        plan: Plan,
        paths: Mapping[str, Path],
        devices: int,
        memory: int,
        from_headers: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(plan.description, plan.contract, paths, _SIGNATURES)
        #: The version that each role answers.
        self.versions = plan.versions
        self.symbols = tuple(function.symbol for function in plan.functions)
        #: The models of devices that the file calls differently; a device is of the first when none is said.
        self.models = plan.models
        #: The symbols whose signatures are the vendor's headers'; the others' are what the file states.
        self.from_headers = from_headers
        #: The operations that can fail by their name; of others, the functions can that they call.
        self.operations = plan.operations
        self._start = (devices, memory)
        self._kept: dict[str, Any] = {}  # a callback lives as long as the library may call it

    def __repr__(self) -> str:
        return f"<nbxrt.simulation.Simulation of {self.name}: {self.paths['runtime']}>"

    def environment(self, **settings: object) -> dict[str, str]:
        """Variables that make a process use this library. The setting `fail="malloc:1:no_device"` is NBXRT_SIM_FAIL."""
        library = {f"NBXRT_{self.name}_{role}".upper(): str(self.paths[role]) for role in self.versions}
        settings = {"devices": self._start[0], "memory": self._start[1], **settings}
        return library | {f"NBXRT_SIM_{name}".upper(): str(value) for name, value in settings.items()}

    def open(self) -> Runtime:
        """The backend, opened on this library in this process; it is not put in force.

        Raises: as `nbxrt.open`.
        """
        self._control("devices")
        runtime = Runtime(self.description, self.contract, Machine(environ={**os.environ, **self.environment()}))
        runtime.load()  # as `nbxrt.open` does
        return runtime

    # settings

    @property
    def devices(self) -> int:
        """The number of physical devices; setting it shows all of them to the runtime."""
        return int(self._control("devices"))

    @devices.setter
    def devices(self, count: int) -> None:
        self._control("set_devices", count)

    @property
    def memory(self) -> int:
        """Bytes of memory of each device."""
        return int(self._control("memory", 0))

    @memory.setter
    def memory(self, nbytes: int) -> None:
        self._control("set_memory", -1, nbytes)

    def set_memory(self, device: int, nbytes: int) -> None:
        """Give one device another size."""
        self._control("set_memory", device, nbytes)

    def set_visible(self, devices: Sequence[int]) -> None:
        """Let the runtime show these physical devices, in this order; the management library still knows all."""
        self._control("set_visible", ",".join(map(str, devices)).encode() or b"none")

    def set_no_driver(self, none: bool = True) -> None:
        """Behave as where the vendor's kernel driver is not installed."""
        self._control("set_no_driver", none)

    def set_driver_version(self, number: int) -> None:
        """What the runtime answers for the driver's version, as the vendor codes it; -1 is its own version."""
        self._control("set_driver_version", number)

    def set_context(self, nbytes: int) -> None:
        """Let every context that is made from now on take so much of its device's memory."""
        self._control("set_context", nbytes)

    def set_architecture(self, text: str) -> None:
        """What the devices say of the code that they take, as `gfx942:sramecc+`; not every vendor has such a text."""
        self._control("set_architecture", text.encode())

    def set_part(self, device: int, part: bool = True, *, known: bool = True) -> None:
        """Make a device a part of a card, which the management library finds by UUID, or with `known` false not."""
        self._control("set_part", device, 0 if not part else 1 if known else 2)

    def set_attribute(self, attribute: str, value: int, device: int | None = None) -> None:
        """Change a fact of a device, by the contract's word, or of all devices."""
        if self._control("set_attribute", -1 if device is None else device, attribute.encode(), value):
            raise errors.ArgumentValueError(f"`{attribute}` is no device attribute of the contract")

    def set_models(self, *models: str) -> None:
        """What models the devices are of, in turn and from the beginning again; it holds for devices not listed yet."""
        unknown = [model for model in models if model not in self.models]
        if unknown:
            offered = ", ".join(self.models) or "it has none"
            raise errors.ArgumentValueError(f"`{unknown[0]}` is no model of {self.description['title']}: {offered}")
        self._control("set_models", ",".join(models).encode())

    def set_peer(self, device: int, peer: int, reachable: bool) -> None:
        """Whether the device can access the peer's memory."""
        self._control("set_peer", device, peer, reachable)

    def set_processes(self, device: int, processes: Sequence[tuple[int, int]] | None) -> None:
        """What the management library lists on a device, as (process id, bytes); None is the truth."""
        rows = processes or ()
        pids = (ctypes.c_uint32 * len(rows))(*(pid for pid, _used in rows))
        used = (ctypes.c_uint64 * len(rows))(*(nbytes for _pid, nbytes in rows))
        count = -1 if processes is None else len(rows)
        self._control("set_processes", device, count, ctypes.addressof(pids), ctypes.addressof(used))

    # time

    def set_latency(self, microseconds: int) -> None:
        """Let a thread do the streams' work, each piece that long after it was given.

        With 0 nothing moves by itself: waiting runs what is waited for, a query one piece, `advance` the rest.
        """
        self._control("set_latency", microseconds)

    def advance(self, count: int = 2**63) -> int:
        """Run up to `count` pieces of work in the order in which they were given; how many were run."""
        return int(self._control("advance", count))

    def pending(self) -> int:
        """Pieces of work that no stream has come to."""
        return int(self._control("pending"))

    def on_launch(self, function: Callable[[str, tuple[int, ...], tuple[int, ...], Any], None] | None) -> None:
        """Call a function for every kernel that a stream comes to: name, grid, block, pointers to its arguments.

        It runs in whatever thread does the work, and may not call the vendor's functions.
        """
        kept = _launched(function) if function else None
        self._control("on_launch", ctypes.cast(kept, ctypes.c_void_p) if kept else None, None)
        self._kept["on_launch"] = kept

    def on_image(self, function: Callable[[int], str] | None) -> None:
        """Let a function read images that are no simulated modules: from an image's address to the text of one.

        It answers an empty text for what it cannot read either, and may not call the vendor's functions.
        """
        kept = _read(function) if function else None
        self._control("on_image", ctypes.cast(kept, ctypes.c_void_p) if kept else None, None)
        self._kept["on_image"] = kept

    # records

    def launches(self) -> list[Launch]:
        """The kernels that streams have come to since the last `clear`."""
        return [_launch(line) for line in self._text("launches")]

    def ledger(self) -> list[Live]:
        """Everything that is alive: memory and handles that were not released."""
        rows = (line.split("\t") for line in self._text("ledger"))
        return [Live(kind, int(handle), int(nbytes), int(device)) for kind, handle, nbytes, device in rows]

    def contexts(self) -> set[int]:
        """The devices on which a context was made."""
        bits = int(self._control("contexts"))
        return {device for device in range(64) if bits >> device & 1}

    def release_all(self) -> None:
        """Release all that is alive, drop work that was not done, and lose all contexts."""
        self._control("release_all")

    def reset(self) -> None:
        """As when it was built: nothing alive, no faults, empty records, the first settings."""
        self._control("reset")
        self._settle()

    # the library

    def _settle(self) -> None:
        devices, memory = self._start
        self._control("set_devices", devices)
        self._control("set_memory", -1, memory)


def _launched(function: Callable[[str, tuple[int, ...], tuple[int, ...], Any], None]) -> Any:
    def launched(name: bytes, grid: Any, block: Any, arguments: Any, _data: Any) -> None:
        function(name.decode(), tuple(grid[:3]), tuple(block[:3]), arguments)

    return _LAUNCHED(launched)


def _read(function: Callable[[int], str]) -> Any:
    def read(image: int, text: int, room: int, _data: Any) -> int:
        said = function(image).encode()
        if len(said) > room:
            return 0
        ctypes.memmove(text, said, len(said))
        return len(said)

    return _READ(read)


def _launch(line: str) -> Launch:
    kernel, device, stream, grid, block, shared, arguments, attributes = line.split("\t")
    extents = [tuple(map(int, extent.split(","))) for extent in (grid, block)]
    values = tuple(bytes.fromhex(value) for value in arguments.split(",")) if arguments else ()
    asked = tuple(tuple(map(int, each.split(":"))) for each in attributes.split(",") if each)
    return Launch(kernel, int(device), int(stream), extents[0], extents[1], int(shared), values, asked)  # type: ignore[arg-type]
