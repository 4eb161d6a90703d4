"""One piece of memory of a device, of the host or of both: who owns it, and how it is given back."""

from nbxrt import errors
from nbxrt.memory.allocator import account_of
from nbxrt.objects.closing import Closing, process
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
    """One piece of memory of somebody else; `owner` is kept alive.

    `address` is 0 for no bytes. `is_open` is false once it was closed; what shares it must not use it then.
    """

    __slots__ = ("address", "device", "is_open", "kind", "nbytes", "owner", "readonly")

    #: The handle of the one stream that may use it without more ado: that which owned memory of a device was allocated
    #: for. Launches compare it with theirs; it is no handle (negative) where they must look closer.
    home = _NOWHERE
    #: Whether it is of the account's.
    is_counted = False
    #: Whether it is given back with this object.
    is_owned = False
    #: What another process opens it by, of memory that was made to be shared.
    export: "bytes | None" = None
    #: The stream that it was allocated for.
    stream: "Stream | None" = None

    def __init__(
        self, device: "Device", address: int, nbytes: int, kind: str = "device", owner: "Any" = None,
        readonly: bool = False,
    ) -> None:  # fmt: skip
        self.device, self.address, self.nbytes = device, address, nbytes
        self.kind, self.owner, self.readonly = kind, owner, readonly
        self.is_open = True

    @property
    def on_host(self) -> bool:
        """Whether the host reaches it by its address: pinned and managed memory, and all of a processor's."""
        return KINDS[self.kind] or self.device.runtime.kind == "cpu"

    def check(self) -> None:
        """Refuse to use memory that was given back. Raises: ArgumentValueError."""
        if not self.is_open:
            raise errors.ArgumentValueError(f"the {self.kind} memory of {self.device} is closed", value=self)

    def close(self) -> None:
        """Let go of it; graphs that are being captured keep it, as they may use it."""
        for graph in list(state_of(self.device.runtime).captures):
            graph.keep(self.owner)
        self.owner, self.is_open = None, False

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


class OwnedMemory(Closing, Memory):
    """One piece of memory that is given back with this object, by a function of its address."""

    __slots__ = ("_process", "_release", "export", "home", "is_counted", "stream")

    is_owned = True
    #: The same for each, and so of the class: each value more of an object costs.
    owner = None
    readonly = False

    def __init__(
        self, device: "Device", address: int, nbytes: int, release: "Callable[[int], Any]", kind: str = "device",
        stream: "Stream | None" = None,
    ) -> None:  # fmt: skip
        # as of Memory, whose call costs as much; at most three values at once: more would be made a tuple first
        self.device, self.address, self.nbytes = device, address, nbytes
        self.kind, self.is_open = kind, True
        self.is_counted, self.export = False, None
        self._release, self.stream, self._process = release, stream, process[0]
        self.home = stream.handle if stream is not None and kind == "device" else _NOWHERE

    def _close(self, on: "Callable[..., object]") -> None:
        """Give it back, with the graphs that are being captured where there are any, as they may use it."""
        self.is_open, self.home = False, _NOWHERE
        device = self.device
        state = device.runtime.objects
        if state is not None and state.captures and self.address:
            from nbxrt.objects.graph import hand_over

            hand_over(state.captures, device, self._release, self.address)
        elif self.address:
            if device._current.__dict__.get("index") == device._device_idx:  # noqa: SLF001
                self._release(self.address)  # as `on` does, at once
            else:
                on(self._release, self.address)


def check_kind(kind: "Any") -> None:
    """Refuse a kind of memory that there is not. Raises: ArgumentTypeError, ArgumentValueError."""
    if not isinstance(kind, str):
        raise errors.wrong_type("`kind`", f"one of {', '.join(KINDS)}", kind)
    if kind not in KINDS:
        close = errors.nearest(kind, list(KINDS))
        hint = f"did you mean `{close}`?" if close else ""
        raise errors.ArgumentValueError(f"`kind` is one of {', '.join(KINDS)}, not {kind!r}", hint=hint, value=kind)


def allocated(nbytes: int, device: "Device", stream: "Stream", kind: str) -> OwnedMemory:
    """New memory of a kind. Raises: ArgumentError; CapabilityError; OutOfMemoryError, DeviceError."""
    if kind.__class__ is not str or kind not in KINDS:
        check_kind(kind)
    account = device.runtime.account or account_of(device.runtime)
    release: Callable[[int], Any]
    if kind == "device":
        if device._current.__dict__.get("index") == device._device_idx and not device._later:  # noqa: SLF001
            address = account.malloc(nbytes, device._device_idx, stream.handle)  # noqa: SLF001  # as `on` does, at once
        else:
            address = device.on(account.malloc, nbytes, device._device_idx, stream.handle)  # noqa: SLF001
        release = account.free
        if stream._owner is not None:  # noqa: SLF001
            stream.keep_owner()
    elif kind == "pinned":
        address = device.on(account.malloc_host, nbytes)
        release = account.free_host
    else:
        address = device.on(device.runtime.malloc_managed, nbytes)
        release = device.runtime.free
    if kind == "pinned":  # it is given to others once the default stream has done its work, and those it is told of
        stream = device.default_stream
    memory = OwnedMemory(device, address, nbytes, release, kind, stream)
    memory.is_counted = kind != "managed"
    state = device.runtime.objects
    if state is not None and state.captures:  # so that launches on any stream say that they use it
        memory.home = _NOWHERE
    return memory
