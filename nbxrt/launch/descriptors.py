"""Tensors that the host describes for the device's own unit, which copies blocks of them: what a kernel is passed."""

import ctypes
import functools
import struct

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from nbxrt.launch.versions import Facts
    from nbxrt.runtime import Runtime

#: Bytes of a description, and of what its address is a multiple of.
NBYTES, _ALIGNED = 128, 64

#: The contract's words by Triton's numbers, which are those of the device.
_ELEMENTS = (
    "uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float32_ftz", "float64", "bfloat16",
)  # fmt: skip
_SWIZZLES = ("none", "bytes_32", "bytes_64", "bytes_128")


def encoders(
    runtime: "Runtime", metadata: "Any", facts: "Facts", names: "Sequence[str]"
) -> "tuple[Callable[[Any], tuple[bytes, list[int]]] | None, ...]":
    """For each tensor descriptor among a kernel's arguments what encodes it; None where the kernel takes its parts.

    It gives the description, and the extents that the kernel is passed behind it.
    Raises: CapabilityError, naming the first such argument, for what nbxrt or the backend does not encode.
    """
    wanted = getattr(metadata, "tensordesc_meta", None) or ()
    for one in filter(None, wanted):
        lacks = "" if runtime.supports("tensor_map_encode") else f"{runtime.title} has no call for it"
        if one.get("is_im2col") or "elem_type" not in one:
            lacks = "nbxrt encodes blocks of a tensor, and not of this kind"
        if lacks:
            raise errors.CapabilityError(
                f"argument `{names[0]}` of `{metadata.name}` is a tensor descriptor that is made on the host for the "
                f"device's own unit: {lacks}",
                hint="make the descriptor in the kernel: `tl.make_tensor_descriptor`",
                parameter=names[0],
            )
    whose = [f"argument `{name}` of `{metadata.name}`" for name in names]
    whose += whose[-1:] * len(wanted)  # several may be in one tuple
    return tuple(
        one and functools.partial(_encoded, runtime, facts, one, where)
        for one, where in zip(wanted, whose, strict=False)
    )


def _encoded(
    runtime: "Runtime", facts: "Facts", wanted: "Mapping[str, Any]", where: str, value: "Any"
) -> "tuple[bytes, list[int]]":
    """The description of a tensor, and extents. Raises: ArgumentTypeError; DeviceError where the vendor refuses it."""
    size, rank = wanted["elem_size"], len(value.shape)
    widened = [*value.shape[:-1], value.shape[-1] * (2 if wanted["fp4_padded"] else 1)]
    extents = widened[::-1]
    strides = [size * stride for stride in value.strides[-2::-1]]
    rounded = facts.descriptors_round and value.round_f32_to_tf32
    try:
        sizes = struct.pack(f"={rank}Q", *extents), struct.pack(f"={rank - 1}Q", *strides)
    except (struct.error, TypeError, OverflowError):
        raise errors.ArgumentTypeError(
            f"{where} has the shape {errors.shown(value.shape)} and the strides {errors.shown(value.strides)}, "
            "which are no integers of 64 bits",
            value=value,
        ) from None
    raw = ctypes.create_string_buffer(NBYTES + _ALIGNED)
    room = ctypes.addressof(raw) + -ctypes.addressof(raw) % _ALIGNED
    encode: Callable[..., None] = runtime.tensor_map_encode  # whose words come from tables here
    encode(
        room,
        "tfloat32" if rounded else _ELEMENTS[wanted["elem_type"]],
        rank,
        value.base.data_ptr(),
        *sizes,
        struct.pack(f"={rank}I", *wanted["block_size"][::-1]),
        struct.pack(f"={rank}I", *[1] * rank),
        _SWIZZLES[wanted["swizzle"]],
        "nan" if value.padding == "nan" else "zero",
    )
    encoded = ctypes.string_at(room, NBYTES)
    if facts.descriptors_mended:
        span = 1 + sum((extent - 1) * step for extent, step in zip(extents, [size, *strides], strict=True))
        encoded = _mended(runtime, encoded, span)
    return encoded, widened if facts.descriptors_widen else list(value.shape)


def _mended(runtime: "Runtime", encoded: bytes, span: int) -> bytes:
    """The description without the bit that the file says a driver sets wrongly for tensors of few bytes."""
    small: tuple[Any, int, int] | None = runtime.description["launch"]["small_tensors"]
    if not small or span >= small[1] or runtime.library("driver").version >= small[0]:
        return encoded
    bits = int.from_bytes(encoded, "little") & ~(1 << small[2])
    return bits.to_bytes(NBYTES, "little")
