"""Devices: what they are, what is made on them, and which one is current for the calling thread."""

from nbxrt import errors, locks
from nbxrt.binding.arguments import device as ordinal
from nbxrt.device import make_current
from nbxrt.errors import wrong_type
from nbxrt.objects.state import refuse_stranger, runtime_in_force, state_of
from nbxrt.runtime import checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    from typing_extensions import Self

    from nbxrt.objects.buffer import Buffer
    from nbxrt.objects.event import Event
    from nbxrt.objects.given import DeviceLike, MemoryKind, StreamLike
    from nbxrt.objects.stream import Stream
    from nbxrt.runtime import Runtime

    R = TypeVar("R")


class Device:
    """One device of a runtime; `Device(0) is Device(0)`. Without an index it is the calling thread's current one.

    As a context manager it is the thread's current device inside the block, and what was current before comes back
    after it. Safe to use from several threads and nested.
    Raises: DeviceIndexError naming index and count, ArgumentTypeError; NoDeviceError; BackendNotFoundError.
    """

    __slots__ = (
        "__weakref__", "_current", "_default", "_device_idx", "_later", "_used", "is_only", "launch_keys", "runtime",
    )  # fmt: skip

    runtime: "Runtime"
    _device_idx: int
    _current: "Any"
    #: Whether there is no other, so that no thread has to be asked for its current device.
    is_only: bool
    #: Of arrays on it, by what launches tell apart in them: see nbxrt/launch/keys.py.
    launch_keys: "dict[tuple[str, bool, bool], int]"
    _default: "Any"
    _later: "list[tuple[Any, ...]]"
    _used: bool

    def __new__(cls, index: "DeviceLike" = None, *, runtime: "Runtime | None" = None) -> "Device":  # noqa: PYI034  # one object each
        runtime = runtime_in_force() if runtime is None else checked("`Device`", runtime)
        if index is None:
            index = current_index(runtime)
        elif isinstance(index, Device):
            refuse_stranger(repr(index), index.runtime, runtime)
            return index
        known = state_of(runtime).devices.get(index) if index.__class__ is int else None
        return known if known is not None else _made(cls, runtime, index)

    @property
    def index(self) -> int:
        """Its ordinal among the visible devices, from 0."""
        return self._device_idx

    def __index__(self) -> int:
        return self._device_idx

    def __repr__(self) -> str:
        return f"<nbxrt.Device {self}>"

    def __str__(self) -> str:
        return f"{self.runtime.name}:{self._device_idx}"

    def __reduce__(self) -> "tuple[Any, ...]":
        return Device, (self._device_idx,)

    # what it is

    @property
    def name(self) -> str:
        """Its name, as the vendor calls it. Raises: CapabilityError, DeviceError."""
        return self.runtime.device_name(self._device_idx)

    @property
    def uuid(self) -> str:
        """Its UUID as 8-4-4-4-12 hexadecimal digits. Raises: CapabilityError, DeviceError."""
        from nbxrt.management import uuid_text

        return uuid_text(self.runtime.device_uuid(self._device_idx))

    @property
    def pci_bus_id(self) -> str:
        """Its PCI address, as domain:bus:device.function. Raises: CapabilityError, DeviceError."""
        return self.runtime.pci_bus_id(self._device_idx)

    @property
    def attributes(self) -> "dict[str, int]":
        """Its attributes by their names in the contract (`device_attribute`), those that the backend has.

        Raises: DeviceError.
        """
        numbers = self.runtime.description["enums"].get("device_attribute", ())
        words = [*numbers[0][2]] if numbers and self.runtime.supports("device_attribute") else []
        ask: Any = self.runtime.device_attribute
        return {word: ask(word, self._device_idx) for word in words}

    @property
    def compute_capability(self) -> "tuple[int, int]":
        """Its compute capability as (major, minor). Raises: CapabilityError, DeviceError."""
        ask = self.runtime.device_attribute
        return ask("compute_capability_major", self._device_idx), ask("compute_capability_minor", self._device_idx)

    @property
    def memory_info(self) -> "tuple[int, int]":
        """Free and total memory, in bytes; asking makes its context. Raises: CapabilityError, DeviceError."""
        return self.on(self.runtime.mem_get_info)

    def supports(self, operation: str) -> bool:
        """Whether the device offers an operation of the contract. Raises: ArgumentValueError for another name."""
        return self.runtime.supports(operation, self._device_idx)

    # what is made on it

    @property
    def default_stream(self) -> "Stream":
        """Its default stream, whose handle is 0."""
        if self._default is None:
            from nbxrt.objects.stream import Stream

            self._default = Stream.from_handle(0, self)
        stream: Stream = self._default
        return stream

    def create_stream(self, *, non_blocking: bool = False, priority: "int | None" = None) -> "Stream":
        """A new stream; see `Stream`."""
        from nbxrt.objects.stream import Stream

        return Stream(self, non_blocking=non_blocking, priority=priority)

    def create_event(self, *, timing: bool = True, blocking: bool = False, interprocess: bool = False) -> "Event":
        """A new event; see `Event`."""
        from nbxrt.objects.event import Event

        return Event(self, timing=timing, blocking=blocking, interprocess=interprocess)

    def allocate(self, nbytes: int, *, stream: "StreamLike" = None, kind: "MemoryKind" = "device") -> "Buffer":
        """New memory, for use on the stream; see `Buffer`."""
        from nbxrt.objects.buffer import Buffer

        return Buffer(nbytes, self, stream=stream, kind=kind)

    # what it does

    def sync(self) -> None:
        """Wait until all its work has finished. Raises: DeviceError."""
        self.on(self.runtime.sync)
        state_of(self.runtime).keeper.drop_passed(self)

    def set_current(self) -> None:
        """Make it the calling thread's current device, for an active driver of Triton too. Raises: DeviceError."""
        make_current(self.runtime, self._device_idx)

    def can_access(self, other: "DeviceLike") -> bool:
        """Whether it can access the memory of another device; see `enable_peer_access`."""
        from nbxrt.objects import peer

        return peer.can_access(self, other)

    def enable_peer_access(self, other: "DeviceLike") -> None:
        """Let it access the memory of another device, in this direction only; enabled already is success.

        Raises: CapabilityError; DeviceError naming the pair, where the devices cannot.
        """
        from nbxrt.objects import peer

        peer.enable(self, other)

    def copy_path(self, other: "DeviceLike") -> str:
        """How memory is copied from it to another device: `same device`, `peer`, or `staged` through the host."""
        from nbxrt.objects import peer

        return peer.path(self, other)

    def on(self, function: "Callable[..., R]", *arguments: "Any") -> "R":
        """Call a function while this device is the current one; the thread's current device stays what it is.

        No other device gets a context by it: where the calling thread never chose a device, putting it back by a call
        would make one on the device that it found (CUDA since 12), so the function is called in a thread of its own.
        Raises: ArgumentTypeError for what cannot be called.
        """
        if not callable(function):
            raise wrong_type("`Device.on`", "a function and its arguments", function)
        if self._current.__dict__.get("index") == self._device_idx:
            if self._later:
                self._release_later()
            return function(*arguments)
        found = self.runtime.get_device()
        if found == self._device_idx:
            self._used = True
            return function(*arguments)
        if self._may_come_back_to(found):
            return _put_back(self, found, function, arguments)
        return _in_a_thread(self, function, arguments)

    def release(self, function: "Callable[..., object]", *arguments: "Any") -> None:
        """Call what releases something of this device, from a finalizer: it starts no thread and makes no context.

        Where `on` would need a thread, it is called at the next call on this device.
        """
        if self._current.__dict__.get("index") == self._device_idx:
            function(*arguments)
            return
        found = self.runtime.get_device()
        if found == self._device_idx:
            function(*arguments)
        elif self._may_come_back_to(found):
            _put_back(self, found, function, arguments)
        else:
            self._later.append((function, *arguments))

    def _may_come_back_to(self, found: int) -> bool:
        """Whether making a device current again makes no new context: this thread chose it, or it was used before."""
        known = state_of(self.runtime).devices.get(found)
        if hasattr(self._current, "index") or (known is not None and known._used):  # noqa: SLF001
            return True
        return bool(self.runtime.has_context(found))

    def _release_later(self) -> None:
        while self._later:
            try:
                function, *arguments = self._later.pop()
                function(*arguments)
            except (IndexError, errors.NbxrtError):  # another thread was quicker; what cannot be released is left
                continue

    def __enter__(self) -> "Self":
        here = self._current.__dict__  # once, since each look for what is the thread's own costs as much as all else
        if self.is_only:  # there is nothing to come back to
            if here.get("index") != self._device_idx:
                make_current(self.runtime, self._device_idx)
            return self
        try:
            found = here["index"]
            here["entered"].append(found)
        except KeyError:
            found = _first_entry(here)
        if found != self._device_idx:
            _enter(self, here, found)
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        if self.is_only:
            return
        here = self._current.__dict__
        try:
            found = here["entered"].pop()
        except (KeyError, IndexError):
            raise left_elsewhere(self) from None
        if found != here["index"]:
            _leave(self.runtime, here, found)


def devices(runtime: "Runtime | None" = None) -> "tuple[Device, ...]":
    """The devices of the runtime in force. Raises: BackendNotFoundError."""
    runtime = runtime_in_force() if runtime is None else checked("`devices`", runtime)
    return tuple(Device(index, runtime=runtime) for index in range(runtime.device_count()))


def current_device() -> Device:
    """The calling thread's current device in the runtime in force. Raises: BackendNotFoundError; NoDeviceError."""
    return Device(None)


def current_index(runtime: "Runtime") -> int:
    """The calling thread's current device, as the cache or else the runtime knows it."""
    here = runtime.current.__dict__
    index: int | None = here.get("index")
    if index is not None:
        return index
    found = runtime.get_device()
    default, left = here.get("left_at", (found, None))
    return default if left == found and "index" not in here else found


def as_device(device: "Any", runtime: "Runtime | None" = None) -> Device:
    """The device that a caller means: a Device, an index, or None for the current one.

    Raises: as `Device`.
    """
    if device.__class__ is Device and runtime is None:
        return device
    if device is None:  # on the way of every array: the device that is known to be current
        runtime = runtime or runtime_in_force()
        index: Any = getattr(runtime.current, "index", None)
        known = state_of(runtime).devices.get(index)
        if known is not None:
            return known
    return Device(device, runtime=runtime)


def _made(cls: "type[Device]", runtime: "Runtime", index: "Any") -> Device:
    """The one object of a device, made at its first use; the index is checked."""
    try:
        index = ordinal(runtime.device_count)(index)
    except errors.DeviceIndexError as error:
        raise errors.DeviceIndexError(f"`Device`: the index {error.message}", count=error.count, value=index) from None  # type: ignore[attr-defined]
    except errors.ArgumentError:
        raise wrong_type("`Device`", "an index or a Device", index) from None
    if not runtime.device_count():
        raise runtime.why_no_device() or errors.NoDeviceError(f"{runtime.title} has no device here: it counts 0")
    known = state_of(runtime).devices
    if index not in known:
        device: Device = object.__new__(cls)
        device.runtime, device._device_idx = runtime, index  # noqa: SLF001
        device._current, device._default, device._later, device._used = runtime.current, None, [], False  # noqa: SLF001
        device.is_only, device.launch_keys = runtime.device_count() == 1, {}
        known.setdefault(index, device)
    return known[index]


def _first_entry(here: "dict[str, Any]") -> "int | None":
    """The thread's first entry: it has no stack yet, or no device that is known."""
    found: int | None = here.get("index")
    here.setdefault("entered", []).append(found)
    return found


def _enter(device: Device, here: "dict[str, Any]", found: "int | None") -> None:
    """Make a device current; what was current before is asked where it is not known, so that it can come back.

    A device that the thread never chose is put down as its complement.
    """
    try:
        if found is None:
            found = current_index(device.runtime)
            here["entered"][-1] = found if "index" in here else ~found
        make_current(device.runtime, device._device_idx)  # noqa: SLF001
    except BaseException:
        here["entered"].pop()
        raise


def left_elsewhere(what: "Any") -> errors.ArgumentValueError:
    """The error for a block that ends in a thread which did not begin it: each thread has its own current device."""
    return errors.ArgumentValueError(
        f"`with`: this thread is not inside of {what!r}",
        hint="a block begins and ends in one thread; a generator that holds one is closed where it was begun",
        value=what,
    )


def _leave(runtime: "Runtime", here: "dict[str, Any]", found: int) -> None:
    """Make current again what was so before a block.

    A device that the thread never chose, and that has no context, would get one by that (CUDA since 12). Then the
    vendor's device stays, and `left_at` says which device is this thread's all the same, for as long as it does.
    """
    if found >= 0:
        make_current(runtime, found)
    elif ~found == here["index"]:  # it has chosen that one by now
        pass
    elif runtime.has_context(~found) is False:
        here["left_at"] = ~found, here.pop("index")
    else:
        make_current(runtime, ~found)


def _put_back(device: Device, found: int, function: "Callable[..., R]", arguments: "tuple[Any, ...]") -> "R":
    of, here = device.runtime, device._current.__dict__  # noqa: SLF001
    before = {"index": here["index"]} if "index" in here else {}
    device._used = True  # noqa: SLF001
    of.set_device(device._device_idx)  # noqa: SLF001
    try:
        return function(*arguments)
    finally:
        of.set_device(found)
        here.pop("index", None)
        here.update(before)


def _in_a_thread(device: Device, function: "Callable[..., R]", arguments: "tuple[Any, ...]") -> "R":
    """Call a function in a thread of its own on the device; its answer, or its error raised here."""

    def work() -> "R":
        device.runtime.set_device(device._device_idx)  # noqa: SLF001
        return function(*arguments)

    device._used = True  # noqa: SLF001
    return locks.in_another_thread(work)
