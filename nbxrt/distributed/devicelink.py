"""The collectives of the backend: one rank's end of a communicator of the vendor's library."""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.composed import composed
from nbxrt.distributed.links import MOMENT, PATIENCE, Lost, Stuck, nobody
from nbxrt.distributed.progress import joining
from nbxrt.memory.allocator import account_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nbxrt.runtime import Runtime

#: Seconds after which who waits for other ranks looks whether one has ended.
_LOOK = 0.2


class DeviceLink:
    """One rank's end, on a device of a runtime that has collectives."""

    asynchronous = True

    def __init__(self, runtime: Runtime, device: int, handle: int, rank: int, size: int, seconds: float) -> None:
        self.runtime = runtime
        self.device = device
        self.rank, self.size = rank, size
        self.who_is_lost: Callable[[], str] = nobody
        #: The vendor's; 0 once this end has left, which every operation refuses.
        self.handle = handle
        #: Whether a group has been started.
        self.is_grouping = False
        self._seconds = seconds
        # Another thread may give back what is the link's own while this one waits for it.
        self.guard = threading.Lock()
        self._stream = self._left_stream = 0
        self._room = (0, 0)
        self._async_error = runtime.comm_async_error if runtime.supports("comm_async_error") else None
        self._destroy, self._abort = runtime.comm_destroy, _abort_of(runtime)

    @classmethod
    def join(
        cls,
        runtime: Runtime,
        device: int,
        identity: bytes,
        rank: int,
        size: int,
        seconds: float,
        who_is_lost: Callable[[], str] = nobody,
    ) -> DeviceLink:
        """Join a communicator; returns when all ranks have.

        Raises: Stuck when they have not in so many seconds; Lost when one of them is; DeviceError.
        """
        runtime.set_device(device)

        def join() -> int:
            runtime.set_device(device)
            return int(runtime.comm_init_rank(size, identity, rank))

        return cls(runtime, device, within(seconds, join, who_is_lost), rank, size, seconds)

    def prepared(self, name: str, arguments: tuple[Any, ...], stream: int) -> Callable[[], object]:
        self._refuse_if_left()
        if not self.runtime.supports(name):
            made = composed(self, name, arguments, stream)
            if made is not None:
                return made
        return self.runtime.prepared(name, *arguments, self.handle, stream)

    def start_group(self) -> None:
        self.runtime.group_start()
        self.is_grouping = True

    def end_group(self) -> None:
        self.is_grouping = False
        self.runtime.group_end()

    def is_settled(self, stream: int) -> bool:
        with self.guard:
            return stream == self._left_stream != 0 or self.runtime.stream_query(stream)

    def error(self) -> str:
        if self._async_error is None or not self.guard.acquire(timeout=MOMENT):
            return ""
        try:
            code = self._async_error(self.handle) if self.handle else 0
        finally:
            self.guard.release()
        if not code or self.runtime.library("collectives").kind(code) == "not_ready":
            return ""
        said = self.runtime.error_text(code, "collectives")
        return f"{self.runtime.title} says: {said} (code {code})" if said else f"{self.runtime.title} answers {code}"

    # messages of the communicator's own

    def gather(self, part: bytes, size: int, wait: Callable[[int], None]) -> bytes:
        nbytes, host = len(part), ctypes.create_string_buffer(part, len(part) * size)
        with self.guard:
            self._refuse_if_left()
            source = self._scratch(nbytes * (size + 1))
            target = source + nbytes
            self.runtime.memcpy(source, ctypes.addressof(host), nbytes, "host_to_device")
            if not self._stream:
                self._stream = _own_stream(self.runtime)
            stream = self._stream
            self.runtime.all_gather(source, target, nbytes, "uint8", self.handle, stream)
        wait(stream)
        with self.guard:
            self._refuse_if_left()
            self.runtime.memcpy(ctypes.addressof(host), target, nbytes * size, "device_to_host")
        return host.raw

    def _refuse_if_left(self) -> None:
        if not self.handle:
            raise Lost("it was left by another thread")

    def _scratch(self, nbytes: int) -> int:
        """Device memory of so many bytes, good until the next call."""
        address, size = self._room
        if size < nbytes:
            account = account_of(self.runtime)
            account.free(address)
            self._room = (account.malloc(nbytes, self.device), nbytes)
        return self._room[0]

    def split(
        self, members: Sequence[int], rank: int, exchange: Callable[[bytes], list[bytes]]
    ) -> tuple[DeviceLink, bytes]:
        leads = bool(members) and members[0] == rank
        identities = exchange(self.runtime.comm_unique_id() if leads else b"")
        if not members:
            return self, b""
        identity, own, size = identities[members[0]], members.index(rank), len(members)
        with joining(identity + b" joins", own, size) as progress:  # what it has when it is joined is another one
            return self.join(self.runtime, self.device, identity, own, size, self._seconds, progress.ended), identity

    # leaving

    def abort(self) -> None:
        handle = self._taken()
        if handle:
            self._quietly(self._abort, handle)
        self._give_back()

    def close(self, seconds: float) -> None:
        handle = self._taken()
        if handle:
            within(seconds, lambda: self._destroy(handle))
        self._give_back()

    def _taken(self) -> int:
        """The handle, which nobody asks anything of any more; a call that hangs is not waited for."""
        is_free = self.guard.acquire(timeout=MOMENT)
        handle, self.handle = self.handle, 0
        if is_free:
            self.guard.release()
        return handle

    @contextmanager
    def on_device(self) -> Iterator[None]:
        before = self.runtime.get_device()
        if before == self.device:
            yield
            return
        self.runtime.set_device(self.device)
        try:
            yield
        finally:
            self.runtime.set_device(before)

    def _give_back(self) -> None:
        if not self.guard.acquire(timeout=PATIENCE):
            return  # a call that does not come back uses it: leak rather than crash
        try:
            (address, _size), self._room = self._room, (0, 0)
            stream, self._stream = self._stream, 0
            self._left_stream = stream
            if address:
                self._quietly(account_of(self.runtime).free, address)
            if stream:
                self._quietly(self.runtime.stream_destroy, stream)
        finally:
            self.guard.release()

    @staticmethod
    def _quietly(release: Callable[[int], Any], handle: int) -> None:
        """The device may be lost by now, and nobody can do anything about what it does not take back."""
        with suppress(errors.NbxrtError):
            release(handle)


def _own_stream(runtime: Runtime) -> int:
    """A stream that does not wait for the default one, where the backend has such."""
    if runtime.supports("stream_create_flags"):
        return runtime.stream_create_flags(non_blocking=True)
    return runtime.stream_create()


def _abort_of(runtime: Runtime) -> Callable[[int], Any]:
    """What leaves at once; a library that cannot is told to destroy, in a thread that may be left behind."""
    if runtime.supports("comm_abort"):
        return runtime.comm_abort
    destroy = runtime.comm_destroy

    def leave(handle: int) -> None:
        threading.Thread(target=destroy, args=(handle,), daemon=True).start()

    return leave


def within(seconds: float, function: Callable[[], Any], who_is_lost: Callable[[], str] = nobody) -> Any:
    """What a call into the library answers, which waits for other ranks. The thread that waits longer is left behind.

    Raises: Stuck; Lost; what the function raises.
    """
    answer: list[Any] = []

    def run() -> None:
        try:
            answer.append((function(), None))
        except BaseException as error:  # noqa: BLE001  # raised where somebody can handle it
            answer.append((None, error))

    thread = threading.Thread(target=run, name="nbxrt collectives", daemon=True)
    thread.start()
    end = time.monotonic() + seconds
    while thread.is_alive() and time.monotonic() < end:
        thread.join(min(_LOOK, max(end - time.monotonic(), 0)))
        if thread.is_alive() and (said := who_is_lost()):
            raise Lost(said)
    if not answer:
        raise Stuck
    value, error = answer[0]
    if error is not None:
        raise error
    return value
