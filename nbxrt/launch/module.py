"""Code of a vendor's own kind, loaded as it is: cubins, PTX, code objects, programs of OpenCL, libraries of Metal."""

import ctypes
import os
import weakref

from nbxrt import errors
from nbxrt.launch import checking, parameters
from nbxrt.launch.typed import listed, typed
from nbxrt.objects.buffer import Buffer
from nbxrt.objects.closing import Closing, process
from nbxrt.objects.device import as_device
from nbxrt.objects.graph import Kept
from nbxrt.objects.state import refuse_copying, state_of
from nbxrt.objects.stream import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nbxrt.objects.given import DeviceLike, Extents, StreamLike


def _nothing() -> None:
    """As a reference to what is not there."""


#: Text of this length and more, or of several lines, is no name of a file.
_LONGEST_PATH = 4096


def _content(image: "Any") -> bytes:
    """The bytes of a module's image. Raises: ArgumentTypeError, ArgumentValueError."""
    hint = "`pathlib.Path(…).read_bytes()` reads a file"
    if not isinstance(image, (bytes, bytearray, memoryview, str)):
        raise errors.ArgumentTypeError(
            f"`Module` takes the bytes of a binary, not {type(image).__name__}",
            hint=hint if isinstance(image, os.PathLike) else "",
        )
    try:
        content = image.encode() if isinstance(image, str) else bytes(image)
    except UnicodeEncodeError as error:
        raise errors.ArgumentValueError(f"`Module` takes text that is Unicode: {error}", value=image) from None
    except ValueError as error:  # a view that was released
        raise errors.ArgumentValueError(f"`Module` takes the bytes of a binary: {error}", value=image) from None
    if not content:
        raise errors.ArgumentValueError("`Module` takes the bytes of a binary, and there are none", value=image)
    if len(content) < _LONGEST_PATH and not {b"\n"[0], 0} & {*content}:
        path = os.fsdecode(content)
        is_absolute = path[0] == os.sep and path[1:2] not in ("/", "*")  # these begin a comment of a program
        if os.path.exists(path) or (path.isprintable() and (is_absolute or " " not in path)):
            raise errors.ArgumentValueError(
                f"`Module` takes the bytes of a binary, and {errors.shown(path)} is the name of a file",
                hint=hint,
                value=image,
            )
    return content


class Module(Closing):
    """Code on a device, from the bytes of a binary or of a program's text; `get_function` gives its kernels.

    It is unloaded with this object and its functions, or by `close`; where graphs were captured meanwhile, after the
    last of these. Raises: ArgumentTypeError; CapabilityError; DeviceError; as `Device`.
    """

    def __init__(self, image: "bytes | bytearray | memoryview | str", device: "DeviceLike" = None) -> None:
        content = _content(image)
        self.device = as_device(device)
        self.runtime = self.device.runtime
        self._process = process[0]
        self._graphs: Callable[[], Kept | None] = _nothing
        self.handle: int | None = self.device.on(self.runtime.module_load, content)
        state_of(self.runtime).code[id(self)] = weakref.ref(self)

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

    def for_graphs(self) -> Kept:
        """What graphs keep of it."""
        with state_of(self.runtime).lock:
            kept = self._graphs()
            if kept is None:
                kept = Kept(self.device)
                kept.owners.append(self)
                self._graphs = weakref.ref(kept)
            return kept

    def _close(self, on: "Callable[..., object]") -> None:
        """Unload it, after the graphs that may launch it. Its functions cannot be launched any more."""
        state = state_of(self.runtime)
        state.code.pop(id(self), None)
        handle: Any = self.handle
        self.handle = None
        kept = self._graphs()
        if kept is None and not state.captures:
            on(self.runtime.module_unload, handle)
            return
        kept = kept or Kept(self.device)
        kept.given.append((self.device, self.runtime.module_unload, handle))
        for graph in list(state.captures):
            graph.keep(kept)

    def __reduce__(self) -> "Any":
        raise refuse_copying(self, "each process loads its own")

    def __repr__(self) -> str:
        return f"<nbxrt.Module on {self.device}{'' if self.handle is not None else ', closed'}>"


class Function:
    """One kernel of a module, which it keeps."""

    def __init__(self, module: Module, name: str, handle: int) -> None:
        """`Module.get_function` is for everybody else."""
        self.module, self.name, self.handle = module, name, handle
        self._most_threads: int | None = None
        self._most_blocks: tuple[int, int, int] | None = None
        self._sizes: list[int] | None = None
        self._has_asked_sizes = False

    def check_block(self, block: "tuple[int, int, int]") -> None:
        """See that a block is not larger than the kernel can be launched with. Raises: ArgumentValueError."""
        if self._most_threads is None:
            self._most_threads = self._asked_most_threads()
        threads = block[0] * block[1] * block[2]
        if threads > self._most_threads > 0:
            raise errors.ArgumentValueError(
                f"the block of `{self.name}` has {threads} threads, and at most {self._most_threads} are possible",
                parameter="block",
                value=block,
            )

    def extents(self, grid: "Any") -> "tuple[int, int, int]":
        """A grid as three extents that the device takes. Raises: ArgumentTypeError, ArgumentValueError."""
        if self._most_blocks is None:
            device = self.module.device
            self._most_blocks = device.on(checking.most_blocks, device.runtime, [device.index])
        return checking.extents(grid, self.name, hint="write `(n,)`", most=self._most_blocks)

    def check_arguments(self, given: "Sequence[Any]") -> None:
        """See that there are as many arguments as the kernel has parameters, and none with fewer bytes.

        Where the vendor does not tell, nothing is checked. Raises: ArgumentTypeError.
        """
        if not self._has_asked_sizes:
            self._sizes = self.module.device.on(parameters.sizes, self.module.runtime, self.handle)
            self._has_asked_sizes = True
        if self._sizes is None:
            return
        if len(given) != len(self._sizes):
            raise errors.ArgumentTypeError(
                f"`{self.name}` takes {len(self._sizes)} arguments, and {len(given)} are given", parameter="args"
            )
        for place, (value, nbytes) in enumerate(zip(given, self._sizes, strict=True)):
            if (given_bytes := ctypes.sizeof(value)) < nbytes:
                raise errors.ArgumentTypeError(
                    f"argument {place} of `{self.name}` has {given_bytes} bytes, and the kernel reads {nbytes}",
                    parameter="args",
                )

    def _asked_most_threads(self) -> int:
        """Of the kernel where the vendor tells it, else of the device; 0 where neither is known."""
        runtime, index = self.module.runtime, self.module.device.index
        for ask, given in (
            (self.attribute, ("max_threads_per_block",)),
            (runtime.device_attribute, ("max_threads_per_block", index)),
        ):
            try:
                most: int = ask(*given)
            except (errors.CapabilityError, errors.ArgumentValueError, errors.DeviceError):
                continue
            return most
        return 0

    def attribute(self, word: "Any") -> int:
        """One attribute of it, an integer, by its name in the contract (`function_attribute`), or the vendor's number.

        Raises: ArgumentValueError for another word or a closed module; CapabilityError; DeviceError.
        """
        module = self.module
        module._usable()  # noqa: SLF001
        value: int = module.device.on(module.runtime.function_get_attribute, word, self.handle)
        return value

    def __repr__(self) -> str:
        return f"<nbxrt.Function {self.name} of {self.module!r}>"


def launch(
    function: Function,
    grid: "Extents",
    block: "Extents",
    args: "Sequence[Any]" = (),
    shared: int = 0,
    stream: "StreamLike" = None,
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
    extents = function.extents(grid)
    threads = checking.extents(block, function.name, "block", "write `(n,)`")
    ordered = as_stream(stream, device)
    if ordered.device is not device:
        raise errors.ArgumentValueError(
            f"{ordered!r} is of another device than `{function.name}`, which is on {device}", parameter="stream"
        )
    function.check_block(threads)
    packed = tuple(typed(function, place, value, ordered) for place, value in enumerate(listed(args)))
    function.check_arguments(packed)
    if all(extents):
        device.on(module.runtime.launch_kernel, function.handle, extents, threads, shared, ordered.handle or 0, packed)
