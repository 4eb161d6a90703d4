"""The object that Triton asks for devices, streams and binaries: nbxrt in the place of Triton's own drivers.

It asks no backend of Triton whether it is active, imports no torch, and starts no compiler.
"""

import contextlib
import sys

from nbxrt import errors
from nbxrt.device import put_back
from nbxrt.launch import checking, descriptors, streams, targets
from nbxrt.launch.launcher import Launcher, Shape
from nbxrt.launch.module import Module
from nbxrt.objects.device import Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.launch.versions import Facts
    from nbxrt.runtime import Runtime

#: A cluster of up to this many blocks runs on every device that knows clusters.
_PORTABLE_CLUSTER = 8


#: Triton's names of properties, and the contract's words.
_PROPERTIES: "tuple[tuple[str, Any], ...]" = (
    ("max_shared_mem", "max_shared_memory_per_block_optin"),
    ("max_num_regs", "max_registers_per_block"),
    ("multiprocessor_count", "multiprocessor_count"),
    ("warpSize", "warp_size"),
    ("sm_clock_rate", "clock_rate"),
)


class Driver:
    """Triton's active driver while nbxrt is installed."""

    def __init__(self, runtime: "Runtime", target: str, facts: "Facts", version: str) -> None:
        self.runtime = runtime
        self.target = target
        self.facts = facts
        self.version = version
        self.utils = Utils(runtime)
        self._targets: dict[int, Any] = {}

    @classmethod
    def is_active(cls) -> bool:
        return True

    # devices and streams

    def get_current_device(self) -> int:
        """The thread's current device."""
        index = getattr(self.runtime.current, "index", None)
        return self.runtime.get_device() if index is None else index

    def set_current_device(self, device: int) -> None:
        """Make a device the thread's current one."""
        if getattr(self.runtime.current, "index", None) != device:
            self.runtime.set_device(device)
            self.runtime.current.index = device

    def get_current_stream(self, device: int) -> int:
        """The thread's current stream of a device; torch's where torch is in use and nbxrt has none of its own."""
        return streams.current(self.runtime, device)

    def get_current_target(self) -> "Any":
        """What Triton compiles for: the current device's architecture."""
        device = self.get_current_device()
        if device not in self._targets:
            from triton.backends.compiler import GPUTarget

            warp = self.runtime.device_attribute("warp_size", device)
            self._targets[device] = GPUTarget(self.target, self.architecture(device), warp)
        return self._targets[device]

    def architecture(self, device: int) -> "int | str":
        """The architecture of a device as Triton names it. Raises: CapabilityError."""
        return targets.architecture(self.runtime, device)

    # launching

    def launcher_cls(self, source: "Any", metadata: "Any") -> "TritonLauncher":
        """The launcher of a compiled kernel, as Triton calls it."""
        return TritonLauncher(self, source, metadata)

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind

    def assemble_tensormap_to_arg(self, _tensormaps: "Any", given: "Any") -> "Any":
        return given

    # what torch would be asked for

    def get_active_torch_device(self) -> "Any":
        """The current device as torch names it; torch must be imported already.

        Raises: CapabilityError.
        """
        torch = sys.modules.get("torch")
        if torch is None:
            raise errors.CapabilityError("Triton asks for a device of torch, and torch is not in use here")
        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self) -> "Any":
        """Events and synchronisation for `do_bench`."""
        from nbxrt.launch.benchmarking import DeviceInterface

        return DeviceInterface(self.runtime)

    def get_benchmarker(self) -> "Callable[..., Any]":
        """What the autotuner measures with."""
        from triton.testing import do_bench

        return do_bench  # type: ignore[no-any-return]

    def get_empty_cache_for_benchmark(self) -> "Any":
        """Memory larger than the device's cache, which `clear_cache` writes."""
        from nbxrt.launch.benchmarking import Cache

        return Cache(self.runtime)

    def clear_cache(self, cache: "Any") -> None:
        cache.clear()


class Utils:
    """Binaries and properties, as Triton asks for them."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        #: By handle, until Triton says that it is not needed any more.
        self._loaded: dict[int, Module] = {}

    def get_device_properties(self, device: int) -> "dict[str, int]":
        """The properties that Triton and its users read, where the device tells them."""
        found = {}
        for name, word in _PROPERTIES:
            with contextlib.suppress(errors.ArgumentValueError, errors.DeviceError):
                found[name] = self._runtime.device_attribute(word, device)
        return found

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> "tuple[int, int, int, int, int]":
        """Load a kernel for a device: module, function, registers, spilled registers, most threads of a block.

        A kernel that wants more shared memory than usual is given it.
        Raises: DeviceError.
        """
        put_back(self._runtime)  # a pre-run hook may have switched
        module, *facts = load(Device(device, runtime=self._runtime), name, binary, shared)
        handle: Any = module.handle
        self._loaded[handle] = module
        return (handle, *facts)

    def unload_module(self, module: int) -> None:
        """Unload a kernel's module, if it was loaded here, after the graphs that may launch it.

        Nothing is raised: a finalizer calls this.
        """
        self._loaded.pop(module, None)


def load(device: Device, name: str, binary: bytes, shared: int) -> "tuple[Module, int, int, int, int]":
    """A kernel of a binary on a device: module, function, registers, spilled registers, most threads of a block.

    One that wants more shared memory than usual is given it. Raises: DeviceError.
    """
    loaded: tuple[Module, int, int, int, int] = device.on(_load, device, name, binary, shared)
    return loaded


def _load(device: Device, name: str, binary: bytes, shared: int) -> "tuple[Module, int, int, int, int]":
    runtime = device.runtime
    module = Module(binary, device)
    function = module.get_function(name).handle
    ask = runtime.function_get_attribute
    registers, local = ask("registers", function), ask("local_memory", function)
    if runtime.supports("function_set_attribute"):
        _allow_shared(runtime, function, shared, device.index)
    return module, function, registers, local // 4, ask("max_threads_per_block", function)


def _allow_shared(runtime: "Runtime", function: int, shared: int, device: int) -> None:
    """Let a kernel that wants more shared memory than usual use as much as the device gives to one block."""
    usual = runtime.device_attribute("max_shared_memory_per_block", device)
    most = runtime.device_attribute("max_shared_memory_per_block_optin", device)
    if shared > usual and most > usual:
        static = runtime.function_get_attribute("shared_memory", function)
        runtime.function_set_attribute(function, "preferred_shared_memory", 100)
        runtime.function_set_attribute(function, "max_dynamic_shared_memory", most - static)


class TritonLauncher:
    """A compiled kernel's launcher with the arguments that Triton gives to its own."""

    def __init__(self, driver: Driver, source: "Any", metadata: "Any") -> None:
        kinds = tuple(source.signature.values())
        self.names = tuple(map(str, source.signature))
        described = [name for name, kind in zip(self.names, kinds, strict=True) if "tensordesc" in str(kind)]
        opaque = descriptors.encoders(driver.runtime, metadata, driver.facts, described)
        self._device = Device(driver.get_current_device(), runtime=driver.runtime)
        warp = driver.runtime.device_attribute("warp_size", self._device.index)
        self.shape = Shape(driver.runtime, kinds, metadata, driver.facts, driver.version, warp, opaque)
        self.launcher = Launcher(driver.runtime, self.shape)
        self._runtime, self._utils = driver.runtime, driver.utils  # which keep what it launches loaded
        self._most_blocks = checking.most_blocks(driver.runtime, [self._device.index])
        self._prepared: set[int] = set()

    def prepare(self, function: int) -> None:
        """Tell the vendor what it has to know of a function before its first launch.

        Larger clusters than every device can run are allowed; one that this device cannot run is refused at the launch.
        """
        if function not in self._prepared and self.shape.clusters > _PORTABLE_CLUSTER:
            self._runtime.function_set_attribute(function, "non_portable_clusters", 1)
        self._prepared.add(function)

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: int,
        _packed: "Any",
        launch_metadata: "Any",
        enter_hook: "Any",
        exit_hook: "Any",
        *given: "Any",
    ) -> None:
        extents = checking.extents((grid_x, grid_y, grid_z), self.shape.name, most=self._most_blocks)
        put_back(self._runtime)  # a pre-run hook may have switched
        self._call_hook(enter_hook, launch_metadata)
        self._device.on(self._launch, extents, stream, function, given)
        self._call_hook(exit_hook, launch_metadata)

    def _call_hook(self, hook: "Any", launch_metadata: "Any") -> None:
        """Call a hook of the user's, if there is one. Where it leaves another device current, that is put back."""
        if hook is None or not getattr(hook, "calls", True):
            return
        runtime, here = self._runtime, self._runtime.current.__dict__
        found, known = runtime.get_device(), {"index": here["index"]} if "index" in here else {}
        try:
            hook(launch_metadata)
        finally:
            if runtime.get_device() != found:
                runtime.set_device(found)
            here.pop("index", None)
            here.update(known)

    def _launch(self, extents: "tuple[int, int, int]", stream: int, function: int, given: "tuple[Any, ...]") -> None:
        if function not in self._prepared:
            self.prepare(function)
        streams.note_arguments(self.shape.name, self.names, stream, *given)
        self.launcher.launch(extents, stream, _handle(function), given, self.names)


def _handle(function: int) -> "Any":
    import ctypes

    return ctypes.c_void_p(function)
