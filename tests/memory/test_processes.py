"""The account when the interpreter ends, and in a process that was forked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

LEFT_ALIVE = """
    import sys, threading, time
    import nbxrt
    from nbxrt import memory

    class Block:
        def __init__(self, ptr, free):
            self.ptr, self.free, self.me = ptr, free, self

        def __del__(self):
            self.free(self.ptr)

    account = memory.account()
    stream = account.runtime.stream_create()
    kept = [Block(account.malloc(1 << 20), account.free), Block(account.malloc_host(5000), account.free_host)]
    shared = Block(account.malloc(3 << 20), account.free)
    account.record_use(shared.ptr, stream)

    def daemon():
        mine = Block(account.malloc(4096), account.free)
        time.sleep(60)

    threading.Thread(target=daemon, daemon=True).start()
"""


@pytest.mark.parametrize("policy", ["direct", "caching", "stream_ordered", "expandable"])
@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 3)])
def test_blocks_that_are_alive_at_the_end_change_nothing(
    run: Callable[..., tuple[int, str]], policy: str, end: str, code: int
) -> None:
    assert run(LEFT_ALIVE + "    " + end, NBXRT_ALLOCATOR=policy) == (code, "")


def test_memory_and_its_layers_are_there_after_the_import_of_nbxrt_alone(run: Callable[..., tuple[int, str]]) -> None:
    program = """
        import sys
        import nbxrt

        assert "nbxrt.memory" not in sys.modules
        account = nbxrt.memory.account()
        assert "nbxrt.memory.layers" not in sys.modules
        account.add_layer(nbxrt.memory.layers.Statistics)
        assert not hasattr(nbxrt.memory, "leyers")
    """

    assert run(program) == (0, "")


@pytest.mark.parametrize("policy", ["caching", "expandable"])
def test_a_finalizer_at_the_end_does_not_wait_for_a_thread_that_runs_no_more(
    run: Callable[..., tuple[int, str]], policy: str
) -> None:
    program = """
        import os, threading
        from nbxrt import memory

        account = memory.account()
        account.free(account.malloc(1 << 20))
        inside, never = threading.Event(), threading.Event()
        others = {"pool": account.policy(0).pool, "inside": inside, "never": never}
        exec("def daemon():\\n with pool:\\n  inside.set()\\n  never.wait()", others)  # keeps no global

        class Last:
            def __del__(self, account=account, write=os.write):
                account.free(account.malloc(5000))
                account.trim()
                write(2, b"done")

        threading.Thread(target=others.pop("daemon"), daemon=True).start()
        inside.wait()
        last = Last()
    """

    assert run(program, NBXRT_ALLOCATOR=policy) == (0, "done")


def test_blocks_that_are_alive_at_an_error_add_nothing_to_what_is_said(run: Callable[..., tuple[int, str]]) -> None:
    code, said = run(LEFT_ALIVE + "    raise ValueError('mine')")

    assert code == 1
    assert said.splitlines()[-1] == "ValueError: mine"
    assert said.count("Traceback") == 1
    assert "ignored" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_forked_child_does_not_wait_for_a_lock_of_its_parent(run: Callable[..., tuple[int, str]]) -> None:
    program = """
        import os, threading, warnings
        from nbxrt import memory

        warnings.simplefilter("ignore")
        account = memory.account()
        ptr = account.malloc(1 << 20)
        pool, held = account.policy(0).pool, threading.Event()

        def hold():
            with pool:
                held.set()
                threading.Event().wait()

        threading.Thread(target=hold, daemon=True).start()
        held.wait()
        child = os.fork()
        if child == 0:
            account.free(ptr)
            account.stats(0)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """

    assert run(program) == (0, "")
