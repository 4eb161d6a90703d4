"""Calls with a device current, which leave the calling thread's current device as it was."""

from nbxrt.locks import in_another_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.memory.captures import Captures
    from nbxrt.runtime import Runtime


class Home:
    """One device of a runtime, and the way to make calls there; `captures` are those that calls must not spoil."""

    def __init__(self, runtime: "Runtime", device: int, captures: "Captures") -> None:
        self.runtime = runtime
        self.device = device
        self.captures = captures
        self._is_only = runtime.device_count() == 1
        self._get, self._set = runtime.get_device, runtime.set_device  # bound now: finalizers call

    def run(self, call: "Callable[..., Any]", *arguments: "Any") -> "Any":
        """Call with the device current.

        Raises: what the call raises; DeviceError.
        """
        known = getattr(self.runtime.current, "index", None)
        if known == self.device or self._is_only:
            return call(*arguments)
        current = self._get()
        if current == self.device:
            return call(*arguments)
        if known is None:
            return self._run_apart(call, arguments)
        self._set(self.device)
        try:
            return call(*arguments)
        finally:
            self._set(current)
            self.runtime.current.index = known

    def _run_apart(self, call: "Callable[..., Any]", arguments: "tuple[Any, ...]") -> "Any":
        """On a thread of its own: putting back a device that this thread never used would give it a context."""

        def work() -> "Any":
            self._set(self.device)
            return call(*arguments)

        return in_another_thread(work)
