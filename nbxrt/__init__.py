"""The device runtime under engines that launch their own GPU kernels: one YAML file a vendor, one binder for all.

    import nbxrt

    rt = nbxrt.open()                  # the best backend that is here
    address = rt.malloc(1 << 20)

Importing nbxrt does nothing: names are loaded at their first use.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt import memory as memory
    from nbxrt.catalogue.model import Backend as Backend
    from nbxrt.describing import describe as describe
    from nbxrt.describing import validate as validate
    from nbxrt.detection import BackendReport as BackendReport
    from nbxrt.detection import Detection as Detection
    from nbxrt.detection import backend_table as backend_table
    from nbxrt.detection import detect as detect
    from nbxrt.detection import device_memory as device_memory
    from nbxrt.detection import gpu_backend as gpu_backend
    from nbxrt.detection import gpu_runtime as gpu_runtime
    from nbxrt.detection import reset as reset
    from nbxrt.device import device_label as device_label
    from nbxrt.device import ensure_triton_device as ensure_triton_device
    from nbxrt.device import invalidate_current_device_cache as invalidate_current_device_cache
    from nbxrt.device import set_device as set_device
    from nbxrt.errors import ArgumentError as ArgumentError
    from nbxrt.errors import ArgumentIndexError as ArgumentIndexError
    from nbxrt.errors import ArgumentTypeError as ArgumentTypeError
    from nbxrt.errors import ArgumentValueError as ArgumentValueError
    from nbxrt.errors import BackendNotFoundError as BackendNotFoundError
    from nbxrt.errors import CapabilityError as CapabilityError
    from nbxrt.errors import DescriptionError as DescriptionError
    from nbxrt.errors import DeviceError as DeviceError
    from nbxrt.errors import DeviceIndexError as DeviceIndexError
    from nbxrt.errors import DoubleFreeError as DoubleFreeError
    from nbxrt.errors import DriverError as DriverError
    from nbxrt.errors import ExchangeError as ExchangeError
    from nbxrt.errors import InteriorPointerError as InteriorPointerError
    from nbxrt.errors import LibraryBrokenError as LibraryBrokenError
    from nbxrt.errors import LibraryNotFoundError as LibraryNotFoundError
    from nbxrt.errors import LimitError as LimitError
    from nbxrt.errors import NbxrtError as NbxrtError
    from nbxrt.errors import NoDeviceError as NoDeviceError
    from nbxrt.errors import OutOfMemoryError as OutOfMemoryError
    from nbxrt.errors import PointerError as PointerError
    from nbxrt.errors import SizeError as SizeError
    from nbxrt.errors import SymbolNotFoundError as SymbolNotFoundError
    from nbxrt.errors import UnknownPolicyError as UnknownPolicyError
    from nbxrt.errors import UntestedVersionError as UntestedVersionError
    from nbxrt.launch import triton as triton
    from nbxrt.launch.module import Function as Function
    from nbxrt.launch.module import Module as Module
    from nbxrt.launch.module import launch as launch
    from nbxrt.launch.saved import load_kernel as load_kernel
    from nbxrt.memory.allocator import DeviceAllocator as DeviceAllocator
    from nbxrt.objects.array import DeviceArray as DeviceArray
    from nbxrt.objects.buffer import Buffer as Buffer
    from nbxrt.objects.creation import asarray as asarray
    from nbxrt.objects.creation import empty as empty
    from nbxrt.objects.creation import empty_like as empty_like
    from nbxrt.objects.creation import from_numpy as from_numpy
    from nbxrt.objects.creation import zeros as zeros
    from nbxrt.objects.creation import zeros_like as zeros_like
    from nbxrt.objects.device import Device as Device
    from nbxrt.objects.device import current_device as current_device
    from nbxrt.objects.device import devices as devices
    from nbxrt.objects.dtypes import DType as DType
    from nbxrt.objects.dtypes import dtype as dtype
    from nbxrt.objects.event import Event as Event
    from nbxrt.objects.exchange import from_dlpack as from_dlpack
    from nbxrt.objects.graph import Graph as Graph
    from nbxrt.objects.stream import Stream as Stream
    from nbxrt.objects.stream import current_stream as current_stream
    from nbxrt.placement import DeviceChoice as DeviceChoice
    from nbxrt.placement import most_free_device as most_free_device
    from nbxrt.placement import most_free_device_report as most_free_device_report
    from nbxrt.processlist import DeviceProcess as DeviceProcess
    from nbxrt.processlist import DeviceProcesses as DeviceProcesses
    from nbxrt.processlist import ProcessMemory as ProcessMemory
    from nbxrt.processlist import process_memory as process_memory
    from nbxrt.processlist import process_memory_report as process_memory_report
    from nbxrt.processlist import processes as processes
    from nbxrt.runtime import Runtime as Runtime
    from nbxrt.runtime import open as open
    from nbxrt.runtime import use as use
    from nbxrt.tracing import trace as trace

#: Public names by the module that has them.
_HOMES = {
    "nbxrt.describing": ("describe", "validate"),
    "nbxrt.detection": (
        "BackendReport",
        "Detection",
        "backend_table",
        "detect",
        "device_memory",
        "gpu_backend",
        "gpu_runtime",
        "reset",
    ),
    "nbxrt.device": ("device_label", "ensure_triton_device", "invalidate_current_device_cache", "set_device"),
    "nbxrt.errors": (
        "ArgumentError",
        "ArgumentIndexError",
        "ArgumentTypeError",
        "ArgumentValueError",
        "BackendNotFoundError",
        "CapabilityError",
        "DescriptionError",
        "DeviceError",
        "DeviceIndexError",
        "DoubleFreeError",
        "DriverError",
        "ExchangeError",
        "InteriorPointerError",
        "LibraryBrokenError",
        "LibraryNotFoundError",
        "LimitError",
        "NbxrtError",
        "NoDeviceError",
        "OutOfMemoryError",
        "PointerError",
        "SizeError",
        "SymbolNotFoundError",
        "UnknownPolicyError",
        "UntestedVersionError",
    ),
    "nbxrt.memory.allocator": ("DeviceAllocator",),
    "nbxrt.launch": ("launch", "triton"),
    "nbxrt.launch.module": ("Function", "Module"),
    "nbxrt.launch.saved": ("load_kernel",),
    "nbxrt.objects.array": ("DeviceArray",),
    "nbxrt.objects.buffer": ("Buffer",),
    "nbxrt.objects.creation": ("asarray", "empty", "empty_like", "from_numpy", "zeros", "zeros_like"),
    "nbxrt.objects.device": ("Device", "current_device", "devices"),
    "nbxrt.objects.dtypes": ("DType", "dtype"),
    "nbxrt.objects.event": ("Event",),
    "nbxrt.objects.exchange": ("from_dlpack",),
    "nbxrt.objects.graph": ("Graph",),
    "nbxrt.objects.stream": ("Stream", "current_stream"),
    "nbxrt.placement": ("DeviceChoice", "most_free_device", "most_free_device_report"),
    "nbxrt.processlist": (
        "DeviceProcess",
        "DeviceProcesses",
        "ProcessMemory",
        "process_memory",
        "process_memory_report",
        "processes",
    ),
    "nbxrt.runtime": ("Runtime", "open", "use"),
    "nbxrt.tracing": ("trace",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  # a test pins it


def __getattr__(name: str) -> "Any":
    home = _HOME_OF.get(name)
    if name == "memory":
        __import__("nbxrt.memory")
        return globals()[name]
    if home is None:
        module = __import__("sys").modules[__name__]  # by which Python suggests the name that was meant
        raise AttributeError(f"module 'nbxrt' has no attribute {name!r}", name=name, obj=module)
    value = getattr(__import__(home, fromlist=[name]), name)
    globals()[name] = value
    return value


def load_for_finalizers() -> None:
    """Load the names that finalizers call: a process in which a backend is open does so before it ends."""
    for name in _HOMES["nbxrt.detection"] + _HOMES["nbxrt.device"]:
        __getattr__(name)


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
