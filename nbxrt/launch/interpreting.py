"""Triton's interpreter on memory of the processor: the kernels' own Python runs, and no byte is copied."""

from nbxrt import errors
from nbxrt.launch import checking
from nbxrt.launch.benchmarking import measure_on_host
from nbxrt.objects.array import DeviceArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.runtime import Runtime


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

    def __init__(self, array: DeviceArray) -> None:
        self._address = array.data_ptr()
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


def interpreted_call(runtime: "Runtime", original: "Callable[..., Any]") -> "Callable[..., Any]":
    """The call of an interpreted kernel on its grid, with arrays of the runtime among the arguments."""

    def call(executor: "Any", *given: "Any", **named: "Any") -> "Any":
        title, names = executor.fn.__name__, executor.arg_names
        if not callable(executor.grid):
            executor.grid = checking.extents(executor.grid, title)
        positional = [_argument(runtime, title, name, value) for name, value in zip(names, given, strict=False)]
        by_name = {name: _argument(runtime, title, name, value) for name, value in named.items()}
        return original(executor, *positional, *given[len(positional) :], **by_name)

    return call


def _argument(runtime: "Runtime", kernel: str, name: str, value: "Any") -> "Any":
    """One argument for the interpreter. Raises: ArgumentTypeError, ArgumentValueError by its name."""
    if isinstance(value, DeviceArray):
        if not value.memory.on_host or value.runtime is not runtime:
            raise errors.ArgumentValueError(
                f"argument `{name}` of `{kernel}` is memory of {value.device}, and the kernel runs on {runtime!r}",
                parameter=name,
                value=value,
            )
        return Pointer(value)
    if value.__class__ is tuple:
        return tuple(_argument(runtime, kernel, name, each) for each in value)
    if type(value).__name__ == "TensorDescriptor" and isinstance(getattr(value, "base", None), DeviceArray):
        import dataclasses

        return dataclasses.replace(value, base=_argument(runtime, kernel, name, value.base))
    if hasattr(value, "__array_interface__") and not hasattr(value, "data_ptr") and getattr(value, "shape", ()) != ():
        raise errors.ArgumentTypeError(
            f"argument `{name}` of `{kernel}` is {type(value).__name__}, and a kernel takes arrays of nbxrt",
            hint="`nbxrt.asarray` makes one of it without a copy",
            parameter=name,
            value=value,
        )
    return value
