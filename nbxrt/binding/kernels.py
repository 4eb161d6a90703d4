"""Loaded code and launches for APIs that take a kernel's arguments one by one, by their index.

Which argument is the address of memory, and which is a value, is what the kernel says of itself where the vendor can be
asked; where it cannot, a `c_void_p` is one, and so is a 64-bit integer that lies in known memory.
"""

import ctypes

from nbxrt import errors, locks
from nbxrt.binding.failures import unknown
from nbxrt.binding.object_arguments import ObjectArguments, foreign, number
from nbxrt.locks import is_mine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nbxrt.binding.binder import Binder
    from nbxrt.binding.queues import Stream
    from nbxrt.binding.states import State

#: What may be an address: integers of 64 bits, and eight bytes that a type was already taken from.
_WIDE = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int64, ctypes.c_size_t, ctypes.c_char * 8)


class Module:
    """Loaded code, the device that it was loaded for, and its functions."""

    def __init__(self, state: "State", handle: int) -> None:
        self.state = state
        self.handle = handle
        self.functions: list[int] = []


class Function:
    """A kernel. Its lock guards the arguments that it keeps between the calls that set them and the one that runs."""

    def __init__(self, module: Module, handle: int, kinds: "tuple[str, ...] | None") -> None:
        self.module = module
        self.handle = handle
        self.kinds = kinds
        #: Bytes of each argument, once arguments were given that were packed before.
        self.sizes: tuple[int, ...] | None = None
        self.lock = locks.RLock()


class Kernels:
    """Modules, functions and launches, whose handles are the vendor's own."""

    def __init__(self, binder: "Binder") -> None:
        self._binder = binder
        values = binder.values("kernels")
        self._of_parent = False
        self._are_apart: bool = binder.listed().are_apart()
        self._modules: dict[int, Module] = {}
        self._functions: dict[int, Function] = {}
        self._intermediate = bytes(values.get("intermediate", ()))
        self._pointers = frozenset(values.get("pointers", ()))
        self._local = frozenset(values.get("local", ()))
        self._load, self._unload, self._find, self._set_value, self._run = (
            binder.part("kernels", part) for part in ("load", "unload", "function", "set_value", "run")
        )
        #: The parts that a file may leave out; None where it does.
        self._load_intermediate, self._build, self._log, self._release, self._count, self._kind = (
            binder.optional_part("kernels", part)
            for part in ("load_intermediate", "build", "log", "release", "count", "kind")
        )
        self._set_pointer, self._set_local, self._begin, self._abandon, self._attribute = (
            binder.optional_part("kernels", part)
            for part in ("set_pointer", "set_local", "begin", "abandon", "attribute")
        )
        self._objects = ObjectArguments(binder)
        self._set_shared, self._end, self._type_name = (
            binder.optional_part("kernels", part) for part in ("set_shared", "end", "type_name")
        )
        self._sizes: dict[str, int] = values.get("sizes", {})
        self._facts = [
            binder.optional_part("kernels", word) for word in binder.contract["enums"]["function_attribute"][1]
        ]

    def renew_lock(self) -> None:
        """Forget modules and functions, in a process that was forked: they are the parent's."""
        self._of_parent = self._of_parent or bool(self._modules)
        self._modules.clear()
        self._functions.clear()

    # modules

    def module_load(self, image: bytes) -> int:
        state = self._binder.state()
        is_intermediate = self._intermediate and image.startswith(self._intermediate)
        load = self._load_intermediate if is_intermediate and self._load_intermediate is not None else self._load
        handle: int = load(state, image)
        if self._build is not None:
            try:
                self._build(state, handle)
            except errors.DeviceError as error:
                raise self._with_log(error, state, handle) from None
        self._modules[handle] = Module(state, handle)
        return handle

    def _with_log(self, error: errors.DeviceError, state: "State", handle: int) -> errors.DeviceError:
        """The error of a failed build with what the compiler said; the module is released."""
        try:
            log = (
                "" if self._log is None else bytes(self._log(state, handle)).split(b"\0", 1)[0].decode(errors="replace")
            )
            self._unload(state, handle)
        except errors.NbxrtError:
            log = ""
        if not log.strip():
            return error
        lines = "\n".join(f"  {line}" for line in log.strip().splitlines()[:40])
        facts = {key: value for key, value in vars(error).items() if key not in ("message", "hint")}
        return type(error)(f"{error.message}\n{lines}", hint=error.hint, **facts)

    def module_unload(self, module: int) -> None:
        record = self._modules.pop(module, None)
        if record is None:
            raise self._unknown("module", module)
        for function in record.functions:
            if self._functions.pop(function, None) is not None and self._release is not None:
                self._release(record.state, function)
        self._unload(record.state, module)

    def module_get_function(self, module: int, name: bytes) -> int:
        record = self._modules.get(module)
        if record is None:
            raise self._unknown("module", module)
        handle: int = self._find(record.state, module, name)
        self._functions[handle] = Function(record, handle, self._kinds(record.state, handle))
        record.functions.append(handle)
        return handle

    def _kinds(self, state: "State", function: int) -> "tuple[str, ...] | None":
        """What each argument is: `pointer`, `local` or `value`; None where the vendor cannot be asked."""
        if self._count is None or self._kind is None:
            return None
        try:
            kinds = [self._kind(state, function, index) for index in range(self._count(state, function))]
        except errors.DeviceError:  # code without that information
            return None
        return tuple("pointer" if k in self._pointers else "local" if k in self._local else "value" for k in kinds)

    def function_get_attribute(self, attribute: int, function: int) -> int:
        record = self._function(function)
        told = self._facts[attribute] if attribute in range(len(self._facts)) else None
        if told is not None:
            return int(told(record.module.state, function))
        if self._attribute is None:
            raise self._binder.failures.lacks_part("kernels", "attribute")
        value: int = self._attribute(record.module.state, function, attribute)
        return value

    def _function(self, function: int) -> Function:
        try:
            return self._functions[function]
        except KeyError:
            raise self._unknown("function", function) from None

    def _unknown(self, what: str, handle: int) -> errors.ArgumentValueError:
        said = f"no {what} has the handle {handle:#x}: unknown, or unloaded already"
        return unknown(said, of_parent=self._of_parent)

    # launches

    def launch_kernel(
        self,
        function: int,
        grid: "tuple[int, int, int]",
        block: "tuple[int, int, int]",
        shared_memory: int,
        stream: int,
        arguments: "Any",
    ) -> None:
        record = self._function(function)
        given = self._given(record, arguments)
        target: Stream = self._binder.policy("queues").find(stream)
        extents = (*grid, *block, *(one * other for one, other in zip(grid, block, strict=True)), shared_memory)
        if self._objects.are_for(target.state):
            places = self._objects.places(target.state, given)
            slices = self._objects.slices(target.state)
            try:
                self._launch(record, target, [slices.instead(*each) for each in places], extents)
            finally:
                slices.release()
        else:
            if self._are_apart:
                self._refuse_foreign(target.state, given)
            self._launch(record, target, given, extents)

    def _launch(
        self, record: Function, target: "Stream", given: "list[tuple[str, Any]]", extents: "tuple[int, ...]"
    ) -> None:
        """Set the arguments and run, as one turn: a kernel keeps its arguments for whoever runs it next."""
        if target.failed:
            raise target.failure()
        state, function, shared_memory = target.state, record.handle, extents[-1]
        if is_mine(record.lock):
            raise errors.ArgumentValueError(
                "`launch_kernel`: a finalizer launches the kernel that its thread is launching just now",
                hint="get the function a second time for it: a kernel keeps the arguments of one launch",
                operation="launch_kernel", parameter="function",
            )  # fmt: skip
        with record.lock:
            work, encoder = self._begin(state, function, target.queue) if self._begin is not None else (0, 0)
            try:
                for index, (kind, value) in enumerate(given):
                    self._set(state, function, encoder, index, kind, value)
                if shared_memory and self._set_shared is not None:
                    self._set_shared(state, function, encoder, shared_memory)
                self._run(state, function, encoder, *extents, target)
            except BaseException:
                if self._abandon is not None:
                    self._abandon(state, work, encoder)
                raise
            if self._end is not None:
                self._end(state, work, encoder)
                self._binder.policy("queues").pend(target, work)

    def _given(self, record: Function, arguments: "Any") -> "list[tuple[str, Any]]":
        """The arguments, each with its kind."""
        values: Sequence[Any] | None = getattr(arguments, "kept", None)
        if values is None:
            values = self._unpacked(record, arguments)
        if record.kinds is not None and len(record.kinds) != len(values):
            raise errors.ArgumentValueError(
                f"`launch_kernel`: the kernel takes {len(record.kinds)} arguments, not {len(values)}",
                operation="launch_kernel", parameter="arguments",
            )  # fmt: skip
        kinds = record.kinds or tuple(map(self._guessed, values))
        return list(zip(kinds, values, strict=True))

    def _unpacked(self, record: Function, packed: "Any") -> "list[Any]":
        """The arguments behind pointers that were packed before, as many bytes of each as the kernel says.

        Raises: CapabilityError where it does not say.
        """
        if record.kinds is None or self._type_name is None:
            raise errors.CapabilityError(
                f"`launch_kernel`: arguments that were packed before cannot be given to "
                f"{self._binder.description['title']}, which takes them one by one",
                operation="launch_kernel",
            )
        if record.sizes is None:
            record.sizes = tuple(self._size(record, index, kind) for index, kind in enumerate(record.kinds))
        start = packed if isinstance(packed, int) else ctypes.addressof(packed)
        pointers = (ctypes.c_void_p * len(record.sizes)).from_address(start) if record.sizes else ()
        return [
            (ctypes.c_char * size).from_address(pointer) for pointer, size in zip(pointers, record.sizes, strict=True)
        ]

    def _size(self, record: Function, index: int, kind: str) -> int:
        """Bytes of an argument: of an address, or of the type that the kernel names."""
        if kind == "pointer":
            return ctypes.sizeof(ctypes.c_void_p)
        assert self._type_name is not None  # noqa: S101  # it was asked for before
        said = bytes(self._type_name(record.module.state, record.handle, index))
        name = said.split(b"\0", 1)[0].decode(errors="replace")
        if kind == "local" or name not in self._sizes:
            raise errors.CapabilityError(
                f"`launch_kernel`: argument {index} is {'memory of a block' if kind == 'local' else f'a `{name}`'}, "
                "whose size arguments that were packed before do not tell",
                operation="launch_kernel",
            )
        return self._sizes[name]

    def _guessed(self, value: "Any") -> str:
        if isinstance(value, ctypes.c_void_p):
            return "pointer"
        is_known = isinstance(value, _WIDE) and self._binder.addresses.look(number(value))
        return "pointer" if is_known else "value"

    def _refuse_foreign(self, state: "State", given: "list[tuple[str, Any]]") -> None:
        """Refuse memory of another device, of which this one knows nothing. Raises: ArgumentValueError."""
        for index, (kind, value) in enumerate(given):
            block = self._binder.addresses.look(number(value)) if kind == "pointer" else None
            if block is not None and not self._binder.listed().share_memory(block.state, state):
                raise foreign(index, block.state, state)

    def _set(self, state: "State", function: int, encoder: int, index: int, kind: str, value: "Any") -> None:
        if kind == "buffer":
            self._objects.set(state, function, encoder, index, *value)
        elif kind == "pointer" and self._set_pointer is not None:
            self._set_pointer(state, function, encoder, index, number(value))
        elif kind == "local" and self._set_local is not None:
            self._set_local(state, function, encoder, index, number(value))
        else:
            self._set_value(state, function, encoder, index, ctypes.sizeof(value), ctypes.addressof(value))
