"""Compiled kernels as files and as what can be launched: no Triton is needed for either.

A file is one line that says what it is, one line of JSON, and the binary.
"""

import contextlib
import hashlib
import json
import os
from types import SimpleNamespace

from nbxrt import errors, locks
from nbxrt.launch import checking, packing, streams, targets, versions
from nbxrt.launch.launcher import Launcher, Shape
from nbxrt.objects.device import Device
from nbxrt.objects.dtypes import dtype
from nbxrt.objects.memory import Memory
from nbxrt.objects.state import runtime_in_force

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from nbxrt.runtime import Runtime

_FIRST_LINE = b"nbxrt kernel 1\n"


class CompiledKernel:
    """One kernel, compiled for one target: `kernel[grid](…)` launches it with the arguments that are no constants.

    `name`, `target` (`cuda:90`), `binary`, `signature` (name to type, `*fp32:16` for an address that is a multiple of
    16), `constants` (name to value) and `metadata`. It runs on the runtime in force when it is launched.
    Safe to use from several threads.
    """

    def __init__(self, facts: "Mapping[str, Any]", binary: bytes) -> None:
        """`compile` and `load_kernel` are for everybody else."""
        self._facts = dict(facts)
        self.binary = binary
        self.name: str = facts["name"]
        self.target: str = facts["target"]
        self.signature: dict[str, str] = dict(facts["signature"])
        self.constants: dict[str, Any] = dict(facts["constants"])
        self.metadata: dict[str, Any] = dict(facts["metadata"])
        self._lock = locks.RLock()
        self._loaded: dict[tuple[int, int], tuple[Any, Any, Any, Any]] = {}

    def __repr__(self) -> str:
        return f"<nbxrt.CompiledKernel {self.name} for {self.target}, {len(self.binary)} bytes>"

    # files

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write it to a file, at once: a reader finds all of it or nothing. Raises: OSError."""
        header = json.dumps(self._facts | {"checksum": self._checksum()}, sort_keys=True).encode()
        target = errors.file_path("`save`", path)
        fresh = f"{target}.{os.getpid()}"
        try:
            with open(fresh, "wb") as file:
                file.write(_FIRST_LINE + header + b"\n" + self.binary)
            os.replace(fresh, target)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise

    def _checksum(self) -> str:
        said = json.dumps(self._facts, sort_keys=True).encode()
        return hashlib.sha256(said + b"\n" + self.binary).hexdigest()

    # launches

    def __getitem__(self, grid: "Any") -> "Callable[..., None]":
        """What launches it on a grid of one to three extents. Raises: ArgumentTypeError, ArgumentValueError."""
        extents = checking.extents(grid, self.name)

        def launch(*given: "Any", **named: "Any") -> None:
            self._launch(extents, self._bound(given, named))

        return launch

    def _bound(self, given: "tuple[Any, ...]", named: "dict[str, Any]") -> "list[Any]":
        """The values of the arguments in order. Raises: ArgumentTypeError by name."""
        names = [*self.signature]
        if len(given) > len(names):
            raise errors.ArgumentTypeError(f"`{self.name}` takes {len(names)} arguments, and {len(given)} are given")
        values = dict(zip(names, given, strict=False))
        for name, value in named.items():
            if name in values or name not in self.signature:
                why = "is given twice" if name in values else "is no argument"
                hint = f"it was compiled as the constant {self.constants[name]!r}" if name in self.constants else ""
                raise errors.ArgumentTypeError(f"`{name}` {why} of `{self.name}`", hint=hint, parameter=name)
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing:
            raise errors.ArgumentTypeError(f"`{self.name}`: missing the argument `{missing[0]}`", parameter=missing[0])
        return [values[name] for name in names]

    def _launch(self, extents: "tuple[int, int, int]", values: "list[Any]") -> None:
        runtime = runtime_in_force()
        device = self._device(runtime, values)
        device.on(self._launch_here, runtime, device, extents, values)

    def _launch_here(
        self, runtime: "Runtime", device: Device, extents: "tuple[int, int, int]", values: "list[Any]"
    ) -> None:
        launcher, function, _module, most = self._ready(runtime, device.index)
        checking.extents(extents, self.name, most=most)
        handle = streams.current(runtime, device.index)
        for value in values:
            memory = getattr(value, "memory", None)
            if isinstance(memory, Memory):
                streams.note_use(memory, handle)
        launcher.launch(extents, handle, function, values, [*self.signature])

    def _device(self, runtime: "Runtime", values: "list[Any]") -> Device:
        """The device of the arrays, else the current one. Raises: ArgumentTypeError, ArgumentValueError by name."""
        given = zip(self.signature.items(), values, strict=True)
        devices = [(name, self._checked(name, kind, value, runtime)) for (name, kind), value in given]
        return Device(checking.one_device(self.name, devices), runtime=runtime)

    def _checked(self, name: str, kind: str, value: "Any", runtime: "Runtime") -> "int | None":
        """Where an argument is, if it is an array. Raises: as `_device`, also for what it was not compiled for."""
        where = f"argument `{name}` of `{self.name}`"
        bare, _colon, divisor = kind.partition(":")
        is_pointer = bare.startswith("*") and value is not None
        if is_pointer and not hasattr(value, "data_ptr"):
            raise errors.ArgumentTypeError(
                f"{where} is {type(value).__name__}, and an array on the device is wanted",
                hint="`nbxrt.asarray` makes one",
                parameter=name,
                value=value,
            )
        if is_pointer:
            _demand_elements(where, name, bare, value)
        device = checking.pointer(self.name, name, value, runtime) if is_pointer else None
        number = value.data_ptr() if is_pointer else value
        if not is_pointer and hasattr(type(value), "__index__") and not packing.holds(bare, value.__index__()):
            raise errors.ArgumentValueError(
                f"{where} is passed as `{bare}`, and {errors.shown(value)} does not fit", parameter=name, value=value
            )
        if divisor and number.__class__ is int and number % int(divisor):
            what = f"{where} is at an address that" if is_pointer else where
            raise errors.ArgumentValueError(
                f"{what} is no multiple of {divisor}, for which it was compiled",
                parameter=name,
                value=value,
            )
        return device

    def _ready(self, runtime: "Runtime", device: int) -> "tuple[Any, Any, Any, Any]":
        """Launcher, function, module and the largest grid on the current device, loaded once.

        Raises: CapabilityError for a device of another architecture; DeviceError.
        """
        key = (id(runtime), device)
        with self._lock:
            if key not in self._loaded:
                self._demand(runtime, device)
                self._loaded[key] = self._load(runtime, device)
            return self._loaded[key]

    def _load(self, runtime: "Runtime", device: int) -> "tuple[Any, Any, Any, Any]":
        import ctypes

        from nbxrt.launch.driver import load

        facts = versions.facts_of(self._facts["triton"])
        kinds = [kind.partition(":")[0] for kind in self.signature.values()]
        metadata = SimpleNamespace(**self.metadata)
        warp = runtime.device_attribute("warp_size", device)
        shape = Shape(runtime, kinds, metadata, facts, self._facts["triton"], warp)
        where = Device(device, runtime=runtime)
        module, function, _registers, _spilled, most = load(where, self.name, self.binary, shape.shared)
        if shape.threads > most:
            raise errors.CapabilityError(
                f"`{self.name}` runs {shape.threads} threads in a block, and here at most {most} are possible"
            )
        largest = checking.most_blocks(runtime, [device])
        return Launcher(runtime, shape), ctypes.c_void_p(function), module, largest

    def _demand(self, runtime: "Runtime", device: int) -> None:
        """See that the kernel is of this backend and of this device's architecture. Raises: CapabilityError."""
        backend, wanted, _warp = targets.parsed(self.target)
        triton = runtime.description["triton"]
        if not triton or triton[1] != backend:
            raise errors.CapabilityError(f"`{self.name}` was compiled for `{self.target}`, and {runtime!r} is at work")
        found = targets.architecture(runtime, device)
        if found != wanted:
            raise errors.CapabilityError(
                f"`{self.name}` was compiled for `{self.target}`, and device {device} is `{backend}:{found}`",
                hint=f"compile it for `{backend}:{found}`",
            )


def _demand_elements(where: str, parameter: str, kind: str, array: "Any") -> None:
    """See that an array has the elements that a pointer was compiled for, as far as it says what it has.

    Raises: ArgumentTypeError.
    """
    try:
        found = dtype(getattr(array, "dtype", None))
    except errors.NbxrtError:
        return
    if found.triton != kind[1:].removeprefix("k"):  # `k` is Triton's mark of a pointer that is only read
        raise errors.ArgumentTypeError(
            f"{where} is an array of {found}, and it was compiled as `{kind}`",
            hint="compile the kernel for these elements, or pass `array.view(dtype)` to have the bytes read as others",
            parameter=parameter,
            value=array,
        )


def load_kernel(path: "str | os.PathLike[str]") -> CompiledKernel:
    """The kernel in a file that `CompiledKernel.save` wrote; no Triton is needed.

    Raises: OSError; ArgumentValueError for a file that is none, or is damaged.
    """
    shown = errors.file_path("`load_kernel`", path)
    with open(shown, "rb") as file:
        content = file.read()
    if not content.startswith(_FIRST_LINE):
        raise errors.ArgumentValueError(f"{shown} is no compiled kernel of nbxrt", value=shown)
    header, _newline, binary = content[len(_FIRST_LINE) :].partition(b"\n")
    try:
        facts = json.loads(header)
        checksum = facts.pop("checksum")
        kernel = CompiledKernel(facts, binary)
        versions.numbers(facts["triton"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise errors.ArgumentValueError(f"{shown} is damaged: its header cannot be read", value=shown) from None
    if kernel._checksum() != checksum:  # noqa: SLF001
        raise errors.ArgumentValueError(
            f"{shown} is damaged: its checksum is another one", hint="compile the kernel again", value=shown
        )
    return kernel
