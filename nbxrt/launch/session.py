"""One installation of nbxrt in Triton: its driver, the kernels that were seen, and what was left to Triton's `run`."""

import functools
import gc
import threading
import weakref
from collections import Counter

from nbxrt.launch import checking, keys
from nbxrt.launch.kernel import Kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.launch.driver import Driver

#: What a kernel object of Triton carries while nbxrt is installed: its `Kernel`, and its launches by grid.
STATE, GRIDS = "_nbxrt_kernel", "_nbxrt_grids"


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
        self.seen = 0
        #: The key of an argument, of memory that says nothing by where the vendor has it.
        self.key = functools.partial(keys.of, place=functools.partial(checking.place, driver.runtime))
        #: By identity, for the hash of a kernel of Triton's is that of its text; none is kept alive.
        self.kernels: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.lock = threading.RLock()  # a finalizer may launch
        #: Compiled kernels that have a module, or may come to one, while this is installed.
        self.loaded: weakref.WeakSet[Any] = weakref.WeakSet()

    @functools.cached_property
    def most_blocks(self) -> "tuple[int, int, int]":
        """The largest grid that a device takes. It is asked for at the first launch: processes may fork before."""
        return checking.most_blocks(self.driver.runtime, range(self.driver.runtime.device_count()))

    def kernel(self, jit: "Any") -> Kernel:
        """What belongs to a kernel of Triton, made at its first launch."""
        with self.lock:
            found = getattr(jit, STATE, None)
            if found is None or found.session is not self:
                self._make(jit)
            made: Kernel = getattr(jit, STATE)
            return made

    def _make(self, jit: "Any") -> None:
        made = Kernel(self, jit)
        found = getattr(jit, STATE, None)
        if found is None or found.session is not self:
            setattr(jit, STATE, made)
            made.take_over()
            setattr(jit, GRIDS, made.grids)
            self.kernels[id(jit)] = jit
            self.seen += 1

    def forget(self) -> None:
        """Leave the kernels as they were found."""
        with self.lock:
            for jit in list(self.kernels.values()):
                state = getattr(jit, STATE, None)
                if state is not None:
                    jit.device_caches = state.caches_before
                    delattr(jit, STATE)
                    delattr(jit, GRIDS)
                    state.forget()
            self.kernels.clear()
        gc.collect()  # kernels unload their modules by the driver that is active then, which is still this one
        for compiled in list(self.loaded):
            self._unload(compiled)

    def run(self, jit: "Any", /, *given: "Any", **named: "Any") -> "Any":
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
        asked = ("instrumentation_mode", "fpsan_homomorphic_casts")
        return "instrumentation" if any(getattr(compilation, each, "") for each in asked) else ""


def _calls(hook: "Any") -> "list[Any]":
    """The functions of a chain of hooks; a lone function as a list."""
    if hook is None:
        return []
    calls = getattr(hook, "calls", None)
    return [hook] if calls is None else calls
