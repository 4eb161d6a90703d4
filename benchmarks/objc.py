"""What an operation by messages costs the host: nbxrt's generated steps beside the same messages by hand with ctypes.

    python benchmarks/objc.py [--rounds N]

On Linux it compiles the tests' Objective-C runtime and stand-in for the framework, and needs GCC with Objective-C. On a
Mac it measures the system's own. Both send the same messages with the same types inside an autorelease pool; by hand
nothing is checked, but that objects came.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from typing import TYPE_CHECKING, Any

from measuring import ROOT, in_turn, median, nanoseconds, show

if TYPE_CHECKING:
    from collections.abc import Callable

BACKEND = "metal"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure operations by messages.")
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--times", type=int, default=1000)
    asked = parser.parse_args()
    if sys.platform != "darwin":
        _stand_in()
    import nbxrt

    runtime: Any = nbxrt.open(BACKEND)
    by_hand = ByHand(runtime)
    name, malloc, free = (getattr(runtime, each) for each in ("device_name", "malloc", "free"))
    name_by_hand = by_hand.device_name
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object], int]] = {
        "two messages (device_name)": (lambda: name(0), lambda: name_by_hand(0), asked.times),
        "two messages and release (malloc, free)": (
            lambda: free(malloc(4096)), by_hand.malloc_and_free, asked.times // 2,
        ),
    }  # fmt: skip
    for title, (ours, hand, times) in pairs.items():
        ours(), hand()  # what is made at the first use is made
        measured = in_turn(
            {"by hand": lambda: nanoseconds(hand, times), "nbxrt": lambda: nanoseconds(ours, times)},  # noqa: B023
            asked.rounds,
        )
        figures = {way: median(values) for way, values in measured.items()}
        show(title, figures, "ns", 0)
        ratio, quickest = (each(measured["nbxrt"]) / each(measured["by hand"]) for each in (median, min))
        print(f"  ratio    {ratio:10.2f}, of the quickest rounds {quickest:.2f}")


def _stand_in() -> None:
    """Make the backend open the tests' stand-in."""
    sys.path.insert(0, str(ROOT / "tests"))
    import objective_c

    if objective_c.missing():
        sys.exit(f"the stand-in cannot be compiled: {objective_c.missing()}")
    os.environ.update(objective_c.Stub(objective_c.compiled()).environment())


class ByHand:
    """The same operations as one would write them for this framework alone."""

    def __init__(self, runtime: Any) -> None:
        runtime.device_count()
        self._device = runtime._binder.listed().numbered(0).handle  # noqa: SLF001
        self._table: dict[int, int] = {}
        self._objc = ctypes.CDLL(runtime.library("driver").path)
        self._push = self._function("objc_autoreleasePoolPush", ctypes.c_void_p)
        self._pop = self._function("objc_autoreleasePoolPop", None, ctypes.c_void_p)
        self._register = self._function("sel_registerName", ctypes.c_void_p, ctypes.c_char_p)

    def _function(self, name: str, returns: Any, *arguments: Any) -> Any:
        function = self._objc[name]
        function.restype, function.argtypes = returns, arguments
        return function

    def _message(self, selector: str, returns: Any, *arguments: Any) -> tuple[Any, int]:
        send = self._function("objc_msgSend", returns, ctypes.c_void_p, ctypes.c_void_p, *arguments)
        return send, self._register(selector.encode())

    @property
    def device_name(self) -> Callable[[int], str]:
        """The function that tells the device's name."""
        push, pop, devices = self._push, self._pop, [self._device]
        name, name_selector = self._message("name", ctypes.c_void_p)
        text, text_selector = self._message("UTF8String", ctypes.c_char_p)

        def device_name(device: int) -> str:
            pool = push()
            try:
                described = name(devices[device], name_selector)
                if described is None:
                    raise RuntimeError("no name")
                return str(text(described, text_selector).decode())
            finally:
                pop(pool)

        return device_name

    @property
    def malloc_and_free(self) -> Callable[[], None]:
        """The function that makes a buffer, notes its address, and releases it."""
        push, pop, device, table = self._push, self._pop, self._device, self._table
        new, new_selector = self._message(
            "newBufferWithLength:options:", ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64
        )
        contents, contents_selector = self._message("contents", ctypes.c_void_p)
        release, release_selector = self._message("release", None)

        def malloc_and_free() -> None:
            pool = push()
            try:
                buffer = new(device, new_selector, 4096, 0)
                if buffer is None:
                    raise MemoryError
                address = contents(buffer, contents_selector)
                table[address] = buffer
            finally:
                pop(pool)
            pool = push()
            try:
                release(table.pop(address), release_selector)
            finally:
                pop(pool)

        return malloc_and_free


if __name__ == "__main__":
    main()
