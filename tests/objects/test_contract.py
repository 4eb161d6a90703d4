"""The contract for threads, fork and exit: a test for each promise of docs/threads.md."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nbxrt
from nbxrt.objects import dlpack
from nbxrt.objects.state import state_of
from nbxrt.simulation import read_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.runtime import Runtime
    from nbxrt.simulation import Simulation

#: Objects of every kind in module globals, in a cycle, in a daemon thread, and in the hands of another library.
OBJECTS = """
import gc, os, sys, threading, time
import numpy as np
import nbxrt

runtime = nbxrt.open()
shares, hosts = (kind in runtime.description["interop"]["dlpack"] for kind in ("device", "pinned"))
def imported(event, arguments):
    if event == "import" and sys.is_finalizing():
        os.write(2, f"imported {arguments[0]}\\n".encode())
sys.addaudithook(imported)

class Cycle:
    pass

buffer, pinned = nbxrt.Buffer(64), nbxrt.Buffer(64, kind="pinned")
stream, event = nbxrt.Stream(), nbxrt.Event()
event.record(stream)
array = nbxrt.from_numpy(np.arange(8.0))
buffer.copy_from(bytearray(64), stream=stream)
capsule, versioned = shares and array.__dlpack__(), shares and array.__dlpack__(max_version=(1, 0))
taken = shares and nbxrt.from_dlpack(array)
shared = hosts and np.from_dlpack(nbxrt.from_numpy(np.arange(8.0), kind="pinned"))
cycle = Cycle()
cycle.itself, cycle.held = cycle, [nbxrt.Buffer(64), nbxrt.Stream(), nbxrt.Event(), shares and array.__dlpack__()]
if runtime.supports("stream_begin_capture"):
    with stream.capture() as graph:
        buffer.fill(1, stream=stream)
    graph.launch(stream)

def work():
    held = [nbxrt.Buffer(64), nbxrt.Stream(), hosts and np.from_dlpack(nbxrt.empty(8, kind="pinned"))]
    ready.set()
    while True:
        time.sleep(0.001)
        held.append(nbxrt.Event())
        del held[-1]

ready = threading.Event()
threading.Thread(target=work, daemon=True).start()
ready.wait()
"""

ENDS = {
    "by itself": ("", 0, ""),
    "by sys.exit": ("sys.exit(3)", 3, ""),
    "by an error": ("raise KeyError('mine')", 1, "KeyError: 'mine'"),
    "by os._exit": ("os._exit(5)", 5, ""),
    "while a thread works": ("threading.Thread(target=lambda: time.sleep(0.05)).start()", 0, ""),
}


class TestThreads:
    def test_the_current_device_and_stream_are_each_threads_own(
        self, runtime: Runtime, in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        last = runtime.device_count() - 1

        with nbxrt.Device(last), nbxrt.Stream() as stream:
            elsewhere = in_thread(lambda: (nbxrt.current_device().index, nbxrt.current_stream().handle))
            here = nbxrt.current_device().index, nbxrt.current_stream()

        assert (elsewhere, here) == ((0, 0), (last, stream))

    def test_a_block_restores_what_it_found(self, runtime: Runtime) -> None:
        last = runtime.device_count() - 1
        nbxrt.set_device(last)

        for _each in range(2):
            with nbxrt.Device(0), nbxrt.Device(last), nbxrt.Device(0):
                pass

        assert (runtime.get_device(), nbxrt.current_device().index) == (last, last)

    def test_the_cache_is_trusted_until_it_is_told_otherwise(self, runtime: Runtime) -> None:
        last = nbxrt.Device(runtime.device_count() - 1)
        last.set_current()

        switched = switched_behind(runtime, 0)
        with last:
            trusted = runtime.get_device()
        nbxrt.invalidate_current_device_cache()
        runtime.current.index = None  # what the call above does for a runtime that `open` gave
        with last:
            told = runtime.get_device()

        assert (trusted, told, runtime.get_device()) == (0 if switched else last.index, last.index, 0)

    def test_a_producer_that_switches_the_device_does_not_leave_it_switched(self, runtime: Runtime) -> None:
        last = nbxrt.Device(runtime.device_count() - 1)
        array = nbxrt.empty(3, device=last)
        last.set_current()

        class Switching:
            """Another library's array, which leaves the thread on another device than it found."""

            __dlpack_device__ = array.__dlpack_device__

            def __dlpack__(self, **asked: Any) -> Any:
                switched_behind(runtime, 0)
                return array.__dlpack__(**asked)

        if "device" in runtime.description["interop"]["dlpack"]:
            assert nbxrt.from_dlpack(Switching()).ptr == array.ptr

        runtime.current.index = None
        assert runtime.get_device() == last.index

    def test_a_block_ends_in_the_thread_that_began_it(
        self, runtime: Runtime, in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        blocks = [nbxrt.Stream(), *(nbxrt.devices() if runtime.device_count() > 1 else ())]
        for block in blocks:
            with block, pytest.raises(nbxrt.ArgumentValueError, match=r"this thread is not inside of <[^$]*hint: a "):
                in_thread(lambda block=block: block.__exit__(None, None, None))

        assert nbxrt.current_stream().handle == 0

    def test_with_the_variable_nothing_is_trusted(self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NBXRT_CHECK_DEVICE", "1")
        last = nbxrt.Device(runtime.device_count() - 1)
        last.set_current()

        switched_behind(runtime, 0)
        with last:
            seen = runtime.get_device()

        assert (seen, runtime.get_device()) == (last.index, 0)

    def test_objects_are_dropped_from_any_thread_on_their_own_device(
        self, runtime: Runtime, held: Callable[[], int], in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        before, last = held(), runtime.device_count() - 1
        made: list[Any] = [
            make
            for index in (0, last)
            for make in (nbxrt.Buffer(64, device=index), nbxrt.Stream(device=index), nbxrt.Event(device=index))
        ]
        nbxrt.Device(last).set_current()

        def drop() -> int:
            nbxrt.Device(0).set_current()
            while made:
                made.pop()
            return runtime.get_device()

        assert (in_thread(drop), runtime.get_device()) == (0, last)
        nbxrt.Device(0).sync()
        assert held() == before

    def test_a_vendor_sees_every_release_succeed(
        self, simulation: Simulation, in_thread: Callable[[Callable[[], Any]], Any]
    ) -> None:
        made: list[Any] = [make(index) for index in (0, 1) for make in (nbxrt.Stream, nbxrt.Event)]
        simulation.clear()

        in_thread(made.clear)
        nbxrt.Device(0).sync()

        assert [each for each in simulation.ledger() if each.kind in ("stream", "event")] == []
        assert {call.kind for call in simulation.log()} == {"success"}

    def test_one_object_serves_many_threads(self, runtime: Runtime) -> None:
        stream, event, buffer = nbxrt.Stream(), nbxrt.Event(), nbxrt.Buffer(64)

        def work(value: int) -> bool:
            mine = buffer[value : value + 1]
            for _each in range(20):
                mine.fill(value, stream=stream)
                event.record(stream)
                event.sync()
            stream.sync()
            return mine.tobytes() == bytes([value])

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))

    def test_what_many_threads_close_at_once_is_released_once(self, runtime: Runtime) -> None:
        together, interval = threading.Barrier(4), sys.getswitchinterval()
        makers: list[Callable[[], Any]] = [nbxrt.Stream, nbxrt.Event, lambda: nbxrt.Buffer(64)]

        def close(made: list[Any]) -> None:
            together.wait()
            for each in made:
                each.close()

        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(4) as pool:
                for _turn in range(10):
                    made = [make() for make in makers for _each in range(8)]
                    list(pool.map(close, [made] * 4))  # a second release would be an error
        finally:
            sys.setswitchinterval(interval)

        assert nbxrt.current_stream().query()

    def test_a_collection_inside_our_locks_does_not_deadlock(self, runtime: Runtime) -> None:
        class Cycle:
            pass

        def work(_n: int) -> None:
            for _each in range(60):
                cycle = Cycle()
                cycle.itself = cycle  # type: ignore[attr-defined]
                cycle.held = nbxrt.Buffer(64), nbxrt.Event()  # type: ignore[attr-defined]
                nbxrt.Buffer(32).copy_from(bytearray(32), stream=nbxrt.current_stream())

        before = gc.get_threshold()
        gc.set_threshold(5, 2, 2)
        try:
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(work, range(4)))
        finally:
            gc.set_threshold(*before)
        nbxrt.Device(0).sync()

        assert len(state_of(runtime).keeper) == 0

    def test_opening_using_and_forgetting_from_many_threads(self, backend: Simulation | str, run: Any) -> None:
        done = run(
            """
            import os
            from concurrent.futures import ThreadPoolExecutor
            import nbxrt

            def work(number):
                for _each in range(10):
                    if number == 0:
                        nbxrt.reset()
                    with nbxrt.use(nbxrt.open(os.environ["NBX_GPU_BACKEND"])) as runtime:
                        array = nbxrt.empty(8, device=nbxrt.Device(0, runtime=runtime))
                        array.buffer().fill(number)
                        seen = list(array.tobytes()[:2])
                return seen

            with ThreadPoolExecutor(6) as pool:
                assert list(pool.map(work, range(6))) == [[number] * 2 for number in range(6)]
            """,
            backend,
        )

        assert (done.returncode, done.stderr) == (0, "")

    def test_objects_outlive_a_reset(self, backend: Simulation | str, run: Any) -> None:
        done = run(
            """
            import numpy as np
            import nbxrt
            nbxrt.open()
            array, stream = nbxrt.from_numpy(np.arange(3.0)), nbxrt.Stream()
            nbxrt.reset()
            nbxrt.open()
            assert array.numpy().tolist() == [0, 1, 2]
            stream.sync()
            try:
                nbxrt.Buffer(24).copy_from(array)
            except nbxrt.ArgumentValueError as error:
                print("is at work here" in str(error), "after `nbxrt.reset()`" in error.hint)
            """,
            backend,
        )

        assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", ["True", "True"])

    def test_a_consumer_gives_memory_back_from_any_thread(self, runtime: Runtime) -> None:
        if "pinned" not in runtime.description["interop"]["dlpack"]:
            with pytest.raises(nbxrt.ExchangeError, match="has no DLPack number"):
                np.from_dlpack(nbxrt.empty(64, kind="pinned"))
            return
        before = len(dlpack._held)
        shared = [np.from_dlpack(nbxrt.empty(64, kind="pinned")) for _each in range(16)]

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _n: shared.pop(), range(16)))

        assert len(dlpack._held) == before


@pytest.mark.parametrize("make", [nbxrt.Stream, nbxrt.Event, lambda: nbxrt.Buffer(8), lambda: nbxrt.empty(3)])
def test_what_a_process_owns_is_not_copied_as_if_it_were_data(host: Runtime, make: Callable[[], Any]) -> None:
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(nbxrt.ArgumentTypeError, match="`pickle` takes plain data"):
            copied(make())


class TestForks:
    def test_a_fork_before_the_first_use_is_safe(self, backend: Simulation | str, run: Any) -> None:
        done = run(
            """
            import os
            import nbxrt
            nbxrt.open()
            pid = os.fork()
            buffer = nbxrt.Buffer(8)
            buffer.fill(7 if pid else 8)
            assert buffer.tobytes() == bytes([7 if pid else 8]) * 8
            if not pid:
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            """,
            backend,
        )

        assert (done.returncode, done.stderr) == (0, "")

    def test_a_forked_child_releases_nothing_of_its_parent(
        self, backend: Simulation | str, run: Any, tmp_path: Path
    ) -> None:
        log = tmp_path / "log"
        done = run(
            OBJECTS
            + """
sys.stderr.flush()
pid = os.fork()
if not pid:
    del buffer, pinned, stream, event, array, capsule, versioned, taken, shared, cycle
    graph = None
    gc.collect()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(pid)
""",
            backend,
            log=log,
        )

        assert (done.returncode, done.stderr) == (0, "")
        if log.exists():
            of_child = [call.operation for call in read_log(log) if call.process == int(done.stdout)]
            assert of_child == []

    def test_locks_that_another_thread_held_are_free_in_the_child(self, backend: Simulation | str, run: Any) -> None:
        done = run(
            """
            import os, threading, time
            import nbxrt
            from nbxrt.objects.state import state_of
            runtime = nbxrt.open()
            nbxrt.Buffer(8).fill(1)
            state = state_of(runtime)
            holding = threading.Event()
            def hold():
                with state.lock, state.opening, state.keeper._lock:
                    holding.set()
                    time.sleep(0.2)
            threading.Thread(target=hold).start()
            holding.wait()
            pid = os.fork()
            if not pid:
                try:
                    nbxrt.Buffer(8).copy_from(bytearray(8), stream=nbxrt.Stream())
                except nbxrt.NbxrtError as error:  # drivers do not survive a fork, which the error says
                    os._exit(0 if "fork" in str(error) else 1)
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            """,
            backend,
        )

        assert (done.returncode, done.stderr) == (0, "")


class TestExits:
    @pytest.mark.parametrize("way", ENDS)
    def test_objects_that_are_left_change_no_exit(self, backend: Simulation | str, way: str, run: Any) -> None:
        ending, code, said = ENDS[way]

        done = run(f"{OBJECTS}\n{ending}", backend)

        assert done.returncode == code, done.stderr
        assert done.stderr.strip().splitlines()[-1:] == ([said] if said else [])
        assert "Exception ignored" not in done.stderr
        assert "imported" not in done.stderr

    def test_memory_that_another_library_holds_at_the_end_stays_where_it_is(
        self, backend: Simulation | str, run: Any
    ) -> None:
        done = run(
            """
            import ctypes, sys
            import nbxrt
            if "device" not in nbxrt.open().description["interop"]["dlpack"]:
                print(True, True)
                sys.exit()
            capsule = nbxrt.zeros(8).__dlpack__()
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
            free = ctypes.cast(ctypes.pythonapi.PyMem_RawFree, ctypes.c_void_p).value
            from nbxrt.objects import dlpack
            dlpack._end()
            late = nbxrt.zeros(8).__dlpack__()
            for each in (capsule, late):
                address = pointer(each, b"dltensor")
                print(ctypes.c_void_p.from_address(address + 56).value == free)
                rename = ctypes.pythonapi.PyCapsule_SetName
                rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
                rename(each, b"used_dltensor")
                ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)(address)
            """,
            backend,
        )

        assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", ["True", "True"])


def switched_behind(runtime: Runtime, index: int) -> bool:
    """Whether the vendor's own function has made a device current behind nbxrt, as another library does.

    Where the vendor knows no current device there is nothing to switch: the operation is nbxrt's, and tells the cache.
    """
    name = runtime.table()["set_device"]
    getattr(runtime, name)(index)
    return not name.startswith("c_")


@pytest.mark.checkout
def test_every_promise_of_the_page_has_a_test(root: Path) -> None:
    page = (root / "docs" / "threads.md").read_text("utf-8")
    named = re.findall(r"`(test_\w+)`", page)
    here = [
        name
        for file in (root / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))
    ]

    assert len(named) > 10
    assert set(named) <= set(here)
