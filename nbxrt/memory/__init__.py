"""Device memory: the primitives that everything above them stands on, and the account over them."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.memory import layers as layers
    from nbxrt.memory.allocator import DeviceAllocator


def account() -> "DeviceAllocator":
    """The process's account of device and pinned memory over the runtime in force, made at the first call.

    Every runtime has one account, which lives as long as it.
    Raises: BackendNotFoundError; LibraryNotFoundError, LibraryBrokenError.
    """
    from nbxrt.memory.allocator import account_of
    from nbxrt.runtime import in_force

    runtime = in_force()
    if runtime is None:
        from nbxrt.detection import gpu_runtime

        runtime = gpu_runtime()
    return account_of(runtime)


def __getattr__(name: str) -> "Any":
    if name != "layers":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    __import__("nbxrt.memory.layers")
    return globals()[name]
