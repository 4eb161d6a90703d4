"""The devices of this host: where they are, which of them reach each other's memory, how fast, and by which way."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.management import identity, monitor, pci_numbers, uuid_text
from nbxrt.objects.buffer import Buffer
from nbxrt.objects.device import as_device
from nbxrt.objects.peer import can_access, path, prepare
from nbxrt.objects.stream import Stream

if TYPE_CHECKING:
    from nbxrt.objects.device import Device
    from nbxrt.runtime import Runtime

#: Bytes of a measured copy at the most, the part of the free memory that it takes at the most, and how many are timed.
_NBYTES, _PART, _TIMES = 1 << 28, 8, 20


def topology(runtime: Runtime, *, measure: bool = False) -> dict[str, Any]:
    """The devices of a runtime and each ordered pair of them, as plain values.

    No device is given a context, unless the copies are to be measured: that takes memory of all of them, and enables
    the access that copies use. Where a fact cannot be had it is empty or None.
    Raises: DeviceError; with `measure` also OutOfMemoryError.
    """
    devices = [as_device(index, runtime) for index in range(runtime.device_count())]
    links = _links(runtime, len(devices))
    return {
        "host": socket.gethostname(),
        "backend": runtime.name,
        "title": runtime.title,
        "devices": [_device(runtime, device.index) for device in devices],
        "pairs": [
            _pair(one, other, links.get((one.index, other.index), (None, None)), measure)
            for one in devices
            for other in devices
            if one is not other
        ],
    }


def _links(runtime: Runtime, count: int) -> dict[tuple[int, int], tuple[str | None, bool | None]]:
    """What the management library says of each pair: what lies between them, and whether links of their own do."""
    try:
        handles = [monitor(runtime, index).handle for index in range(count)] if count > 1 else []
    except errors.NbxrtError:
        return {}
    return {
        (one, other): (
            _asked(runtime, "monitor_bus_distance", handles[one], handles[other]),
            _asked(runtime, "monitor_direct_link", handles[one], handles[other]),
        )
        for one in range(len(handles))
        for other in range(len(handles))
        if one != other
    }


def _asked(runtime: Runtime, operation: str, one: int, other: int) -> Any:
    try:
        return getattr(runtime, operation)(one, other)
    except errors.NbxrtError:
        return None


def _device(runtime: Runtime, index: int) -> dict[str, Any]:
    known = identity(runtime, index)
    return {
        "index": index,
        "name": known.name,
        "uuid": uuid_text(known.uuid) if known.uuid else "",
        "pci_bus_id": known.pci_bus_id,
        "numa_node": numa_node(known.pci_bus_id),
    }


def numa_node(pci_bus_id: str, root: str = "") -> int | None:
    """The part of the host's memory that is next to a device, as the system says; None when it does not."""
    numbers = pci_numbers(pci_bus_id)
    if numbers is None:
        return None
    domain, bus, device, function = numbers
    file = Path(f"{root}/sys/bus/pci/devices/{domain:04x}:{bus:02x}:{device:02x}.{function:x}/numa_node")
    try:
        node = int(file.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _pair(source: Device, target: Device, link: tuple[str | None, bool | None], measure: bool) -> dict[str, Any]:
    return {
        "from": source.index,
        "to": target.index,
        "distance": link[0],
        "direct_link": link[1],
        "access": can_access(source, target),
        "path": path(source, target),
        "gigabytes_per_second": measured(source, target) if measure else None,
    }


def measured(source: Device, target: Device) -> float | None:
    """GB/s of a copy by the best path, which is enabled for it; None where the devices have no memory to spare."""
    free = min(device.on(device.runtime.mem_get_info)[0] for device in (source, target))
    nbytes = min(_NBYTES, free // _PART)
    prepare(source, target)
    try:
        with (
            Buffer(nbytes, source) as one,
            Buffer(nbytes, target) as other,
            Stream(source, non_blocking=True) as stream,
        ):
            other.copy_from(one, stream=stream)
            stream.sync()
            start = time.perf_counter()
            for _turn in range(_TIMES):
                other.copy_from(one, stream=stream)
            stream.sync()
            return _TIMES * nbytes / (time.perf_counter() - start) / 1e9
    except errors.OutOfMemoryError:
        return None
