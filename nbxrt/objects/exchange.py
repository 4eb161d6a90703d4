"""Memory of other libraries: by which protocol it is taken, and in whose streams it is ready."""

from nbxrt import errors
from nbxrt import runtime as runtimes
from nbxrt.device import put_back
from nbxrt.errors import wrong_type
from nbxrt.objects import arrayinterface, capsules
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.buffer import Buffer
from nbxrt.objects.device import as_device
from nbxrt.objects.dlpack import HOST, pair
from nbxrt.objects.handover import number_of
from nbxrt.objects.state import runtime_in_force
from nbxrt.objects.stream import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.objects.given import DeviceLike, StreamLike
    from nbxrt.runtime import Runtime


def from_dlpack(
    value: "Any", *, device: "DeviceLike" = None, copy: "bool | None" = None, stream: "StreamLike" = None
) -> DeviceArray:
    """An array of another library as a DeviceArray that shares its memory, by DLPack; or a capsule of DLPack.

    It is ready for work on `stream`, the thread's current one when left out. With `device` it has to be on that one, or
    is copied there; `copy=True` always copies, `copy=False` never.
    Raises: ArgumentTypeError; ExchangeError, which is a BufferError, for memory of another backend, an element type
    or a version of DLPack that is not known here, and a capsule that was taken already.
    """
    if value.__class__ is capsules.Capsule and device is None and copy is None:  # on the way of every array, so at once
        found = runtimes._in_force  # noqa: SLF001
        return capsules.taken(value, runtime_in_force() if found is None else found[0], stream)
    runtime = runtime_in_force()
    if copy is not None:
        errors.boolean("`from_dlpack`", "copy", copy)
    target = None if device is None else as_device(device)  # a capsule is taken for what can be had alone
    if value.__class__ is capsules.Capsule:
        if copy is False and target is not None and capsules.device_of(value, runtime) is not target:
            raise errors.ArgumentValueError(f"the capsule's array is not on {target}, and `copy=False`", value=value)
        array = capsules.taken(value, runtime, stream)
    elif has_dlpack(value):
        array = taken_by_dlpack(value, runtime, stream)
    else:
        raise wrong_type("`from_dlpack`", "an array with `__dlpack__` and `__dlpack_device__`", value)
    if copy or (target is not None and array.device is not target):
        from nbxrt.objects.creation import copied

        return copied(array, target or array.device, stream, copy)
    return array


def has_dlpack(value: "Any") -> bool:
    """Whether a value is an array with DLPack, and not the class of such arrays."""
    methods = getattr(value, "__dlpack__", None), getattr(value, "__dlpack_device__", None)
    return not isinstance(value, type) and all(map(callable, methods))


def is_ours(value: "Any") -> bool:
    """Whether a value is an object of nbxrt already."""
    return isinstance(value, (DeviceArray, Buffer))


def taken(value: "Any", device: "Device | None", stream: "Any") -> "DeviceArray | None":
    """An array of another library on a device of this backend; None for what the host has.

    Raises: ExchangeError for memory of another backend.
    """
    runtime = as_device(device).runtime
    if isinstance(value, type):  # it has the attributes, and is no array
        return None
    if has_dlpack(value):
        code, _index = pair(value.__dlpack_device__(), "`__dlpack_device__`")
        if code == HOST and (runtime.kind != "cpu" or _shows_its_memory(value)):
            return None
        return taken_by_dlpack(value, runtime, stream)
    name = runtime.description["interop"]["array_interface"]
    interface = getattr(value, name, None) if name else None
    return None if interface is None else arrayinterface.taken(value, name, interface, runtime, stream)


def _shows_its_memory(value: "Any") -> bool:
    return hasattr(value, "__array_interface__")


def taken_by_dlpack(value: "Any", runtime: "Runtime", stream: "Any") -> DeviceArray:
    """An array with DLPack as one of a runtime. Raises: ExchangeError; as `as_stream`."""
    code, index = pair(value.__dlpack_device__(), "`__dlpack_device__`")
    _kind, device = capsules.place(runtime, code, index)
    ordered = as_stream(stream, device)
    capsule = capsules.asked(value, number_of(ordered))
    if not device.is_only:
        put_back(runtime)
    if capsule.__class__ is not capsules.Capsule:
        raise errors.ExchangeError(f"`__dlpack__` of {type(value).__name__} gives {errors.shown(capsule)}, no capsule")
    return capsules.taken(capsule, runtime, None)  # the stream is known to be right
