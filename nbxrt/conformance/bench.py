"""What a check works at: a runtime and one of its devices, and everything that the check makes there."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING, Any

from nbxrt.conformance.checking import Wrong, expect, expect_that

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.conformance.image import ModuleImage
    from nbxrt.errors import DeviceError
    from nbxrt.runtime import Runtime

#: Seconds that a check waits for something that must happen.
PATIENCE = 20.0


class Bench:
    """A runtime and a device for one check. What is made through it is released by `clear`, last made first."""

    def __init__(self, runtime: Runtime, device: int, devices: int, image: ModuleImage | None) -> None:
        #: Untyped, because it is given wrong arguments too, and words that come from a table.
        self.runtime: Any = runtime
        self.device = device
        self.devices = devices
        self.image = image
        #: Whether a failure took the device's context with it, so that nothing works any more.
        self.lost = False
        self._used = {device}
        self._releases: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._kept: list[Any] = []

    def later(self, release: Callable[..., Any], *given: Any) -> None:
        """Have this called when the check ends."""
        self._releases.append((release, given))

    def use(self, device: int) -> None:
        """Make a device the calling thread's current one; what it was given is waited for when the check ends."""
        self._used.add(device)
        self.runtime.set_device(device)

    def clear(self) -> list[str]:
        """Wait for the devices and release everything; what could not be released, in words."""
        waits = [
            (call, given) for device in self._used for call, given in ((self.use, (device,)), (self.runtime.sync, ()))
        ]
        faults = []
        for release, given in [*waits, (self.use, (self.device,)), *reversed(self._releases)]:
            try:
                release(*given)
            except Exception as error:  # noqa: BLE001  # the rest must be released all the same
                faults.append(f"{getattr(release, '__name__', release)}: {error}")
        self._releases.clear()
        self._kept.clear()
        self._used = {self.device}
        return faults

    # making things

    def memory(self, nbytes: int) -> int:
        """Device memory."""
        address: int = self.runtime.malloc(nbytes)
        self.later(self.runtime.free, address)
        return address

    def pinned(self, nbytes: int) -> int:
        """Page-locked host memory."""
        address: int = self.runtime.malloc_host(nbytes)
        self.later(self.runtime.free_host, address)
        return address

    def host(self, content: bytes | int, align: int = 1) -> int:
        """Address of pageable host memory with this content, or of so many zero bytes."""
        nbytes = content if isinstance(content, int) else len(content)
        buffer = (ctypes.c_char * (nbytes + align))()
        self._kept.append(buffer)
        address = -(-ctypes.addressof(buffer) // align) * align
        if isinstance(content, bytes):
            ctypes.memmove(address, content, nbytes)
        return address

    def stream(self) -> int:
        """A stream."""
        stream: int = self.runtime.stream_create()
        self.later(self.runtime.stream_destroy, stream)
        return stream

    def event(self) -> int:
        """An event that records its time."""
        event: int = self.runtime.event_create()
        self.later(self.runtime.event_destroy, event)
        return event

    def expect_kind(self, error: DeviceError, kind: str, role: str = "runtime") -> None:
        """Raises: Wrong when the error is of another kind, and the library has a code for this one."""
        if kind in self.runtime.description["libraries"][role]["status"]["kinds"]:
            expect(error.kind, kind, "kind of the error")

    # moving bytes, with waiting

    def write(self, address: int, content: bytes) -> None:
        """Put bytes into device memory."""
        self.runtime.memcpy(address, self.host(content), len(content), "host_to_device")

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes of device memory."""
        target = self.host(nbytes)
        self.runtime.memcpy(target, address, nbytes, "device_to_host")
        return ctypes.string_at(target, nbytes)

    # asking

    def stored_error(self) -> int:
        """The thread's stored error, which stays; 0 where the library keeps none."""
        for operation in ("peek_last_error", "get_last_error"):
            if self.runtime.supports(operation):
                code: int = getattr(self.runtime, operation)()
                return code
        return 0

    def until(self, done: Callable[[], Any], what: str) -> None:
        """Ask until the answer is true; it must be True or False each time.

        Raises: Wrong when it does not come in time.
        """
        end = time.monotonic() + PATIENCE
        while True:
            answer = done()
            expect_that(isinstance(answer, bool), f"{what}: expected True or False, came {answer!r}")
            if answer:
                return
            if time.monotonic() > end:
                raise Wrong(f"{what}: still False after {PATIENCE:.0f} seconds")
            time.sleep(0.0005)


def host_write(address: int, content: bytes) -> None:
    """Put bytes into host memory by address."""
    ctypes.memmove(address, content, len(content))


def host_read(address: int, nbytes: int) -> bytes:
    """Bytes of host memory by address."""
    return ctypes.string_at(address, nbytes)
