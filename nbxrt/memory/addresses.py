"""What an address is to an account: the block that it lies in, or the error for one that is not held."""

from nbxrt import errors
from nbxrt.memory import checking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.memory.requests import Requests


class Owner:
    """A block that holds an address: where it begins, its size, its device (-1 for pinned memory) and its stream."""

    __slots__ = ("address", "device", "kind", "nbytes", "stream")

    def __init__(self, kind: str, address: int, nbytes: int, device: int, stream: "Any") -> None:
        self.kind = kind
        self.address = address
        self.nbytes = nbytes
        self.device = device
        self.stream = stream

    def __repr__(self) -> str:
        where = f" of device {self.device}, stream {self.stream}" if self.kind == "device" else ""
        return f"<nbxrt {self.kind} memory at {self.address:#x}, {self.nbytes} bytes{where}>"


def owner_of(requests: "Requests", ptr: int) -> "Owner | None":
    """The block that an address lies in, also in its middle; None when none is held there."""
    entry = requests.live.get(ptr)
    if entry is not None:
        return Owner("device", ptr, entry.nbytes, entry.tally.device, entry.stream)
    for address, entry in requests.live.copy().items():
        if address <= ptr < address + entry.nbytes:
            return Owner("device", address, entry.nbytes, entry.tally.device, entry.stream)
    for address, block in requests.pinned_blocks().items():
        if address <= ptr < address + block.nbytes:
            return Owner("pinned", address, block.nbytes, -1, 0)
    return None


def refuse(requests: "Requests", pointer: "Any", what: str) -> None:
    """Refuse an address that is not held. 0 is nothing.

    Raises: ArgumentTypeError, InteriorPointerError, DoubleFreeError, PointerError.
    """
    ptr = checking.address(what, pointer)
    if not ptr:
        return
    owner = owner_of(requests, ptr)
    if owner is not None and owner.address == ptr:
        said = f"`{what}`: {ptr:#x} is {owner.kind} memory"
        raise errors.PointerError(said, hint="device memory goes to `free`, pinned memory to `free_host`", value=ptr)
    if owner is not None:
        raise errors.InteriorPointerError(
            f"`{what}`: {ptr:#x} lies inside the block of {owner.nbytes} bytes at {owner.address:#x}",
            hint="pass the address that `malloc` gave",
            value=ptr,
            address=owner.address,
            nbytes=owner.nbytes,
        )
    if any(policy.was_freed(ptr) for policy in requests.devices.policies()):
        raise errors.DoubleFreeError(f"`{what}`: the memory at {ptr:#x} was freed already", value=ptr)
    raise errors.PointerError(f"`{what}`: {ptr:#x} is no address of this account's memory", value=ptr)
