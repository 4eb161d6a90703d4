"""The runtime: the operations of one backend as methods, and which runtime is in force in this process.

Finding out which backends are here is detection.py's; what the operations mean is in schema/operations.yaml.
"""

from nbxrt import errors, locks
from nbxrt.binding import arguments
from nbxrt.binding.binder import Binder
from nbxrt.binding.machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Any

    from nbxrt.binding.launching import LaunchCalls
    from nbxrt.binding.library import Library
    from nbxrt.binding.prebuilt import PrebuiltCall, PrebuiltCalls
    from nbxrt.memory.allocator import DeviceAllocator
    from nbxrt.objects.state import State
    from nbxrt.operations import Operations
    from nbxrt.tracing import Trace
else:
    Operations = object

#: A mapping that cannot be written, without importing `types` for its name: finalizers read the table.
_ReadOnly: "Any" = type(type.__dict__)

#: A C-shaped adapter of an operation is the runtime's attribute of this prefix and the operation's name.
C_PREFIX = "c_"


class Runtime(Operations):
    """One backend, bound: every operation of the contract is a method, made at its first use.

    Vendor functions are attributes by their symbol (`runtime.cudaMalloc`: typed, C form, status returned), and C-shaped
    adapters of all operations by `c_` and the operation's name. Safe to use from several threads.
    """

    def __init__(
        self, description: "Mapping[str, Any]", contract: "Mapping[str, Any]", machine: "Machine | None" = None
    ) -> None:
        self.name: str = description["name"]
        self.title: str = description["title"]
        self.kind: str = description["kind"]
        self.description = description
        self.contract = contract
        self._binder = Binder(description, contract, machine or Machine())
        self._trace: Trace | None = None
        self._wrappers: dict[str, list[Callable[[Any], Any]]] = {}
        self._table: Mapping[str, Any] | None = None
        self._launches: LaunchCalls | None = None
        self._prebuilt: PrebuiltCalls | None = None
        #: This thread's current device as far as nbxrt knows (`index`); a switch forgets it, device.py keeps it.
        self.current = self._binder.current
        #: As long as the streams that are current for any thread: where it is empty, a launch asks for none of its own.
        self.entered: list[None] = []
        #: The account of its memory, which nbxrt.memory makes at its first use.
        self.account: DeviceAllocator | None = None
        #: What its objects share, which nbxrt.objects makes at its first use.
        self.objects: State | None = None
        #: Changes when its functions are made anew: what `prepared` gave before is to be asked for again.
        self.revision = 0
        #: Whether it has a GPU, where detection had to ask it.
        self.has_gpu: bool | None = None

    def load(self) -> None:
        """Load the runtime library and see that every required operation can be bound.

        Raises: LibraryNotFoundError, LibraryBrokenError, CapabilityError, SymbolNotFoundError.
        """
        self._binder.library("runtime")
        for name, entry in self.contract["operations"].items():
            if entry["required"]:
                self._binder.require(name)

    def __repr__(self) -> str:
        return f"<nbxrt.Runtime {self.name}: {self.title}>"

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("_") or name in ("contract", "description", "name"):  # not set yet, or no such thing
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in self.contract["operations"]:
            function = self._operation(name)
            if not hasattr(function, "refuses"):  # what is missing today may be there tomorrow
                self._keep(name, function)
            releasing = self.contract["operations"][name]["released_by"]
            if releasing is not None:  # bound now: nothing may have to be made on a finalizer's path
                getattr(self, releasing)
            return function
        if name.startswith(C_PREFIX) and name[len(C_PREFIX) :] in self.contract["operations"]:
            return self._keep(name, self._c_adapter(name[len(C_PREFIX) :]))
        for operation in self.contract["operations"]:
            if name in self._binder.variants.symbols(operation):
                return self._keep(name, self._vendor_function(operation, name))
        raise AttributeError(f"{self!r} has no operation and no vendor function `{name}`", name=name, obj=self)

    def __dir__(self) -> "list[str]":
        return sorted({*super().__dir__(), *self.contract["operations"]})

    def _keep(self, name: str, function: "Any") -> "Any":
        self.__dict__[name] = function
        return function

    def _operation(self, name: str) -> "Callable[..., Any]":
        """The operation's function, or one that says why there is none."""
        try:
            function = self._binder.function(name)
        except (errors.CapabilityError, errors.LibraryNotFoundError) as error:
            return _refusing(name, error)
        if self._trace is not None:
            function = self._trace.logging(self, name, function)
        for wrapper in self._wrappers.get(name, ()):
            function = wrapper(function)
        return function

    def wrap(self, operation: str, wrapper: "Callable[[Any], Any]") -> None:
        """Put a wrapper around an operation: `wrapper(function)` answers what is called in the function's place.

        It is applied again whenever the operation's function is made anew. It is not seen by calls that were `prepared`
        before: `revision` changes.
        """
        self._wrappers.setdefault(operation, []).append(wrapper)
        self.revision += 1
        self.__dict__.pop(operation, None)
        if self._prebuilt is not None:
            self._prebuilt.forget()

    def _vendor_function(self, operation: str, symbol: str) -> "Any":
        """The vendor's own function; a missing one is a missing attribute, as of a library of ctypes."""
        try:
            return self._binder.vendor_function(operation, symbol)
        except (errors.CapabilityError, errors.LibraryNotFoundError) as error:
            raise AttributeError(str(error)) from error

    def _c_adapter(self, operation: str) -> "Callable[..., Any]":
        return _adapter()(self._binder, operation, getattr(self, operation))

    def prepared(self, operation: str, *arguments: "Any") -> "Callable[[], object]":
        """Check and convert the arguments of an operation once; what is returned makes the call with them.

        It is of no more use once `revision` has changed.
        Raises: CapabilityError; ArgumentTypeError, ArgumentValueError, DeviceIndexError.
        """
        function = getattr(self, operation)
        if self._trace is None and operation not in self._wrappers:
            call: Callable[[], object] | None = self._binder.prepared(operation, arguments)
            if call is not None:
                return call
        return lambda: function(*arguments)

    # what people ask of a runtime

    def _has_object_of(self, device: int) -> bool:
        """Whether there is a Device of that index, and so such a device."""
        return self.objects is not None and device in self.objects.devices

    def supports(self, operation: str, device: "int | None" = None) -> bool:
        """Whether the backend offers the operation here; with a device, whether that device does too.

        Raises: ArgumentValueError for a name that is no operation of the contract; ArgumentTypeError; DeviceIndexError.
        """
        if not isinstance(operation, str):
            raise errors.wrong_type("`supports`", "the name of an operation", operation)
        if operation not in self.contract["operations"]:
            close = errors.nearest(operation, list(self.contract["operations"]))
            raise errors.ArgumentValueError(
                f"`{operation}` is no operation of the contract", hint=f"did you mean `{close}`?" if close else ""
            )
        if device is not None and (device.__class__ is not int or not self._has_object_of(device)):
            (device,) = arguments.Checks("supports", [("device", None, arguments.device(self.device_count))])(device)
        if not self._binder.available(operation, device):
            return False
        attribute = self.description["needs"].get(operation)
        if device is None or attribute is None:
            return True
        try:
            return bool(self.device_attribute(attribute, device))
        except errors.DeviceError as error:  # an older library does not know the attribute: it lacks the feature
            if error.kind == "invalid_value":
                return False
            raise

    def library(self, role: str = "runtime") -> "Library":
        """The library of a role, such as `runtime` or `driver`, loaded if it was not: path, version, candidates.

        Raises: ArgumentTypeError; LibraryNotFoundError, LibraryBrokenError.
        """
        return self._binder.library(_role(role))

    def version(self, role: str = "runtime") -> "tuple[int, ...]":
        """The version of a role's library, such as (12, 9); () when it cannot be known. Raises: as `library`."""
        return self._binder.library(_role(role)).version

    @property
    def launches(self) -> "LaunchCalls":
        """The vendor's launch functions, for calls whose arguments are prebuilt."""
        if self._launches is None:
            from nbxrt.binding.launching import LaunchCalls

            self._launches = LaunchCalls(self._binder)
        return self._launches

    def has_context(self, device: int) -> "bool | None":
        """Whether a device has a context in this process, whoever made it; None where the backend cannot tell."""
        return self._binder.has_context(device)

    @property
    def prebuilt(self) -> "PrebuiltCalls":
        """Operations as the vendor's bare functions, for objects that keep their handles as arguments."""
        if self._prebuilt is None:
            from nbxrt.binding.prebuilt import PrebuiltCalls

            self._prebuilt = PrebuiltCalls(self._prebuilt_call)
        return self._prebuilt

    def _prebuilt_call(self, operation: str) -> "PrebuiltCall | None":
        """The bare function of an operation, unless something stands before it."""
        from nbxrt.binding.prebuilt import call_of

        return None if self._trace is not None or operation in self._wrappers else call_of(self._binder, operation)

    def gpu_count(self) -> int:
        """The number of devices that are GPUs; they come before others, where a backend has both."""
        return self._binder.count_gpus()

    def why_no_device(self) -> "errors.DeviceError | None":
        """The error behind a count of 0 devices; None where there are some, or the library does not say why not."""
        return self._binder.failures.why_no_device()

    def error_name(self, code: int, library: str = "runtime") -> str:
        """The vendor's name of a status code; empty when the library does not say."""
        return self._binder.library(library).error_name(code)

    def error_text(self, code: int, library: str = "runtime") -> str:
        """The vendor's sentence for a status code, else the contract's; empty for an unknown one."""
        if not isinstance(code, int):
            raise errors.wrong_type("`error_text`", "a status code", code)
        return self._binder.library(_role(library)).error_text(code)

    def table(self) -> "Mapping[str, Any]":
        """For each operation the name of the attribute of this runtime that is its C function; read-only.

        That is the vendor's function where it has the contract's C form, else an adapter of that form, whose name
        begins with `c_`. The keys `rt_libs`, `driver_libs` and `management_libs` have the libraries' file names.
        """
        if self._table is not None:
            return self._table
        rows: dict[str, Any] = {
            name: self._binder.variants.c_symbol(name) or C_PREFIX + name for name in self.contract["operations"]
        }
        for key, role in (("rt_libs", "runtime"), ("driver_libs", "driver"), ("management_libs", "management")):
            rows[key] = tuple(self._binder.library_names(role))
        self._table = _ReadOnly(rows)
        return self._table

    def follow(self, trace: "Trace | None") -> None:
        """Let a trace follow every call from here on, but those of functions that were taken before; None ends it."""
        self._trace = trace
        self.revision += 1
        for name in [*self.__dict__]:
            if name in self.contract["operations"]:
                del self.__dict__[name]
        if self._prebuilt is not None:
            self._prebuilt.forget()


#: What makes C-shaped functions, once somebody has called by symbol or the process ends.
_made_by: "Callable[..., Callable[..., int]] | None" = None


def _adapter() -> "Callable[..., Callable[..., int]]":
    global _made_by  # noqa: PLW0603  # kept here: a finalizer at the interpreter's end can import nothing
    if _made_by is None:
        from nbxrt.binding.cshape import adapter

        _made_by = adapter
    return _made_by


def _refusing(operation: str, error: errors.NbxrtError) -> "Callable[..., Any]":
    """A function for an operation that is not offered: calling it says why."""

    def refuse(*_args: "Any", **_named: "Any") -> "Any":
        raise errors.again(error)

    refuse.refuses = True  # type: ignore[attr-defined]
    refuse.__name__ = operation
    refuse.__doc__ = str(error)
    return refuse


# The runtime in force. The lock guards what is open and what is in force.

lock = locks.RLock()
_open: "dict[Any, Runtime]" = {}
#: The runtime in force, and whether it was asked for by name.
_in_force: "tuple[Runtime, bool] | None" = None


def open(name: "str | os.PathLike[str] | None" = None) -> Runtime:  # the verb of this field
    """Open a backend and make it the process's runtime in force; a backend that is open already is given again.

    `name` is a backend's name, or the path of a backend file. Without it: NBX_GPU_BACKEND, else the best backend that
    is here, `cpu` ones last. Nothing is asked of the vendor's driver.

    Raises: BackendNotFoundError, DescriptionError, LibraryNotFoundError, LibraryBrokenError, CapabilityError.
    """
    with lock:
        by_name = True
        if name is None:
            from nbxrt import detection  # only when there is something to find out

            by_name, name = bool(detection.forced_name()), detection.best()
        runtime = opened(name)
        put_in_force(runtime, by_name)
        return runtime


def opened(name: "str | os.PathLike[str]") -> Runtime:
    """The runtime of a backend, opened if it was not; the runtime in force stays.

    Raises: as `open`.
    """
    from nbxrt import descriptions

    with lock:
        key, load = descriptions.find(name)
        if key not in _open:
            description = load()
            descriptions.demand_trust(description)
            runtime = Runtime(description, descriptions.contract())
            runtime.load()
            _open[key] = runtime
            _trace_if_asked(runtime)
            _prepare_for_the_end()
        return _open[key]


def put_in_force(runtime: "Runtime | None", by_name: bool = True) -> None:
    """Make a runtime the one in force; None leaves none."""
    global _in_force  # noqa: PLW0603  # one process, one runtime in force
    _in_force = None if runtime is None else (runtime, by_name)


def in_force() -> "Runtime | None":
    """The runtime in force, or None."""
    return _in_force[0] if _in_force else None


def chosen_by_name() -> bool:
    """Whether the runtime in force was asked for by name."""
    return bool(_in_force and _in_force[1])


def _role(role: "Any") -> str:
    if not isinstance(role, str):
        raise errors.wrong_type("a runtime", "the name of a library's role", role)
    return role


def checked(function: str, runtime: "Any") -> Runtime:
    """A runtime that a function was given. Raises: ArgumentTypeError."""
    if not isinstance(runtime, Runtime):
        raise errors.wrong_type(function, "a runtime", runtime, "`nbxrt.open` gives one")
    return runtime


class use:  # noqa: N801  # read as a verb: `with nbxrt.use(runtime):`
    """Make a runtime the one in force inside a `with` block, for all threads; the one before comes back after it.

    Raises: ArgumentTypeError.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = checked("`use`", runtime)
        self._before: list[Any] = []

    def __enter__(self) -> Runtime:
        self._before.append(_in_force)
        put_in_force(self._runtime)
        return self._runtime

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        global _in_force  # noqa: PLW0603
        _in_force = self._before.pop()


def all_open() -> "Iterator[Runtime]":
    """Every runtime that is open."""
    yield from list(_open.values())


def forget() -> None:
    """Forget every open runtime and the one in force. Libraries stay loaded: unloading one is not safe."""
    from nbxrt import descriptions

    with lock:
        for runtime in all_open():
            if runtime.account is not None and runtime._binder.keeps_devices():  # noqa: SLF001
                _trimmed(runtime.account)
            runtime._binder.release()  # noqa: SLF001
            for library in runtime._binder.opened():  # noqa: SLF001
                library.stop()
        _open.clear()
        put_in_force(None)
        descriptions.forget()


def _trimmed(account: "DeviceAllocator") -> None:
    """Give back what nobody holds: it would keep alive what is kept of the devices."""
    try:
        account.trim()
    except errors.NbxrtError:
        return


_prepared = False


def _prepare_for_the_end() -> None:
    """Once something is open: what finalizers call is loaded before the end, and a forked child gets free locks."""
    global _prepared  # noqa: PLW0603
    if _prepared:
        return
    _prepared = True
    import atexit
    import os as system

    atexit.register(_load_for_finalizers)
    if hasattr(system, "register_at_fork"):
        system.register_at_fork(after_in_child=_after_fork)


def _load_for_finalizers() -> None:
    """Load what finalizers call, at the last moment at which importing is possible."""
    import nbxrt

    nbxrt.load_for_finalizers()
    _adapter()


def _after_fork() -> None:
    """A lock that another thread of the parent held would never be given back; what was current is the parent's."""
    global lock  # noqa: PLW0603
    lock = locks.RLock()
    for runtime in all_open():
        runtime._binder.renew_locks()  # noqa: SLF001
        if runtime.account is not None:
            runtime.account.renew_locks()
        if runtime.objects is not None:
            runtime.objects.renew_locks()
        runtime.current.index = None


def _trace_if_asked(runtime: Runtime) -> None:
    import os as system

    if "calls" in [word.strip() for word in system.environ.get("NBXRT_LOG", "").split(",")]:
        from nbxrt import tracing

        tracing.follow(runtime)
