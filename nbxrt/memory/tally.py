"""What one device's memory comes to: bytes allocated and reserved, their peaks, and the limit."""

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Tally:
    """The numbers of one device, in bytes. `allocated` changes with every event; the rest under the device's lock.

    `allocated` is what callers hold, `reserved` what is taken from the device for them: held, cached and cut off.
    """

    __slots__ = ("allocated", "device", "limit", "peak_allocated", "peak_reserved", "reserved", "watch")

    def __init__(self, device: int) -> None:
        self.device = device
        self.allocated = self.peak_allocated = 0
        self.reserved = self.peak_reserved = 0
        self.limit: int | None = None
        #: Called with (device, address, bytes) when memory is taken from the device, and bytes below 0 when given back.
        self.watch: Callable[[int, int, int], object] | None = None

    def fits(self, nbytes: int) -> bool:
        """Whether so many bytes more stay within the limit."""
        return self.limit is None or self.reserved + nbytes <= self.limit

    def demand(self, nbytes: int) -> None:
        """Refuse to reserve more than the limit allows.

        Raises: OutOfMemoryError.
        """
        if not self.fits(nbytes):
            raise errors.OutOfMemoryError(
                f"{nbytes} bytes more would pass the limit of {self.limit} bytes on device {self.device}, "
                f"of which {self.reserved} are reserved",
                kind="out_of_memory",
                device=self.device,
            )

    def hold(self, nbytes: int) -> None:
        """Count bytes that a caller holds from now on."""
        self.allocated += nbytes
        self.peak_allocated = max(self.peak_allocated, self.allocated)

    def reserve(self, nbytes: int, address: int) -> None:
        """Count bytes that were taken from the device."""
        if self.watch is not None:
            self.watch(self.device, address, nbytes)
        self.reserved += nbytes
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def release(self, nbytes: int, address: int) -> None:
        """Count bytes that were given back to the device."""
        if self.watch is not None:
            self.watch(self.device, address, -nbytes)
        self.reserved -= nbytes

    def reset_peak(self) -> None:
        """Let the peaks start from what is now."""
        self.peak_allocated, self.peak_reserved = self.allocated, self.reserved

    def facts(self) -> "dict[str, Any]":
        """The numbers by name."""
        return {name: getattr(self, name) for name in sorted(self.__slots__) if name not in ("device", "watch")}
