"""Device memory: the primitives that everything above them stands on, and the account over them."""

TYPE_CHECKING = False
if TYPE_CHECKING:
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
