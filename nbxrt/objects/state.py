"""What the objects of one runtime share: its devices, memory in use by streams, peers, captures, opened handles."""

import weakref

from nbxrt import errors, locks
from nbxrt import runtime as runtimes
from nbxrt.errors import wrong_type
from nbxrt.objects.keeping import Keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.launch.module import Module
    from nbxrt.objects.device import Device
    from nbxrt.objects.graph import Graph
    from nbxrt.runtime import Runtime

_making = locks.RLock()  # a finalizer may come here while a state is made
#: Called with each runtime that objects are made for, before the first; and the runtimes.
_followers: "list[Callable[[Runtime], None]]" = []
_followed: "weakref.WeakSet[Runtime]" = weakref.WeakSet()


class State:
    """What the objects of one runtime share. Its lock is held for single steps, and never during a call."""

    def __init__(self, runtime: "Runtime") -> None:
        self.lock = locks.RLock()
        self.opening = locks.RLock()  # held while a mapping is opened or closed; a finalizer may close inside
        self.keeper = Keeper(runtime)
        #: Kind of memory and device by DLPack's numbers, as far as they were looked up.
        self.places: dict[tuple[int, int], tuple[str, Device]] = {}
        #: Structures of DLPack but for the address, by what they say; see dlpack.py.
        self.structures: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        #: What was found out of DLPack's tensors, by the bytes that say of what sort they are; see capsules.py.
        self.sorts: dict[bytes, tuple[Any, ...]] = {}
        #: Devices by index: one object each.
        self.devices: dict[int, Device] = {}
        #: Ordered pairs (device, peer) whose access was enabled here.
        self.peers: set[tuple[int, int]] = set()
        #: Whether the first of a pair of devices can access the second, as far as it was asked: it takes a while.
        self.reachable: dict[tuple[int, int], bool] = {}
        #: Graphs that are being captured now.
        self.captures: list[Graph] = []
        #: Code that is loaded, by identity: graphs keep what they may launch of it.
        self.code: dict[int, weakref.ref[Module]] = {}
        #: Owners of other libraries' streams, by device and handle, that the account may have to name: those are kept.
        self.owners: dict[tuple[int, int], Any] = {}
        #: Memory of other processes by handle: its address and how many buffers use it.
        self.opened: dict[bytes, list[int]] = {}  # guarded by `opening`

    def renew_locks(self) -> None:
        """Make every lock anew, in a process that was forked."""
        self.lock, self.opening = locks.RLock(), locks.RLock()
        self.keeper.renew_lock()


def state_of(runtime: "Runtime") -> State:
    """What the objects of a runtime share, made once."""
    state = runtime.objects
    if state is None:
        with _making:
            if runtime.objects is None:
                _followed.add(runtime)
                for follow in _followers:
                    follow(runtime)
            state = State(runtime)
            if runtime.objects is None:
                runtime.objects = state
            state = runtime.objects
    return state


def follow_runtimes(follow: "Callable[[Runtime], None]") -> "Callable[[Runtime], None]":
    """Have a function called with each runtime that objects are made for: of now, and later before the first object."""
    with _making:
        _followers.append(follow)
        for runtime in _followed:
            follow(runtime)
    return follow


def runtime_in_force() -> "Runtime":
    """The runtime that new objects are made with: the one in force, or that of the GPU that is here.

    Raises: BackendNotFoundError; LibraryNotFoundError, LibraryBrokenError.
    """
    found = runtimes._in_force  # noqa: SLF001  # on the way of every array, where one call more costs
    if found is not None:
        return found[0]
    from nbxrt.detection import gpu_runtime

    return gpu_runtime()


def refuse_stranger(what: str, found: "Runtime", wanted: "Runtime") -> None:
    """Refuse an object of another runtime. Raises: ArgumentValueError naming both backends."""
    if found is not wanted:
        hint = "after `nbxrt.reset()` a backend is opened anew, and older objects stay with the runtime that they had"
        raise errors.ArgumentValueError(
            f"{what} is of {found!r}, and {wanted!r} is at work here",
            hint=hint if found.name == wanted.name else "",
            value=found.name,
        )


def refuse_copying(value: "Any", hint: str) -> TypeError:
    """The error for an object that would be pickled, or copied as if it were plain data."""
    return wrong_type("`pickle`", "plain data", value, hint)
