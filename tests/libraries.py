"""Shared libraries that tests make: small ones by the system's compiler, and broken ones by hand."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

#: Exports what backend files ask of a library before they take it for their vendor's, and nothing that works.
ANYBODYS = """
int mark(void) { return 1; }
int cudaGetDeviceCount(int *count) { return 100; }
int cuLaunchKernel(void) { return 100; }
int hipGetDeviceCount(int *count) { return 100; }
int ncclGetVersion(int *version) { return 1; }
"""

_CACHE = Path(tempfile.gettempdir()) / "nbxrt-test-libraries"


def make_library(
    path: Path, source: str = ANYBODYS, *, soname: str = "", flags: tuple[str, ...] = (), needs: tuple[Path, ...] = ()
) -> Path:
    """Compile C source to a shared library at path; the same source is compiled once a machine.

    `needs` are libraries that it is linked to, whether it uses them or not.
    """
    soname = soname or path.name
    key = hashlib.sha256(repr((source, soname, flags, [each.name for each in needs])).encode()).hexdigest()[:16]
    built = _CACHE / f"{key}.so"
    if not built.exists():
        _CACHE.mkdir(exist_ok=True)
        fresh = _CACHE / f"{key}.{tempfile._get_candidate_names().__next__()}"  # type: ignore[attr-defined]
        command = [
            "cc",
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{soname}",
            "-x",
            "c",
            "-",
            "-x",
            "none",
            "-Wl,--no-as-needed",
            *map(str, needs),
            *flags,
            "-o",
            str(fresh),
        ]
        subprocess.run(command, input=source, text=True, check=True, capture_output=True)
        fresh.replace(built)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")  # a file that a process has mapped must not be written over
    shutil.copyfile(built, beside)
    beside.replace(path)
    return path


def patched(path: Path, offset: int, value: bytes) -> Path:
    """Change bytes of a file, for an ELF header of another class or machine."""
    data = bytearray(path.read_bytes())
    data[offset : offset + len(value)] = value
    path.write_bytes(data)
    return path


def for_machine(path: Path, machine: int) -> Path:
    """Make a library claim another processor (e_machine of the ELF header)."""
    return patched(path, 18, struct.pack("<H", machine))


def as_32_bit(path: Path) -> Path:
    """Make a library claim to be 32-bit (EI_CLASS of the ELF header)."""
    return patched(path, 4, b"\x01")
