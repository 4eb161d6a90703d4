"""What public parameters take, for editors and type checkers: nothing imports this at run time.

Objects of other libraries are taken by their protocols, for which `object` stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, SupportsIndex, TypeAlias

from nbxrt.objects.device import Device
from nbxrt.objects.dtypes import DType
from nbxrt.objects.stream import Stream

#: A device, its index, or None for the thread's current one.
DeviceLike: TypeAlias = Device | SupportsIndex | None
#: A stream, what has the backend's protocol of streams, or None for the thread's current one.
StreamLike: TypeAlias = Stream | object | None
#: The extents of an array: one, or one for each dimension.
Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
#: An element type: a DType, its name, or the type of NumPy, PyTorch, JAX or ml_dtypes.
DTypeLike: TypeAlias = DType | str | object
#: Of a device, page-locked memory of the host, or memory that migrates between both.
MemoryKind: TypeAlias = Literal["device", "pinned", "managed"]
#: Extents of a grid or a block: one to three.
Extents: TypeAlias = tuple[int, ...]
