"""The stream that a launch goes to: nbxrt's current one, or torch's where torch is in use."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nbxrt.runtime import Runtime


def current(runtime: "Runtime", device: int) -> int:
    """The handle of the thread's current stream on a device: nbxrt's, else torch's where torch is in use, else 0.

    Raises: ArgumentValueError for a closed one.
    """
    streams = runtime.current.streams
    if streams and device in streams:
        streams[device].check()
        return int(streams[device].handle)
    return torchs(device)


def torchs(device: int) -> int:
    """The handle of torch's current stream; 0 where torch is not in use. Torch is never imported for it."""
    torch = sys.modules.get("torch")
    accelerator = getattr(torch, "cuda", None)
    if accelerator is None or not accelerator.is_initialized():
        return 0
    return int(accelerator.current_stream(device).cuda_stream)
