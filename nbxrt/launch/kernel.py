"""The short way of `kernel[grid](…)`: a function generated for each kernel finds what is compiled by a key.

Where the key was not seen, Triton itself binds, specialises and compiles, and a function that packs and launches is
generated for what came out. Where nbxrt cannot tell that it would do the same as Triton's `run`, that is called and
counted, with the reason.
"""

import errno
import functools
import inspect
import os
import threading
from collections import defaultdict
from types import MethodType

from nbxrt import errors
from nbxrt.launch import checking, direct, finding, generated, keys, packing, sending, streams
from nbxrt.launch.entry import Entry
from nbxrt.launch.finding import ABSENT, Site
from nbxrt.objects.device import Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeAlias

    from nbxrt.launch.direct import Plan
    from nbxrt.launch.session import Session

    #: Three extents, and their bytes as a launch's configuration has them.
    Grid: TypeAlias = tuple[int, int, int, bytes]

#: Grids that are remembered for one kernel.
_MOST_GRIDS = 4096

_UNBOUND = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class _Caches(defaultdict):  # type: ignore[type-arg]
    """Triton's own caches of a kernel by device; who clears them means nbxrt's too."""

    def __init__(self, kernel: "Kernel") -> None:
        super().__init__(kernel.jit.create_binder)
        self._kernel = kernel

    def clear(self) -> None:
        super().clear()
        self._kernel.forget_compiled()


class Kernel:
    """One kernel of Triton while nbxrt is installed: what launches it by key, and the function that looks there.

    `table` holds what launches with no options; `variants` the same by options (`num_warps=8`).
    """

    def __init__(self, session: "Session", jit: "Any") -> None:
        self.session = session
        self.jit = jit
        self.name: str = jit.fn.__name__
        self.parameters = list(jit.signature.parameters.values())
        self.names = [parameter.name for parameter in self.parameters]
        self.constants = {parameter.name for parameter in jit.params if parameter.is_constexpr}
        self.table = finding.Table()
        self.variants: dict[Any, finding.Table] = {}
        #: What `kernel[grid]` is, by grid.
        self.grids: dict[Any, Any] = {}
        #: The last launch of a site that had none.
        self.nothing: tuple[Any, ...] = ()
        self.lock = threading.RLock()
        self.caches_before: Any = None
        self.is_forgotten = False
        #: How the arguments take part in a look-up; None before a launch has shown what kind each is of.
        self.parts: list[finding.Part] | None = None
        #: How the finder launches by itself; None where it cannot.
        self.plan: Plan | None = None
        self.is_supported = all(parameter.kind not in _UNBOUND for parameter in self.parameters)
        #: The generated functions, once a launch has shown what its arguments are: by extents, and by a function.
        self.launch: Callable[..., Any] | None = None
        self.dynamic: Callable[..., Any] | None = None

    def take_over(self) -> None:
        """Have Triton's caches be this kernel's own: what another driver had compiled is not of this one."""
        self.caches_before, self.jit.device_caches = self.jit.device_caches, _Caches(self)

    def forget(self) -> None:
        """Let go of all that belongs to the runtime: the generated functions refer to it, and to this object."""
        self.is_forgotten = True
        self.forget_compiled()
        self.dynamic = None

    def forget_compiled(self) -> None:
        """Have everything compiled again at its next launch, also by what somebody holds of `kernel[grid]`."""
        if self.launch is not None:
            names = self.launch.__globals__
            names["_nbx_odd"] = self._anew
            names["_nbx_enter"] = (self,)  # that it asks `_nbx_odd`, whatever it knows
        self.launch = None
        for found in list(self.grids.values()):
            found.__self__.forget(self.nothing)
        for table in (self.table, *self.variants.values()):
            for site, *_values in list(table.seen):
                site.forget(self.nothing)
            table.entries.clear()
            table.seen.clear()
        self.table = finding.Table()
        self.variants.clear()
        self.grids.clear()

    # the way in

    def bound(self, grid: "Any") -> "Callable[..., Any]":
        """What `kernel[grid]` is.

        Raises: ArgumentTypeError, ArgumentValueError for a grid that is none.
        """
        if callable(grid):
            return MethodType(self.dynamic or self._by_function, grid)
        extents = checking.extents(grid, self.name, most=self.session.most_blocks)
        launch = self.launch
        found = self.grids.get(extents) if launch is not None else None
        if found is None:
            made: Grid = (*extents, packing.grid_bytes(*extents))
            if launch is None or not all(extents):
                return MethodType(self._first, made)
            found = MethodType(launch, Site(made, self.nothing))
        if len(self.grids) >= _MOST_GRIDS:
            self.grids.clear()
        is_plain = isinstance(grid, tuple) and all(axis.__class__ is int for axis in grid)
        self.grids[extents] = found
        if is_plain:
            self.grids[grid] = found
        if self.launch is not launch:  # everything was forgotten meanwhile
            self.grids.clear()
        return found

    def hooked(self, grid: "Any") -> "Callable[..., Any]":
        """What `kernel[grid]` is while pre-run hooks are set: Triton's own `run`, with the arguments as written."""
        extents = grid if callable(grid) else checking.extents(grid, self.name, most=self.session.most_blocks)

        def run(*given: "Any", **named: "Any") -> "Any":
            self._demand_session()
            arguments, options = self._bind(given, named)
            return self._run("pre-run hooks", extents, arguments, given, named, options)

        return run

    def _by_function(self, grid: "Callable[[dict[str, Any]], Any]", /, *given: "Any", **named: "Any") -> "Any":
        """A grid that depends on the arguments."""
        arguments, _options = self._bind(given, named)
        return self.bound(grid(dict(zip(self.names, arguments, strict=True))))(*given, **named)

    def _first(self, grid: "Grid", /, *given: "Any", **named: "Any") -> "Any":
        """The kernel's first launch, and every one on an empty grid or with parameters that cannot be written down."""
        if self.launch is not None and all(grid[:3]):
            return self.bound(grid[:3])(*given, **named)
        self._demand_session()
        arguments, options = self._bind(given, named)
        reason = "" if self.is_supported else "variable parameters"
        reason = reason or self.session.unusual(self.jit)
        if reason:
            return self.fall_back(reason, grid, arguments, options)
        self._learn(arguments)
        try:
            compiled = self.miss(grid, arguments, options)
        except BaseException:
            with self.lock:
                if self.launch is None:  # what is refused shows nothing
                    self.parts = self.plan = None
            raise
        with self.lock:
            if self.launch is None and not self.is_forgotten:
                self._generate(self._learn(arguments))
        return compiled

    def _learn(self, arguments: "tuple[Any, ...]") -> "list[finding.Part]":
        """What kind each argument is of, as the first launch shows it; later ones need not be of these kinds."""
        with self.lock:
            if self.parts is None:
                values = dict(zip(self.names, arguments, strict=True))
                self.plan, self.parts = self._planned(values), finding.parts(values, self.constants)
            return self.parts

    def _bind(self, given: "tuple[Any, ...]", named: "dict[str, Any]") -> "tuple[tuple[Any, ...], dict[str, Any]]":
        """The values of all parameters in order, and the options.

        Raises: TypeError that names a missing argument.
        """
        own = {name: value for name, value in named.items() if name in self.names}
        options = {name: value for name, value in named.items() if name not in own}
        try:
            bound = self.jit.signature.bind(*given, **own)
        except TypeError as error:
            raise errors.ArgumentTypeError(f"`{self.name}`: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self.names), options

    def demand_arguments(
        self, arguments: "tuple[Any, ...]", options: "dict[str, Any]", more: "tuple[Any, ...]" = ()
    ) -> None:
        """Refuse values of all parameters of which one is absent, and what is `more`. Raises: ArgumentTypeError."""
        if not more and all(value is not ABSENT for value in arguments):
            return
        values = dict(zip(self.names, arguments, strict=True))
        named = {name: value for name, value in values.items() if value is not ABSENT}
        if not more:
            self._bind((), named)
        by_place = [each.name for each in self.parameters if each.kind is not each.KEYWORD_ONLY]
        self._bind((*(named.pop(name) for name in by_place), *more), named | options)

    # the generated functions

    def _planned(self, values: "dict[str, Any]") -> "Plan | None":
        roles = {name: direct.role(value, name in self.constants) for name, value in values.items()}
        call, _attributes = self.session.driver.runtime.launches.of({})
        if not all(roles.values()) or call.configuration is None:
            return None
        return direct.Plan(roles, packing.configuration_order(call.configuration))

    def _generate(self, parts: "list[finding.Part]") -> None:
        """Make the functions that find a launch."""
        session, runtime = self.session, self.session.driver.runtime
        names: dict[str, Any] = {
            "_nbx_table": self.table,
            "_nbx_variant": self.variant,
            "_nbx_variants": self.variants,
            "_nbx_miss": self.miss,
            "_nbx_long": self.miss,
            "_nbx_refused": self._refused,
            "_nbx_key": session.key,
            "_nbx_odd": self._odd,
            "_nbx_ask_device": session.driver.get_current_device,
            "_nbx_enter": session.enter,
            "_nbx_exit": session.exit,
            "_nbx_hooks": self.jit.pre_run_hooks,
            "_nbx_runtime": session.knobs.runtime.__dict__,
            "_nbx_compilation": session.knobs.compilation.__dict__,
            "_nbx_call": runtime.launches.of({})[0].function,
            "_nbx_note": functools.partial(streams.note_arguments, self.name, self.plan.arrays if self.plan else ()),
            **sending.of_streams(runtime),
        }
        long = f"_nbx_long(_nbx_site.grid, ({''.join(f'{name}, ' for name in self.names)}), _nbx_options)"
        before = [
            *generated.globals_lines(self.used_globals(), names, long),
            *(generated.device_lines("_nbx_device", long) if runtime.device_count() > 1 else ()),
            *generated.stream_lines("_nbx_device", long),
        ]
        by_grid = {"_nbx_grids": self.grids, "_nbx_bound": self.bound, "_nbx_demand": self.demand_arguments}
        self.dynamic = finding.finder_of_grids(self.name, self.parameters, by_grid)
        self.nothing = finding.nothing(parts, self.plan)
        launch = finding.finder(self.name, self.parameters, parts, self.plan, before, names)
        if self.table is names["_nbx_table"]:  # else everything was forgotten meanwhile
            self.launch = launch

    def used_globals(self) -> "list[tuple[str, Any, dict[str, Any]]]":
        """The global variables that the kernel was compiled with: names, values, and where they are."""
        return [(name, *found) for (name, _where), found in self.jit.used_global_vals.items()]

    def variant(self, options: "dict[str, Any]") -> finding.Table:
        """The launches with these options.

        Raises: TypeError for one without a hash; ArgumentValueError for what the compiler does not take.
        """
        if not options:
            return self.table
        if all(value.__class__ in keys.PLAIN for value in options.values()):
            key = finding.key_of_options(options)
        else:
            key = tuple((name, keys.constant(value)) for name, value in options.items())
        found = self.variants.get(key)
        if found is None:
            self._demand_options(options)
            found = self.variants.setdefault(key, finding.Table())
        return found

    def _demand_options(self, options: "dict[str, Any]") -> None:
        """See that Triton's compiler takes them. Raises: ArgumentValueError."""
        from triton.compiler import make_backend

        target = self.session.driver.get_current_target()
        checking.options(make_backend(target), target.backend, options, self.name, self.names)

    # what the short way does not know

    def _odd(
        self, grid: "Grid", arguments: "tuple[Any, ...]", options: "dict[str, Any]", more: "tuple[Any, ...]"
    ) -> "tuple[Any] | None":
        """Something is set that may be for Triton's own `run`: what that answers, or None when it is not."""
        self.demand_arguments(arguments, options, more)
        reason = self.session.unusual(self.jit)
        return (self.fall_back(reason, grid, arguments, options),) if reason else None

    def _anew(
        self, grid: "Grid", arguments: "tuple[Any, ...]", options: "dict[str, Any]", more: "tuple[Any, ...]"
    ) -> "tuple[Any]":
        """What was asked of a launch that was bound to a grid before all was forgotten."""
        self._demand_session()
        self.demand_arguments(arguments, options, more)
        given, named = self._as_called(arguments)
        return (self.bound(grid[:3])(*given, **named, **options),)

    def _demand_session(self) -> None:
        """Refuse a launch by what `kernel[grid]` was before. Raises: CapabilityError."""
        if self.is_forgotten:
            raise errors.CapabilityError(
                f"nbxrt was taken out of Triton since `{self.name}[…]` was written", hint=f"write `{self.name}[…]` anew"
            )

    def miss(self, grid: "Grid", arguments: "tuple[Any, ...]", options: "dict[str, Any]") -> "Any":
        """A launch whose key is not there, or could not be made by the generated expression."""
        self._demand_session()
        try:
            key = self.key(arguments)
            entries = self.variant(options).entries
            entry = entries.get(key)
        except (keys.UnknownKindError, TypeError) as error:
            self.demand_arguments(arguments, options)
            if not isinstance(error, TypeError):
                return self.fall_back(f"a {error}", grid, arguments, options)
            return self.fall_back("an option or constant that has no hash", grid, arguments, options)
        if entry is None:
            self.demand_arguments(arguments, options)
            device = checking.arguments(self, arguments)
            entry = self._entry(entries, key, device, grid, arguments, options)
        if all(grid[:3]):
            return entry.launch(grid, *arguments)
        return self.changed(options, grid, *arguments) if self.has_changed() else entry.compiled

    def key(self, arguments: "tuple[Any, ...]") -> "tuple[Any, ...]":
        """The key of the arguments, as the generated function makes it.

        Raises: UnknownKindError; TypeError for a constant without a hash, when it is looked up.
        """
        parts: list[Any] = []
        says_device = self.parts is not None and len(self.parts) == len(self.names)
        has_array = False
        for name, value in zip(self.names, arguments, strict=True):
            if name in self.constants:
                parts.append(keys.constant(value))
                continue
            parts.append(self.session.key(value))
            has_array = has_array or hasattr(type(value), keys.ATTRIBUTE)
        if not (says_device and has_array):
            parts.append(self.session.driver.get_current_device())
        return tuple(parts)

    def fall_back(self, reason: str, grid: "Grid", arguments: "tuple[Any, ...]", options: "dict[str, Any]") -> "Any":
        """Let Triton's own `run` do the launch, on nbxrt's driver."""
        return self._run(reason, grid[:3], arguments, *self._as_called(arguments), options)

    def _run(
        self,
        reason: str,
        grid: "Any",
        arguments: "tuple[Any, ...]",
        given: "Sequence[Any]",
        named: "dict[str, Any]",
        options: "dict[str, Any]",
    ) -> "Any":
        """Triton's own `run` for these arguments, which a call writes as `given` and `named`, on their device."""
        device = checking.arguments(self, arguments)
        if options:
            self._demand_options(options)
        self.session.fallbacks[reason] += 1
        driver = self.session.driver
        index = driver.get_current_device() if device is None else device
        run = functools.partial(self.session.run, self.jit, *given, grid=grid, warmup=False, **named | options)
        with checking.naming_constants(self, arguments), self._telling(arguments):
            return Device(index, runtime=driver.runtime).on(run)

    def warm_up(self, given: "tuple[Any, ...]", named: "dict[str, Any]") -> "Any":
        """Compile without a launch, which is Triton's, after the arguments were checked as for one."""
        arguments, _options = self._bind(given, {name: value for name, value in named.items() if name != "grid"})
        checking.arguments(self, arguments)
        with checking.naming_constants(self, arguments), self._telling(arguments):
            return self.session.run(self.jit, *given, **named, warmup=True)

    def _telling(self, arguments: "tuple[Any, ...]") -> "AbstractContextManager[None]":
        return checking.telling_arguments(self.name, zip(self.names, arguments, strict=True))

    def _as_called(self, arguments: "tuple[Any, ...]") -> "tuple[list[Any], dict[str, Any]]":
        """The values of all parameters as a call writes them."""
        given: list[Any] = []
        named: dict[str, Any] = {}
        for parameter, value in zip(self.parameters, arguments, strict=True):
            if parameter.kind is parameter.VAR_POSITIONAL:
                given.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                given.append(value)
        return given, named

    # making an entry

    def _entry(
        self,
        entries: "dict[Any, Entry]",
        key: "tuple[Any, ...]",
        device: "int | None",
        grid: "Grid",
        arguments: "tuple[Any, ...]",
        options: "dict[str, Any]",
    ) -> Entry:
        """The launch for a key, compiled and loaded once, whichever thread comes first."""
        with self.lock:
            if key in entries:
                return entries[key]
            driver = self.session.driver
            index = driver.get_current_device() if device is None else device
            compiled = Device(index, runtime=driver.runtime).on(self._compiled, grid, arguments, options)
            made = entries[key] = Entry(self, compiled, index, arguments, options)
            self.session.compiled += 1
            return made

    def _compiled(self, grid: "Grid", arguments: "tuple[Any, ...]", options: "dict[str, Any]") -> "Any":
        """The compiled kernel, by Triton's own binder and compiler, loaded on the current device."""
        given, named = self._as_called(arguments)
        _demand_cache()
        try:
            with self._telling(arguments):
                compiled = self.session.run(self.jit, *given, grid=grid[:3], warmup=True, **named, **options)
        except OSError as error:
            raise _cannot_keep(error) from error
        compiled._init_handles()  # noqa: SLF001  # loads the binary; says where the device's limits do not allow it
        return compiled

    # the long ways

    def has_changed(self) -> bool:
        """Whether a global variable that the kernel was compiled with is another one now."""
        missing = object()
        return any(variables.get(name, missing) != value for name, value, variables in self.used_globals())

    def changed(self, options: "dict[str, Any]", grid: "Grid", *arguments: "Any") -> "Any":
        return self.fall_back("a global variable that has changed", grid, arguments, options)

    def _refused(
        self, code: int, stream: int, grid: "Grid", arguments: "tuple[Any, ...]", options: "dict[str, Any]"
    ) -> "Any":
        """The vendor refused a launch that the finder made itself."""
        entry = self.variant(options).entries.get(self.key(arguments))
        if entry is None:  # everything was forgotten meanwhile
            return self.miss(grid, arguments, options)
        return entry.failed(code, stream, grid, *arguments)


_CACHE_HINT = "set TRITON_CACHE_DIR to a folder that this user can write"


def _demand_cache() -> None:
    """See that Triton has a cache, which is no folder named `~` in the working folder. Raises: CapabilityError."""
    from triton import knobs

    folder = knobs.cache.dir
    if folder and not folder.startswith("~"):
        return
    said = next((each for each in ("TRITON_CACHE_DIR", "TRITON_HOME") if each in os.environ), "")
    if said:
        why = f"{said} is {os.environ[said]!r}" + (", and Triton does not look up what `~` is" if folder else "")
    else:
        why = "there is no HOME, and the system knows no home of this user" if folder else "its setting is empty"
    raise errors.CapabilityError(f"Triton has no folder for its cache: {why}", hint=_CACHE_HINT, folder=folder)


def _cannot_keep(error: OSError) -> errors.NbxrtError:
    """The error of a compilation whose files cannot be read or written: most often Triton's cache."""
    from triton import knobs

    folder, code = knobs.cache.dir, errno.errorcode.get(error.errno or 0, "")
    return errors.CapabilityError(
        f"Triton cannot compile with its cache in {folder}: {error.filename or folder}: {error.strerror or error}"
        + (f" ({code})" if code else ""),
        hint=_CACHE_HINT,
        folder=folder,
    )
