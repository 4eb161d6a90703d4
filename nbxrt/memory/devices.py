"""The devices of an account: which one is meant, and the policy of each, chosen at its first use."""

from nbxrt.memory import checking
from nbxrt.memory.home import Home
from nbxrt.memory.policies import make_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.memory.captures import Captures
    from nbxrt.memory.policies import Policy
    from nbxrt.runtime import Runtime


class Devices:
    """The policies by device, and who is told when they take memory and give it back."""

    def __init__(self, runtime: "Runtime", captures: "Captures", name: str) -> None:
        self.runtime = runtime
        self.count = runtime.device_count()
        self._captures = captures
        self._name = name
        self._policies: dict[int, Policy] = {}
        self._watchers: list[Callable[[int, int, int], object]] = []

    def ordinal(self, device: "Any") -> int:
        """The ordinal of a device, of the calling thread's current one for None.

        Raises: ArgumentTypeError, DeviceIndexError; DeviceError.
        """
        if device is None:
            known = 0 if self.count == 1 else getattr(self.runtime.current, "index", None)
            return self.runtime.get_device() if known is None else known
        return checking.ordinal(device, self.count)

    def policy(self, device: "int | None" = None) -> "Policy":
        """The policy of a device. Raises: DeviceIndexError, ArgumentTypeError; DeviceError."""
        ordinal = self.ordinal(device)
        policy = self._policies.get(ordinal)
        if policy is None:  # it calls the vendor, and whoever asks meanwhile is not to wait: the first one made counts
            made = make_policy(Home(self.runtime, ordinal, self._captures), self._name)
            policy = self._policies.setdefault(ordinal, made)
            policy.tally.watch = self._told if self._watchers else None
        return policy

    def policies(self) -> "tuple[Policy, ...]":
        """The policies of the devices that were used."""
        return tuple(self._policies.values())

    def watch(self, function: "Callable[[int, int, int], object]") -> None:
        """Call a function with device, address and bytes when memory is taken from a device or given back."""
        self._watchers.append(function)
        for policy in self.policies():
            policy.tally.watch = self._told

    def _told(self, device: int, address: int, nbytes: int) -> None:
        for watcher in self._watchers:
            watcher(device, address, nbytes)
