"""A real Objective-C runtime on Linux, and a stand-in for Metal.framework on top of it, compiled for the tests."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import platform
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import simulations
from nbxrt.simulation import CompilerError, standing_in
from nbxrt.simulation.building import compiler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbxrt.simulation import StandIn

#: Whether the stand-in is for this machine: its objc_msgSend is written in assembly.
IS_FOR_THIS_MACHINE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
FOR_WHICH = "the stand-in's objc_msgSend is written for Linux on x86-64"


@functools.cache
def missing() -> str:
    """Why the stand-in cannot be compiled here; empty when it can."""
    if not IS_FOR_THIS_MACHINE:
        return FOR_WHICH
    try:
        return standing_in.why_no_objective_c(compiler())
    except CompilerError as error:
        return error.summary


@functools.cache
def compiled() -> StandIn:
    """The stand-in for Metal in a folder of this process's, which others do not replace; compiled once a machine."""
    folder = tempfile.mkdtemp(prefix="nbxrt-test-objective-c-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return standing_in.stand_in("metal", folder, cache=simulations.cache())


class Stub:
    """The stand-in in this process: what it is told, and what it tells."""

    def __init__(self, built: StandIn) -> None:
        self.built = built
        self.runtime = built.paths["driver"]
        self.framework = built.paths["runtime"]
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
        self.built.mend()
        self.built.clear()

    def devices(self, count: int, *, default: bool = True, listed: bool = True) -> None:
        """How many devices there are, whether one is the default (the last in the list), and whether all are listed."""
        self._metal.stub_devices(count, int(default), int(listed))

    def delay(self, microseconds: int) -> None:
        """How long every command buffer rests before it works."""
        self._metal.stub_delay(ctypes.c_long(microseconds))

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """No command buffer works before the end of the block."""
        self._metal.stub_hold(1)
        try:
            yield
        finally:
            self._metal.stub_hold(0)

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
