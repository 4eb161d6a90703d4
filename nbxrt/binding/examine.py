"""What a library file is, before the loader sees it.

A truncated file can kill the process, and the loader's words mislead.
"""

import errno
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from nbxrt.binding.machine import Machine

#: e_machine of the ELF header (System V ABI): what `os.uname().machine` calls it.
ELF_MACHINES = {
    3: "i386",
    8: "mips",
    20: "ppc",
    21: "ppc64le",
    22: "s390x",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
_LOADABLE, _DYNAMIC = 1, 2  # PT_LOAD, PT_DYNAMIC
_STRINGS_AND_SYMBOLS = {5, 6}  # DT_STRTAB, DT_SYMTAB: the loader of glibc goes by them unseen
_LONGEST_DYNAMIC = 1 << 16  # bytes, many times what any has
_PASSED_OVER = ("is ELF32", "is built for", "permission denied", "broken link", "does not exist")


def fault(path: str, machine: "Machine") -> str:
    """Why the file cannot be loaded as a library, or an empty string when nothing speaks against it."""
    try:
        kind = _kind(path)
        if kind:
            return kind
        with open(path, "rb") as file:
            head = file.read(64)
            size = os.fstat(file.fileno()).st_size
            if machine.system != "linux" or not head or not head.startswith(b"\x7fELF"):
                return _not_elf(head) if machine.system == "linux" or not head else ""
            return _elf_fault(head, size, file, machine)
    except OSError as error:
        return "permission denied" if error.errno in (errno.EACCES, errno.EPERM) else (error.strerror or str(error))


def is_passed_over(why: str) -> bool:
    """Whether the loader, when it looks for a library in its folders, goes on past a file with this fault."""
    return why.startswith(_PASSED_OVER)


def _kind(path: str) -> str:
    """What stands at the path when it is no file; opening a pipe or a device could wait for ever."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return f"broken link to {os.readlink(path)}" if os.path.islink(path) else "does not exist"
    if stat.S_ISREG(mode):
        return ""
    return "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"


def _not_elf(head: bytes) -> str:
    if not head:
        return "is empty"
    text = head.lstrip().lower()
    if text.startswith((b"/*", b"group", b"input", b"output_format")):
        return "is a linker script, not a library"
    return "is not an ELF file"


def _elf_fault(head: bytes, size: int, file: "BinaryIO", machine: "Machine") -> str:
    if len(head) < 64:
        return "is truncated: the ELF header is cut off"
    if head[4] != 2:
        return f"is ELF32: {machine.processor} needs 64-bit libraries" if head[4] == 1 else "has an unknown ELF class"
    order = "<" if head[5] == 1 else ">"
    if head[5] != (1 if sys.byteorder == "little" else 2):
        return f"is {'big' if order == '>' else 'little'}-endian, and this is {sys.byteorder}-endian"
    (code,) = struct.unpack_from(order + "H", head, 18)
    processor = ELF_MACHINES.get(code, f"ELF machine {code}")
    if processor != machine.processor:
        return f"is built for {processor}, and this is {machine.processor}"
    return _damage(head, size, file, order)


def _damage(head: bytes, size: int, file: "BinaryIO", order: str) -> str:
    """Why a file is not all of a library, which would end the process."""
    (table,) = struct.unpack_from(order + "Q", head, 32)
    entry, count = struct.unpack_from(order + "HH", head, 54)
    needed = table + entry * count
    if needed > size or entry < 56:
        return f"is truncated or damaged: {size} bytes do not hold its program headers"
    file.seek(table)
    headers = file.read(entry * count)
    dynamic = None
    for at in range(0, len(headers) - entry + 1, entry or 1):
        kind, offset, in_file = struct.unpack_from(order + "I4xQ16xQ", headers, at)
        if kind in (_LOADABLE, _DYNAMIC):
            needed = max(needed, offset + in_file)
        if kind == _DYNAMIC:
            dynamic = offset, in_file
    if size < needed:
        return f"is truncated: {size} of at least {needed} bytes"
    if dynamic is not None and _STRINGS_AND_SYMBOLS - _tags(*dynamic, file, order):
        return "is damaged: its dynamic section is not whole, as where a download ended early and left zeros"
    return ""


def _tags(offset: int, length: int, file: "BinaryIO", order: str) -> "set[int]":
    """The kinds of entries that a dynamic section has before its end."""
    file.seek(offset)
    section = file.read(min(length, _LONGEST_DYNAMIC))
    tags: set[int] = set()
    for at in range(0, len(section) - 15, 16):
        (tag,) = struct.unpack_from(order + "Q", section, at)
        if not tag:
            break
        tags.add(tag)
    return tags
