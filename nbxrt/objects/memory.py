"""One piece of memory of a device, of the host or of both: who owns it, and how it is given back."""

import sys

from nbxrt import errors
from nbxrt.memory.allocator import account_of
from nbxrt.objects.keeping import process
from nbxrt.objects.state import state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.objects.device import Device
    from nbxrt.objects.stream import Stream

#: Kinds of memory, and whether the host reaches them by their address.
KINDS = {"device": False, "pinned": True, "managed": True}


#: The home of memory that has no stream of its own, or is closed.
_NOWHERE = -1


class Memory:
    """One piece of memory, owned (it is given back with this object) or borrowed (`owner` is kept alive).

    `address` is 0 for no bytes. `is_open` is false once it was given back; what shares it must not use it then.
    `home` is the handle of the one stream that may use it without more ado: that which owned memory of a device was
    allocated for. Launches compare it with theirs; it is no handle (negative) where they must look closer.
    """

    __slots__ = (
        "_process",
        "_release",
        "address",
        "device",
        "export",
        "home",
        "is_counted",
        "is_open",
        "kind",
        "nbytes",
        "owner",
        "readonly",
        "stream",
    )

    def __init__(
        self, device: "Device", address: int, nbytes: int, *, kind: str = "device", stream: "Stream | None" = None,
        owner: "Any" = None, release: "Callable[[int], Any] | None" = None, readonly: bool = False,
    ) -> None:  # fmt: skip
        self.device, self.address, self.nbytes, self.kind, self.stream = device, address, nbytes, kind, stream
        self.owner, self.readonly, self._release, self.is_open = owner, readonly, release, True
        #: Whether it is of the account's.
        self.is_counted = False
        #: What another process opens it by, of memory that was made to be shared.
        self.export: bytes | None = None
        self.home = stream.handle if stream is not None and release is not None and kind == "device" else _NOWHERE
        self._process = process[0]

    @property
    def on_host(self) -> bool:
        """Whether the host reaches it by its address: pinned and managed memory, and all of a processor's."""
        return KINDS[self.kind] or self.device.runtime.kind == "cpu"

    @property
    def is_owned(self) -> bool:
        """Whether it is given back with this object."""
        return self._release is not None

    def check(self) -> None:
        """Refuse to use memory that was given back. Raises: ArgumentValueError."""
        if not self.is_open:
            raise errors.ArgumentValueError(f"the {self.kind} memory of {self.device} is closed", value=self)

    def close(self) -> None:
        """Give it back, once; while a graph is captured, with that graph, which may use it."""
        self._close(self.device.on)

    def _close(self, on: "Callable[..., object]") -> None:
        if not self.is_open:
            return
        self.is_open, self.home = False, _NOWHERE
        owner, self.owner, release, self._release = self.owner, None, self._release, None
        captures = state_of(self.device.runtime).captures
        if captures:
            captures[-1].take_over(release, self.address, owner)
        elif release is not None and self.address:
            on(release, self.address)

    def __del__(self, _is_over: "Callable[[], bool]" = sys.is_finalizing, _now: "list[int]" = process) -> None:
        try:
            if self._release is not None and self._process == _now[0] and not _is_over():
                self._close(self.device.release)
        except Exception:  # noqa: BLE001, S110  # nothing raises from a finalizer; also one that was never made
            pass

    def used_on(self, stream: "Stream") -> None:
        """Work of a stream uses it now: it is not given to others before that has finished.

        Where that work is captured, the graph keeps it.
        """
        state = state_of(self.device.runtime)
        if state.captures:
            from nbxrt.objects.graph import keep_if_captured

            keep_if_captured(state, stream, (self,))
        stranger = self.stream is not stream and (self.stream is None or self.stream.key != stream.key)
        if stranger and self.is_counted and self.address:
            account_of(self.device.runtime).record_use(self.address, stream.handle)
            stream.keep_owner()


def allocated(nbytes: int, device: "Device", stream: "Stream", kind: str) -> Memory:
    """New memory of a kind. Raises: ArgumentError; CapabilityError; OutOfMemoryError, DeviceError."""
    if kind not in KINDS:
        close = errors.nearest(str(kind), list(KINDS))
        hint = f"did you mean `{close}`?" if close else ""
        raise errors.ArgumentValueError(f"`kind` is one of {', '.join(KINDS)}, not {kind!r}", hint=hint, value=kind)
    account = device.runtime.account or account_of(device.runtime)
    release: Callable[[int], Any]
    if kind == "device":
        address = device.on(account.malloc, nbytes, device.index, stream.handle)
        release = account.free
        stream.keep_owner()
    elif kind == "pinned":
        address = device.on(account.malloc_host, nbytes)
        release = account.free_host
    else:
        address = device.on(device.runtime.malloc_managed, nbytes)
        release = device.runtime.free
    if kind == "pinned":  # it is given to others once the default stream has done its work, and those it is told of
        stream = device.default_stream
    memory = Memory(device, address, nbytes, kind=kind, stream=stream, release=release)
    memory.is_counted = kind != "managed"
    if state_of(device.runtime).captures:  # so that launches on any stream say that they use it
        memory.home = _NOWHERE
    return memory
