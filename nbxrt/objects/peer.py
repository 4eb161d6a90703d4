"""Access of one device to another's memory, and the way that copies between devices take."""

from nbxrt import errors
from nbxrt.memory.allocator import account_of
from nbxrt.objects.device import Device, as_device
from nbxrt.objects.state import state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Ways of a copy from one device to another.
SAME, PEER, STAGED = "same device", "peer", "staged"


def can_access(device: Device, other: "Any") -> bool:
    """Whether a device can access the memory of another: its own always, no other where the backend has no peers."""
    other = as_device(other, device.runtime)
    if other is device:
        return True
    runtime = device.runtime
    known, pair = state_of(runtime).reachable, (device.index, other.index)
    if pair not in known:
        known[pair] = runtime.supports("device_can_access_peer") and runtime.device_can_access_peer(*pair)
    return known[pair]


def enable(device: Device, other: "Any") -> None:
    """Let a device access the memory of another, in this direction only; enabled already is success.

    Raises: CapabilityError; DeviceError naming the pair.
    """
    other = as_device(other, device.runtime)
    pair = (device.index, other.index)
    peers = state_of(device.runtime).peers
    if other is device or pair in peers:
        return
    if not can_access(device, other) and device.runtime.supports("device_enable_peer_access"):
        raise errors.DeviceError(
            f"{device} cannot access the memory of {other}", operation="device_enable_peer_access",
            kind="peer_unsupported", device=device.index, hint="copies between them go through the host",
        )  # fmt: skip
    device.on(device.runtime.device_enable_peer_access, other.index)
    account_of(device.runtime).admit_peer(other.index, device.index)  # memory of its pools is mapped by its own rules
    peers.add(pair)


def path(source: Device, target: "Any") -> str:
    """How memory is copied from a device to another: `same device`, `peer`, or `staged` through the host."""
    target = as_device(target, source.runtime)
    if target is source:
        return SAME
    reachable = can_access(source, target) or can_access(target, source)
    return PEER if reachable and source.runtime.supports("memcpy_peer_async") else STAGED


def prepare(source: Device, target: Device) -> str:
    """The way of a copy, with access enabled in the directions that the devices have."""
    way = path(source, target)
    if way == PEER:
        for device, other in ((source, target), (target, source)):
            if can_access(device, other):
                enable(device, other)
    return way
