"""What is done before a request is refused for want of memory: everything is asked to give some back, once."""

import gc
import warnings

from nbxrt import errors
from nbxrt.locks import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.memory.policies import Policy

    Hook = Callable[[int, int], object]


class Reclaiming:
    """The functions that free memory on request, and the one retry after they were called."""

    def __init__(self) -> None:
        self._hooks: list[Hook] = []
        self._mine = local()

    def register(self, function: "Hook") -> "Callable[[], None]":
        """Call a function before a request is refused; the answer unregisters it."""
        self._hooks.append(function)

        def unregister() -> None:
            if function in self._hooks:
                self._hooks.remove(function)

        return unregister

    def retry(self, policy: "Policy", entry: "Any", error: errors.OutOfMemoryError) -> int:
        """An address after everything was done to find memory. Raises: OutOfMemoryError with all that is known."""
        failed = self._ask(policy, entry.nbytes)
        _give_back(policy)
        try:
            address: int = entry.refill()
        except errors.OutOfMemoryError as still:
            from nbxrt.memory.outofmemory import explained

            raise explained(policy, entry.nbytes, still, failed) from failed[0] if failed else error
        for each in failed:
            warnings.warn(f"a reclaim hook raised {type(each).__name__}: {each}", RuntimeWarning, stacklevel=3)
        return address

    def _ask(self, policy: "Policy", nbytes: int) -> "list[Exception]":
        """Collect garbage and call the functions; what they raised. Those that they bring to ask for memory do not."""
        if getattr(self._mine, "asking", False):
            return []
        self._mine.asking = True
        try:
            gc.collect()
            return list(filter(None, (_called(hook, policy.home.device, nbytes) for hook in self._hooks.copy())))
        finally:
            self._mine.asking = False


def _called(hook: "Hook", device: int, nbytes: int) -> "Exception | None":
    try:
        hook(device, nbytes)
    except Exception as error:  # noqa: BLE001  # the others may find the memory all the same
        return error
    return None


def _give_back(policy: "Policy") -> None:
    """Wait for what is in use elsewhere, and give all that is free back. Raises: DeviceError that loses the context."""
    try:
        policy.drain()
        policy.trim(0)
    except errors.DeviceError as error:
        if error.sticky:
            raise
