"""Array interfaces of NumPy's kind, a dictionary as an attribute: for memory of the host and, by data, of a vendor."""

from nbxrt import errors
from nbxrt.objects import layout
from nbxrt.objects.device import Device, as_device, devices
from nbxrt.objects.dtypes import by_typestr
from nbxrt.objects.memory import Memory
from nbxrt.objects.stream import as_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nbxrt.objects.array import DeviceArray
    from nbxrt.objects.dtypes import DType
    from nbxrt.objects.layout import Shape
    from nbxrt.runtime import Runtime

#: The interface of memory of the host, and the version of both that is written.
HOST = "__array_interface__"
_VERSION = 3
_VERSIONS = (0, 1, 2, 3)


def attribute(array: "DeviceArray", name: str) -> "dict[str, Any]":
    """The interface of that name, where the array has it. Raises: AttributeError where it has not."""
    host = name == HOST and array.memory.on_host
    device = name == array.runtime.description["interop"]["array_interface"] and array.kind != "pinned"
    if not array.dtype.typestr or not (host or device):
        raise AttributeError(f"{type(array).__name__!r} object has no attribute {name!r}")
    array.memory.check()
    contiguous = array.is_contiguous()
    described = {
        "shape": array.shape,
        "typestr": array.dtype.typestr,
        "data": (array.ptr, array.readonly),
        "strides": None if contiguous else array.strides,
        "version": _VERSION,
    }
    if device:
        from nbxrt.objects.handover import number_of
        from nbxrt.objects.stream import current_stream_of

        described["stream"] = number_of(current_stream_of(array.device))
    return described


def taken(value: "Any", name: str, interface: "Any", runtime: "Runtime", stream: "Any") -> "DeviceArray":
    """A DeviceArray that shares the memory which an interface describes.

    Raises: ExchangeError naming what is missing or not known.
    """
    from nbxrt.objects.array import DeviceArray

    try:
        kind, shape, strides, address, readonly = _read(name, interface)
    except errors.ArgumentError as error:
        raise errors.ExchangeError(f"`{name}`: {error.message}", value=error.value) from None  # type: ignore[attr-defined]
    first, last = layout.span_of(shape, strides, kind.itemsize)
    if address + first < 0 or address + last > layout.LARGEST:
        raise errors.ExchangeError(f"`{name}`: {shape} with strides {strides} at {address:#x} are in no memory")
    memory_kind, device = _place(runtime, address)
    ordered = as_stream(stream, device)
    _wait(device, name, interface.get("stream"), ordered)
    memory = Memory(
        device, address + first if address else 0, last - first,
        memory_kind, (value, interface), bool(readonly),
    )  # fmt: skip
    return DeviceArray(memory, address, shape, strides, kind)


def _read(name: str, interface: "Any") -> "tuple[DType, Shape, Shape, int, bool]":
    """Element type, shape, strides, address, and whether it may only be read. Raises: ExchangeError, ArgumentError."""
    if not isinstance(interface, dict):
        raise errors.wrong_type(f"`{name}`", "a dictionary", interface)
    _refuse_unknown(name, interface)
    kind = by_typestr(interface["typestr"])
    shape = layout.shape_of(tuple(_sequence(interface, "shape")))
    strides = layout.strides_of(shape, kind.itemsize)
    if interface.get("strides") is not None:
        given = _sequence(interface, "strides")
        strides = tuple([errors.integer("`strides`", "integers", each) for each in given])
    if len(strides) != len(shape):
        raise errors.ExchangeError(f"`{name}`: `strides` {strides} do not fit the shape {shape}")
    data = _sequence(interface, "data")
    if len(data) != 2:
        raise errors.wrong_type("`data`", "an address and whether it may only be read", data)
    readonly = _truth(data[1])
    if 0 in shape:
        return kind, shape, strides, 0, readonly
    address = 0 if data[0] is None else errors.integer("`data`", "an address", data[0])
    if address <= 0:
        raise errors.ExchangeError(f"`{name}`: `data` has no address, and {shape} has elements", value=data)
    return kind, shape, strides, address, readonly


def _truth(value: "Any") -> bool:
    """Whether a flag is set, as other libraries write one. Raises: ArgumentTypeError."""
    try:
        return bool(value)
    except (TypeError, ValueError):  # such as an array of several
        raise errors.wrong_type("`data`", "a flag, whether it may only be read", value) from None


def _sequence(interface: "Mapping[str, Any]", key: str) -> "Any":
    if not isinstance(interface[key], (tuple, list)):
        raise errors.wrong_type(f"`{key}`", "a tuple", interface[key])
    return interface[key]


def _refuse_unknown(name: str, interface: "Mapping[str, Any]") -> None:
    missing = [key for key in ("shape", "typestr", "data", "version") if key not in interface]
    if missing:
        raise errors.ExchangeError(f"`{name}` has no {', '.join(f'`{key}`' for key in missing)}", value=missing)
    version = errors.integer("`version`", "an integer", interface["version"])
    if version not in _VERSIONS:
        raise errors.ExchangeError(f"`{name}`: `version` is {version}, and {_VERSION} is the last one known")
    if interface.get("mask") is not None:
        raise errors.ExchangeError(f"`{name}` has a `mask`, and an array here has none")


def _place(runtime: "Runtime", address: int) -> "tuple[str, Device]":
    """Kind of memory and device of an address, where the backend can tell; else memory of the current device."""
    if not address or not runtime.supports("pointer_attributes"):
        return "device", as_device(None, runtime)
    word, index, _device, _host = _to_ask(runtime).on(runtime.pointer_attributes, address)
    kinds = {"device": "device", "managed": "managed", "host": "pinned"}
    if word not in kinds:
        raise errors.ExchangeError(f"{address:#x} is {word} memory, and no memory of {runtime.title}", value=address)
    return kinds[word], as_device(max(index, 0), runtime)


def _to_ask(runtime: "Runtime") -> Device:
    """The device to ask where an address lies: one that is in use, since asking makes a context on the current one."""
    here = as_device(None, runtime)
    if getattr(runtime.current, "index", None) is not None or runtime.has_context(here.index) is not False:
        return here
    return next((each for each in devices(runtime) if runtime.has_context(each.index)), here)


def _wait(device: Device, name: str, number: "Any", ordered: "Any") -> None:
    """Let the stream wait for the producer's; None means that nothing has to be waited for."""
    from nbxrt.objects.handover import order, stream_by_number

    if number is not None:
        order(stream_by_number(device, number, f"`{name}`: `stream`"), ordered)
