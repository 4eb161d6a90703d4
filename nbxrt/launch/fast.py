"""The short way of `kernel[grid](…)`: a function generated for each kernel finds what is compiled by a key.

Where the key was not seen, Triton itself binds, specialises and compiles, and a function that packs and launches is
generated for what came out. Where nbxrt cannot tell that it would do the same as Triton's `run`, that is called and
counted, with the reason.
"""

import ctypes
import functools
import gc
import inspect
import struct
import sys
import threading
import weakref
from collections import Counter, defaultdict

from nbxrt import errors
from nbxrt.device import make_current
from nbxrt.launch import checking, keys, signature, streams
from nbxrt.launch.launcher import failure
from nbxrt.objects.device import Device
from nbxrt.objects.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.launch.driver import Driver

#: What a kernel object of Triton carries while nbxrt is installed: its `Kernel`, and its launches by grid.
STATE, GRIDS = "_nbxrt_kernel", "_nbxrt_grids"

#: Grids that are remembered for one kernel.
_MOST_GRIDS = 4096


class Session:
    """One installation: the driver, Triton's own `run`, what was counted, and the kernels that were seen."""

    def __init__(self, driver: "Driver", original_run: "Callable[..., Any]") -> None:
        from triton import knobs

        self.driver = driver
        self.original_run = original_run
        self.knobs = knobs
        self.enter: list[Any] = _calls(knobs.runtime.launch_enter_hook)
        self.exit: list[Any] = _calls(knobs.runtime.launch_exit_hook)
        self.fallbacks: Counter[str] = Counter()
        self.compiled = 0
        self.kernels: list[Any] = []
        self.lock = threading.Lock()
        #: Compiled kernels that have a module, or may come to one, while this is installed.
        self.loaded: weakref.WeakSet[Any] = weakref.WeakSet()

    def kernel(self, jit: "Any") -> "Kernel":
        """What belongs to a kernel of Triton, made at its first launch."""
        with self.lock:
            found = getattr(jit, STATE, None)
            if found is None or found.session is not self:
                found = Kernel(self, jit)
                setattr(jit, GRIDS, found.grids)
                setattr(jit, STATE, found)
                self.kernels.append(jit)
            made: Kernel = found
            return made

    def forget(self) -> None:
        """Leave the kernels as they were found."""
        with self.lock:
            for jit in self.kernels:
                state = getattr(jit, STATE, None)
                if state is not None:
                    jit.device_caches = state.caches_before
                    delattr(jit, STATE)
                    delattr(jit, GRIDS)
            self.kernels.clear()
        gc.collect()  # kernels unload their modules by the driver that is active then, which is still this one
        for compiled in list(self.loaded):
            self._unload(compiled)

    def run(self, jit: "Any", *given: "Any", **named: "Any") -> "Any":
        """Triton's own `run`; what it compiled is remembered for as long as it lives."""
        compiled = self.original_run(jit, *given, **named)
        if hasattr(compiled, "result"):  # compiled in the background
            compiled = compiled.result()
        if compiled is not None:
            self.loaded.add(compiled)
        return compiled

    def _unload(self, compiled: "Any") -> None:
        """Leave a compiled kernel that somebody holds as one that was never loaded: the next driver loads it anew."""
        if compiled.module is not None:
            self.driver.utils.unload_module(compiled.module)
        compiled.module = compiled.function = compiled._run = None  # noqa: SLF001

    def unusual(self, jit: "Any") -> str:
        """Why Triton's own `run` has to do a launch; empty when nothing stands against the short way."""
        runtime, compilation = self.knobs.runtime, self.knobs.compilation
        if _calls(runtime.launch_enter_hook) or _calls(runtime.launch_exit_hook):
            return "launch hooks"
        if jit.pre_run_hooks:
            return "pre-run hooks"
        if runtime.debug:
            return "debug"
        if getattr(runtime, "add_stages_inspection_hook", None) is not None:
            return "inspection of stages"
        if runtime.jit_cache_hook is not None or runtime.jit_post_compile_hook is not None:
            return "compilation hooks"
        return "instrumentation" if getattr(compilation, "instrumentation_mode", "") else ""


def _calls(hook: "Any") -> "list[Any]":
    """The functions of a chain of hooks; a lone function as a list."""
    if hook is None:
        return []
    calls = getattr(hook, "calls", None)
    return [hook] if calls is None else calls


class Kernel:
    """One kernel of Triton while nbxrt is installed: the functions by key, and the function that looks there.

    `entries` holds what launches with no options; `variants` the same by options (`num_warps=8`).
    """

    def __init__(self, session: Session, jit: "Any") -> None:
        self.session = session
        self.jit = jit
        self.name: str = jit.fn.__name__
        self.parameters = list(jit.signature.parameters.values())
        self.names = [parameter.name for parameter in self.parameters]
        self.constants = {parameter.name for parameter in jit.params if parameter.is_constexpr}
        self.entries: dict[Any, Callable[..., Any]] = {}
        self.variants: dict[Any, dict[Any, Callable[..., Any]]] = {}
        self.grids: dict[Any, Any] = {}
        self.lock = threading.RLock()
        self.caches_before = jit.device_caches
        jit.device_caches = defaultdict(jit.create_binder)  # what another driver had compiled is not of this one
        self.is_supported = all(parameter.kind not in _UNBOUND for parameter in self.parameters)
        #: The generated functions, once a launch has shown what its arguments are: by extents, and by a function.
        self.launch: Callable[..., Any] | None = None
        self.dynamic: Callable[..., Any] | None = None

    # the way in

    def bound(self, grid: "Any") -> "Callable[..., Any]":
        """What `kernel[grid]` is.

        Raises: ArgumentTypeError, ArgumentValueError for a grid that is none.
        """
        launch = self.launch or self._first
        if callable(grid):
            return functools.partial(self.dynamic or self._by_function, grid)
        extents = checking.extents(grid, self.name)
        found = functools.partial(launch, *extents)
        if self.launch is not None and isinstance(grid, tuple) and all(axis.__class__ is int for axis in grid):
            if len(self.grids) >= _MOST_GRIDS:
                self.grids.clear()
            self.grids[grid] = found
        return found

    def hooked(self, grid: "Any") -> "Callable[..., Any]":
        """What `kernel[grid]` is while pre-run hooks are set: Triton's own `run`, with the arguments as written."""
        extents = grid if callable(grid) else checking.extents(grid, self.name)

        def run(*given: "Any", **named: "Any") -> "Any":
            self.session.fallbacks["pre-run hooks"] += 1
            return self.session.run(self.jit, *given, grid=extents, warmup=False, **named)

        return run

    def _by_function(self, grid: "Callable[[dict[str, Any]], Any]", *given: "Any", **named: "Any") -> "Any":
        """A grid that depends on the arguments."""
        arguments, options = self._bind(given, named)
        extents = checking.extents(grid(dict(zip(self.names, arguments, strict=True))), self.name)
        return self._given(extents, arguments, options)

    def _first(self, x: int, y: int, z: int, *given: "Any", **named: "Any") -> "Any":
        """The kernel's first launch, and every one of a kernel whose parameters cannot be written down."""
        arguments, options = self._bind(given, named)
        return self._given((x, y, z), arguments, options)

    def _given(self, extents: "tuple[int, int, int]", arguments: "tuple[Any, ...]", options: "dict[str, Any]") -> "Any":
        """A launch whose arguments are bound."""
        if not self.is_supported:
            return self.fall_back("variable parameters", extents, arguments, options)
        if self.launch is None:
            with self.lock:
                if self.launch is None:
                    self.launch = self._generated(arguments)
        named = {
            parameter.name: value
            for parameter, value in zip(self.parameters, arguments, strict=True)
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }
        given = arguments[: len(arguments) - len(named)]
        return self.launch(*extents, *given, **named, **options)

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

    # the generated function

    def _generated(self, arguments: "tuple[Any, ...]") -> "Callable[..., Any]":
        """The function that finds a launch by the key of its arguments; these arguments show what kind each is of."""
        names: dict[str, Any] = {
            "_nbx_entries": self.entries,
            "_nbx_variant": self.variant,
            "_nbx_miss": self.miss,
            "_nbx_odd": self._odd,
            "_nbx_enter": self.session.enter,
            "_nbx_exit": self.session.exit,
            "_nbx_hooks": self.jit.pre_run_hooks,
            "_nbx_runtime": self.session.knobs.runtime.__dict__,
            "_nbx_compilation": self.session.knobs.compilation.__dict__,
            "_nbx_device": self.session.driver.get_current_device,
            "_integer": keys.integer,
            "_key": keys.of,
            "_constant": keys.constant,
            "_nbx_Unknown": keys.UnknownKindError,
        }
        parts = [self._key_text(name, value) for name, value in zip(self.names, arguments, strict=True)]
        if not any(part.endswith(f".{keys.ATTRIBUTE}") for part in parts):
            parts.append("_nbx_device()")
        given = ", ".join(self.names)
        for parameter in self.parameters:
            if parameter.default is not inspect.Parameter.empty:
                names[f"_nbx_default_{parameter.name}"] = parameter.default
        everything = "(" + "".join(f"{name}, " for name in self.names) + ")"
        lines = [
            f"def {self.name}(_nbx_x, _nbx_y, _nbx_z, /, {self._parameters_text()}**_nbx_options):",
            "    if _nbx_enter or _nbx_exit or _nbx_hooks or _nbx_runtime or _nbx_compilation:",
            f"        _nbx_done = _nbx_odd(_nbx_x, _nbx_y, _nbx_z, {everything}, _nbx_options)",
            "        if _nbx_done: return _nbx_done[0]",
            "    try:",
            "        _nbx_go = (_nbx_variant(_nbx_options) if _nbx_options else _nbx_entries)[",
            f"            {', '.join(parts)},",
            "        ]",
            "    except (KeyError, AttributeError, TypeError, _nbx_Unknown):",
            f"        return _nbx_miss(_nbx_x, _nbx_y, _nbx_z, {everything}, _nbx_options)",
            f"    return _nbx_go(_nbx_x, _nbx_y, _nbx_z, {given})",
        ]
        launch = _made("\n".join(lines), names, self.name)
        self.dynamic = self._generated_dynamic(launch, names)
        return launch

    def _generated_dynamic(self, launch: "Callable[..., Any]", names: "dict[str, Any]") -> "Callable[..., Any]":
        """The same for a grid that is a function of the arguments."""
        names = {**names, "_nbx_launch": launch, "_nbx_extents": checking.extents}
        by_name = "{" + ", ".join(f"{name!r}: {name}" for name in self.names) + "}"
        keyword_only = [each.name for each in self.parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
        given = "".join(f"{name}={name}, " if name in keyword_only else f"{name}, " for name in self.names)
        lines = [
            f"def {self.name}(_nbx_grid, /, {self._parameters_text()}**_nbx_options):",
            f"    return _nbx_launch(*_nbx_extents(_nbx_grid({by_name}), {self.name!r}), {given}**_nbx_options)",
        ]
        return _made("\n".join(lines), names, self.name)

    def _key_text(self, name: str, value: "Any") -> str:
        if name in self.constants:
            return keys.CONSTANT.format(n=name)
        if value.__class__ is int:
            return keys.INTEGER.format(n=name)
        if hasattr(type(value), keys.ATTRIBUTE) and hasattr(value, "data_ptr"):
            return f"{name}.{keys.ATTRIBUTE}"
        return f"_key({name})"

    def _parameters_text(self) -> str:
        said, keyword_only = "", False
        for parameter in self.parameters:
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
                said += "*, "
                keyword_only = True
            said += parameter.name
            said += f"=_nbx_default_{parameter.name}, " if parameter.default is not parameter.empty else ", "
        return said

    def variant(self, options: "dict[str, Any]") -> "dict[Any, Callable[..., Any]]":
        """The launches with these options."""
        key = tuple((name, keys.constant(value)) for name, value in options.items())
        found = self.variants.get(key)
        return self.variants.setdefault(key, {}) if found is None else found

    # what the short way does not know

    def _odd(
        self, x: int, y: int, z: int, arguments: "tuple[Any, ...]", options: "dict[str, Any]"
    ) -> "tuple[Any] | None":
        """Something is set that may be for Triton's own `run`: what that answers, or None when it is not."""
        reason = self.session.unusual(self.jit)
        return (self.fall_back(reason, (x, y, z), arguments, options),) if reason else None

    def miss(self, x: int, y: int, z: int, arguments: "tuple[Any, ...]", options: "dict[str, Any]") -> "Any":
        """A launch whose key is not there, or could not be made by the generated expression."""
        try:
            key = self.key(arguments)
            entries = self.variant(options) if options else self.entries
            go = entries.get(key)
        except (keys.UnknownKindError, TypeError) as error:
            checking.arguments(self, arguments)
            reason = "an option or constant that has no hash" if isinstance(error, TypeError) else f"a {error}"
            return self.fall_back(reason, (x, y, z), arguments, options)
        if go is None:
            device = checking.arguments(self, arguments)
            go = self._entry(entries, key, device, (x, y, z), arguments, options)
        return go(x, y, z, *arguments)

    def key(self, arguments: "tuple[Any, ...]") -> "tuple[Any, ...]":
        """The key of the arguments, as the generated function makes it.

        Raises: UnknownKindError; TypeError for a constant without a hash, when it is looked up.
        """
        parts: list[Any] = []
        has_pointer = False
        for name, value in zip(self.names, arguments, strict=True):
            if name in self.constants:
                parts.append(keys.constant(value))
                continue
            parts.append(keys.of(value))
            has_pointer = has_pointer or (parts[-1].__class__ is int and parts[-1] >= keys.FIRST_POINTER)
        if not has_pointer:
            parts.append(self.session.driver.get_current_device())
        return tuple(parts)

    def fall_back(
        self, reason: str, extents: "tuple[int, int, int]", arguments: "tuple[Any, ...]", options: "dict[str, Any]"
    ) -> "Any":
        """Let Triton's own `run` do the launch, on nbxrt's driver."""
        self.session.fallbacks[reason] += 1
        given, named = [], dict(options)
        for parameter, value in zip(self.parameters, arguments, strict=True):
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                given.extend(value)
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                given.append(value)
        return self.session.run(self.jit, *given, grid=extents, warmup=False, **named)

    # making an entry

    def _entry(
        self,
        entries: "dict[Any, Any]",
        key: "tuple[Any, ...]",
        device: "int | None",
        extents: "tuple[int, int, int]",
        arguments: "tuple[Any, ...]",
        options: "dict[str, Any]",
    ) -> "Callable[..., Any]":
        """The launch for a key, compiled and loaded once, whichever thread comes first."""
        with self.lock:
            if key in entries:
                return entries[key]  # type: ignore[no-any-return]
            driver = self.session.driver
            index = driver.get_current_device() if device is None else device
            of = Device(index, runtime=driver.runtime)
            go = of.on(self._made_entry, index, extents, arguments, options)
            entries[key] = go
            self.session.compiled += 1
            return go

    def _made_entry(
        self, device: int, extents: "tuple[int, int, int]", arguments: "tuple[Any, ...]", options: "dict[str, Any]"
    ) -> "Callable[..., Any]":
        return self._go(self._compiled(extents, arguments, options), device, arguments)

    def _compiled(
        self, extents: "tuple[int, int, int]", arguments: "tuple[Any, ...]", options: "dict[str, Any]"
    ) -> "Any":
        """The compiled kernel, by Triton's own binder and compiler, loaded on the current device."""
        given, named = [], dict(options)
        for parameter, value in zip(self.parameters, arguments, strict=True):
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                given.append(value)
        try:
            compiled = self.session.run(self.jit, *given, grid=extents, warmup=True, **named)
        except OSError as error:
            raise _cannot_keep(error) from error
        compiled._init_handles()  # noqa: SLF001  # loads the binary; says where the device's limits do not allow it
        return compiled

    def _go(self, compiled: "Any", device: int, arguments: "tuple[Any, ...]") -> "Callable[..., Any]":
        """The function that packs arguments of these kinds and launches the compiled kernel."""
        launcher = compiled.run
        launcher.prepare(compiled.function)
        shape = launcher.shape
        runtime = self.session.driver.runtime
        slow = functools.partial(self._checked, launcher, compiled, device)
        if shape.needs_scratch or not all(
            kind == signature.CONSTANT or signature.is_plain(kind) for kind in shape.kinds
        ):
            return slow
        values = [
            _value_text(name, kind, value)
            for name, kind, value in zip(self.names, shape.kinds, arguments, strict=True)
            if kind != signature.CONSTANT
        ]
        names: dict[str, Any] = {
            "_nbx_pack": struct.Struct(shape.slots.format).pack_into,
            "_nbx_take": shape.slots.pool.pop,
            "_nbx_give": shape.slots.pool.append,
            "_nbx_fresh": shape.slots.fresh,
            "_nbx_call": shape.call.function,
            "_nbx_function": ctypes.c_void_p(compiled.function),
            "_nbx_kernel": compiled,
            "_nbx_torchs": streams.torchs,
            "_nbx_modules": sys.modules,
            "_nbx_note": self._note,
            "_nbx_pointer": ctypes.c_void_p,
            "_nbx_slow": slow,
            "_nbx_failed": functools.partial(self._failed, shape, slow),
            "_nbx_current": runtime.current,
            "_nbx_bfloat16": _bfloat16,
            "_Empty": IndexError,
            "_Odd": (struct.error, OverflowError, TypeError, AttributeError, ValueError),
        }
        everything = "_nbx_x, _nbx_y, _nbx_z, " + ", ".join(self.names)
        lines = [
            f"def launch_{self.name}({everything}):",
            *self._globals_lines(names),
            "    if not (_nbx_x and _nbx_y and _nbx_z): return _nbx_kernel",
        ]
        if runtime.device_count() > 1:
            lines += [
                "    try: _nbx_here = _nbx_current.index",
                "    except AttributeError: _nbx_here = None",
                f"    if _nbx_here != {device}: return _nbx_slow({everything})",
            ]
        lines += [
            "    _nbx_streams = _nbx_current.streams",
            f"    if _nbx_streams and {device} in _nbx_streams:",
            f"        _nbx_s = _nbx_streams[{device}].handle",
            f"        if _nbx_s is None: return _nbx_slow({everything})",
            f"    else: _nbx_s = 0 if 'torch' not in _nbx_modules else _nbx_torchs({device})",
            *self._memory_lines(shape, arguments),
            "    try: _nbx_slot = _nbx_take()",
            "    except _Empty: _nbx_slot = _nbx_fresh()",
            "    _nbx_buffer, _nbx_configuration, _nbx_arguments = _nbx_slot",
            *_pack_lines(shape, values, everything),
            *_call_lines(shape),
            "    _nbx_give(_nbx_slot)",
            f"    if _nbx_code: return _nbx_failed(_nbx_code, _nbx_s, {everything})",
            "    return _nbx_kernel",
        ]
        return _made("\n".join(lines), names, f"launch_{self.name}")

    def _memory_lines(self, shape: "Any", arguments: "tuple[Any, ...]") -> "list[str]":
        """Arrays of nbxrt that are closed, or of another stream than the launch, are looked at more closely."""
        arrays = [
            name
            for name, kind, value in zip(self.names, shape.kinds, arguments, strict=True)
            if kind != signature.CONSTANT and kind.startswith("*") and hasattr(type(value), keys.ATTRIBUTE)
        ]
        if not arrays:
            return []
        elsewhere = " or ".join(f"{name}.memory.home != _nbx_s" for name in arrays)
        return [f"    if {elsewhere}: _nbx_note(_nbx_s, {', '.join(arrays)})"]

    def _globals_lines(self, names: "dict[str, Any]") -> "list[str]":
        """Triton refuses to run a kernel whose global variables have changed: let it say so."""
        lines = []
        for at, ((name, _where), (value, variables)) in enumerate(self.jit.used_global_vals.items()):
            names |= {f"_nbx_value{at}": value, f"_nbx_globals{at}": variables, "_nbx_changed": self._changed}
            now = f"_nbx_globals{at}.get({name!r}, _nbx_changed)"
            given = ", ".join(self.names)
            lines += [
                f"    if (_nbx_now := {now}) is not _nbx_value{at} and _nbx_now != _nbx_value{at}:",
                f"        return _nbx_changed(_nbx_x, _nbx_y, _nbx_z, {given})",
            ]
        return lines

    def _changed(self, x: int, y: int, z: int, *arguments: "Any") -> "Any":
        return self.fall_back("a global variable that has changed", (x, y, z), arguments, {})

    def _checked(
        self, launcher: "Any", compiled: "Any", device: int, x: int, y: int, z: int, *arguments: "Any"
    ) -> "Any":
        """The long way of a launch that is known: any device, any value, every error by the argument's name."""
        runtime = self.session.driver.runtime
        of = Device(device, runtime=runtime)
        of.on(self._launched, launcher, compiled, device, (x, y, z), arguments)
        if getattr(runtime.current, "index", None) is None and runtime.get_device() == device:
            make_current(runtime, device)  # it has a context by now, and the next launch need not ask
        return compiled

    def _launched(
        self,
        launcher: "Any",
        compiled: "Any",
        device: int,
        extents: "tuple[int, int, int]",
        arguments: "tuple[Any, ...]",
    ) -> None:
        stream = streams.current(self.session.driver.runtime, device)
        self._note(stream, *arguments)
        launcher.launcher.launch(extents, stream, ctypes.c_void_p(compiled.function), arguments, self.names)

    def _note(self, stream: int, *arguments: "Any") -> None:
        """Arrays of other streams are in use by this one now; closed ones are refused."""
        for value in arguments:
            memory = getattr(value, "memory", None)
            if isinstance(memory, Memory) and memory.home != stream:
                streams.note_use(memory, stream)

    def _failed(
        self, shape: "Any", slow: "Callable[..., Any]", code: int, stream: int, x: int, y: int, z: int, *given: "Any"
    ) -> "Any":
        """A launch was refused: once more where the thread only lacked a context."""
        if shape.call.enter(code):
            return slow(x, y, z, *given)
        raise failure(shape, code, (x, y, z), stream)


_UNBOUND = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _value_text(name: str, kind: str, value: "Any") -> str:
    """The expression of what `struct` writes for an argument."""
    if kind.startswith("*"):
        if value.__class__ is int:
            return name
        return f"{name}.ptr" if hasattr(type(value), keys.ATTRIBUTE) else f"{name}.data_ptr()"
    return f"_nbx_bfloat16({name})" if kind == "bf16" else name


def _pack_lines(shape: "Any", values: "list[str]", everything: str) -> "list[str]":
    parts = {
        "grid": f"_nbx_x * {shape.clusters}, _nbx_y, _nbx_z" if shape.clusters != 1 else "_nbx_x, _nbx_y, _nbx_z",
        "block": f"{shape.threads}, 1, 1",
        "shared_memory": f"{shape.shared}",
        "stream": "_nbx_s",
    }
    written = ", ".join([*values, *(parts[name] for name in shape.slots.order)])
    if not written:
        return []
    return [
        f"    try: _nbx_pack(_nbx_buffer, {shape.slots.begin}, {written})",
        f"    except _Odd: return _nbx_slow({everything})",
    ]


def _call_lines(shape: "Any") -> "list[str]":
    if shape.slots.layout is not None:
        return ["    _nbx_code = _nbx_call(_nbx_configuration, _nbx_function, _nbx_arguments, None)"]
    grid = f"_nbx_x * {shape.clusters}, _nbx_y, _nbx_z"
    block = f"{shape.threads}, 1, 1, {shape.shared}"
    stream = "_nbx_pointer(_nbx_s) if _nbx_s else None"
    return [f"    _nbx_code = _nbx_call(_nbx_function, {grid}, {block}, {stream}, _nbx_arguments, None)"]


def _cannot_keep(error: OSError) -> errors.NbxrtError:
    """The error of a compilation whose files cannot be read or written: most often Triton's cache."""
    from triton import knobs

    folder = knobs.cache.dir
    return errors.CapabilityError(
        f"Triton cannot compile with its cache in {folder}: {error.filename or folder}: {error.strerror or error}",
        hint="set TRITON_CACHE_DIR to a folder that this user can write",
        folder=folder,
    )


def _bfloat16(value: float) -> int:
    from nbxrt.launch.packing import bfloat16

    return bfloat16(value)


def _made(text: str, names: "dict[str, Any]", function: str) -> "Callable[..., Any]":
    code = compile(text, f"<nbxrt launch of {function}>", "exec")
    exec(code, names)  # noqa: S102  # the text is made here, of the kernel's own parameter names
    made: Callable[..., Any] = names[function]
    return made
