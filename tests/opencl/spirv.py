"""SPIR-V written by hand: the kernel `add(a, b, out, n)` of 32-bit numbers, word by word after the specification."""

from __future__ import annotations

import struct

MAGIC, VERSION_1_0 = 0x07230203, 0x00010000

#: Ids of what the module names.
(VOID, UINT, ULONG, BOOL, VECTOR, INPUT, GLOBAL, FUNCTION, INDEX, KERNEL, A, B, OUT, COUNT, START, BODY, END,
 POSITION, WIDE, NARROW, IS_INSIDE, FROM_A, FROM_B, TO, LEFT, RIGHT, SUM, BOUND) = range(1, 29)  # fmt: skip


def _text(said: str) -> tuple[int, ...]:
    data = said.encode() + b"\0"
    data += bytes(-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)


INSTRUCTIONS: tuple[tuple[int, ...], ...] = (
    (17, 6), (17, 4), (17, 11),                                     # capabilities: Kernel, Addresses, Int64
    (14, 2, 2),                                                     # memory model: Physical64, OpenCL
    (15, 6, KERNEL, *_text("add"), INDEX),                          # entry point of a kernel
    (71, INDEX, 11, 28), (71, INDEX, 22),                           # decorate: GlobalInvocationId, Constant
    (19, VOID), (21, UINT, 32, 0), (21, ULONG, 64, 0), (20, BOOL),  # types
    (23, VECTOR, ULONG, 3), (32, INPUT, 1, VECTOR), (32, GLOBAL, 5, UINT),
    (33, FUNCTION, VOID, GLOBAL, GLOBAL, GLOBAL, UINT),
    (59, INPUT, INDEX, 1),                                          # variable
    (54, VOID, KERNEL, 0, FUNCTION),
    (55, GLOBAL, A), (55, GLOBAL, B), (55, GLOBAL, OUT), (55, UINT, COUNT),
    (248, START),
    (61, VECTOR, POSITION, INDEX), (81, ULONG, WIDE, POSITION, 0), (113, UINT, NARROW, WIDE),
    (176, BOOL, IS_INSIDE, NARROW, COUNT), (247, END, 0), (250, IS_INSIDE, BODY, END),
    (248, BODY),
    (70, GLOBAL, FROM_A, A, WIDE), (70, GLOBAL, FROM_B, B, WIDE), (70, GLOBAL, TO, OUT, WIDE),
    (61, UINT, LEFT, FROM_A, 2, 4), (61, UINT, RIGHT, FROM_B, 2, 4), (128, UINT, SUM, LEFT, RIGHT),
    (62, TO, SUM, 2, 4), (249, END),
    (248, END), (253,), (56,),
)  # fmt: skip


def module() -> bytes:
    """The module's bytes."""
    words = [MAGIC, VERSION_1_0, 0, BOUND, 0]
    for code, *operands in INSTRUCTIONS:
        words += [(len(operands) + 1) << 16 | code, *operands]
    return struct.pack(f"<{len(words)}I", *words)
