"""The communicator: one rank's end, with checks before anything is sent and a watch over what is under way."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any
from weakref import ref

from nbxrt import errors, locks
from nbxrt.distributed import agreement, watch
from nbxrt.distributed.checks import Arguments, Checks, demand_reduction, seconds_of
from nbxrt.distributed.datatypes import datatype_of
from nbxrt.distributed.groups import Group
from nbxrt.distributed.links import FAILURES, Link, Lost, Stuck, marks_of
from nbxrt.distributed.spans import Spans
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.buffer import Buffer
from nbxrt.objects.device import as_device
from nbxrt.objects.state import refuse_copying

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from nbxrt.distributed.progress import Progress
    from nbxrt.objects.memory import Memory
    from nbxrt.runtime import Runtime

#: Seconds that an operation has, unless a communicator says otherwise.
TIMEOUT = 600.0
#: The name of an operation, its arguments, its stream, and what gives it to the library: nothing for no elements.
Work = tuple[str, Arguments, int, "Callable[[], object] | None"]
#: Works that a communicator keeps: of a program that calls with the same arrays again and again.
MOST_KNOWN = 1024
_NOTHING: dict[Any, Any] = {}
#: What a failed call says of its arguments alone; after any other failure the library's communicator is of no use.
_OF_THE_CALL = ("invalid_value", "not_supported", "out_of_memory", "invalid_handle", "capture_unsupported")
#: Operations that combine elements.
_REDUCING = ("all_reduce", "reduce", "reduce_scatter")
#: Operations between two ranks, and where their arguments have the count; those of all operations are in one order.
MESSAGES = {"send": 1, "receive": 1}


class Communicator:
    """One rank's end of a communicator: collectives over its ranks, on streams.

    `rank`, `size`, `device` (its ordinal), `runtime` and `timeout` (seconds that an operation has) can be read.

    Operations take arrays: a DeviceArray or a Buffer, what has `data_ptr()`, the backend's array interface or, where
    device memory is the host's, NumPy's. They return when the work is ordered on `stream`, a Stream or a handle (the
    thread's current one when left out); on backends whose calls have finished when they return, so have these. `dtype`
    says what the elements are when the array does not. Elements must stay as they are until the stream has passed the
    operation.

    Every operation raises ArgumentTypeError or ArgumentValueError before anything is sent, CapabilityError when the
    library lacks it, DeviceError when the call fails, and CommunicatorError when the communicator is broken: a rank
    has died or did not come in time, which `wait` tells while it waits. One thread uses a communicator at a time, with
    the communicator's device as its current one.
    """

    def __init__(
        self, link: Link, rank: int, size: int, *, timeout: float = TIMEOUT, progress: Progress | None = None
    ) -> None:
        self.rank, self.size = rank, size
        self.runtime: Runtime = link.runtime
        self.device = link.device
        self.timeout = timeout
        #: What it stands on.
        self.link = link
        self._guard = link.guard
        self._progress = progress
        if progress is not None:
            link.who_is_lost = progress.lost
        with link.on_device():
            self._marks = marks_of(link, timeout)
        self._spans = Spans(link.runtime, as_device(link.device, link.runtime))
        self._is_recorded, self._captures = self._spans.is_recorded, self._spans.captures
        self._compares = agreement.is_asked_for()
        self._checks = Checks(link, rank, size, asks=self._compares)
        self._known: dict[Any, Work] = {}
        #: The same by the array itself; and that, or nothing where a call has more to do than that.
        self._seen: dict[Any, tuple[Any, Memory, Work, int]] = {}
        self._again = self._seen
        self._broken: errors.CommunicatorError | None = None
        self._breaking = locks.RLock()  # held while it is broken: the caller's thread and the watch may both find out
        self._closed = False
        self._process = os.getpid()
        self._last = "barrier"
        self.collecting = None
        watch.watch(self)

    def __reduce__(self) -> Any:
        raise refuse_copying(self, "each rank makes its own; `comm.split(0, comm.rank)` is one of the same ranks")

    def __repr__(self) -> str:
        state = "closed, " if self._closed else "broken, " if self._broken else ""
        return f"<nbxrt.Communicator {state}rank {self.rank} of {self.size} on {self.runtime.name}:{self.device}>"

    # collectives

    def all_reduce(self, x: Any, op: str = "sum", *, out: Any = None, stream: Any = None, dtype: Any = None) -> None:
        """Every rank receives the reduction of all ranks' elements, in `out` or in place."""
        if op.__class__ is not str:
            demand_reduction("all_reduce", op)
        self._give("all_reduce", x, out, stream, dtype, op)

    def broadcast(self, x: Any, root: int = 0, *, out: Any = None, stream: Any = None, dtype: Any = None) -> None:
        """Every rank receives the root's elements, in `out` or in place."""
        self._checks.demand_peer("broadcast", "root", root)
        self._give("broadcast", x, out, stream, dtype, "", root)

    def reduce(
        self, x: Any, op: str = "sum", root: int = 0, *, out: Any = None, stream: Any = None, dtype: Any = None
    ) -> None:
        """The root receives the reduction of all ranks' elements, in `out` or in place; the others receive nothing."""
        if op.__class__ is not str:
            demand_reduction("reduce", op)
        self._checks.demand_peer("reduce", "root", root)
        self._give("reduce", x, out, stream, dtype, op, root)

    def all_gather(self, x: Any, out: Any, *, stream: Any = None, dtype: Any = None) -> None:
        """`out` receives the elements of each rank, in order of rank: `size` times as many as `x` has.

        In place when `x` is this rank's part of `out`.
        """
        self._give("all_gather", x, _there("all_gather", out), stream, dtype)

    def reduce_scatter(self, x: Any, out: Any, op: str = "sum", *, stream: Any = None, dtype: Any = None) -> None:
        """`out` receives this rank's part of the reduction: `x` has `size` times as many elements as `out`.

        In place when `out` is this rank's part of `x`.
        """
        if op.__class__ is not str:
            demand_reduction("reduce_scatter", op)
        self._give("reduce_scatter", x, _there("reduce_scatter", out), stream, dtype, op)

    def all_to_all(self, x: Any, out: Any, *, stream: Any = None, dtype: Any = None) -> None:
        """Part `i` of `x` goes to rank `i`, and part `i` of `out` comes from there; neither may overlap the other."""
        self._give("all_to_all", x, _there("all_to_all", out), stream, dtype)

    def send(self, x: Any, peer: int, *, stream: Any = None, dtype: Any = None) -> None:
        """Send elements to a rank, which receives as many. With `recv` of the same peer, both belong in a `group`."""
        self._checks.demand_peer("send", "peer", peer)
        self._give("send", x, None, stream, dtype, "", peer)

    def recv(self, x: Any, peer: int, *, stream: Any = None, dtype: Any = None) -> None:
        """Receive elements from a rank, which sends as many."""
        self._checks.demand_peer("recv", "peer", peer)
        self._give("receive", x, None, stream, dtype, "", peer)

    def barrier(self) -> None:
        """Return when all ranks have called it. Work on streams is not waited for."""
        self.refuse_if_over()
        self._compare("barrier")
        self.gather(b"", "barrier")

    # together, and apart

    def group(self) -> Group:
        """`with comm.group():` starts the operations of the block together, at its end; nothing when it raises."""
        return Group((self,))

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """A communicator of the ranks that give the same colour, in order of key, then of rank; None takes no part.

        All ranks call it. Raises: ArgumentTypeError; CommunicatorError; DeviceError.
        """
        for name, value in (("color", 0 if color is None else color), ("key", key)):
            if value.__class__ is not int:
                raise errors.ArgumentTypeError(f"`split`: `{name}` is an integer, not {value!r}", parameter=name)
        self.refuse_if_over()
        self._compare("split")
        said = [
            answer.split(b" ") for answer in self.gather(f"{'-' if color is None else color} {key}".encode(), "split")
        ]
        places = [(int(one_key), rank) for rank, (one, one_key) in enumerate(said) if one == str(color).encode()]
        members = [rank for _key, rank in sorted(places)]
        try:
            link, identity = self.link.split(members, self.rank, lambda said: self.gather(said, "split"))
        except FAILURES as failure:
            raise self.meaning("split", failure) from failure.__cause__
        if not members:
            return None
        return start(link, identity, members.index(self.rank), len(members), timeout=self.timeout)

    def share(self, buffer: Buffer) -> list[Buffer | None]:
        """The buffer of every rank, in order of rank: its memory itself on the same host, None on another.

        All ranks call it, with a Buffer that is `shareable`. A rank keeps its own until the others have closed theirs;
        nothing orders what they do with it but barriers and streams. No rank gets a context on another's device.
        Raises: CapabilityError where the backend cannot share memory; ArgumentTypeError, ArgumentValueError;
        CommunicatorError, on every rank; DeviceError.
        """
        from nbxrt.distributed.sharing import share

        if buffer.__class__ is not Buffer:
            raise errors.ArgumentTypeError(f"`share` takes a Buffer, not {buffer!r}", parameter="buffer", value=buffer)
        self.refuse_if_over()
        self._compare("share")
        return share(self, buffer)

    def wait(self, stream: Any = None, timeout: float | None = None) -> None:
        """Wait until the work of a stream is done. A broken communicator ends the waiting, and is raised here.

        `timeout` is in seconds, the communicator's when left out; after it the communicator is broken.
        Raises: CommunicatorError, CommunicatorTimeoutError; DeviceError.
        """
        handle = self._spans.stream(stream)
        seconds = self.timeout if timeout is None else seconds_of(timeout)
        self.refuse_if_over()
        self._wait(handle, self._last, seconds)

    # leaving

    def close(self) -> None:
        """Leave the communicator when its work is done. Closing one that is closed or broken does nothing.

        Raises: CommunicatorTimeoutError when the work is not done in time, or another rank of the host stays longer.
        """
        if self._closed:
            return
        if self._broken is None:
            self._finish(self.timeout)
        self._closed = True
        self._end()

    def abort(self) -> None:
        """Leave the communicator at once. What is under way on streams ends, and its results are not to be used."""
        if not self._closed and self._broken is None:
            self._closed = True
            if self._progress is not None:
                self._progress.break_off()
            self.link.abort()
            self._end()
        self._closed = True

    def __enter__(self) -> Communicator:  # noqa: PYI034  # `typing.Self` came with 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close() if kind is None else self.abort()

    # giving work; a group does the same for several communicators at once

    def _give(self, name: str, x: Any, out: Any, stream: Any, dtype: Any, op: str = "", peer: int = 0) -> None:
        handle = stream if stream.__class__ is int else self._spans.stream(stream)
        again = self._again.get((name, id(x), op, peer, handle))
        if (
            again is None
            or again[0]() is not x
            or out is not None
            or dtype is not None
            or not again[1].is_open
            or again[3] != self.runtime.revision
        ):
            work = self._anew(name, x, out, handle, dtype, op, peer)
            if work is None:
                return
        else:
            work = again[2]
            memory = again[1]
            if memory.home != handle and (self._captures or not self._is_recorded(memory.address, handle)):
                self._spans.use(x, handle)
        try:
            self.send_off(work)
        except FAILURES as failure:
            raise self.meaning(name, failure) from failure.__cause__
        if self._marks is not None:
            self._marks.put(name, handle)

    def _anew(self, name: str, x: Any, out: Any, stream: int, dtype: Any, op: str, peer: int) -> Work | None:
        """What is to be done for arrays that were not seen before, or are no plain ones; None inside a group."""
        self.refuse_if_over()
        if name in _REDUCING:
            demand_reduction(name, op)
        work = self._work(name, x, out, stream, dtype, op, peer)
        self._spans.use(x, stream)
        if out is not None:
            self._spans.use(out, stream)
        if self._collecting is not None:
            self._collecting.add(self, work, (x, out))
            return None
        self.agree(work)
        if x.__class__ is DeviceArray and out is None and dtype is None and self._again is not _NOTHING:
            _keep(self._again, (name, id(x), op, peer, stream), (ref(x), x.memory, work, self.runtime.revision))
        return work

    @property
    def collecting(self) -> Group | None:
        """The group that is being collected, or None."""
        return self._collecting

    @collecting.setter
    def collecting(self, group: Group | None) -> None:
        self._collecting = group
        self._allow_again()

    def _allow_again(self) -> None:
        """Whether a call with an array that was seen before goes straight to the library."""
        is_plain = self._collecting is None and not self._compares and self._broken is None and not self._closed
        self._again = self._seen if is_plain else _NOTHING

    def _work(self, name: str, x: Any, out: Any, stream: int, dtype: Any, op: str, peer: int) -> Work:
        """What is to be done for arrays: looked up by what they tell of themselves, else after they were checked."""
        datatype = None if dtype is None else datatype_of(dtype)
        span = self._spans.read(x, datatype)
        target = None if out is None else self._spans.read(out, datatype)
        key = (name, span, target, op, peer, stream, self.runtime.revision)
        work = self._known.get(key)
        if work is None:
            work = self._prepared(name, self._checks.arguments(name, x, span, out, target, op, peer), stream)
            if not self._compares:  # what arrays do not tell is asked for each time
                _keep(self._known, key, work)
        return work

    def _prepared(self, name: str, arguments: Arguments, stream: int) -> Work:
        count = arguments[MESSAGES.get(name, 2)]
        try:
            return name, arguments, stream, self.link.prepared(name, arguments, stream) if count else None
        except Lost as failure:
            raise self.meaning(name, failure) from None

    def agree(self, work: Work) -> None:
        """Where the check is asked for, see that all ranks call the same. Messages are between two, and not seen here.

        Raises: ArgumentValueError on every rank; CommunicatorError.
        """
        name, arguments, *_rest = work
        if self._compares and name not in MESSAGES:
            self._compare(name, agreement.said(name, arguments))

    def _compare(self, name: str, call: str = "") -> None:
        """As `agree`, of any call."""
        if self._compares:
            agreement.demand([answer.decode() for answer in self.gather((call or name).encode(), name)])

    def send_off(self, work: Work) -> None:
        """Give an operation to the library; none for no elements.

        Raises: one of FAILURES; CommunicatorError, ArgumentValueError where another thread has left meanwhile.
        """
        call = work[3]
        if call is not None:
            self._last = work[0]
            if self._progress is not None:
                self._progress.advance(for_all=work[0] not in MESSAGES)
            with self._guard:  # nobody gives the library's communicator back between the look and the call
                is_over = self._closed or self._broken is not None
                if not is_over:
                    call()
            if is_over:
                self.refuse_if_over()

    def mark(self, work: Work) -> None:
        """Note that an operation was given to its stream."""
        if self._marks is not None:
            self._marks.put(work[0], work[2])

    def gather(self, said: bytes, operation: str) -> list[bytes]:
        """What every rank says, in order of rank: two small collectives of the communicator's own.

        Raises: CommunicatorError, which names the operation that needs it; DeviceError.
        """
        self._last = operation
        lengths = self._gathered(len(said).to_bytes(8, "little"))
        longest = max(int.from_bytes(length, "little") for length in lengths)
        answers = self._gathered(said.ljust(longest, b"\0")) if longest else [b""] * self.size
        return [answer[: int.from_bytes(length, "little")] for answer, length in zip(answers, lengths, strict=True)]

    def _gathered(self, part: bytes) -> list[bytes]:
        nbytes = len(part)
        if self._progress is not None:
            self._progress.advance()
        try:
            with self.link.on_device():
                whole = self.link.gather(part, self.size, self._wait_for_own)
        except FAILURES as failure:
            raise self.meaning(self._last, failure) from failure.__cause__
        return [whole[start : start + nbytes] for start in range(0, len(whole), nbytes)]

    def _wait_for_own(self, stream: int) -> None:
        self._wait(stream, self._last, self.timeout)

    # failing

    def refuse_if_over(self) -> None:
        if self._broken is not None:
            raise self._told()
        if self._closed and self._process != os.getpid():
            raise errors.ArgumentValueError(
                f"the communicator is of process {self._process}, and this is a fork of it",
                hint="libraries of collectives do not survive a fork: start processes afresh, each with its own",
            )
        if self._closed:
            raise errors.ArgumentValueError("the communicator is closed", hint="make a new one with `split` or `init`")

    def _wait(self, stream: int, operation: str, seconds: float) -> None:
        end, pause = time.monotonic() + seconds, 0.0
        while not self.link.is_settled(stream):
            if self._broken is None and time.monotonic() > end:
                self._fail(operation, seconds)
            if self._broken is not None:
                raise self._told()
            time.sleep(pause)
            pause = min(pause + 2e-5, 1e-3)
            if pause == 1e-3:
                self.look()
        self.look()
        self.refuse_if_over()

    def look(self) -> None:
        """See whether the communicator is still whole; the watch does so, too."""
        if self._broken is not None or self._closed:
            return
        if said := self.link.error() or self.link.who_is_lost():
            self._fail(self._outstanding(), said=said)
        elif self._marks is not None and (late := self._marks.overdue(time.monotonic())):
            self._fail(late, self.timeout)

    def meaning(self, operation: str, failure: Exception) -> Exception:
        """What a failed call means: a broken communicator, or an error of the call alone."""
        if isinstance(failure, Stuck):
            return self._fail(operation, self.timeout, failure.missing)
        if isinstance(failure, errors.DeviceError):
            said = self.link.error() or ("" if failure.kind in _OF_THE_CALL else failure.summary)
        else:
            said = str(failure)
        return self._fail(operation, said=said) if said else failure

    def _outstanding(self) -> str:
        return (self._marks.oldest() if self._marks is not None else "") or self._last

    def _told(self) -> errors.CommunicatorError:
        """The error of a broken communicator, once whoever breaks it has given everything back."""
        if self._breaking.acquire(timeout=watch.GRACE):
            self._breaking.release()
        return errors.again(self._broken)  # type: ignore[arg-type,return-value]

    def _fail(
        self, operation: str, seconds: float = 0.0, missing: Sequence[int] = (), said: str = ""
    ) -> errors.CommunicatorError:
        """Break the communicator: what is under way ends, and every later use raises this error."""
        with self._breaking:
            if self._broken is not None:
                return errors.again(self._broken)  # type: ignore[return-value]
            watch.note_failure()
            self._broken = error = self._error(operation, seconds, missing, said)
            self._allow_again()
            if self._progress is not None:
                self._progress.break_off()
            with contextlib.suppress(errors.NbxrtError), self.link.on_device():
                self.link.abort()
            self._end()
            return error

    def _error(self, operation: str, seconds: float, missing: Sequence[int], said: str) -> errors.CommunicatorError:
        """What is known of a failure: by the library, of the time that is over, of the ranks that are behind."""
        behind = dict(self._progress.behind()) if self._progress is not None else {}
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
            device=self.device,
            missing=tuple(sorted(behind)),
            seconds=seconds,
        )

    def _finish(self, seconds: float) -> None:
        """Wait for what is under way, then leave."""
        end = time.monotonic() + seconds
        while self._marks is not None and (name := self._marks.oldest()):
            self.look()
            if self._broken is None and time.monotonic() > end:
                self._fail(name, seconds)
            if self._broken is not None:
                raise self._told()
            time.sleep(2e-4)
        leaves_with_others = self._leaves_with_others(end)
        self._closed = True  # for other threads: what they give to the library from here on would find it gone
        self._allow_again()
        if not leaves_with_others:
            self.link.abort()
            return
        try:
            self.link.close(max(end - time.monotonic(), 0.1))
        except Stuck:
            raise self._fail("close", seconds) from None

    def _leaves_with_others(self, end: float) -> bool:
        """Wait for the ranks of this host to leave, too, as the library would, which cannot be told to stop waiting.

        False where one has left without this one or ended. Raises: CommunicatorTimeoutError.
        """
        if self._progress is None:
            return True
        if not self.link.asynchronous:  # nothing is under way, and MPI and Ray let a rank go alone
            self._progress.break_off()
            return True
        self._progress.leave()
        pause = 1e-4
        while self._progress.staying():
            if self._progress.is_broken_off():
                return False
            if time.monotonic() > end:
                raise self._fail("close", self.timeout, self._progress.staying())
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        return True

    def disown(self) -> None:
        """In a forked child: the communicator is the parent's, and every use here is refused."""
        self._breaking = locks.RLock()
        self._closed = True
        self._allow_again()

    def _end(self) -> None:
        watch.forget(self)
        self._allow_again()
        self._known.clear()
        self._seen.clear()
        if self._marks is not None:
            self._marks.close()

    def leave_at_exit(self) -> None:
        """Leave as well as it can be done in a few seconds, silently: nobody is left who could be told."""
        with contextlib.suppress(Exception):
            if not self._closed and self._broken is None:
                self.timeout = min(self.timeout, watch.GRACE)
                self._finish(self.timeout)
            self._closed = True


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    if len(kept) >= MOST_KNOWN:
        kept.clear()
    kept[key] = value


def _there(operation: str, out: Any) -> Any:
    """The array that receives, where there has to be one. Raises: ArgumentTypeError."""
    if out is None:
        raise errors.ArgumentTypeError(f"`{operation}`: `out` is an array, not None", parameter="out", value=out)
    return out


def start(link: Link, identity: bytes, rank: int, size: int, *, timeout: float) -> Communicator:
    """The communicator of a link that all ranks have joined; `identity` is the same on all of them, and nobody else's.

    Raises: CommunicatorError.
    """
    progress = board(identity, rank, size)
    communicator = Communicator(link, rank, size, timeout=timeout, progress=progress)
    communicator.barrier()
    if progress is not None:
        progress.all_are_here()
        progress.begin()
    return communicator


def board(identity: bytes, rank: int, size: int) -> Progress | None:
    """What tells how far the ranks of this host are; None where they can share no file."""
    from nbxrt.distributed.progress import Progress

    try:
        return Progress(identity, rank, size) if size > 1 else None
    except OSError:
        return None
