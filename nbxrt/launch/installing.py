"""Putting nbxrt in the place of Triton's driver and launcher, and taking it out again."""

import os
import sys
import threading

from nbxrt import descriptions, errors, runtime
from nbxrt.launch import versions
from nbxrt.launch.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.launch.kernel import Kernel
    from nbxrt.runtime import Runtime

#: `triton` leaves Triton's own driver and launcher where they are, to compare.
LAUNCHER = "NBX_LAUNCHER"
_INTERPRET = "TRITON_INTERPRET"

_lock = threading.RLock()


class Installed:
    """What was put in place, and what stood there before."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.undo: list[Callable[[], Any]] = []


_installed: "Installed | None" = None


def install(name: "Runtime | str | os.PathLike[str] | None" = None) -> "Runtime":
    """Make nbxrt Triton's active driver and the launcher of its kernels; the runtime that kernels now run on.

    `name` is a runtime, or what `nbxrt.open` takes; without it, the runtime in force, else the best that is here. On a
    backend that is the processor itself, kernels are interpreted: then this comes before `import triton`. Nothing is
    asked of Triton's own drivers, torch is not imported, no compiler is started. Installing again changes the runtime.

    Raises: CapabilityError where Triton is not installed or does not know the backend; UntestedVersionError for a
    Triton whose launches are not known here; as `nbxrt.open`.
    """
    global _installed  # noqa: PLW0603  # one process, one active driver
    with _lock:
        chosen = _runtime(name)
        if _own_launcher():
            uninstall()
            return chosen
        if _installed is not None:
            uninstall()
        target = _target(chosen)
        made = Installed()
        if target is None:
            _interpret(chosen, made)
        else:
            _drive(chosen, target, made)
        _installed = made
        return chosen


def uninstall() -> None:
    """Put everything back as it was before `install`; without one, nothing happens."""
    global _installed  # noqa: PLW0603
    with _lock:
        if _installed is None:
            return
        for step in reversed(_installed.undo):
            step()
        _installed = None


def session() -> "Session | None":
    """The installation on a device, if there is one."""
    return _installed.session if _installed is not None else None


def _own_launcher() -> bool:
    """Whether the user asks for Triton's own way. Raises: ArgumentValueError."""
    said = os.environ.get(LAUNCHER, "").strip()
    if said in ("", "nbxrt"):
        return False
    if said == "triton":
        return True
    raise errors.ArgumentValueError(
        f"{LAUNCHER}={said!r} is no launcher", hint="`nbxrt` (the usual one), or `triton` for Triton's own"
    )


def _runtime(name: "Any") -> "Runtime":
    if isinstance(name, runtime.Runtime):
        return name
    if name is None:
        return runtime.in_force() or runtime.open()
    return runtime.open(name)


def _target(chosen: "Runtime") -> "str | None":
    """The backend's name in Triton's targets; None for the processor, on which kernels are interpreted.

    Raises: CapabilityError.
    """
    triton = chosen.description["triton"] or descriptions.triton(chosen.name)
    if triton and triton[1]:
        return str(triton[1])
    if chosen.kind == "cpu":
        return None
    raise errors.CapabilityError(
        f"Triton has no target for {chosen.title}: {chosen.description['file']} names none",
        hint="`triton: {keys: […], target: …}` in the backend's file names it",
    )


# On a device


def _drive(chosen: "Runtime", target: str, made: Installed) -> None:
    triton = imported_triton()
    facts = versions.facts_of(triton.__version__)
    _demand_compiler(target, chosen)
    if _is_interpreting():
        raise errors.CapabilityError(
            f"{_INTERPRET} is set, so Triton interprets kernels, and {chosen.title} cannot run these",
            hint=f"unset {_INTERPRET} before `import triton`",
        )
    from triton.runtime.jit import JITFunction

    from nbxrt.launch.driver import Driver

    driver = Driver(chosen, target, facts, triton.__version__)
    _forget_limits()
    made.undo.append(_forget_limits)
    _keep_torch_out(facts, made)
    _activate(driver, made)
    session = Session(driver, JITFunction.run)
    made.session = session
    _replace(JITFunction, "run", _run, made)
    _replace(JITFunction, "__getitem__", _getitem, made)
    made.undo.append(session.forget)


def imported_triton() -> "Any":
    """Triton, imported. Raises: CapabilityError."""
    try:
        import triton
    except ImportError as error:
        raise errors.CapabilityError(
            f"Triton cannot be imported: {error}", hint="`pip install triton` (Linux)"
        ) from error
    return triton


def _demand_compiler(target: str, chosen: "Runtime") -> None:
    """See that the installed Triton compiles for the backend: one of its registry's keys is the file's."""
    from triton.backends import backends

    keys = (chosen.description["triton"] or descriptions.triton(chosen.name) or ((), None))[0]
    if not any(key in backends for key in keys):
        raise errors.CapabilityError(
            f"the installed Triton does not compile for `{target}`: it has {', '.join(backends)}",
            hint=f"{chosen.title} is known to Triton as {' or '.join(keys)}",
        )


def _keep_torch_out(facts: "versions.Facts", made: Installed) -> None:
    """Let nothing of Triton import torch on its own; a torch that is in use already stays so."""
    if "torch" in sys.modules:
        return
    if facts.looks_for_torch_once:
        from triton.runtime.jit import mangle_type

        sys.modules["torch"] = None  # type: ignore[assignment]
        try:
            mangle_type(0)  # it looks for torch now, and not again
        finally:
            del sys.modules["torch"]
    from triton.backends import backends

    for backend in backends.values():
        compiler = backend.compiler
        if hasattr(compiler, "_torch_available"):
            _replace(compiler, "_torch_available", False, made)
        elif hasattr(compiler, "is_within_2gb"):
            _replace(compiler, "is_within_2gb", staticmethod(_is_within_2gb), made)


def _is_within_2gb(value: "Any") -> bool:
    return hasattr(value, "ptr_range") and value.ptr_range() <= 2**31 - 1


def _activate(driver: "Any", made: Installed) -> None:
    from triton.runtime import driver as config

    before = config._active  # noqa: SLF001  # asking for it would make Triton's own
    config.set_active(driver)

    def put_back() -> None:
        config._active = before  # noqa: SLF001

    made.undo.append(put_back)


def _forget_limits() -> None:
    """Triton remembers each device's shared memory by its index, whoever's device it was."""
    from triton.compiler import compiler

    forget = getattr(getattr(compiler, "max_shared_mem", None), "cache_clear", None)
    if forget is not None:
        forget()


def _replace(owner: "Any", name: str, value: "Any", made: Installed) -> None:
    """Set an attribute of a class, and keep how to put the old one back."""
    own = owner.__dict__.get(name, owner)
    setattr(owner, name, value)

    def put_back() -> None:
        if own is owner:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    made.undo.append(put_back)


def _getitem(jit: "Any", grid: "Any") -> "Any":
    """`kernel[grid]` of Triton's kernels."""
    if jit.pre_run_hooks:  # they are given the arguments as they were written
        return _kernel(jit).hooked(grid)
    try:
        return jit._nbxrt_grids[grid]  # noqa: SLF001
    except (AttributeError, KeyError, TypeError):
        return _kernel(jit).bound(grid)


def _run(jit: "Any", /, *given: "Any", grid: "Any", warmup: bool, **named: "Any") -> "Any":
    """`kernel.run`, which autotuners and heuristics call; compiling without a launch stays Triton's."""
    installed = session()
    if installed is None:
        raise errors.CapabilityError("nbxrt was taken out of Triton while a launch was under way")
    if warmup:
        return _kernel(jit).warm_up(given, {"grid": grid, **named})
    return _getitem(jit, grid)(*given, **named)


def _kernel(jit: "Any") -> "Kernel":
    installed = session()
    if installed is None:
        raise errors.CapabilityError("nbxrt was taken out of Triton while a launch was under way")
    return installed.kernel(jit)


# On the processor


def _is_interpreting() -> bool:
    from triton import knobs

    return bool(knobs.runtime.interpret)


def _interpret(chosen: "Runtime", made: Installed) -> None:
    """Let Triton interpret kernels: the variable counts for what is decorated from now on, Triton's own included."""
    if "triton" in sys.modules and not _is_interpreting():
        raise errors.CapabilityError(
            f"Triton was imported before it could be told to interpret kernels, which {chosen.title} needs",
            hint=f"call `nbxrt.triton.install()` before `import triton`, or set {_INTERPRET}=1",
        )
    before = os.environ.get(_INTERPRET)
    os.environ[_INTERPRET] = "1"

    def put_back() -> None:
        if before is None:
            os.environ.pop(_INTERPRET, None)
        else:
            os.environ[_INTERPRET] = before

    made.undo.append(put_back)
    triton = imported_triton()
    facts = versions.facts_of(triton.__version__)
    _keep_torch_out(facts, made)
    from triton.runtime.interpreter import GridExecutor

    from nbxrt.launch.interpreting import HostDriver, interpreted_call

    _activate(HostDriver(chosen), made)
    _replace(GridExecutor, "__call__", interpreted_call(chosen, facts, GridExecutor.__call__), made)
