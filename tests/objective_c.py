"""A real Objective-C runtime on Linux, and a stand-in for Metal.framework on top of it, compiled for the tests."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "metal" / "stub"
_C = ("-shared", "-fPIC", "-O1", "-std=gnu11", "-Wall", "-Werror")


#: Whether the stand-in is for this machine: its objc_msgSend is written in assembly.
IS_FOR_THIS_MACHINE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
FOR_WHICH = "the stand-in's objc_msgSend is written for Linux on x86-64"


@functools.cache
def missing() -> str:
    """Why the stand-in cannot be compiled here; empty when it can."""
    if not IS_FOR_THIS_MACHINE:
        return FOR_WHICH
    if shutil.which("gcc") is None:
        return "no `gcc` on the PATH"
    found = subprocess.run(["gcc", "-print-prog-name=cc1obj"], capture_output=True, text=True, check=False)
    return "" if Path(found.stdout.strip()).is_absolute() else "gcc has no Objective-C (Debian's `gobjc`)"


def compiled() -> Path:
    """The folder with `libobjc.so` (the runtime with messages) and `libMetal.so`; compiled once a machine."""
    names = ("messages.S", "runtime.c", "framework.m")
    content = b"".join((SOURCES / name).read_bytes() for name in names)
    cache = Path(tempfile.gettempdir()) / f"nbxrt-test-objective-c-{os.getuid()}"
    folder = cache / hashlib.sha256(content).hexdigest()[:16]
    if not folder.exists():
        cache.mkdir(exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache))
        _compile(*_C, SOURCES / "messages.S", SOURCES / "runtime.c", "-o", fresh / "libobjc.so", "-lobjc")
        _compile(
            *_C, "-Wno-objc-root-class", SOURCES / "framework.m", "-o", fresh / "libMetal.so",
            f"-L{fresh}", "-l:libobjc.so", "-lobjc", "-lpthread", "-Wl,-rpath,$ORIGIN", "-Wl,-soname,libMetal.so",
        )  # fmt: skip
        try:
            fresh.rename(folder)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)
    return folder


def _compile(*arguments: object) -> None:
    subprocess.run(["gcc", *map(str, arguments)], check=True, capture_output=True, text=True)


class Stub:
    """The stand-in in this process: what it is told, and what it tells."""

    def __init__(self, folder: Path) -> None:
        self.runtime = folder / "libobjc.so"
        self.framework = folder / "libMetal.so"
        self._objc = ctypes.CDLL(str(self.runtime))
        self._metal = ctypes.CDLL(str(self.framework))
        for name in ("stub_live", "stub_committed", "stub_encoders", "stub_device_references"):
            self._metal[name].restype = ctypes.c_long
        self._metal.stub_live_by_class.restype = ctypes.c_char_p
        self._objc.stub_unpooled.restype = ctypes.c_long

    def reset(self) -> None:
        """One device that is listed and the default one, nothing slow, nothing failing."""
        self.devices(1)
        self.delay(0)
        self.fail_next(0)

    def devices(self, count: int, *, default: bool = True, listed: bool = True) -> None:
        """How many devices there are, whether one is the default (the last in the list), and whether all are listed."""
        self._metal.stub_devices(count, int(default), int(listed))

    def delay(self, microseconds: int) -> None:
        """How long every command buffer rests before it works."""
        self._metal.stub_delay(ctypes.c_long(microseconds))

    def fail_next(self, code: int) -> None:
        """The next command buffer that is committed ends with this error; 0 for none."""
        self._metal.stub_fail_next(ctypes.c_long(code))

    @property
    def live(self) -> int:
        """Objects that live, devices excepted."""
        return int(self._metal.stub_live())

    @property
    def live_by_class(self) -> dict[str, int]:
        """The same by class."""
        lines = self._metal.stub_live_by_class().decode().splitlines()
        return {name: int(count) for name, count in (line.split() for line in lines)}

    @property
    def device_references(self) -> int:
        """References to devices beyond the framework's own."""
        return int(self._metal.stub_device_references())

    @property
    def unpooled(self) -> int:
        """Objects that were autoreleased where there was no pool, and leak."""
        return int(self._objc.stub_unpooled())

    @property
    def committed(self) -> int:
        """Command buffers that were committed so far."""
        return int(self._metal.stub_committed())

    @property
    def encoders(self) -> int:
        """Encoders that were made so far."""
        return int(self._metal.stub_encoders())

    def environment(self) -> dict[str, str]:
        """What makes the `metal` backend open the stand-in."""
        return {"NBXRT_METAL_RUNTIME": str(self.framework), "NBXRT_METAL_DRIVER": str(self.runtime)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metal, name)
