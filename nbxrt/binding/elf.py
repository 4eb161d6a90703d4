"""What an ELF file says of itself: its soname, what it is linked to, what it exports. Nothing is loaded.

Only 64-bit files, as everywhere here; a file that cannot be read has nothing to say. Names are those of the System V
ABI, chapters "Program Header", "Dynamic Section" and "Symbol Table".
"""

import os
import struct

from nbxrt.binding.machine import realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 4, 5, 6, 10, 14, 15, 29
_DT_GNU_HASH = 0x6FFFFEF5
_SYMBOL_BYTES = 24
_READ_WHOLE = 1 << 21
#: What reading a damaged file raises; OverflowError where an offset is larger than any file.
_DAMAGED = (OSError, ValueError, KeyError, OverflowError, struct.error)


class Dynamic:
    """The dynamic section of a file. Raises one of `_DAMAGED` while it is read."""

    def __init__(self, path: str) -> None:
        self.data = _content(path)
        if self.data[:5] != b"\x7fELF\x02":
            raise ValueError("not a 64-bit ELF file")
        self.order = "<" if self.data[5] == 1 else ">"
        self.segments: list[tuple[int, int, int]] = []
        self.entries: dict[int, list[int]] = {}
        self._read()

    def _read(self) -> None:
        (table,) = struct.unpack_from(self.order + "Q", self.data, 32)
        entry, count = struct.unpack_from(self.order + "HH", self.data, 54)
        dynamic = (0, 0)
        for at in range(table, table + entry * count, entry or 1):
            kind, _flags, offset, address, _physical, size = struct.unpack_from(self.order + "IIQQQQ", self.data, at)
            if kind == _PT_LOAD:
                self.segments.append((address, size, offset))
            elif kind == _PT_DYNAMIC:
                dynamic = (offset, size)
        for at in range(dynamic[0], sum(dynamic), 16):
            tag, value = struct.unpack_from(self.order + "QQ", self.data, at)
            if tag == 0:
                break
            self.entries.setdefault(tag, []).append(value)

    def offset(self, address: int) -> int:
        """The place in the file of an address in memory."""
        for start, size, offset in self.segments:
            if start <= address < start + size:
                return address - start + offset
        raise ValueError("an address outside every segment")

    def text(self, at: int) -> str:
        """A string of the string table."""
        start = self.offset(self.entries[_DT_STRTAB][0]) + at
        return self.data[start : self.data.find(b"\0", start)].decode(errors="replace")

    def texts(self, tag: int) -> "list[str]":
        return [self.text(at) for at in self.entries.get(tag, ())]

    def exported(self, symbols: "Iterable[str]") -> "set[str]":
        """Those of the symbols that the file defines."""
        wanted = set(symbols)
        order, table = self.order, self.offset(self.entries[_DT_SYMTAB][0])
        found = set()
        for index in range(1, self._symbol_count()):
            name, _info, _other, section = struct.unpack_from(order + "IBBH", self.data, table + index * _SYMBOL_BYTES)
            if section and (text := self.text(name)) in wanted:
                found.add(text)
        return found

    def _symbol_count(self) -> int:
        if _DT_HASH in self.entries:
            at = self.offset(self.entries[_DT_HASH][0])
            return int(struct.unpack_from(self.order + "I", self.data, at + 4)[0])
        return self._count_by_gnu_hash(self.offset(self.entries[_DT_GNU_HASH][0]))

    def _count_by_gnu_hash(self, at: int) -> int:
        """The end of the last chain: the GNU table has no count of its own."""
        buckets, first, blooms, _shift = struct.unpack_from(self.order + "4I", self.data, at)
        at += 16 + 8 * blooms
        last = max(struct.unpack_from(f"{self.order}{buckets}I", self.data, at), default=0)
        if last < first:
            return int(first)
        chains = at + 4 * buckets
        while not struct.unpack_from(self.order + "I", self.data, chains + 4 * (last - first))[0] & 1:
            last += 1
        return int(last) + 1


def _content(path: str) -> "bytes | mmap.mmap":
    """A file's bytes; a large one is mapped, since only a few of its pages are looked at."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size <= _READ_WHOLE:
            return file.read()
        import mmap  # a module that the way to the first call does without

        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _dynamic(path: str) -> "Dynamic | None":
    try:
        return Dynamic(path)
    except _DAMAGED:
        return None


def soname(path: str) -> str:
    """The name that the library has for the loader, or an empty string."""
    found = _texts(path, _DT_SONAME)
    return found[0] if found else ""


def needed(path: str) -> "list[str]":
    """The names of the libraries that a file is linked to."""
    return _texts(path, _DT_NEEDED)


def search_path(path: str) -> "tuple[list[str], list[str]]":
    """The folders that a file names for what it needs: (before those of the environment, after them)."""
    here = os.path.dirname(realpath(path))
    before, after = (
        [
            folder.replace("$ORIGIN", here).replace("${ORIGIN}", here)
            for text in _texts(path, tag)
            for folder in text.split(":")
            if folder
        ]
        for tag in (_DT_RPATH, _DT_RUNPATH)
    )
    return ([], after) if after else (before, [])  # the newer one takes the older one's place


def _texts(path: str, *tags: int) -> "list[str]":
    dynamic = _dynamic(path)
    try:
        return [text for tag in tags for text in dynamic.texts(tag)] if dynamic is not None else []
    except _DAMAGED:
        return []


def exported(path: str, symbols: "Iterable[str]") -> "set[str] | None":
    """Those of the symbols that a file exports; None when it cannot be told."""
    dynamic = _dynamic(path)
    try:
        return None if dynamic is None else dynamic.exported(symbols)
    except _DAMAGED:
        return None
