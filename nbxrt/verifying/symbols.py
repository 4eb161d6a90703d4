"""What a library file exports, read from the file: nothing is loaded, so it may be another system's or processor's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt import errors
from nbxrt.binding.examine import ELF_MACHINES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class SymbolsError(errors.NbxrtError):
    """A file whose symbols cannot be read, or no package to read them with."""

    reference = "symbols"


@attrs.frozen
class Exports:
    """The symbols of a file: the functions, and what is data; `processor` is what it is built for."""

    functions: frozenset[str]
    data: frozenset[str]
    processor: str = ""


def read(file: Path) -> Exports:
    """What a file exports. Raises: SymbolsError."""
    if not file.is_file():  # a pipe would be waited for
        raise SymbolsError(f"{file} is not a regular file", hint="name the library itself")
    try:
        with file.open("rb") as opened:
            head = opened.read(4)
    except OSError as error:
        raise SymbolsError(f"{file} cannot be read: {error.strerror or error}") from error
    reader = next((reader for magic, reader in _READERS.items() if head.startswith(magic)), None)
    if reader is None:
        raise SymbolsError(
            f"{file} is neither an ELF file nor a DLL",
            hint="name the library itself, not a linker script or an archive",
        )
    return reader(file)


def _elf(file: Path) -> Exports:
    """By the dynamic symbol table; an indirect function is a function."""
    elffile = _package("elftools.elf.elffile", "pyelftools")
    try:
        with file.open("rb") as opened:
            elf = elffile.ELFFile(opened)
            segments = (each for each in elf.iter_segments() if each["p_type"] == "PT_DYNAMIC")
            table = elf.get_section_by_name(".dynsym") or next(
                segments, None
            )  # stripped of its sections, it still loads
            symbols = list(table.iter_symbols()) if table is not None else []
            machine = ELF_MACHINES.get(elf["e_machine"], "") or elf.get_machine_arch()
    except Exception as error:  # pyelftools raises whatever it meets in a damaged file
        raise _damaged(file, error) from error
    defined = [symbol for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name]
    kinds = {symbol.name: symbol["st_info"]["type"] for symbol in defined}
    data = frozenset(name for name, kind in kinds.items() if kind in ("STT_OBJECT", "STT_TLS", "STT_COMMON"))
    return Exports(frozenset(kinds) - data, data, _PROCESSORS.get(machine, machine))


#: What pyelftools calls a processor, as `os.uname().machine` does.
_PROCESSORS = {"x64": "x86_64", "AArch64": "aarch64", "x86": "i386", "ARM": "arm", "RISC-V": "riscv64"}


def _dll(file: Path) -> Exports:
    """By the export directory; a forwarded symbol is one, and data is what lies in no executable section."""
    pefile = _package("pefile", "pefile")
    try:
        library = pefile.PE(str(file), fast_load=True)
        library.parse_data_directories([pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_EXPORT"]])
    except (pefile.PEFormatError, OSError, ValueError) as error:
        raise _damaged(file, error) from error
    functions: set[str] = set()
    data: set[str] = set()
    for symbol in getattr(getattr(library, "DIRECTORY_ENTRY_EXPORT", None), "symbols", ()):
        if symbol.name:
            kind = functions if symbol.forwarder or _is_code(library, symbol.address) else data
            kind.add(symbol.name.decode(errors="replace"))
    machine = pefile.MACHINE_TYPE.get(library.FILE_HEADER.Machine, "")
    return Exports(frozenset(functions), frozenset(data), _DLL_PROCESSORS.get(machine, machine))


_DLL_PROCESSORS = {"IMAGE_FILE_MACHINE_AMD64": "x86_64", "IMAGE_FILE_MACHINE_ARM64": "aarch64"}
_EXECUTABLE = 0x20000000  # IMAGE_SCN_MEM_EXECUTE


def _is_code(library: Any, address: int) -> bool:
    section = library.get_section_by_rva(address)
    return bool(section is not None and section.Characteristics & _EXECUTABLE)


def _damaged(file: Path, error: Exception) -> SymbolsError:
    said = str(error).splitlines() or [type(error).__name__]
    return SymbolsError(f"{file} is damaged: {said[0]}", hint="get the library again")


def _package(module: str, distribution: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise SymbolsError(
            f"a library file is read by the package {distribution}, which is not installed",
            hint="`pip install nbxrt[verify]`",
        ) from None


_READERS: dict[bytes, Callable[[Path], Exports]] = {b"\x7fELF": _elf, b"MZ": _dll}
