"""What a real kernel binary says of its kernels' parameters, as the text of a simulated module.

cubins list parameters in `.nv.info.KERNEL`, AMD's code objects in a MessagePack note; both are ELF files.
"""

from __future__ import annotations

import ctypes
import struct
from io import BytesIO
from typing import Any

from elftools.elf.elffile import ELFFile

_PARAMETER = 0x17
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")


def module_text(address: int) -> str:
    """The text for `Simulation.on_image`: kernels with the sizes of their parameters; empty for what is no ELF file."""
    if ctypes.string_at(address, 4) != b"\x7fELF":
        return ""
    return text_of(binary_at(address))


def binary_at(address: int) -> bytes:
    """The file whose section table ends it, as compilers write it."""
    fields = _HEADER.unpack(ctypes.string_at(address, _HEADER.size))
    sections, entry_size, count = fields[6], fields[11], fields[12]
    ends = [sections + entry_size * count, fields[5] + fields[9] * fields[10]]
    table = ctypes.string_at(address + sections, entry_size * count)
    for at in range(count):
        _name, kind, _flags, _address, offset, size = struct.unpack_from("<IIQQQQ", table, at * entry_size)
        ends.append(offset + (0 if kind == 8 else size))
    return ctypes.string_at(address, max(ends))


def text_of(binary: bytes) -> str:
    """The text of a module with the kernels of a binary."""
    elf = ELFFile(BytesIO(binary))
    kernels = dict(_of_cubin(elf)) or dict(_of_code_object(elf))
    lines = [f"kernel {name} {' '.join(map(str, sizes))}" for name, sizes in kernels.items()]
    return "\n".join(["nbxrt simulated module", *lines, ""])


def _of_cubin(elf: ELFFile) -> Any:
    for section in elf.iter_sections():
        if section.name.startswith(".nv.info."):
            yield section.name.removeprefix(".nv.info."), _parameters(section.data())


def _parameters(data: bytes) -> list[int]:
    """Sizes by ordinal."""
    sizes, at = {}, 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            if attribute == _PARAMETER:
                _index, ordinal, _offset, packed = struct.unpack_from("<IHHI", data, at)
                sizes[ordinal] = packed >> 18 & 0x3FFF
            at += value
    return [sizes[ordinal] for ordinal in sorted(sizes)]


def _of_code_object(elf: ELFFile) -> Any:
    for section in elf.iter_sections():
        if section.name == ".note":
            data = section.data()
            name_size, size, _kind = struct.unpack_from("<III", data)
            metadata, _end = _unpacked(data, 12 + (name_size + 3 & ~3))
            assert size
            for kernel in metadata["amdhsa.kernels"]:
                arguments = [each for each in kernel[".args"] if not each[".value_kind"].startswith("hidden")]
                yield kernel[".name"], [each[".size"] for each in arguments]


def _unpacked(data: bytes, at: int) -> tuple[Any, int]:
    """One MessagePack value, and where it ends."""
    head = data[at]
    at += 1
    if head <= 0x7F:
        return head, at
    if head <= 0x8F:
        return _map(data, at, head & 0x0F)
    if head <= 0x9F:
        return _list(data, at, head & 0x0F)
    if head <= 0xBF:
        return _text(data, at, head & 0x1F)
    if head in (0xC2, 0xC3):
        return head == 0xC3, at
    sized = {0xD9: (1, _text), 0xDA: (2, _text), 0xDC: (2, _list), 0xDE: (2, _map)}
    if head in sized:
        width, read = sized[head]
        return read(data, at + width, int.from_bytes(data[at : at + width], "big"))
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}[head]
    return int.from_bytes(data[at : at + width], "big"), at + width


def _map(data: bytes, at: int, count: int) -> tuple[Any, int]:
    made = {}
    for _each in range(count):
        key, at = _unpacked(data, at)
        made[key], at = _unpacked(data, at)
    return made, at


def _list(data: bytes, at: int, count: int) -> tuple[Any, int]:
    made = []
    for _each in range(count):
        value, at = _unpacked(data, at)
        made.append(value)
    return made, at


def _text(data: bytes, at: int, count: int) -> tuple[Any, int]:
    return data[at : at + count].decode(), at + count
