"""The stream that a launch goes to: nbxrt's current one, or torch's where torch is in use."""

import sys

from nbxrt import errors
from nbxrt.launch import keys
from nbxrt.objects.memory import Memory
from nbxrt.objects.stream import Stream, current_stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

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


def note_use(memory: "Memory", handle: int) -> None:
    """Memory is in use by the stream that a launch goes to, be it nbxrt's or torch's."""
    stream = current_stream_of(memory.device)
    memory.used_on(stream if stream.handle == handle else Stream.from_handle(handle, memory.device))


def demand_open(where: str, value: "Any") -> None:
    """See that the memory of an array is there. Raises: ArgumentValueError saying `where` it was given."""
    memory = getattr(value, "memory", None)
    if isinstance(memory, Memory) and not memory.is_open:
        raise errors.ArgumentValueError(
            f"{where} is {memory.kind} memory of {memory.device} that is closed", value=value
        )


def note_arguments(kernel: str, names: "Iterable[str]", stream: int, *arguments: "Any") -> None:
    """Arrays of other streams are in use by this one now. Raises: ArgumentValueError naming one that is closed."""
    for name, argument in zip(names, arguments, strict=False):
        for value in keys.parts(argument):
            memory = getattr(value, "memory", None)
            if isinstance(memory, Memory) and memory.home != stream:
                demand_open(f"argument `{name}` of `{kernel}`", value)
                note_use(memory, stream)


def torchs(device: int) -> int:
    """The handle of torch's current stream; 0 where torch is not in use. Torch is never imported for it."""
    return torchs_own[0](device)


def _looked_for(device: int) -> int:
    torch = sys.modules.get("torch")
    accelerator = getattr(torch, "cuda", None)
    if accelerator is None or not accelerator.is_initialized():
        return 0
    raw: Callable[[int], int] | None = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    if raw is None:
        return int(accelerator.current_stream(device).cuda_stream)
    torchs_own[0] = raw
    return raw(device)


#: One function: torch's own quick way to the handle, once torch is in use, for its stream objects cost a microsecond.
torchs_own: "list[Callable[[int], int]]" = [_looked_for]
