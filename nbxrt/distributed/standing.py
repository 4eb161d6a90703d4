"""How one rank's end stands: in use, closed or broken; what is under way in it, and how it ends.

The caller's thread and the watch both look, and whoever finds first that a rank is lost or late breaks it for both.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from nbxrt import errors, locks
from nbxrt.distributed import watch
from nbxrt.distributed.links import FAILURES, MESSAGES, MOMENT, PATIENCE, Link, Stuck
from nbxrt.distributed.marks import marks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbxrt.distributed.checks import Arguments
    from nbxrt.distributed.progress import Progress

#: The name of an operation, its arguments, its stream, and what gives it to the library: nothing for no elements.
Work = tuple[str, "Arguments", int, "Callable[[], object] | None"]
#: What a failed call says of its arguments alone; after any other failure the library's communicator is of no use.
_OF_THE_CALL = ("invalid_value", "not_supported", "out_of_memory", "invalid_handle", "capture_unsupported")


class Standing:
    """How one rank's end stands. The link's guard is held while the library is called and while marks are asked."""

    def __init__(self, link: Link, rank: int, size: int, timeout: float, progress: Progress) -> None:
        self.link, self.rank, self.size, self.timeout, self.progress = link, rank, size, timeout, progress
        link.who_is_lost = progress.lost
        with link.on_device():
            self.marks = marks_of(link, timeout)
        #: Closed or broken: nothing more is given to the library.
        self.is_over = False
        #: What was called last.
        self.last = "barrier"
        #: What is to be forgotten when it is over.
        self.kept: list[dict[Any, Any]] = []
        self._broken: errors.CommunicatorError | None = None
        self._breaking = locks.RLock()  # held while it is broken: the caller's thread and the watch may both find out
        self._process = os.getpid()
        #: A call in the library when somebody last looked: its number, and since when it is seen there.
        self._inside = (-1, 0.0)
        watch.watch(self)

    @property
    def said(self) -> str:
        """`closed`, `broken` or nothing, before what it is of."""
        return "broken, " if self._broken is not None else "closed, " if self.is_over else ""

    def refuse_if_over(self) -> None:
        """Raises: CommunicatorError when it is broken; ArgumentValueError when it is closed, or a parent's."""
        if not self.is_over:
            return
        if self._broken is not None:
            raise self._told()
        if self._process != os.getpid():
            raise errors.ArgumentValueError(
                f"the communicator is of process {self._process}, and this is a fork of it",
                hint="libraries of collectives do not survive a fork: start processes afresh, each with its own",
            )
        raise errors.ArgumentValueError("the communicator is closed", hint="make a new one with `split` or `init`")

    # what is given to the library

    def give(self, work: Work) -> None:
        """Give an operation to the library; none for no elements.

        Raises: one of FAILURES; CommunicatorError, ArgumentValueError where another thread has left meanwhile.
        """
        name, _arguments, _stream, call = work
        if call is None:
            return
        self.last = name
        if name in MESSAGES:
            self.progress.advance_message()
        else:
            self.progress.advance()
        with self.link.guard:  # nobody gives the library's communicator back between the look and the call
            if not self.is_over:
                call()
        self.refuse_if_over()  # it may have been broken while it was in the library, which let it go then

    def mark(self, work: Work) -> None:
        """Note that an operation was given to its stream."""
        name, _arguments, stream, call = work
        if call is not None:
            with self.link.guard:
                self.marks.put(name, stream)

    def gathered(self, operation: str, part: bytes) -> bytes:
        """What all ranks say, as long as this rank's part each; the operation is the one that needs it.

        Raises: CommunicatorError; DeviceError.
        """
        self.last = operation
        self.progress.advance()
        try:
            with self.link.on_device():
                return self.link.gather(part, self.size, lambda stream: self.wait(stream, operation, self.timeout))
        except FAILURES as failure:
            raise self.meaning(operation, failure) from failure.__cause__

    def wait(self, stream: int, operation: str, seconds: float) -> None:
        """Wait until the work of a stream is done. Raises: CommunicatorError, CommunicatorTimeoutError; DeviceError."""
        end, pause = time.monotonic() + seconds, 0.0
        while not self.link.is_settled(stream):
            if not self.is_over and time.monotonic() > end:
                self.broken(operation, seconds)
            self.refuse_if_over()
            time.sleep(pause)
            pause = min(pause + 2e-5, 1e-3)
            if pause == 1e-3:
                self.look()
        self.look()
        self.refuse_if_over()

    # failing

    def look(self) -> None:
        """See whether it is still whole; the watch does so, too."""
        if self.is_over:
            return
        if said := self.link.error() or self.link.who_is_lost():
            self.broken(self._outstanding() or self.last, said=said)
        elif late := self._late(time.monotonic()):
            self.broken(late, self.timeout)

    def _late(self, now: float) -> str:
        """What has been outstanding for too long, on its stream or inside the library; or nothing."""
        if self.link.guard.acquire(timeout=MOMENT):
            try:
                self._inside = (-1, now)
                return self.marks.overdue(now)
            finally:
                self.link.guard.release()
        if self._inside[0] != self.progress.made():
            self._inside = (self.progress.made(), now)
        is_late = self.link.asynchronous and now - self._inside[1] >= self.timeout
        return self.last if is_late else ""

    def _outstanding(self) -> str:
        """What was called first of what is not done, as far as it is known."""
        if not self.link.guard.acquire(timeout=MOMENT):
            return self.last
        try:
            return self.marks.oldest()
        finally:
            self.link.guard.release()

    def meaning(self, operation: str, failure: Exception) -> Exception:
        """What a failed call means: a broken communicator, or an error of the call alone."""
        if self._broken is not None:
            return self._told()
        if isinstance(failure, Stuck):
            return self.broken(operation, self.timeout, failure.missing)
        if isinstance(failure, errors.DeviceError):
            said = self.link.error() or ("" if failure.kind in _OF_THE_CALL else failure.summary)
        else:
            said = str(failure)
        return self.broken(operation, said=said) if said else failure

    def broken(
        self, operation: str, seconds: float = 0.0, missing: Sequence[int] = (), said: str = ""
    ) -> errors.CommunicatorError:
        """Break it: what is under way ends, and every later use raises the error that this gives."""
        with self._breaking:
            if self._broken is not None:
                return errors.again(self._broken)  # type: ignore[return-value]
            watch.note_failure()
            self._broken = error = self._error(operation, seconds, missing, said)
            self.is_over = True
            self.progress.break_off(was_broken=True)
            with contextlib.suppress(errors.NbxrtError), self.link.on_device():
                self.link.abort()
            self._end()
            return error

    def _told(self) -> errors.CommunicatorError:
        """The error of a broken communicator, once whoever breaks it has given everything back."""
        if self._breaking.acquire(timeout=watch.GRACE):
            self._breaking.release()
        return errors.again(self._broken)  # type: ignore[arg-type,return-value]

    def _error(self, operation: str, seconds: float, missing: Sequence[int], said: str) -> errors.CommunicatorError:
        """What is known of a failure: by the library, of the time that is over, of ranks that are behind or gone."""
        behind = self.progress.behind() or ({} if seconds else self.progress.gone())
        behind |= {rank: f"rank {rank} has not come" for rank in missing if rank not in behind}
        why = said or f"not finished within {seconds:g} s"
        whole = [why, *(each for each in behind.values() if each != why)]
        kind = errors.CommunicatorTimeoutError if seconds else errors.CommunicatorError
        return kind(
            f"rank {self.rank} of {self.size}, `{operation}`: {'; '.join(whole)}",
            hint="the communicator was aborted; make a new one of the ranks that are left",
            operation=operation,
            rank=self.rank,
            size=self.size,
            device=self.link.device,
            missing=tuple(sorted(behind)),
            seconds=seconds,
        )

    # leaving

    def close(self) -> None:
        """Leave when what is under way is done, with the other ranks of the host; as `Communicator.close`."""
        if not self.is_over:
            self._finish(self.timeout)
            self._end()

    def abort(self) -> None:
        """Leave at once, without waiting for anybody."""
        if not self.is_over:
            self.is_over = True
            self.progress.break_off()
            self.link.abort()
            self._end()

    def disown(self) -> None:
        """In a forked child: it is the parent's, and every use here is refused."""
        self._breaking = locks.RLock()
        self.is_over = True
        self._forget()

    def leave_at_exit(self) -> None:
        """Leave as well as it can be done in a few seconds, silently: nobody is left who could be told."""
        with contextlib.suppress(Exception):
            if not self.is_over:
                self._finish(min(self.timeout, watch.GRACE))

    def _finish(self, seconds: float) -> None:
        """Wait for what is under way, then leave. Raises: CommunicatorTimeoutError, CommunicatorError."""
        end = time.monotonic() + seconds
        while name := self._outstanding():
            self.look()
            if not self.is_over and time.monotonic() > end:
                self.broken(name, seconds)
            self.refuse_if_over()
            time.sleep(2e-4)
        leaves_with_others = self._leaves_with_others(seconds, end)
        self.is_over = True  # for other threads: what they give to the library from here on would find it gone
        if not leaves_with_others:
            self.link.abort()
            return
        try:
            self.link.close(max(end - time.monotonic(), 0.1))
        except Stuck:
            raise self.broken("close", seconds) from None

    def _leaves_with_others(self, seconds: float, end: float) -> bool:
        """Wait for the ranks of this host to leave, too, as the library would, which cannot be told to stop waiting.

        False where one has left without this one or ended. Raises: CommunicatorTimeoutError.
        """
        if not self.link.asynchronous:  # nothing is under way, and MPI and Ray let a rank go alone
            self.progress.break_off()
            return True
        self.progress.leave()
        pause = 1e-4
        while self.progress.staying():
            if self.progress.is_broken_off():
                return False
            if time.monotonic() > end:
                raise self.broken("close", seconds, self.progress.staying())
            for other in watch.others(self):
                if other.progress.identity < self.progress.identity:
                    other.follow()
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        return True

    def follow(self) -> None:
        """Leave where all other ranks wait for this one alone: it may wait for them to leave what they leave later.

        Whoever waits follows in the order of identities, the same on all ranks: two that followed each other would
        wait inside the library, one in each communicator.
        """
        with contextlib.suppress(errors.NbxrtError):
            if not self.is_over and self.progress.is_awaited() and not self._outstanding():
                self.close()

    def _forget(self) -> None:
        for kept in self.kept:
            kept.clear()

    def _end(self) -> None:
        watch.forget(self)
        self._forget()
        if self.link.guard.acquire(timeout=PATIENCE):  # else a call hangs that may still record: leak, do not crash
            try:
                self.marks.close()
            finally:
                self.link.guard.release()
