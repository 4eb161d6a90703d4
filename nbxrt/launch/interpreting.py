"""Triton's interpreter on memory of the processor: the kernels' own Python runs, and no byte is copied."""

import inspect
import sys

from nbxrt import errors
from nbxrt.launch import checking, streams
from nbxrt.launch.benchmarking import measure_on_host
from nbxrt.objects.array import DeviceArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.launch.versions import Facts
    from nbxrt.runtime import Runtime

#: Classes of Triton's own whose objects a kernel takes.
_OF_TRITON = ("InterpretedFunction", "JITFunction", "constexpr", "TensorDescriptor")


class HostDriver:
    """Triton's active driver while kernels are interpreted: there is no device, and only autotuners ask."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: int) -> None:
        """There is one."""

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_benchmarker(self) -> "Callable[..., Any]":
        """What the autotuner measures with: the host's clock."""
        return measure_on_host


class Pointer:
    """An array as the interpreter takes it: what it would copy to the host is on the host, and is itself."""

    def __init__(self, array: "Any") -> None:
        self._address: int = array.data_ptr()
        self.dtype = array.dtype
        self._array = array  # kept for as long as the kernel runs

    def data_ptr(self) -> int:
        return self._address

    def untyped_storage(self) -> "Pointer":
        return self

    def cpu(self) -> "Pointer":
        return self

    def copy_(self, _other: "Pointer") -> None:
        """What would be written back is there already."""

    def new_empty(self, _size: int, device: "Any" = None) -> "Pointer":  # noqa: ARG002  # Triton's name
        return self

    def set_(self, *_view: "Any") -> None:
        """It is the view."""

    def storage_offset(self) -> int:
        return 0

    def size(self) -> "tuple[int, ...]":
        return ()

    def stride(self) -> "tuple[int, ...]":
        return ()


def interpreted_call(runtime: "Runtime", facts: "Facts", original: "Callable[..., Any]") -> "Callable[..., Any]":
    """The call of an interpreted kernel on its grid, with arrays of the runtime among the arguments.

    Everything is looked at before the kernel begins, as it is on a device.
    """
    options = _options()

    def call(executor: "Any", *given: "Any", **named: "Any") -> "Any":
        title = executor.fn.__name__
        names, grid = executor.arg_names, executor.grid
        arguments = _bound(executor.fn, title, given, named, options)
        executor.grid = checking.extents(grid(arguments) if callable(grid) else grid, title)

        def taken(name: str, value: "Any") -> "Any":
            if name in executor.constexprs:
                checking.constant(title, name, value)
            elif name in arguments:
                return _argument(runtime, facts, title, name, value)
            return value

        positional = [taken(name, value) for name, value in zip(names, given, strict=False)]
        by_name = {name: taken(name, value) for name, value in named.items()}
        with checking.telling_arguments(title, arguments.items()):
            return original(executor, *positional, *given[len(positional) :], **by_name)

    return call


def _options() -> "set[str]":
    """The options of all compilers that Triton has, which the interpreter passes over; empty where one says none."""
    import dataclasses

    from triton.backends import backends

    found = {"grid", "warmup"}  # Triton 3.5 passes on all that its `run` was called with
    for backend in backends.values():
        module = vars(sys.modules[backend.compiler.__module__])
        classes = [each for each in module.values() if isinstance(each, type) and dataclasses.is_dataclass(each)]
        if not classes:
            return set()
        found |= {field.name for each in classes for field in dataclasses.fields(each)}
    return found


def _bound(
    function: "Any", title: str, given: "tuple[Any, ...]", named: "dict[str, Any]", options: "set[str]"
) -> "dict[str, Any]":
    """The values of all parameters by name. Raises: ArgumentTypeError, ArgumentValueError naming what does not fit."""
    signature = inspect.signature(function)
    own = {name: value for name, value in named.items() if name in signature.parameters}
    for name in named:
        if name not in own and options and name not in options:
            raise checking.no_option(name, title, "Triton's compilers", [*signature.parameters, *options])
    try:
        bound = signature.bind(*given, **own)
    except TypeError as error:
        raise errors.ArgumentTypeError(f"`{title}`: {error}") from None
    bound.apply_defaults()
    return bound.arguments


def _argument(runtime: "Runtime", facts: "Facts", kernel: str, name: str, value: "Any") -> "Any":
    """One argument for the interpreter. Raises: ArgumentTypeError, ArgumentValueError by its name."""
    if value.__class__ is tuple:
        return tuple(_argument(runtime, facts, kernel, name, each) for each in value)
    if isinstance(value, tuple):
        return type(value)(*(_argument(runtime, facts, kernel, name, each) for each in value))
    if type(value).__name__ == "TensorDescriptor" and isinstance(getattr(value, "base", None), DeviceArray):
        import dataclasses

        return dataclasses.replace(value, base=_argument(runtime, facts, kernel, name, value.base))
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _pointer(runtime, kernel, name, value)
    if hasattr(value, "__array_interface__") and getattr(value, "shape", ()) != ():
        raise errors.ArgumentTypeError(
            f"argument `{name}` of `{kernel}` is {type(value).__name__}, and a kernel takes arrays of nbxrt",
            hint="`nbxrt.asarray` makes one of it without a copy",
            parameter=name,
            value=value,
        )
    if type(value).__name__ not in _OF_TRITON:
        checking.scalar(kernel, name, value)
    if isinstance(value, bool) and not facts.interprets_bools:
        raise errors.ArgumentTypeError(
            f"argument `{name}` of `{kernel}` is {value}, and the interpreter of this Triton takes no bool",
            hint=f"pass {int(value)}, or declare it `tl.constexpr`",
            parameter=name,
            value=value,
        )
    return value


def _pointer(runtime: "Runtime", kernel: str, name: str, value: "Any") -> "Any":
    """An array for the interpreter; what has a storage of its own, as torch's, it takes as it is."""
    checking.elements(kernel, name, value)
    streams.demand_open(f"argument `{name}` of `{kernel}`", value)
    if not isinstance(value, DeviceArray):
        return value if hasattr(value, "untyped_storage") else Pointer(value)
    if not value.memory.on_host or value.runtime is not runtime:
        raise errors.ArgumentValueError(
            f"argument `{name}` of `{kernel}` is memory of {value.device}, and the kernel runs on {runtime!r}",
            parameter=name,
            value=value,
        )
    return Pointer(value)
