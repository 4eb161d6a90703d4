"""The calling thread's current device, kept in step between the runtime and Triton, and how a placement reads.

The cache says: this runtime and, where Triton has an active driver, Triton too are on this device. It is per thread,
because the vendor's current device is. With `NBXRT_CHECK_DEVICE=1` nothing is cached, so that the device is set each
time: the variable is read where the cache does not answer, and so costs nothing where it does.
"""

import os
import sys

from nbxrt import errors, runtime
from nbxrt.compiled import INDEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def invalidate_current_device_cache() -> None:
    """Trust the cached current device of this thread no more: to be called after others have switched devices."""
    for opened in runtime.all_open():
        opened.current.index = None


def set_device(target: "Any") -> None:
    """Make a device current for this thread, in the runtime in force and in Triton's driver if one is active.

    `target` is an index, a Device, or what has an index as `_device_idx`, as arrays do.
    Raises: ArgumentTypeError for anything else; DeviceIndexError; DeviceError.
    """
    ensure_triton_device(index_of(target, "set_device"))


def index_of(target: "Any", what: str) -> int:
    """The index of a device that a caller has given; `what` is the function that takes it.

    Raises: TypeError.
    """
    return errors.integer(what, "an index, a device, or what has `_device_idx`", getattr(target, "_device_idx", target))


def ensure_triton_device(index: int) -> None:
    """Make the device current for this thread, in the runtime in force and in Triton's driver if one is active.

    Nothing is imported. A device that is current already costs one look-up.
    Raises: DeviceIndexError, DeviceError.
    """
    in_force = runtime.in_force()
    if in_force is None or not _is_usable(in_force):
        from nbxrt.detection import gpu_runtime

        in_force = gpu_runtime()
    if index.__class__ is not int or getattr(in_force.current, "index", None) != index:
        _switch(in_force, index)


def make_current(of: "runtime.Runtime", index: int) -> None:
    """Make a device of a runtime current for this thread, in Triton's driver too where the runtime is in force.

    Raises: DeviceIndexError, DeviceError.
    """
    if getattr(of.current, "index", None) != index:
        _switch(of, index)


def put_back(of: "runtime.Runtime") -> None:
    """After code of others: the device that is current here is made so again, where they have switched behind nbxrt.

    Raises: DeviceError.
    """
    index = getattr(of.current, "index", None)
    if index is not None and of.get_device() != index:
        of.set_device(index)


def _switch(of: "runtime.Runtime", index: int) -> None:
    of.set_device(index)
    driver = _active_triton_driver()
    if driver is not None and of is runtime.in_force():
        driver.set_current_device(index)
    of.current.index = None if os.environ.get("NBXRT_CHECK_DEVICE") == "1" else index


def _is_usable(in_force: "runtime.Runtime") -> bool:
    """Whether the runtime in force is the one that engines mean: a GPU's, or one that was asked for by name."""
    return in_force.kind == "gpu" or runtime.chosen_by_name()


def _active_triton_driver() -> "Any":
    """Triton's driver if it has one already: asking Triton for it would probe every vendor and import torch."""
    module = sys.modules.get("triton.runtime.driver")
    config = getattr(module, "driver", None)
    return getattr(config, "_active", None)


def device_label(tensor: "Any") -> str:
    """Where a tensor is, as messages say it: `hip:0`, `cpu:0`, or `?` where it does not tell. Never raises.

    Read are `_device`, a backend's name, and `_device_idx`. Any GPU backend's name stands for the one in force.
    """
    try:
        placement = getattr(tensor, "_device", None)
        index = getattr(tensor, "_device_idx", "?")
        return "?" if placement is None else f"{_resolved(placement)}:{index}"
    except Exception:  # noqa: BLE001  # a label in a message must never be the second error
        return "?"


def _resolved(placement: "Any") -> str:
    """The name of the backend in force for device memory, which engines mark with any GPU backend's name."""
    if INDEX.get(placement, (0, "cpu"))[1] != "gpu":
        return str(placement)
    from nbxrt.detection import gpu_backend

    try:
        return gpu_backend()
    except Exception:  # noqa: BLE001  # also a warning that the user made an error
        return str(placement)
