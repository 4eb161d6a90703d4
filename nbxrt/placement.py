"""Which device has the most free memory.

The management library is asked first, so that no context appears on cards that are not chosen; the runtime only where
that cannot tell. What needs a context happens on a thread of its own: the current device is the caller's own affair,
and putting it back by a call would give that device a context.
"""

from nbxrt import errors, locks, management
from nbxrt.usability import why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nbxrt.runtime import Runtime


class FreeMemory:
    """Free bytes of a device as they were found; None with the reason where the device was passed over."""

    __slots__ = ("device", "has_context", "nbytes", "reason")

    def __init__(self, device: int, nbytes: "int | None", reason: str = "", *, has_context: bool = False) -> None:
        self.device = device
        self.nbytes = nbytes
        self.reason = reason
        self.has_context = has_context

    def __repr__(self) -> str:
        return f"<nbxrt device {self.device}: {self.reason or f'{self.nbytes} bytes free'}>"


class DeviceChoice:
    """The device that was chosen, or None; `devices` says for each what was found."""

    __slots__ = ("devices", "index")

    def __init__(self, index: "int | None", devices: "tuple[FreeMemory, ...]") -> None:
        self.index = index
        self.devices = devices

    def __repr__(self) -> str:
        return f"<nbxrt choice of device {self.index}: {list(self.devices)}>"


def most_free_device() -> int:
    """The device with the most free memory that this process can use; the first of several that are equal.

    Only the chosen device gets a context, where the management library can tell of the others. The calling thread's
    current device stays, and its cache is forgotten.
    Raises: BackendNotFoundError, NoDeviceError with what was found of each device.
    """
    choice = most_free_device_report()
    if choice.index is not None:
        return choice.index
    said = "".join(f"\n  device {each.device}: {each.reason}" for each in choice.devices)
    raise _why_none() if not said else errors.NoDeviceError(f"no device can be used{said}", choice=choice)


def most_free_device_report() -> DeviceChoice:
    """The same as `most_free_device`, with what was found of each device; no device is no error here.

    Raises: BackendNotFoundError.
    """
    from nbxrt.detection import gpu_runtime
    from nbxrt.device import invalidate_current_device_cache

    invalidate_current_device_cache()
    runtime = gpu_runtime()
    found = [_free(runtime, device) for device in range(runtime.device_count())]
    while True:
        best = max(found, key=lambda each: -1 if each.nbytes is None else each.nbytes, default=None)
        if best is None or best.nbytes is None:
            return DeviceChoice(None, tuple(found))
        if not best.has_context:  # it may be busy, which only using it shows
            found[best.device] = _entered(runtime, best.device)
        if found[best.device].nbytes is not None:  # less than before, by its context: that is no reason to choose anew
            return DeviceChoice(best.device, tuple(found))


def _why_none() -> errors.NbxrtError:
    from nbxrt.detection import gpu_runtime

    runtime = gpu_runtime()
    return runtime.why_no_device() or errors.NoDeviceError(f"{runtime.title} counts no device")


def _free(runtime: "Runtime", device: int) -> FreeMemory:
    """What the management library says of a device, else the runtime."""
    try:
        monitor = management.monitor(runtime, device)
        if monitor.is_sure:
            total = runtime.monitor_memory_total(monitor.handle)
            return FreeMemory(device, max(0, total - runtime.monitor_memory_used(monitor.handle)))
    except errors.NbxrtError:
        pass  # it is only the first that is asked
    return _entered(runtime, device)


def _entered(runtime: "Runtime", device: int) -> FreeMemory:
    """What the runtime says of a device, which gives it a context."""

    def ask() -> int:
        runtime.set_device(device)
        free, _total = runtime.mem_get_info()
        return free

    try:
        return FreeMemory(device, locks.in_another_thread(ask), has_context=True)
    except errors.NbxrtError as error:
        return FreeMemory(device, None, why(error))
