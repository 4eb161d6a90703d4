"""The account of one runtime's device and pinned memory: who allocates goes through it, so it knows what is held."""

import os
from _weakref import ref  # `weakref` is slow to import

from nbxrt import errors
from nbxrt.locks import RLock
from nbxrt.memory import addresses, checking
from nbxrt.memory.captures import Captures, follow
from nbxrt.memory.classwide import classwide
from nbxrt.memory.entries import Direct, Entry, this_thread
from nbxrt.memory.exclusive import Reentered
from nbxrt.memory.home import Home
from nbxrt.memory.hotpath import make_paths
from nbxrt.memory.pinned import PinnedPool
from nbxrt.memory.policies import Policy, check_name, make_policy
from nbxrt.memory.reclaiming import Reclaiming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.memory.addresses import Owner
    from nbxrt.memory.layers import Layer
    from nbxrt.runtime import Runtime

#: The variable that names the policy.
VARIABLE = "NBXRT_ALLOCATOR"

_NOTHING: "dict[Any, Any]" = {}


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
            self._policy_name = check_name(asked, f"{VARIABLE}={asked!r}") if asked else "auto"
        else:
            self._policy_name = check_name(policy, "`policy`")
        self.runtime = runtime
        #: What stands for each block that is held, by its address.
        self.live: dict[int, Any] = {}
        #: The bins by device, stream and size. With one device it is also found where none is given.
        self.table: dict[Any, dict[Any, dict[int, Any]]] = {}
        self._lock = RLock()  # guards the layers
        self._policies: dict[int, Policy] = {}
        self._reclaiming = Reclaiming()
        self._watchers: list[Callable[[int, int, int], object]] = []
        self._lost: errors.DeviceError | None = None
        #: Captures that are under way.
        self.captures = Captures(runtime)
        self._count = runtime.device_count()
        streams = (runtime.description["interop"] or {}).get("streams") or {}
        self._default_stream, self._thread_stream = streams.get("default"), streams.get("per_thread")
        self._pinned: PinnedPool | None = None
        #: Streams that `record_use` named.
        self._named: set[Any] = set()
        #: Streams that were to be destroyed while a graph was recorded.
        self._ending: list[int] = []
        self._layers: list[Layer] = []
        self._floor = _Floor(self, *make_paths(self, several=self._count > 1))
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
        if self._lost is not None:
            raise errors.again(self._lost)
        if not size:
            return 0
        entry = policy.alone(size, 0)
        try:
            ptr = entry.refill()
        except errors.OutOfMemoryError as error:
            ptr = self.rescue(entry, error)
        except errors.DeviceError as error:
            self.failed(error)
            raise
        entry.tally.hold(size)
        self.live[ptr] = entry
        return ptr

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
        if not ptr:
            return
        try:
            self._pinned_pool().free(ptr)
        except KeyError:
            self.refuse(ptr, "free_host")
        except errors.DeviceError as error:
            if self.failed(error):
                raise

    @classwide
    def record_use(self, ptr: int, stream: int) -> None:
        """Say that work on another stream than that of `malloc` uses the memory.

        Once freed, it is not given to anybody else before that stream has done what it has at the time of `free`.

        Raises: ArgumentTypeError, ArgumentValueError; PointerError.
        """
        ptr, key = checking.address("record_use", ptr), self._stream("record_use", stream)
        self._named.add(key)
        entry = self.live.pop(ptr, None)
        if entry is not None:
            self.live[ptr] = entry if key == entry.stream else entry.use(key)
        elif self._pinned is not None and ptr in self._pinned.live:
            self._pinned.use(ptr, key)
        else:
            self.refuse(ptr, "record_use")

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
        return addresses.owner_of(self, checking.address("owner", ptr))

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
        given_back = sum(policy.trim(keep) for policy in list(self._policies.values()))
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
        return self._reclaiming.register(function)

    # devices

    @classwide
    def policy(self, device: "int | None" = None) -> Policy:
        """The policy of a device, chosen at its first use.

        Raises: DeviceIndexError, ArgumentTypeError; DeviceError.
        """
        ordinal = self._ordinal(device)
        policy = self._policies.get(ordinal)
        if policy is None:  # it calls the vendor, and whoever asks meanwhile is not to wait: the first one made counts
            made = make_policy(Home(self.runtime, ordinal, self.captures), self._policy_name)
            policy = self._policies.setdefault(ordinal, made)
            policy.tally.watch = self._told if self._watchers else None
        return policy

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
        self.policy(device).admit(self._ordinal(peer))

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
        self._watchers.append(function)
        for policy in self.policies():
            policy.tally.watch = self._told

    def _told(self, device: int, address: int, nbytes: int) -> None:
        for watcher in self._watchers:
            watcher(device, address, nbytes)

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
        stream = checking.handle("forget_stream", stream)
        if not self._knows(stream):
            return
        policies = list(self._policies.values())
        self.runtime.stream_sync(stream)
        for streams in list(self.table.values()):
            streams.pop(stream, None)
        for policy in policies:
            policy.forget(stream)
        if stream in self._named or any(policy.name == "stream_ordered" for policy in policies):
            for entry in list(self.live.copy().values()):
                if isinstance(entry, Entry):
                    entry.forget(stream)
        if self._pinned is not None:
            self._pinned.forget(stream)
        self._named.discard(stream)

    def _knows(self, stream: int) -> bool:
        """Whether memory may be on a stream."""
        known = stream in self._named or any(policy.knows(stream) for policy in list(self._policies.values()))
        return bool(stream) and known

    def must_wait_with(self, stream: int) -> bool:
        """Whether a stream is destroyed later: its memory makes it be waited for, which would spoil a capture."""
        is_later = self.captures.forbid() and stream not in self.captures and self._knows(stream)
        if is_later and stream not in self._ending:
            self._ending.append(stream)
        return is_later

    def resume(self) -> None:
        """Do what was put off while a graph was recorded; what fails is tried again when memory is given back."""
        holders: list[Any] = [*self._policies.values(), *filter(None, [self._pinned])]
        for holder in holders:
            try:
                holder.resume()
            except errors.DeviceError as error:
                self.failed(error)
        for stream in self._ending.copy():
            try:
                self._ending.remove(stream)
                self.runtime.stream_destroy(stream)  # or once more later
            except ValueError:  # another thread does it, or a finalizer
                continue
            except errors.DeviceError as error:
                self.failed(error)

    def layers(self) -> "tuple[Layer, ...]":
        """The layers, the lowest first."""
        return tuple(self._layers)

    def policies(self) -> "tuple[Policy, ...]":
        """The policies of the devices that were used."""
        return tuple(self._policies.values())

    # what the hot path asks for when a request is not met at once

    def entry(self, nbytes: "Any", device: "Any", stream: "Any") -> "Any":
        """What stands for a request; None for no bytes. Raises: ArgumentError, DeviceError."""
        size = (
            nbytes if nbytes.__class__ is int and 0 <= nbytes <= checking.LARGEST else checking.size("malloc", nbytes)
        )
        key = 0 if stream.__class__ is int and not stream else self._stream("malloc", stream)
        if self._lost is not None:
            raise errors.again(self._lost)
        try:
            policy = self.policy(device)
        except errors.DeviceError as error:
            self.failed(error)
            raise
        if not size:
            return None
        if device is None and self._count > 1 and policy.tally.reserved:
            self._trust(policy.home.device)
        bins = self.table.get(policy.home.device, _NOTHING).get(key)
        if bins is not None and size in bins:
            return bins[size]
        try:
            if bins is None:
                self._show(policy.home.device, key, policy.bins(key))
            return policy.entry(size, key)
        except Reentered:
            return policy.alone(size, key)

    def _trust(self, device: int) -> None:
        """Ask this thread's current device no more, as after a launch: memory is on it, so it has a context by now."""
        if getattr(self.runtime.current, "index", None) is None:
            from nbxrt.device import make_current

            make_current(self.runtime, device)

    def _show(self, device: int, stream: "Any", bins: "dict[int, Any]") -> None:
        """Let the hot path find the bins of a stream."""
        streams = self.table.setdefault(device, {})
        streams[stream] = bins
        if stream == 0 and self._default_stream:
            streams[self._default_stream] = bins
        if self._count == 1:
            self.table[None] = streams

    def refilled(self, entry: "Any") -> "tuple[Any, int]":
        """What `malloc` does where the bin of a request turns out to be empty. Raises: as `malloc`."""
        try:
            return entry, entry.refill()
        except errors.OutOfMemoryError as error:
            return entry, self.rescue(entry, error)
        except errors.DeviceError as error:
            self.failed(error)
            raise
        except Reentered:
            return self.aside(entry)

    def aside(self, entry: "Any") -> "tuple[Direct, int]":
        """A block of the vendor's `malloc`, for a finalizer that the pool itself has brought to run.

        The pool is locked, so that nobody is asked to free memory. Raises: OutOfMemoryError with all that is known.
        """
        policy = self._policies[entry.tally.device]
        single = policy.alone(entry.nbytes, entry.stream)
        try:
            return single, single.refill()
        except errors.OutOfMemoryError as error:
            from nbxrt.memory.outofmemory import explained

            raise explained(policy, entry.nbytes, error) from error
        except errors.DeviceError as error:
            self.failed(error)
            raise

    def ordered_after(self, ptr: int, entry: "Any", stream: "Any") -> "Any":
        """The entry of a block that is freed after the work of another stream too. Raises: ArgumentError; it stays."""
        try:
            key = self._stream("free", stream)
        except errors.ArgumentError:
            self.live[ptr] = entry
            raise
        return entry if key == entry.stream else entry.use(key)

    def rescue(self, entry: "Any", error: errors.OutOfMemoryError) -> int:
        """An address after everything was done to find memory. Raises: OutOfMemoryError with all that is known."""
        return self._reclaiming.retry(self._policies[entry.tally.device], entry, error)

    def failed(self, error: errors.DeviceError) -> bool:
        """Note an error of the vendor's library; whether it is to be raised: of a lost context only the first is."""
        if not error.sticky:
            return True
        first, self._lost = self._lost is None, self._lost or error
        return first

    def refuse(self, ptr: "Any", what: str) -> None:
        """Refuse an address that is not held; after a lost context nothing is refused but what is no address.

        Raises: ArgumentTypeError, InteriorPointerError, DoubleFreeError, PointerError.
        """
        if self._lost is None or ptr.__class__ is not int:
            addresses.refuse(self, ptr, what)

    def pinned_blocks(self) -> "dict[int, Any]":
        """The blocks of page-locked memory that are held, by address."""
        return {} if self._pinned is None else self._pinned.live.copy()

    def _pinned_pool(self) -> PinnedPool:
        pinned = self._pinned
        if pinned is None:
            made = PinnedPool(self.runtime, self.captures)
            pinned = self._pinned = self._pinned or made  # a finalizer, or another thread, may have been quicker
        return pinned

    def _stream(self, function: str, stream: "Any") -> "Any":
        """A stream as the pools know it: its handle, or (handle, thread) where the handle means each thread's own."""
        handle = checking.handle(function, stream)
        if handle == self._default_stream:
            return 0
        if handle == self._thread_stream:
            return handle, this_thread()
        return handle

    def _ordinal(self, device: "Any") -> int:
        if device is None:
            known = 0 if self._count == 1 else getattr(self.runtime.current, "index", None)
            return self.runtime.get_device() if known is None else known
        return checking.ordinal(device, self._count)

    def __repr__(self) -> str:
        return f"<nbxrt.DeviceAllocator of {self.runtime.name}>"
