"""The streams of an account: as what its pools know them, and what is left of one when it ends."""

from nbxrt import errors
from nbxrt.memory import checking
from nbxrt.memory.entries import Entry, this_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.memory.captures import Captures
    from nbxrt.memory.devices import Devices
    from nbxrt.memory.pinned import PinnedPool
    from nbxrt.memory.requests import Requests


class Streams:
    """The streams that memory is on, and those that are destroyed once no graph is recorded any more."""

    def __init__(self, devices: "Devices", captures: "Captures") -> None:
        self._runtime, self._devices, self._captures = devices.runtime, devices, captures
        special = (self._runtime.description["interop"] or {}).get("streams") or {}
        #: The handle that means the default stream beside 0, and the one that means each thread's own.
        self.default, self._per_thread = special.get("default"), special.get("per_thread")
        #: Streams that `record_use` named.
        self._named: set[Any] = set()
        #: Streams that were to be destroyed while a graph was recorded.
        self._ending: list[int] = []

    def key(self, function: str, stream: "Any") -> "Any":
        """A stream as the pools know it: its handle, or (handle, thread) where the handle means each thread's own.

        Raises: ArgumentTypeError, ArgumentValueError.
        """
        handle = checking.handle(function, stream)
        if handle == self.default:
            return 0
        if handle == self._per_thread:
            return handle, this_thread()
        return handle

    def named(self, function: str, stream: "Any") -> "Any":
        """The same of a stream that uses memory beside its own. Raises: as `key`."""
        key = self.key(function, stream)
        self._named.add(key)
        return key

    def forget(self, stream: int, requests: "Requests", pinned: "PinnedPool | None") -> None:
        """Name a stream no more that is about to be destroyed: its work is waited for. Raises: DeviceError."""
        if not self._knows(stream):
            return
        policies = self._devices.policies()
        self._runtime.stream_sync(stream)
        for streams in list(requests.table.values()):
            streams.pop(stream, None)
        for policy in policies:
            policy.forget(stream)
        if stream in self._named or any(policy.name == "stream_ordered" for policy in policies):
            for entry in list(requests.live.copy().values()):
                if isinstance(entry, Entry):
                    entry.forget(stream)
        if pinned is not None:
            pinned.forget(stream)
        self._named.discard(stream)

    def _knows(self, stream: int) -> bool:
        """Whether memory may be on a stream."""
        known = stream in self._named or any(policy.knows(stream) for policy in self._devices.policies())
        return bool(stream) and known

    def must_wait_with(self, stream: int) -> bool:
        """Whether a stream is destroyed later: its memory makes it be waited for, which would spoil a capture."""
        is_later = self._captures.forbid() and stream not in self._captures and self._knows(stream)
        if is_later and stream not in self._ending:
            self._ending.append(stream)
        return is_later

    def end(self, requests: "Requests") -> None:
        """Destroy the streams that were to be; what fails is tried again the next time."""
        for stream in self._ending.copy():
            try:
                self._ending.remove(stream)
                self._runtime.stream_destroy(stream)  # or once more later
            except ValueError:  # another thread does it, or a finalizer
                continue
            except errors.DeviceError as error:
                requests.failed(error)
