"""The memory primitives of one runtime: all that an account of device memory may ask of a backend."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.runtime import Runtime

#: The groups of the contract whose operations are memory primitives, and the operations that go with them.
GROUPS = ("memory", "pinned", "managed", "pool", "virtual_memory")
BESIDE = ("set_device", "get_device", "device_count", "mem_get_info", "sync")


class DeviceMemory:
    """The memory operations of a runtime, as attributes in the contract's form; nothing else of it."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime

    def __getattr__(self, name: str) -> "Callable[..., Any]":
        entry = self.runtime.contract["operations"].get(name)
        if entry is None or (entry["group"] not in GROUPS and name not in BESIDE):
            raise AttributeError(f"{name!r} is no memory primitive")
        function: Callable[..., Any] = getattr(self.runtime, name)
        return function

    def supports(self, operation: str, device: "int | None" = None) -> bool:
        """Whether the backend offers the operation; with a device, whether that device does."""
        return self.runtime.supports(operation, device)

    def __repr__(self) -> str:
        return f"<nbxrt.DeviceMemory of {self.runtime.name}>"
