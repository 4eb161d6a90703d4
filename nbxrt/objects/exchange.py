"""Memory of other libraries: by which protocol it is taken, and in whose streams it is ready."""

from nbxrt import descriptions, errors
from nbxrt.objects import arrayinterface, dlpack
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.buffer import Buffer
from nbxrt.objects.device import as_device
from nbxrt.objects.event import Event
from nbxrt.objects.state import wrong_type
from nbxrt.objects.stream import Stream, as_stream, current_stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.runtime import Runtime


def from_dlpack(value: "Any", *, device: "Any" = None, copy: "bool | None" = None, stream: "Any" = None) -> DeviceArray:
    """An array of another library as a DeviceArray that shares its memory, by DLPack; or a capsule of DLPack.

    It is ready for work on `stream`, the thread's current one when left out. With `device` it has to be on that one, or
    is copied there; `copy=True` always copies, `copy=False` never.
    Raises: ArgumentTypeError; ExchangeError, which is a BufferError, for memory of another backend, an element type
    or a version of DLPack that is not known here, and a capsule that was taken already.
    """
    if dlpack.is_capsule(value):
        array = dlpack.taken(value, _device_of_capsule, stream)
    else:
        if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
            raise wrong_type("`from_dlpack`", "an array with `__dlpack__` and `__dlpack_device__`", value)
        array = _taken_by_dlpack(value, as_device(None).runtime, stream)
    target = array.device if device is None else as_device(device)
    if copy or array.device is not target:
        from nbxrt.objects.creation import copied

        return copied(array, target, stream, copy)
    return array


def is_ours(value: "Any") -> bool:
    """Whether a value is an object of nbxrt already."""
    return isinstance(value, (DeviceArray, Buffer))


def taken(value: "Any", device: "Device | None", stream: "Any") -> "DeviceArray | None":
    """An array of another library on a device of this backend; None for what the host has.

    Raises: ExchangeError for memory of another backend.
    """
    runtime = as_device(device).runtime
    if hasattr(value, "__dlpack_device__") and hasattr(value, "__dlpack__"):
        code = int(value.__dlpack_device__()[0])
        if code == _HOST and (runtime.kind != "cpu" or _shows_its_memory(value)):
            return None
        return _taken_by_dlpack(value, runtime, stream)
    name = runtime.description["interop"]["array_interface"]
    interface = getattr(value, name, None) if name else None
    return None if interface is None else arrayinterface.taken(value, name, interface, runtime, stream)


#: DLPack's number of plain memory of the host.
_HOST = 1


def _shows_its_memory(value: "Any") -> bool:
    return hasattr(value, "__array_interface__")


def _taken_by_dlpack(value: "Any", runtime: "Runtime", stream: "Any") -> DeviceArray:
    code, index = map(int, value.__dlpack_device__())
    _kind, device = device_of(runtime, code, index)
    ordered = as_stream(stream, device)
    capsule = dlpack.asked(value, number_of(ordered))
    return dlpack.taken(capsule, lambda code, index: device_of(runtime, code, index), ordered)


def _device_of_capsule(code: int, index: int) -> "tuple[str, Device]":
    return device_of(as_device(None).runtime, code, index)


def device_of(runtime: "Runtime", code: int, index: int) -> "tuple[str, Device]":
    """Kind of memory and device by DLPack's numbers. Raises: ExchangeError naming both backends."""
    numbers: Mapping[str, int] = runtime.description["interop"]["dlpack"]
    for kind, number in numbers.items():
        if number == code:
            return kind, as_device(index if kind == "device" else max(index, 0), runtime)
    owner = next((name for name in descriptions.names() if code in _numbers_of(name)), "")
    whose = f"memory of the backend `{owner}`" if owner else "of no backend that is known here"
    hint = "`nbxrt.asarray` copies it to the device" if code == _HOST else ""
    raise errors.ExchangeError(
        f"DLPack's device type {code} is {whose}, and {runtime!r} is at work",
        hint=hint,
        code=code,
        backend=runtime.name,
    )


def _numbers_of(name: str) -> "tuple[int, ...]":
    try:
        return tuple(descriptions.find(name)[1]()["interop"]["dlpack"].values())
    except errors.NbxrtError:  # a file with faults; they are told where it is opened
        return ()


def number_of(stream: Stream) -> "int | None":
    """The number by which other libraries know a stream; None where they know none of this backend."""
    numbers = stream.runtime.description["interop"]["streams"]
    if numbers is None:
        return None
    handle: int = stream.handle
    return int(numbers["default"]) if handle == 0 else handle


def stream_by_number(device: "Device", number: "Any", what: str) -> Stream:
    """The stream that another library means by a number; `what` says where it stood.

    Raises: ExchangeError for a number that stands for no stream of the backend.
    """
    runtime = device.runtime
    numbers = runtime.description["interop"]["streams"]
    if isinstance(number, bool) or not hasattr(type(number), "__index__"):
        raise errors.ExchangeError(f"{what} is a stream's number, not {type(number).__name__} {number!r}")
    number = number.__index__()
    if numbers is None:
        raise errors.ExchangeError(f"{what} is {number}, and other libraries know no streams of {runtime.title}")
    if number == numbers["default"]:
        return device.default_stream
    if number > _LAST_WORD or number == numbers.get("per_thread"):
        return Stream.from_handle(number, device)
    raise errors.ExchangeError(f"{what} is {number}, which stands for no stream of {runtime.title}", value=number)


#: Greater numbers are handles.
_LAST_WORD = 2


def order(first: Stream, later: Stream) -> None:
    """Let the later stream wait for what was given to the first one."""
    if first.key == later.key:
        return
    with Event(first.device, timing=False) as event:
        event.record(first)
        later.wait(event)


def hand_over(array: DeviceArray, number: "Any", what: str) -> None:
    """Make what was given to the thread's current stream ready for the consumer's one; -1 asks for no order.

    Raises: ExchangeError.
    """
    if number == -1 and not isinstance(number, bool):
        return
    if number is None:
        if array.runtime.description["interop"]["streams"] is None:
            return
        consumer = array.device.default_stream
    else:
        consumer = stream_by_number(array.device, number, what)
    order(current_stream_of(array.device), consumer)
    array.memory.used_on(consumer)
