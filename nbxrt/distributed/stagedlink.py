"""Collectives on host memory for a device whose backend has none: elements go through the host, there and back."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nbxrt.distributed.datatypes import NBYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nbxrt.distributed.links import Link
    from nbxrt.runtime import Runtime

#: Operations whose `count` is one rank's part of what is sent, and of what is received.
_SEND_WHOLE = ("reduce_scatter", "all_to_all")
_RECEIVE_WHOLE = ("all_gather", "all_to_all")


class StagedLink:
    """Another link, whose operations are given copies in host memory. They are done when they return."""

    asynchronous = False

    def __init__(self, inner: Link, runtime: Runtime, device: int, rank: int, size: int) -> None:
        self.runtime, self.device = runtime, device
        self._inner, self._rank, self._size = inner, rank, size
        self.guard = inner.guard
        #: What is to be copied back when a group ends; None outside of one.
        self._later: list[Callable[[], None]] | None = None

    @property
    def who_is_lost(self) -> Callable[[], str]:
        """What the link that waits asks."""
        return self._inner.who_is_lost

    @who_is_lost.setter
    def who_is_lost(self, ask: Callable[[], str]) -> None:
        self._inner.who_is_lost = ask

    def prepared(self, name: str, arguments: tuple[Any, ...], stream: int) -> Callable[[], object]:
        def run() -> None:
            self.runtime.stream_sync(stream)
            staged, back = self._staged(name, *arguments)
            self._inner.prepared(name, staged, stream)()
            if self._later is None:
                back()
            else:
                self._later.append(back)

        return run

    def start_group(self) -> None:
        self._inner.start_group()
        self._later = []

    def end_group(self) -> None:
        later, self._later = self._later or [], None
        self._inner.end_group()
        for back in later:
            back()

    def _staged(self, name: str, *arguments: Any) -> tuple[tuple[Any, ...], Callable[[], None]]:
        """The arguments with host memory in place of the device's, and what copies the result back."""
        if name in ("send", "receive"):
            address, count, datatype, _peer = arguments
            host = self._host(address, count * NBYTES[datatype], name == "send")
            return (ctypes.addressof(host), *arguments[1:]), self._back(address if name == "receive" else 0, host)
        send, receive, count, datatype, *_rest = arguments
        nbytes, is_root = count * NBYTES[datatype], arguments[-1] == self._rank
        sends = name != "broadcast" or is_root
        receives = name != "reduce" or is_root
        sent = self._host(send, nbytes * (self._size if name in _SEND_WHOLE else 1), sends)
        received = ctypes.create_string_buffer(nbytes * (self._size if name in _RECEIVE_WHOLE else 1))
        staged = (ctypes.addressof(sent), ctypes.addressof(received), *arguments[2:])
        return staged, self._back(receive if receives else 0, received, sent)

    def _host(self, address: int, nbytes: int, filled: bool) -> Any:
        host = ctypes.create_string_buffer(nbytes)
        if filled:
            self.runtime.memcpy(ctypes.addressof(host), address, nbytes, "device_to_host")
        return host

    def _back(self, address: int, host: Any, sent: Any = None) -> Callable[[], None]:
        """What copies to an address, nothing to 0; it keeps the host memory, which a group uses until it ends."""

        def copy(_kept: Any = sent) -> None:
            if address:
                self.runtime.memcpy(address, ctypes.addressof(host), len(host), "host_to_device")

        return copy

    # everything else

    def is_settled(self, stream: int) -> bool:
        return not self.runtime.supports("stream_query") or self.runtime.stream_query(stream)

    def error(self) -> str:
        return self._inner.error()

    def gather(self, part: bytes, size: int, wait: Callable[[int], None]) -> bytes:
        return self._inner.gather(part, size, wait)

    def split(
        self, members: Sequence[int], rank: int, exchange: Callable[[bytes], list[bytes]]
    ) -> tuple[StagedLink, bytes]:
        inner, name = self._inner.split(members, rank, exchange)
        own = members.index(rank) if members else 0
        return StagedLink(inner, self.runtime, self.device, own, len(members)), name

    def abort(self) -> None:
        self._inner.abort()

    def close(self, seconds: float) -> None:
        self._inner.close(seconds)

    @contextmanager
    def on_device(self) -> Iterator[None]:
        with self._inner.on_device():
            yield
