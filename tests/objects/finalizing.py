"""Objects whose finalizers run in the middle of other work, as the garbage collector runs them: a program of tests."""

from __future__ import annotations

import faulthandler
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbxrt
import simulations

if TYPE_CHECKING:
    from types import FrameType

    from nbxrt.simulation import Simulation

OWN = (str(Path(nbxrt.__file__).parent), "<nbxrt")


def pinned(nbytes: int) -> nbxrt.Buffer:
    """Memory of the host that the device uses too, or the device's where it uses none."""
    return nbxrt.Buffer(nbytes, kind="pinned" if nbxrt.Device(0).supports("malloc_host") else "device")


class Worker:
    """A finalizer that works: it allocates, gives work to streams, records, waits and frees."""

    def __init__(self) -> None:
        self.stream, self.event = nbxrt.Stream(), nbxrt.Event()
        self.kept = nbxrt.Buffer(64)

    def __del__(self) -> None:
        other = nbxrt.Buffer(128, stream=self.stream)
        other.fill(3, stream=self.stream)
        self.event.record(self.stream)
        self.kept.memory.used_on(self.stream)
        self.stream.wait(self.event)
        self.event.query()
        pinned(64).close()
        self.stream.sync()


def waste() -> list[Any]:
    """What is dropped: of each sort one, with work on it."""
    stream, event = nbxrt.Stream(), nbxrt.Event()
    buffer, host = nbxrt.Buffer(256, stream=stream), pinned(256)
    buffer.fill(1, stream=stream)
    event.record(stream)
    buffer.memory.used_on(nbxrt.Device(0).default_stream)
    return [stream, event, buffer, host, Worker()]


def work() -> None:
    """What is going on meanwhile."""
    stream, event = nbxrt.Stream(), nbxrt.Event()
    first, second, third = nbxrt.Buffer(512, stream=stream), nbxrt.Buffer(512), pinned(512)
    for _each in range(12):  # more than is kept of a stream's work
        first.fill(2, stream=stream)
    event.record(stream)
    nbxrt.Device(0).default_stream.wait(event)
    second.copy_from(first)
    third.copy_from(second)
    stream.query()
    event.query()
    event.sync()
    stream.sync()
    assert third.tobytes() == b"\2" * 512
    nbxrt.memory.account().trim()


class At:
    """Drops what it holds at one call within nbxrt, counted from the first."""

    def __init__(self, number: int, held: list[Any]) -> None:
        self.left, self.held = number, held

    def __call__(self, frame: FrameType, what: str, _argument: Any) -> None:
        if what in ("call", "c_call", "c_return") and frame.f_code.co_filename.startswith(OWN):
            self.left -= 1
            if self.left == 0:
                self.held.clear()


def counted(number: int, held: list[Any]) -> int:
    """Work, in which what is held is dropped at the call of that number; how many calls there were after it."""
    at = At(number, held)
    sys.setprofile(at)
    try:
        work()
    finally:
        sys.setprofile(None)
    return at.left


def dropping_at_every(stride: int) -> None:
    """Drop things at every call of some work, or at each so many; nothing of them may be left."""
    work()
    calls = -counted(0, [])
    assert calls > 500
    account = nbxrt.memory.account()
    held: list[Any] = []
    for number in range(1, calls + 1, stride):
        faulthandler.dump_traceback_later(60, exit=True)  # a turn that waits for itself
        held += waste()
        nbxrt.Device(0).sync()
        counted(number, held)
        held.clear()
        assert account.memory_allocated(0) == 0, f"{account.memory_allocated(0)} bytes after {number}"


def still_there(simulated: Simulation) -> Counter[str]:
    """What the simulated library has, by kind, once everything that waits for something was given back."""
    nbxrt.Device(0).sync()
    nbxrt.memory.account().trim()
    return Counter(each.kind for each in simulated.ledger())


def on(name: str, stride: int, *models: str) -> None:
    """The same on a backend, simulated but for the host's and those that the environment names a library of."""
    if name in ("host", "metal"):
        with nbxrt.use(nbxrt.open(name)):
            dropping_at_every(stride)
        return
    with tempfile.TemporaryDirectory() as folder:
        simulated = simulations.built(name, Path(folder), version={"cuda": "12.9"}.get(name))
        if models:
            simulated.set_models(*models)
        with nbxrt.use(simulated.open()):
            work()
            before = still_there(simulated)
            dropping_at_every(stride)
            left = still_there(simulated) - before
            assert not left, left
