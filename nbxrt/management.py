"""Which device a device of the runtime is, and the management library's handle of it.

The runtime numbers devices in an order of its own and may show a part of them; the management library does neither. So
a handle is found by UUID or by PCI address, and never by a number. Nothing here gives a device a context.
"""

import os
import threading
import weakref

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.binding.library import Library
    from nbxrt.runtime import Runtime


class DeviceIdentity:
    """Who a device is: `index` is the runtime's ordinal, the others are empty where the backend does not tell."""

    __slots__ = ("index", "name", "pci_bus_id", "uuid")

    def __init__(self, index: int, name: str = "", uuid: bytes = b"", pci_bus_id: str = "") -> None:
        self.index = index
        self.name = name
        self.uuid = uuid
        self.pci_bus_id = pci_bus_id

    def __repr__(self) -> str:
        said = [self.name, uuid_text(self.uuid) if self.uuid else "", self.pci_bus_id]
        return f"<nbxrt device {self.index}: {', '.join(filter(None, said))}>"

    @property
    def pci(self) -> "tuple[int, int, int, int] | None":
        """Domain, bus, device and function as numbers: libraries differ in how they write them."""
        return pci_numbers(self.pci_bus_id)

    def is_same_as(self, other: "DeviceIdentity") -> bool:
        """Whether both are one device: by UUID where both have one, else by PCI address."""
        if self.uuid and other.uuid:
            return self.uuid == other.uuid
        return self.pci is not None and self.pci == other.pci


class Monitor:
    """The management library's handle of a device.

    `is_part`: it is of a part of a card. `is_sure`: nothing else can be meant; where a device could not be found by the
    UUID that it has, the card at its PCI address may be more than the device.
    """

    __slots__ = ("handle", "is_part", "is_sure")

    def __init__(self, handle: int, *, is_part: bool = False, is_sure: bool = True) -> None:
        self.handle = handle
        self.is_part = is_part
        self.is_sure = is_sure


def identity(runtime: "Runtime", device: int) -> DeviceIdentity:
    """Who a device of the runtime is. What cannot be told is left empty; nothing is raised."""
    return DeviceIdentity(
        device,
        _asked(runtime, "device_name", device) or "",
        _asked(runtime, "device_uuid", device) or b"",
        _asked(runtime, "pci_bus_id", device) or "",
    )


def monitor(runtime: "Runtime", device: int) -> Monitor:
    """The management library's handle of a device of the runtime.

    Raises: LibraryNotFoundError, CapabilityError, DeviceError; what the first use of the library failed with is raised
    again for each device, without another try, until `reset()`.
    """
    library = runtime.library("management")
    start(library)
    try:
        return _found(runtime, library, device)
    except errors.DeviceError as error:
        if error.kind != "not_initialized":
            raise
    library.forget_start()  # another user of it in this process has made its last call
    start(library)
    return _found(runtime, library, device)


def _found(runtime: "Runtime", library: "Library", device: int) -> Monitor:
    uuid: bytes = _asked(runtime, "device_uuid", device) or b""
    prefixes = library.uuid_prefixes if uuid else ()
    for number, prefix in enumerate(prefixes):
        handle = _asked(runtime, "monitor_by_uuid", prefix + uuid_text(uuid))
        if handle is not None:
            return Monitor(handle, is_part=number > 0)
    return Monitor(runtime.monitor_by_pci_bus_id(runtime.pci_bus_id(device)), is_sure=not prefixes)


def _asked(runtime: "Runtime", operation: str, *about: "Any") -> "Any":
    """The answer of an operation, or None where there is none."""
    try:
        return getattr(runtime, operation)(*about)
    except errors.NbxrtError:
        return None


_lock = threading.RLock()
#: How the first use of a library failed, and in which process: trying again would take as long and fail as before.
#: Guarded by the lock.
_failed: "weakref.WeakKeyDictionary[Library, tuple[int, Any]]" = weakref.WeakKeyDictionary()


def start(library: "Library") -> None:
    """Make the library's first call, once a process whether it succeeds or not.

    Raises: DeviceError, again for each time.
    """
    with _lock:
        process, failure = _failed.get(library, (0, None))
        if process == os.getpid():
            revive, facts = failure
            raise revive(*facts)
        try:
            library.start()
        except errors.DeviceError as error:
            _failed[library] = (os.getpid(), error.__reduce__())
            raise


def pci_numbers(text: str) -> "tuple[int, int, int, int] | None":
    """`0000:3b:00.0`, `00000000:3B:00.0` and `3b:00` are (0, 0x3b, 0, 0); None for what is no PCI address."""
    place, _dot, function = text.partition(".")
    try:
        parts = [int(part, 16) for part in place.split(":")]
        numbers = (*[0] * (3 - len(parts)), *parts, int(function or "0", 16))
    except ValueError:
        return None
    return numbers if len(numbers) == 4 and len(parts) > 1 else None


def uuid_text(uuid: bytes) -> str:
    """16 bytes as people write a UUID."""
    digits = uuid.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
