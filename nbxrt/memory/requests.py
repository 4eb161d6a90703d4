"""Requests that the hot path does not meet, frees that it does not take, and the error after which nothing is met."""

from nbxrt import errors
from nbxrt.device import make_current  # now: a finalizer may ask when nothing can be imported any more
from nbxrt.memory import addresses, checking
from nbxrt.memory.exclusive import Reentered
from nbxrt.memory.reclaiming import Reclaiming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.memory.devices import Devices
    from nbxrt.memory.policies import Policy
    from nbxrt.memory.streams import Streams

_NOTHING: "dict[Any, Any]" = {}


class Requests:
    """The blocks of device memory that are held, and how one is had where no bin has it."""

    def __init__(self, devices: "Devices", streams: "Streams", pinned_blocks: "Callable[[], dict[int, Any]]") -> None:
        self.devices = devices
        self._streams = streams
        #: The blocks of page-locked memory that are held, by address.
        self.pinned_blocks = pinned_blocks
        #: What stands for each block that is held, by its address.
        self.live: dict[int, Any] = {}
        #: The bins by device, stream and size. With one device it is also found where none is given.
        self.table: dict[Any, dict[Any, dict[int, Any]]] = {}
        self.reclaiming = Reclaiming()
        #: The first error after which the context is lost.
        self._lost: errors.DeviceError | None = None

    # allocating

    def missed(self, nbytes: "Any", device: "Any", stream: "Any", failure: Exception) -> int:
        """What `malloc` does where it knows no bin, another thread took the last block, or there is no memory.

        Raises: as `malloc`.
        """
        entry = self._entry(nbytes, device, stream)
        if entry is None:
            return 0
        if isinstance(failure, (errors.DeviceError, Reentered)):
            return self._otherwise(entry, failure)
        return self.obtain(entry, is_empty=isinstance(failure, IndexError))

    def obtain(self, entry: "Any", *, is_empty: bool = False) -> int:
        """The address of a block, which is held from now on. Raises: as `malloc`."""
        try:
            ptr: int = entry.pop() if entry and not is_empty else entry.refill()
        except (IndexError, errors.DeviceError, Reentered) as error:
            failure = error
        else:
            return self._hold(ptr, entry)
        try:
            if isinstance(failure, IndexError) and not is_empty:  # another thread was quicker
                return self.obtain(entry, is_empty=True)
            return self._otherwise(entry, failure)
        finally:
            del failure

    def _otherwise(self, entry: "Any", failure: Exception) -> int:
        """The address of a block after it could not be had as others are. Raises: as `malloc`."""
        policy = self.devices.policy(entry.tally.device)
        if isinstance(failure, errors.OutOfMemoryError):
            return self._hold(self.reclaiming.retry(policy, entry, failure), entry)
        if isinstance(failure, Reentered):
            return self._aside(policy, entry)
        if isinstance(failure, errors.DeviceError):
            self.failed(failure)
        raise failure

    def _aside(self, policy: "Policy", entry: "Any") -> int:
        """A block of the vendor's `malloc`, for a finalizer that finds the pool locked.

        Nobody is asked to free memory: the pool could not take any back. Raises: as `malloc`.
        """
        single = policy.alone(entry.nbytes, entry.stream)
        try:
            return self._hold(single.refill(), single)
        except errors.OutOfMemoryError as error:
            from nbxrt.memory.outofmemory import explained

            raise explained(policy, entry.nbytes, error) from error
        except errors.DeviceError as error:
            self.failed(error)
            raise

    def _hold(self, ptr: int, entry: "Any") -> int:
        entry.tally.hold(entry.nbytes)
        self.live[ptr] = entry
        return ptr

    def _entry(self, nbytes: "Any", device: "Any", stream: "Any") -> "Any":
        """What stands for a request; None for no bytes. Raises: ArgumentError, DeviceError."""
        size = (
            nbytes if nbytes.__class__ is int and 0 <= nbytes <= checking.LARGEST else checking.size("malloc", nbytes)
        )
        key = 0 if stream.__class__ is int and not stream else self._streams.key("malloc", stream)
        self.demand_context()
        try:
            policy = self.devices.policy(device)
        except errors.DeviceError as error:
            self.failed(error)
            raise
        if not size:
            return None
        if device is None and self.devices.count > 1 and policy.tally.reserved:
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
        runtime = self.devices.runtime
        if getattr(runtime.current, "index", None) is None:
            make_current(runtime, device)

    def _show(self, device: int, stream: "Any", bins: "dict[int, Any]") -> None:
        """Let the hot path find the bins of a stream."""
        streams = self.table.setdefault(device, {})
        streams[stream] = bins
        if stream == 0 and self._streams.default:
            streams[self._streams.default] = bins
        if self.devices.count == 1:
            self.table[None] = streams

    # freeing

    def ordered_after(self, ptr: int, entry: "Any", stream: "Any") -> "Any":
        """The entry of a block that is freed after the work of another stream too. Raises: ArgumentError; it stays."""
        try:
            key = self._streams.key("free", stream)
        except errors.ArgumentError:
            self.live[ptr] = entry
            raise
        return entry if key == entry.stream else entry.use(key)

    def refuse(self, ptr: "Any", what: str) -> None:
        """Refuse an address that is not held; after a lost context nothing is refused but what is no address.

        Raises: ArgumentTypeError, InteriorPointerError, DoubleFreeError, PointerError.
        """
        if self._lost is None or ptr.__class__ is not int:
            addresses.refuse(self, ptr, what)

    # errors

    def demand_context(self) -> None:
        """Raises: the first error after which the context was lost, again."""
        if self._lost is not None:
            raise errors.again(self._lost)

    def failed(self, error: errors.DeviceError) -> bool:
        """Note an error of the vendor's library; whether it is to be raised: of a lost context only the first is."""
        if not error.sticky:
            return True
        first, self._lost = self._lost is None, self._lost or error
        return first
