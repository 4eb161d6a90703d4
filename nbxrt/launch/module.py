"""Code of a vendor's own kind, loaded as it is: cubins, PTX, code objects, programs of OpenCL, libraries of Metal."""

import ctypes

from nbxrt import errors
from nbxrt.launch import checking
from nbxrt.launch.packing import FORMATS, converted
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.buffer import Buffer
from nbxrt.objects.closing import Closing, process
from nbxrt.objects.device import as_device
from nbxrt.objects.state import refuse_copying
from nbxrt.objects.stream import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class Module(Closing):
    """Code on a device, from the bytes of a binary or of a program's text; `get_function` gives its kernels.

    It is unloaded with this object and its functions, or by `close`. Raises: ArgumentTypeError; CapabilityError;
    DeviceError; as `Device`.
    """

    def __init__(self, image: "bytes | bytearray | memoryview | str", device: "Any" = None) -> None:
        if not isinstance(image, (bytes, bytearray, memoryview, str)):
            raise errors.ArgumentTypeError(f"`Module` takes the bytes of a binary, not {type(image).__name__}")
        self.device = as_device(device)
        self.runtime = self.device.runtime
        self._process = process[0]
        content = image.encode() if isinstance(image, str) else bytes(image)
        self.handle: int | None = self.device.on(self.runtime.module_load, content)

    def get_function(self, name: str) -> "Function":
        """The kernel of that name. Raises: ArgumentTypeError; DeviceError where there is none."""
        return Function(self, name, self.device.on(self.runtime.module_get_function, self._usable(), name))

    def get_global(self, name: str) -> Buffer:
        """A variable in device memory, which keeps the module. Raises: CapabilityError; DeviceError."""
        address, nbytes = self.device.on(self.runtime.module_get_global, self._usable(), name)
        return Buffer.from_handle(address, nbytes, self.device, owner=self)

    def _usable(self) -> int:
        if self.handle is None:
            raise errors.ArgumentValueError("the module is closed", value=self)
        return self.handle

    def _close(self, on: "Callable[..., object]") -> None:
        """Unload it. Its functions cannot be launched any more."""
        handle, self.handle = self.handle, None
        if handle is not None:
            on(self.runtime.module_unload, handle)

    def __reduce__(self) -> "Any":
        raise refuse_copying(self, "each process loads its own")

    def __repr__(self) -> str:
        return f"<nbxrt.Module on {self.device}{'' if self.handle is not None else ', closed'}>"


class Function:
    """One kernel of a module, which it keeps."""

    def __init__(self, module: Module, name: str, handle: int) -> None:
        """`Module.get_function` is for everybody else."""
        self.module, self.name, self.handle = module, name, handle

    def attribute(self, word: "Any") -> int:
        """One fact of it, by a word of the contract's `function_attribute`. Raises: CapabilityError; DeviceError."""
        value: int = self.module.device.on(self.module.runtime.function_get_attribute, word, self.handle)
        return value

    def __repr__(self) -> str:
        return f"<nbxrt.Function {self.name} of {self.module!r}>"


def launch(
    function: Function, grid: "Any", block: "Any", args: "Sequence[Any]" = (), shared: int = 0, stream: "Any" = None
) -> None:
    """Launch a kernel on the stream, the thread's current one when left out; an empty grid launches nothing.

    `grid` and `block` have one to three extents, `shared` is bytes of dynamic shared memory. Arguments are arrays and
    buffers, scalars of ctypes or NumPy, or pairs of a type and a value: `("i32", 5)`, `("fp32", 0.5)`.
    Raises: ArgumentTypeError, ArgumentValueError naming the argument's place; DeviceError.
    """
    if not isinstance(function, Function):
        raise errors.ArgumentTypeError(f"`launch` takes a Function, not {type(function).__name__}", value=function)
    module, device = function.module, function.module.device
    module._usable()  # noqa: SLF001
    extents = checking.extents(grid, function.name, hint="write `(n,)`")
    threads = checking.extents(block, function.name, "block", "write `(n,)`")
    ordered = as_stream(stream, device)
    if ordered.device is not device:
        raise errors.ArgumentValueError(
            f"{ordered!r} is of another device than `{function.name}`, which is on {device}", parameter="stream"
        )
    packed = tuple(_argument(function, place, value, ordered) for place, value in enumerate(args))
    if all(extents):
        device.on(module.runtime.launch_kernel, function.handle, extents, threads, shared, ordered.handle or 0, packed)


def _argument(function: Function, place: int, value: "Any", stream: "Any") -> "Any":
    """One argument as a ctypes value."""
    where = f"argument {place} of `{function.name}`"
    if isinstance(value, (DeviceArray, Buffer)):
        if value.runtime is not function.module.runtime or value.device is not function.module.device:
            raise errors.ArgumentValueError(f"{where} is on {value.device}, and the kernel on {function.module.device}")
        address = value.data_ptr()
        value.memory.used_on(stream)
        return ctypes.c_void_p(address)
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):  # noqa: SLF001
        return value
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return _typed(where, *value)
    kind = getattr(value, "dtype", None)
    if kind is not None and getattr(value, "shape", None) == ():
        return (ctypes.c_char * kind.itemsize).from_buffer_copy(value.tobytes())
    if value is None:
        return ctypes.c_void_p(None)
    raise errors.ArgumentTypeError(
        f"{where} is {type(value).__name__} {value!r}, which does not say its type",
        hint="say it: `('i32', 5)`, `ctypes.c_int32(5)` or `numpy.int32(5)`; `nbxrt.asarray` makes arrays",
        value=value,
    )


def _typed(where: str, kind: str, value: "Any") -> "Any":
    import struct

    if kind not in FORMATS:
        raise errors.ArgumentTypeError(f"{where}: `{kind}` is no type", hint=f"known: {', '.join(FORMATS)}")
    try:
        content = struct.pack("=" + FORMATS[kind], converted(kind, value)) if _fits(kind, value) else b""
    except (TypeError, AttributeError, OverflowError, struct.error):
        content = b""
    if not content:
        raise errors.ArgumentTypeError(f"{where} is passed as `{kind}`, and {value!r} is none", value=value)
    return (ctypes.c_char * len(content)).from_buffer_copy(content)


def _fits(kind: str, value: "Any") -> bool:
    """Whether a value has no more bits than its type; of a float there is nothing to ask. Raises: AttributeError."""
    if kind[0] not in "iu":
        return True
    bits = int(kind[1:])
    number: int = value.__index__()
    return -(1 << bits - 1) <= number < 1 << bits
