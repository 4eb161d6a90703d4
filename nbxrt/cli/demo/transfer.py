"""Moving a payload to the device and back, by each kind of host memory: times and digests."""

from __future__ import annotations

import ctypes
import hashlib
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal

import attrs

from nbxrt.cli.demo.payload import PIECE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt import Runtime
    from nbxrt.cli.demo.payload import Payload

    Copy = Callable[[int, int, int, Literal["host_to_device", "device_to_host"]], None]

#: What the device's memory holds before a copy: what comes back can then only be what was sent.
PATTERN = 0xA5


@attrs.define
class Leg:
    """One way that the bytes go: bytes so far, and the seconds that they took."""

    name: str
    nbytes: int = 0
    seconds: float = 0.0

    @contextmanager
    def timed(self, nbytes: int) -> Iterator[None]:
        """Time a copy of nbytes."""
        start = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - start
        self.nbytes += nbytes


@attrs.frozen
class Route:
    """Host memory of one kind: where the bytes are sent from and arrive, how they are copied, and the two legs.

    `is_staged` says that the file is not read into the memory that is sent, so that each piece is first copied there.
    """

    name: str
    sent: int
    arrived: int
    copy: Copy
    is_staged: bool
    there: Leg
    back: Leg
    digest: Any = attrs.field(factory=hashlib.sha256)


@attrs.frozen
class Outcome:
    """The routes that the bytes took, and the digest of the bytes that were sent."""

    routes: tuple[Route, ...]
    sent: str

    def is_same(self, route: Route) -> bool:
        """Whether the bytes that came back by a route are those that were sent."""
        return bool(route.digest.hexdigest() == self.sent)

    @property
    def is_good(self) -> bool:
        """Whether every route brought the same bytes back."""
        return all(map(self.is_same, self.routes))


def move(runtime: Runtime, load: Payload) -> Outcome:
    """Move every piece by every route. What is allocated is released, also when something fails.

    Raises: DeviceError, OutOfMemoryError.
    """
    with ExitStack() as held:
        source = bytearray(PIECE)
        device = runtime.malloc(PIECE)
        held.callback(runtime.free, device)
        routes = [_pageable(runtime, source, held)]
        if runtime.supports("malloc_host"):
            routes.append(_pinned(runtime, held))
        for route in routes:
            _warm_up(route, device)
        sent = hashlib.sha256()
        for nbytes in load.pieces(source):
            sent.update(memoryview(source)[:nbytes])
            for route in routes:
                _round_trip(runtime, route, device, source, nbytes)
        return Outcome(tuple(routes), sent.hexdigest())


def _pageable(runtime: Runtime, source: bytearray, held: ExitStack) -> Route:
    """Ordinary memory, copied by the call that waits."""
    views = [(ctypes.c_char * PIECE).from_buffer(buffer) for buffer in (source, bytearray(PIECE))]
    held.callback(views.clear)
    sent, arrived = map(ctypes.addressof, views)

    def copy(target: int, origin: int, nbytes: int, kind: Literal["host_to_device", "device_to_host"]) -> None:
        runtime.memcpy(target, origin, nbytes, kind)
        runtime.sync()

    return Route("pageable", sent, arrived, copy, False, Leg("pageable to device"), Leg("device to pageable"))


def _pinned(runtime: Runtime, held: ExitStack) -> Route:
    """Page-locked memory, copied in the order of a stream."""

    def allocated() -> int:
        address = runtime.malloc_host(PIECE)
        held.callback(runtime.free_host, address)
        return address

    sent, arrived = allocated(), allocated()
    stream = runtime.stream_create()
    held.callback(runtime.stream_destroy, stream)

    def copy(target: int, origin: int, nbytes: int, kind: Literal["host_to_device", "device_to_host"]) -> None:
        runtime.memcpy_async(target, origin, nbytes, kind, stream)
        runtime.stream_sync(stream)

    return Route("pinned", sent, arrived, copy, True, Leg("pinned to device"), Leg("device to pinned"))


def _warm_up(route: Route, device: int) -> None:
    """Copy once without a clock: the first copy pays for pages and contexts that no later one pays for."""
    ctypes.memset(route.sent, 0, PIECE)
    ctypes.memset(route.arrived, 0, PIECE)
    route.copy(device, route.sent, PIECE, "host_to_device")
    route.copy(route.arrived, device, PIECE, "device_to_host")


def _round_trip(runtime: Runtime, route: Route, device: int, source: bytearray, nbytes: int) -> None:
    """One piece there and back; neither the device nor the place of arrival holds it before."""
    if route.is_staged:
        ctypes.memmove(route.sent, (ctypes.c_char * nbytes).from_buffer(source), nbytes)
    ctypes.memset(route.arrived, 0, nbytes)
    runtime.memset(device, PATTERN, nbytes)
    runtime.sync()
    with route.there.timed(nbytes):
        route.copy(device, route.sent, nbytes, "host_to_device")
    with route.back.timed(nbytes):
        route.copy(route.arrived, device, nbytes, "device_to_host")
    route.digest.update((ctypes.c_char * nbytes).from_address(route.arrived))
