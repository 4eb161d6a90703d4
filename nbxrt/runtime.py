"""The runtime: the operations of one backend as methods, and which runtime is in force in this process.

Finding out which backends are here is detection.py's; what the operations mean is in schema/operations.yaml.
"""

import threading

from nbxrt import errors
from nbxrt.binding.binder import Binder
from nbxrt.binding.machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Any

    from nbxrt.binding.library import Library
    from nbxrt.operations import Operations
else:
    Operations = object

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
        self._trace: Any = None

    def _open(self) -> None:
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
        if name in self.contract["operations"]:
            function = self._keep(name, self._operation(name))
            releasing = self.contract["operations"][name]["released_by"]
            if releasing is not None:  # bound now: nothing may have to be made on a finalizer's path
                getattr(self, releasing)
            return function
        if name.startswith(C_PREFIX) and name[len(C_PREFIX) :] in self.contract["operations"]:
            return self._keep(name, self._c_adapter(name[len(C_PREFIX) :]))
        if not name.startswith("_"):
            for operation in self.contract["operations"]:
                if name in self._binder.symbols(operation):
                    return self._keep(name, self._binder.vendor_function(operation, name))
        raise AttributeError(f"{self!r} has no operation and no vendor function `{name}`")

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
        return self._starting(name, function)

    def _starting(self, name: str, function: "Callable[..., Any]") -> "Callable[..., Any]":
        """The function, behind the first call that its library asks for, which is made when the operation is called."""
        library = self._binder.library_of(name)
        if library is None or not library.needs_start:
            return function

        def start_first(*args: "Any", **named: "Any") -> "Any":
            library.start()
            self.__dict__[name] = function
            return function(*args, **named)

        start_first.__name__ = name
        start_first.__doc__ = function.__doc__
        return start_first

    def _c_adapter(self, operation: str) -> "Callable[..., Any]":
        from nbxrt.binding.cshape import adapter  # only those who call by symbol need it

        return adapter(self._binder, operation, getattr(self, operation))

    # what people ask of a runtime

    def supports(self, operation: str, device: "int | None" = None) -> bool:
        """Whether the backend offers the operation here; with a device, whether that device does too.

        Raises: ArgumentValueError for a name that is no operation of the contract.
        """
        if operation not in self.contract["operations"]:
            close = errors.nearest(operation, list(self.contract["operations"]))
            raise errors.ArgumentValueError(
                f"`{operation}` is no operation of the contract", hint=f"did you mean `{close}`?" if close else ""
            )
        if not self._binder.available(operation):
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
        """The library of a role: its path, its version, its candidates. It is loaded when it was not yet."""
        return self._binder.library(role)

    def version(self, role: str = "runtime") -> "tuple[int, ...]":
        """The version of a role's library, (12, 9); () when it cannot be known."""
        return self._binder.library(role).version

    def error_name(self, code: int, library: str = "runtime") -> str:
        """The vendor's name of a status code; empty when the library does not say."""
        return self._binder.library(library).error_name(code)

    def error_text(self, code: int, library: str = "runtime") -> str:
        """The vendor's sentence for a status code, else the contract's; empty for an unknown one."""
        return self._binder.library(library).error_text(code)

    def table(self) -> "Mapping[str, Any]":
        """Read-only: operation to the attribute that is its C function, and the three lists of library names."""
        from types import MappingProxyType

        rows: dict[str, Any] = {name: self._c_name(name) for name in self.contract["operations"]}
        for key, role in (("rt_libs", "runtime"), ("driver_libs", "driver"), ("management_libs", "management")):
            rows[key] = tuple(self._binder.library_names(role))
        return MappingProxyType(rows)

    def _c_name(self, operation: str) -> str:
        """The vendor's symbol where its function has the contract's C form and its name is not also the contract's."""
        try:
            form, *_range, what, _results = self._binder.variant(operation)
        except errors.CapabilityError:
            return C_PREFIX + operation
        if form != "call" or not what[4] or what[0][0] in self.contract["operations"]:
            return C_PREFIX + operation
        return self._binder.exported_symbol(what) or C_PREFIX + operation

    def _forget_functions(self) -> None:
        """Drop the generated functions, so that the next use makes them anew."""
        for name in [*self.__dict__]:
            if name in self.contract["operations"]:
                del self.__dict__[name]


def _refusing(operation: str, error: errors.NbxrtError) -> "Callable[..., Any]":
    """A function for an operation that is not offered: calling it says why."""
    kind, args, facts = type(error), error.args, error.__dict__

    def refuse(*_args: "Any", **_named: "Any") -> "Any":
        again = kind.__new__(kind, *args)
        again.args = args
        again.__dict__.update(facts)
        raise again

    refuse.__name__ = operation
    refuse.__doc__ = str(error)
    return refuse


# The runtime in force. The lock guards what is open and what is in force.

_lock = threading.RLock()
_open: "dict[Any, Runtime]" = {}
#: The runtime in force, and whether it was asked for by name.
_in_force: "tuple[Runtime, bool] | None" = None


def open(name: "str | os.PathLike[str] | None" = None) -> Runtime:  # the verb of this field
    """Open a backend and make it the process's runtime in force; a backend that is open already is given again.

    `name` is a backend's name, or the path of a backend file. Without it: NBX_GPU_BACKEND, else the best backend that
    is here, `cpu` ones last. Nothing is asked of the vendor's driver.

    Raises: BackendNotFoundError, DescriptionError, LibraryNotFoundError, LibraryBrokenError, CapabilityError.
    """
    with _lock:
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

    with _lock:
        key, load = descriptions.find(name)
        if key not in _open:
            runtime = Runtime(load(), descriptions.contract())
            runtime._open()  # noqa: SLF001
            _open[key] = runtime
            _trace_if_asked(runtime)
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


class use:  # noqa: N801  # read as a verb: `with nbxrt.use(runtime):`
    """Make a runtime the one in force inside a `with` block, for all threads; what was in force comes back after it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._before: list[Any] = []

    def __enter__(self) -> Runtime:
        from nbxrt.device import invalidate_current_device_cache

        self._before.append(_in_force)
        put_in_force(self._runtime)
        invalidate_current_device_cache()
        return self._runtime

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        from nbxrt.device import invalidate_current_device_cache

        global _in_force  # noqa: PLW0603
        _in_force = self._before.pop()
        invalidate_current_device_cache()


def all_open() -> "Iterator[Runtime]":
    """Every runtime that is open."""
    yield from list(_open.values())


def forget() -> None:
    """Forget every open runtime and the one in force. Libraries stay loaded: unloading one is not safe."""
    with _lock:
        for runtime in all_open():
            for library in runtime._binder.opened():  # noqa: SLF001
                library.stop()
        _open.clear()
        put_in_force(None)


def _trace_if_asked(runtime: Runtime) -> None:
    import os as system

    if "calls" in system.environ.get("NBXRT_LOG", "").split(","):
        from nbxrt import tracing

        tracing.follow(runtime)
