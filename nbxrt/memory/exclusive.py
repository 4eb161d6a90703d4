"""What one thread at a time is in, and what nobody waits for who may hold something that others wait for.

Locks are held for what nbxrt does itself, and others' code runs meanwhile only as a finalizer, which may ask for
memory. That a thread is in one shows in its frames: nbxrt called others' code, which called nbxrt.
"""

import sys

from nbxrt.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from types import FrameType


class Reentered(Exception):  # noqa: N818  # no error: the caller goes another way
    """A finalizer asks, and somebody is inside: its own thread, or one that may be waiting for this one."""


class Exclusive:
    """One thread at a time is inside: `with exclusive:`, which raises Reentered.

    A list is a third of what a lock costs: whoever takes the key out is alone until it is back. No signal comes between
    `del key[0]` and the `try` that follows it.
    """

    def __init__(self) -> None:
        self.key: list[None] = [None]
        #: A lock that is held for each thread that waits, the first that came first.
        self.waiting: list[LockType] = []

    def __enter__(self) -> None:
        try:
            del self.key[0]
        except IndexError:
            self.wait()

    def __exit__(self, *_failure: object) -> None:
        self.key.append(None)
        if self.waiting:
            self.wake()

    def wait(self) -> None:
        """Take the key once it is back. Raises: Reentered in a finalizer, and at the end, when no other thread runs."""
        if sys.is_finalizing() or is_nested():
            raise Reentered
        while True:
            turn = Lock()
            turn.acquire()
            self.waiting.append(turn)
            try:
                if not self.key:  # it may be back since
                    turn.acquire()
            finally:
                self._forget(turn)
            try:
                del self.key[0]
            except IndexError:  # somebody was quicker
                continue
            return

    def _forget(self, turn: "LockType") -> None:
        try:
            self.waiting.remove(turn)
        except ValueError:  # who had the key has let it go on, as usual
            return

    def wake(self) -> None:
        """Let the thread go on that waits longest."""
        try:
            self.waiting.pop(0).release()
        except IndexError:  # nobody waits any more
            return

    def renew(self) -> None:
        """Let nobody be inside, in a process that was forked."""
        self.key[:], self.waiting[:] = [None], []


def is_nested() -> bool:
    """Whether the calling thread was in nbxrt before others' code brought it here, or is inside something exclusive.

    It may hold any lock then, or work for a thread that does.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # there is no other way to ask
    came_from_others, is_first = False, True
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OWN):
            came_from_others = True
        elif file.endswith(_OPEN):
            came_from_others = False
        elif came_from_others or (file.endswith(_INSIDE) and not is_first):
            return True
        is_first = is_first and file.endswith(_INSIDE)
        frame = frame.f_back
    return False


_HERE = is_nested.__code__.co_filename
_FOLDER = _HERE[: -len("exclusive.py")]
#: How the files of all code of nbxrt begin, and of what it generates.
_OWN = (_FOLDER[: -len("memory/")], "<nbxrt ")
#: Those whose functions call others' code on purpose, and hold nothing then.
_OPEN = (f"{_FOLDER}layers.py", f"{_FOLDER}reclaiming.py")
#: Those whose functions are inside. Compiled code has no frames, so that a finalizer of such does not show.
_INSIDE = (_HERE, f"{_FOLDER}pool.py")
