"""The device and the stream that a launch goes to."""

import contextlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbxrt.runtime import Runtime


def current(device: int) -> int:
    """The handle of the thread's current stream on a device: nbxrt's, else torch's where torch is in use, else 0."""
    return torchs(device)


def torchs(device: int) -> int:
    """The handle of torch's current stream; 0 where torch is not in use. Torch is never imported for it."""
    torch = sys.modules.get("torch")
    accelerator = getattr(torch, "cuda", None)
    if accelerator is None or not accelerator.is_initialized():
        return 0
    return int(accelerator.current_stream(device).cuda_stream)


@contextlib.contextmanager
def on_device(runtime: "Runtime", device: int) -> "Iterator[None]":
    """Make a device current in a `with` block, and what was current again after it."""
    before = getattr(runtime.current, "index", None)
    if before is None:
        before = runtime.get_device()
    if before == device:
        yield
        return
    runtime.set_device(device)
    runtime.current.index = device
    try:
        yield
    finally:
        runtime.set_device(before)
        runtime.current.index = before
