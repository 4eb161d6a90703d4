"""The account of one runtime's device and pinned memory: who allocates goes through it, so it knows what is held."""

import os
from _weakref import ref  # `weakref` is slow to import

from nbxrt import errors
from nbxrt.locks import RLock
from nbxrt.memory import addresses, checking
from nbxrt.memory.captures import Captures, follow
from nbxrt.memory.classwide import classwide
from nbxrt.memory.devices import Devices
from nbxrt.memory.hotpath import make_paths
from nbxrt.memory.pinned import PinnedPool
from nbxrt.memory.policies import check_name
from nbxrt.memory.requests import Requests
from nbxrt.memory.streams import Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.memory.addresses import Owner
    from nbxrt.memory.layers import Layer
    from nbxrt.memory.policies import Policy
    from nbxrt.runtime import Runtime

#: The variable that names the policy.
VARIABLE = "NBXRT_ALLOCATOR"


def account_of(runtime: "Runtime") -> "DeviceAllocator":
    """The account of a runtime, made once."""
    account = runtime.account
    if account is None:
        made = DeviceAllocator(runtime)
        account = runtime.account = runtime.account or made  # a finalizer, or another thread, may have been quicker
    return account


class _Floor:
    """What the lowest layer stands on."""

    def __init__(self, account: "DeviceAllocator", malloc: "Callable[..., int]", free: "Callable[..., None]") -> None:
        self.account = account
        self.malloc = malloc
        self.free = free


class DeviceAllocator:
    """The account of a runtime's device and pinned memory. `nbxrt.memory.account()` gives the one of this process.

    Called on the class, a method is that of the account of the runtime in force. Safe to use from several threads, and
    `free` and `free_host` from finalizers. Sizes are counted as the policy rounds them, for pools to 512 bytes.
    """

    def __init__(self, runtime: "Runtime", policy: "str | None" = None) -> None:
        """An account of its own over a runtime; `policy` is NBXRT_ALLOCATOR, or `auto`, when left out.

        Raises: ArgumentTypeError; UnknownPolicyError.
        """
        from nbxrt.runtime import checked

        checked("`DeviceAllocator`", runtime)
        if policy is None:
            asked = os.environ.get(VARIABLE, "").strip()
            name = check_name(asked, f"{VARIABLE}={asked!r}") if asked else "auto"
        else:
            name = check_name(policy, "`policy`")
        self.runtime = runtime
        #: Captures that are under way.
        self.captures = Captures(runtime)
        self._devices = Devices(runtime, self.captures, name)
        self._streams = Streams(self._devices, self.captures)
        self._requests = Requests(self._devices, self._streams, self.pinned_blocks)
        #: What stands for each block that is held, by its address.
        self.live = self._requests.live
        self._pinned: PinnedPool | None = None
        self._layers: list[Layer] = []
        self._lock = RLock()  # guards the layers
        self._floor = _Floor(self, *make_paths(self._requests))
        self._bind()
        follow(runtime, ref(self))

    def _bind(self) -> None:
        """The topmost layer's functions are this object's own: a call goes there at once."""
        top: Any = self._layers[-1] if self._layers else self._floor
        self.__dict__["malloc"], self.__dict__["free"] = top.malloc, top.free

    # allocating

    @classwide
    def malloc(self, nbytes: int, device: "int | None" = None, stream: int = 0) -> int:
        """Address of new device memory of at least `nbytes` bytes, for use on the stream; 0 bytes give address 0.

        `device` is the calling thread's current one when left out; the thread's current device stays.
        Raises: ArgumentTypeError, SizeError, DeviceIndexError; OutOfMemoryError; DeviceError.
        """
        return self._floor.malloc(nbytes, device, stream)

    @classwide
    def malloc_alone(self, nbytes: int, device: "int | None" = None) -> int:
        """As `malloc`, by the vendor's own `malloc`: for what no part of a pool will do, as a handle for others.

        It is counted and given back as all other memory, and no layer sees how it was got.
        Raises: as `malloc`.
        """
        size, policy = checking.size("malloc_alone", nbytes), self.policy(device)
        self._requests.demand_context()
        return self._requests.obtain(policy.alone(size, 0)) if size else 0

    @classwide
    def free(self, ptr: int, stream: "int | None" = None) -> None:
        """Give memory of `malloc` back; address 0 does nothing.

        Work that was given to the stream of `malloc` before, and to `stream` if it is another, may still use it.
        Raises: PointerError, DoubleFreeError, InteriorPointerError; DeviceError.
        """
        self._floor.free(ptr, stream)

    @classwide
    def malloc_host(self, nbytes: int) -> int:
        """Address of page-locked host memory of at least `nbytes` bytes, in whole pages; 0 bytes give address 0.

        Raises: ArgumentTypeError, SizeError; CapabilityError; OutOfMemoryError; DeviceError.
        """
        size = checking.size("malloc_host", nbytes)
        return self._pinned_pool().malloc(size) if size else 0

    @classwide
    def free_host(self, ptr: int) -> None:
        """Give memory of `malloc_host` back; address 0 does nothing.

        It is used again once the default stream, and what `record_use` named, have done the work that they have now.
        Raises: ArgumentTypeError; PointerError; DeviceError.
        """
        ptr = checking.address("free_host", ptr)
        try:
            is_held = self._pinned is not None and self._pinned.free(ptr)
        except errors.DeviceError as error:
            if self._requests.failed(error):
                raise
            return
        if not is_held:
            self._requests.refuse(ptr, "free_host")

    @classwide
    def record_use(self, ptr: int, stream: int) -> None:
        """Say that work on another stream than that of `malloc` uses the memory.

        Once freed, it is not given to anybody else before that stream has done what it has at the time of `free`.

        Raises: ArgumentTypeError, ArgumentValueError; PointerError.
        """
        ptr, key = checking.address("record_use", ptr), self._streams.named("record_use", stream)
        entry = self.live.pop(ptr, None)
        if entry is not None:
            self.live[ptr] = entry if key == entry.stream else entry.use(key)
        elif self._pinned is not None and ptr in self._pinned.live:
            self._pinned.use(ptr, key)
        else:
            self._requests.refuse(ptr, "record_use")

    def is_recorded(self, ptr: int, stream: int) -> bool:
        """Whether `record_use` of the memory on a stream has been called, and calling it again would change nothing.

        False where it would be long to find out.
        """
        entry = self.live.get(ptr)
        return entry is not None and stream in entry.users

    # what is held

    @classwide
    def holds(self, ptr: int) -> bool:
        """Whether an address is that of memory which `malloc` or `malloc_host` gave and nobody freed.

        Raises: ArgumentTypeError.
        """
        ptr = checking.address("holds", ptr)
        return ptr in self.live or (self._pinned is not None and ptr in self._pinned.live)

    @classwide
    def owner(self, ptr: int) -> "Owner | None":
        """The block that an address lies in, also in its middle; None when none is held there.

        Raises: ArgumentTypeError.
        """
        return addresses.owner_of(self._requests, checking.address("owner", ptr))

    @classwide
    def memory_allocated(self, device: "int | None" = None) -> int:
        """Bytes of a device that callers hold; of the current one when left out."""
        return self.policy(device).tally.allocated

    @classwide
    def memory_reserved(self, device: "int | None" = None) -> int:
        """Bytes of a device that the account has taken from it: held, and kept for later."""
        return self.policy(device).reserved()[0]

    @classwide
    def peak_memory_allocated(self, device: "int | None" = None) -> int:
        """The most bytes that callers ever held, or since `reset_peak`."""
        return self.policy(device).tally.peak_allocated

    @classwide
    def peak_memory_reserved(self, device: "int | None" = None) -> int:
        """The most bytes that were ever taken from the device, or since `reset_peak`."""
        return self.policy(device).reserved()[1]

    @classwide
    def reset_peak(self, device: "int | None" = None) -> None:
        """Let both peaks of a device start from what is now."""
        self.policy(device).reset_peak()

    @classwide
    def stats(self, device: "int | None" = None) -> "dict[str, Any]":
        """The numbers of a device in bytes, its policy, and why it has that one; `pinned_…` are the process's."""
        policy = self.policy(device)
        reserved, peak_reserved = policy.reserved()
        pinned = self._pinned
        return {
            "policy": policy.name,
            "why": policy.why,
            **policy.tally.facts(),
            "reserved": reserved,
            "peak_reserved": peak_reserved,
            "largest_free": policy.largest_free(),
            "pinned_allocated": pinned.allocated if pinned else 0,
            "pinned_reserved": pinned.reserved if pinned else 0,
        }

    # keeping less

    @classwide
    def trim(self, device: "int | None" = None, keep: int = 0) -> int:
        """Give memory that nobody holds back to the device, as long as more than `keep` bytes are reserved.

        Of all devices, and of page-locked memory, when no device is given. The answer is how many bytes it was.
        Raises: ArgumentTypeError, SizeError, DeviceIndexError; DeviceError, and what was not given back is kept.
        """
        keep = checking.size("trim", keep, "keep")
        if device is not None:
            return self.policy(device).trim(keep)
        given_back = sum(policy.trim(keep) for policy in self.policies())
        return given_back + (self._pinned.trim(keep) if self._pinned is not None else 0)

    @classwide
    def limit(self, device: int, nbytes: "int | None") -> None:
        """Let the account take no more than so many bytes from a device; None lifts the limit.

        What is kept for later is given back if that is needed.
        Raises: LimitError when more is held; ArgumentTypeError, SizeError, DeviceIndexError; DeviceError.
        """
        policy = self.policy(device)
        if nbytes is None:
            policy.tally.limit = None
            return
        limit = checking.size("limit", nbytes)
        if policy.tally.reserved > limit:
            policy.trim(limit)
        held = max(policy.tally.allocated, policy.tally.reserved)
        if held > limit:
            raise errors.LimitError(
                f"a limit of {limit} bytes is under the {held} that are held on device {device}",
                hint="free memory first",
                parameter="nbytes",
                value=limit,
                held=held,
            )
        policy.tally.limit = limit

    @classwide
    def register_reclaim_hook(self, function: "Callable[[int, int], object]") -> "Callable[[], None]":
        """Call a function with device and bytes when memory runs out, so that it frees some; the answer unregisters it.

        It is called before the one retry, by the thread that asks, without any lock of the account. It may allocate:
        requests of its own that are not met ask no function. What it raises stops neither the others nor the retry, and
        is told with the error, or by a warning where the retry was met.
        Raises: ArgumentTypeError.
        """
        checking.function("register_reclaim_hook", "a function of device and bytes", function)
        return self._requests.reclaiming.register(function)

    # devices

    @classwide
    def policy(self, device: "int | None" = None) -> "Policy":
        """The policy of a device, chosen at its first use.

        Raises: DeviceIndexError, ArgumentTypeError; DeviceError.
        """
        return self._devices.policy(device)

    @classwide
    def device_count(self) -> int:
        """The number of devices."""
        return self.runtime.device_count()

    @classwide
    def get_device(self) -> int:
        """The calling thread's current device."""
        return self.runtime.get_device()

    @classwide
    def set_device(self, device: "Any") -> None:
        """Make a device current for the calling thread, in the runtime alone; a switch makes Triton's be set anew.

        Raises: TypeError; DeviceIndexError; DeviceError.
        """
        from nbxrt.device import index_of

        index = index_of(device, "set_device")
        if getattr(self.runtime.current, "index", None) != index:
            self.runtime.set_device(index)

    @classwide
    def ensure_triton_device(self, index: int) -> None:
        """As `nbxrt.ensure_triton_device`."""
        from nbxrt.device import ensure_triton_device

        ensure_triton_device(index)

    @classwide
    def most_free_device(self) -> int:
        """As `nbxrt.most_free_device`."""
        from nbxrt.placement import most_free_device

        return most_free_device()

    @classwide
    def event_elapsed_ms(self, start: int, end: int) -> float:
        """Milliseconds between two events that were recorded on streams of one device.

        Raises: ArgumentValueError when they are of two devices or were never recorded; DeviceError.
        """
        try:
            elapsed: float = self.runtime.event_elapsed(start, end)
        except errors.DeviceError as error:
            if error.kind not in ("invalid_handle", "invalid_value"):
                raise
            raise errors.ArgumentValueError(
                "the time between these events is not defined: both have to be recorded, and on one device",
                operation="event_elapsed",
            ) from error
        return elapsed

    @classwide
    def admit_peer(self, device: int, peer: int) -> None:
        """Let a peer use the memory of a device, whatever the policy made it of.

        Raises: DeviceIndexError; CapabilityError; DeviceError.
        """
        self.policy(device).admit(self._devices.ordinal(peer))

    # layers

    @classwide
    def add_layer(self, kind: "type[Layer] | Callable[..., Any]", *arguments: "Any", **named: "Any") -> "Any":
        """Put a layer over all others; the layer, made with what is below it and these arguments.

        Raises: ArgumentTypeError for what makes none; what making it raises. Nothing is changed then.
        """
        checking.function("add_layer", "a subclass of `Layer`, or a function that makes a layer", kind)
        with self._lock:
            layer: Any = kind(self._layers[-1] if self._layers else self._floor, *arguments, **named)
            if not callable(getattr(layer, "malloc", None)) or not callable(getattr(layer, "free", None)):
                raise errors.wrong_type("`add_layer`", "what makes an object with `malloc` and `free`", layer)
            self._layers.append(layer)
            self._bind()
            return layer

    @classwide
    def remove_layer(self, layer: "Any") -> None:
        """Take a layer out. Raises: ArgumentValueError for one that is not there."""
        with self._lock:
            if layer not in self._layers:
                raise errors.ArgumentValueError(f"{layer!r} is no layer of this account")
            place = self._layers.index(layer)
            if place + 1 < len(self._layers):
                self._layers[place + 1].below = layer.below
            self._layers.remove(layer)
            self._bind()

    def watch(self, function: "Callable[[int, int, int], object]") -> None:
        """Call a function with device, address and bytes when memory is taken from a device; below 0 it is given back.

        It is called with the device's lock held, so it must not allocate.
        """
        checking.function("watch", "a function of device, address and bytes", function)
        self._devices.watch(function)

    @classwide
    def snapshot(self, path: "str | os.PathLike[str] | None" = None) -> "dict[str, Any]":
        """What is reserved and held, and what `History` remembers, in the form that PyTorch's memory viewer reads.

        With a path it is written there too, as a pickle. Blocks have call sites where `Tracking` or `History` is in.
        Raises: ArgumentTypeError, ArgumentValueError; OSError.
        """
        from nbxrt.memory.snapshot import snapshot_of

        shown = None if path is None else errors.file_path("`snapshot`", path)
        found = snapshot_of(self)
        if shown is not None:
            import pickle

            with open(shown, "wb") as file:
                pickle.dump(found, file)
        return found

    def renew_locks(self) -> None:
        """Make every lock anew, in a process that was forked: another thread's would never be given back."""
        self._lock = RLock()
        for policy in self.policies():
            policy.renew_locks()

    def forget_stream(self, stream: int) -> None:
        """Forget a stream that its owner is about to destroy; its work is waited for if memory was used on it.

        `stream_destroy` of the runtime, and so `Stream.close`, does this; call it for streams that others destroy.
        Raises: ArgumentTypeError, ArgumentValueError; DeviceError.
        """
        self._streams.forget(checking.handle("forget_stream", stream), self._requests, self._pinned)

    def must_wait_with(self, stream: int) -> bool:
        """Whether a stream is destroyed later: its memory makes it be waited for, which would spoil a capture."""
        return self._streams.must_wait_with(stream)

    def resume(self) -> None:
        """Do what was put off while a graph was recorded; what fails is tried again when memory is given back."""
        holders: list[Any] = [*self.policies(), *filter(None, [self._pinned])]
        for holder in holders:
            try:
                holder.resume()
            except errors.DeviceError as error:
                self._requests.failed(error)
        self._streams.end(self._requests)

    def layers(self) -> "tuple[Layer, ...]":
        """The layers, the lowest first."""
        return tuple(self._layers)

    def policies(self) -> "tuple[Policy, ...]":
        """The policies of the devices that were used."""
        return self._devices.policies()

    def pinned_blocks(self) -> "dict[int, Any]":
        """The blocks of page-locked memory that are held, by address."""
        return {} if self._pinned is None else self._pinned.live.copy()

    def _pinned_pool(self) -> PinnedPool:
        pinned = self._pinned
        if pinned is None:
            made = PinnedPool(self.runtime, self.captures)
            pinned = self._pinned = self._pinned or made  # a finalizer, or another thread, may have been quicker
        return pinned

    def __repr__(self) -> str:
        return f"<nbxrt.DeviceAllocator of {self.runtime.name}>"
