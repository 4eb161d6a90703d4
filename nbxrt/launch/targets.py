"""What kernels are compiled for: a backend of Triton's, an architecture, the size of a warp."""

import ctypes
import os

from nbxrt import errors
from nbxrt.objects.device import Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.runtime import Runtime

#: Room behind a structure that a newer library may have made longer.
_SPARE = 4096

#: Triton's variable that says which architecture kernels are compiled for, whatever the device is.
OVERRIDE = "TRITON_OVERRIDE_ARCH"


def architecture(runtime: "Runtime", device: int) -> "int | str":
    """The architecture of a device as Triton names it.

    Raises: CapabilityError where the backend's file does not say how it is told.
    """
    given = os.environ.get(OVERRIDE, "").strip()
    factors = runtime.description["triton_architecture"]
    if given:
        return int(given) if given.isdigit() else given
    if not factors or not isinstance(factors[0], int):
        return _asked(runtime, device, factors)
    major, minor = Device(device, runtime=runtime).compute_capability
    return int(factors[0] * major + factors[1] * minor)


def parsed(target: "Any") -> "tuple[str, int | str, int | None]":
    """Backend, architecture and, where it is said, the size of a warp: of `cuda:90`, `hip:gfx942` or `hip:gfx942:64`.

    An object with `backend`, `arch` and `warp_size`, as Triton's own, is taken too.
    Raises: ArgumentTypeError, ArgumentValueError.
    """
    if hasattr(target, "backend") and hasattr(target, "arch"):
        return target.backend, target.arch, getattr(target, "warp_size", None)
    if not isinstance(target, str):
        raise errors.ArgumentTypeError(
            f"a target is a text such as `cuda:90`, not {type(target).__name__} {target!r}", parameter="target"
        )
    parts = [part.strip() for part in target.split(":")]
    if len(parts) not in (2, 3) or not all(parts) or not (len(parts) == 2 or parts[2].isdigit()):
        raise errors.ArgumentValueError(
            f"`{target}` is no target",
            hint="write BACKEND:ARCHITECTURE, such as `cuda:90`, and the size of a warp where it is not the usual one",
            parameter="target",
            value=target,
        )
    arch = int(parts[1]) if parts[1].isdigit() else parts[1]
    return parts[0], arch, int(parts[2]) if len(parts) == 3 else None


def _asked(runtime: "Runtime", device: int, functions: "tuple[tuple[str, int, int], ...]") -> str:
    """The architecture as the first of the functions tells it that the library exports."""
    library = runtime.library()
    for symbol, nbytes, at in functions:
        if not library.exports((symbol,)):
            continue
        function, _symbol = library.function((symbol,), ctypes.c_int, (ctypes.c_void_p, ctypes.c_int))
        room = ctypes.create_string_buffer(nbytes + _SPARE)
        status = function(ctypes.addressof(room), device)
        if status != library.success:
            raise library.failure(status, "architecture", symbol, {"device": device})
        text = room.raw[at:nbytes].partition(b"\0")[0].decode(errors="replace").partition(":")[0]
        if text:
            return text
    raise errors.CapabilityError(
        f"the architecture of device {device} of {runtime.title} is not known: {runtime.description['file']} does not "
        "say how it is told, or the library does not tell it",
        hint=f"set {OVERRIDE} to the architecture that kernels are compiled for",
    )
