"""The communicator: one rank's end, with checks before anything is sent and a watch over what is under way."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed import agreement, watch
from nbxrt.distributed.datatypes import NBYTES, REDUCTIONS, datatype_of
from nbxrt.distributed.groups import Group
from nbxrt.distributed.links import Link, Lost, Stuck, marks_of
from nbxrt.distributed.spans import HOST, Span, Spans
from nbxrt.objects.device import as_device
from nbxrt.objects.state import refuse_copying

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from nbxrt.distributed.progress import Progress
    from nbxrt.objects.buffer import Buffer
    from nbxrt.runtime import Runtime

#: Seconds that an operation has, unless a communicator says otherwise.
TIMEOUT = 600.0
#: What an operation of a link raises; `meaning` says what it is to the caller.
FAILURES = (Stuck, Lost, errors.DeviceError)
#: Operations between two ranks.
MESSAGES = ("send", "receive")


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
    has died or did not come in time, which `wait` tells while it waits. One thread uses a communicator at a time.
    """

    def __init__(
        self, link: Link, rank: int, size: int, *, timeout: float = TIMEOUT, progress: Progress | None = None
    ) -> None:
        self.rank, self.size = rank, size
        self.runtime: Runtime = link.runtime
        self.device = link.device
        self.timeout = timeout
        #: The group that is being collected, or None.
        self.collecting: Group | None = None
        #: What it stands on.
        self.link = link
        self._progress = progress
        if progress is not None:
            link.who_is_lost = progress.lost
        with link.on_device():
            self._marks = marks_of(link, timeout)
        self._spans = Spans(link.runtime, as_device(link.device, link.runtime))
        self._checks = agreement.is_asked_for()
        self._on_host = self.runtime.kind == "cpu"
        self._operations: dict[str, Any] = {}
        self._broken: errors.CommunicatorError | None = None
        self._closed = False
        self._last = "barrier"
        watch.watch(self)

    def __reduce__(self) -> Any:
        raise refuse_copying(self, "each rank makes its own; `comm.split(0, comm.rank)` is one of the same ranks")

    def __repr__(self) -> str:
        state = "closed, " if self._closed else "broken, " if self._broken else ""
        return f"<nbxrt.Communicator {state}rank {self.rank} of {self.size} on {self.runtime.name}:{self.device}>"

    # collectives

    def all_reduce(self, x: Any, op: str = "sum", *, out: Any = None, stream: Any = None, dtype: Any = None) -> None:
        """Every rank receives the reduction of all ranks' elements, in `out` or in place."""
        span = self._span("all_reduce", x, dtype, out is None)
        target = span if out is None else self._target("all_reduce", out, span, span[1], dtype)
        self._reduction("all_reduce", op)
        self._give("all_reduce", (span[0], target[0], span[1], span[2], op), stream, x, out)

    def broadcast(self, x: Any, root: int = 0, *, out: Any = None, stream: Any = None, dtype: Any = None) -> None:
        """Every rank receives the root's elements, in `out` or in place."""
        span = self._span("broadcast", x, dtype, out is None)
        target = span if out is None else self._target("broadcast", out, span, span[1], dtype)
        root = self._peer("broadcast", "root", root)
        self._give("broadcast", (span[0], target[0], span[1], span[2], root), stream, x, out)

    def reduce(
        self, x: Any, op: str = "sum", root: int = 0, *, out: Any = None, stream: Any = None, dtype: Any = None
    ) -> None:
        """The root receives the reduction of all ranks' elements, in `out` or in place; the others receive nothing."""
        root = self._peer("reduce", "root", root)
        span = self._span("reduce", x, dtype, out is None and root == self.rank)
        target = span if out is None else self._target("reduce", out, span, span[1], dtype)
        self._reduction("reduce", op)
        self._give("reduce", (span[0], target[0], span[1], span[2], op, root), stream, x, out)

    def all_gather(self, x: Any, out: Any, *, stream: Any = None, dtype: Any = None) -> None:
        """`out` receives the elements of each rank, in order of rank: `size` times as many as `x` has.

        In place when `x` is this rank's part of `out`.
        """
        span = self._span("all_gather", x, dtype, False)
        target = self._target("all_gather", out, span, span[1] * self.size, dtype)
        self._give("all_gather", (span[0], target[0], span[1], span[2]), stream, x, out)

    def reduce_scatter(self, x: Any, out: Any, op: str = "sum", *, stream: Any = None, dtype: Any = None) -> None:
        """`out` receives this rank's part of the reduction: `x` has `size` times as many elements as `out`.

        In place when `out` is this rank's part of `x`.
        """
        target = self._span("reduce_scatter", out, dtype, True)
        span = self._span("reduce_scatter", x, dtype, False)
        self._demand_fit("reduce_scatter", "x", span, target[2], target[1] * self.size)
        self._reduction("reduce_scatter", op)
        self._give("reduce_scatter", (span[0], target[0], target[1], target[2], op), stream, x, out)

    def all_to_all(self, x: Any, out: Any, *, stream: Any = None, dtype: Any = None) -> None:
        """Part `i` of `x` goes to rank `i`, and part `i` of `out` comes from there; neither may overlap the other."""
        span = self._span("all_to_all", x, dtype, False)
        target = self._target("all_to_all", out, span, span[1], dtype)
        if span[1] % self.size:
            raise errors.ArgumentValueError(
                f"`all_to_all` of {span[1]} elements: they cannot be divided among {self.size} ranks",
                operation="all_to_all",
                parameter="x",
            )
        if span[1] and abs(span[0] - target[0]) < span[1] * NBYTES[span[2]]:
            raise errors.ArgumentValueError("`all_to_all`: `x` and `out` overlap", operation="all_to_all")
        self._give("all_to_all", (span[0], target[0], span[1] // self.size, span[2]), stream, x, out)

    def send(self, x: Any, peer: int, *, stream: Any = None, dtype: Any = None) -> None:
        """Send elements to a rank, which receives as many. With `recv` of the same peer, both belong in a `group`."""
        span = self._span("send", x, dtype, False)
        self._give("send", (span[0], span[1], span[2], self._peer("send", "peer", peer)), stream, x)

    def recv(self, x: Any, peer: int, *, stream: Any = None, dtype: Any = None) -> None:
        """Receive elements from a rank, which sends as many."""
        span = self._span("recv", x, dtype, True)
        self._give("receive", (span[0], span[1], span[2], self._peer("recv", "peer", peer)), stream, x)

    def barrier(self) -> None:
        """Return when all ranks have called it. Work on streams is not waited for."""
        self._refuse_if_over()
        self.gather(b"")

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
        self._refuse_if_over()
        said = [answer.split(b" ") for answer in self.gather(f"{'-' if color is None else color} {key}".encode())]
        places = [(int(one_key), rank) for rank, (one, one_key) in enumerate(said) if one == str(color).encode()]
        members = [rank for _key, rank in sorted(places)]
        try:
            link, identity = self.link.split(members, self.rank, self.gather)
        except FAILURES as failure:
            raise self.meaning("split", failure) from failure.__cause__
        if not members:
            return None
        return start(link, identity, members.index(self.rank), len(members), timeout=self.timeout)

    def share(self, buffer: Buffer) -> list[Buffer | None]:
        """The buffer of every rank, in order of rank: its memory itself on the same host, None on another.

        All ranks call it, with a Buffer that is `shareable`. A rank keeps its own until the others have closed theirs;
        nothing orders what they do with it but barriers and streams. No rank gets a context on another's device.
        Raises: CapabilityError where the backend cannot share memory; ArgumentValueError; CommunicatorError, on every
        rank; DeviceError.
        """
        from nbxrt.distributed.sharing import share

        self._refuse_if_over()
        return share(self, buffer)

    def wait(self, stream: Any = None, timeout: float | None = None) -> None:
        """Wait until the work of a stream is done. A broken communicator ends the waiting, and is raised here.

        `timeout` is in seconds, the communicator's when left out; after it the communicator is broken.
        Raises: CommunicatorError, CommunicatorTimeoutError; DeviceError.
        """
        handle = self._spans.stream(stream)
        seconds = self.timeout if timeout is None else timeout
        self._refuse_if_over()
        self._wait(handle, self._last, seconds)

    # leaving

    def close(self) -> None:
        """Leave the communicator when its work is done. Closing one that is closed or broken does nothing.

        Raises: CommunicatorTimeoutError when the work is not done in time.
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
            self.link.abort()
            self._end()
        self._closed = True

    def __enter__(self) -> Communicator:  # noqa: PYI034  # `typing.Self` came with 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close() if kind is None else self.abort()

    # checks

    def _span(self, operation: str, x: Any, dtype: Any, writes: bool, name: str = "x") -> Span:
        span = self._spans.read(x, None if dtype is None else datatype_of(dtype))
        if span[3] != self.device and (span[3] is not None or self._checks):
            self._refuse_place(operation, name, x, span)
        if writes and not span[4]:
            raise errors.ArgumentValueError(
                f"`{operation}`: `{name}` is read-only, and it is where elements are received", operation=operation
            )
        return span

    def _target(self, operation: str, out: Any, span: Span, count: int, dtype: Any) -> Span:
        target = self._span(operation, out, dtype, True, "out")
        self._demand_fit(operation, "out", target, span[2], count)
        return target

    @staticmethod
    def _demand_fit(operation: str, name: str, span: Span, datatype: str, count: int) -> None:
        if span[2] != datatype or span[1] != count:
            raise errors.ArgumentValueError(
                f"`{operation}`: `{name}` holds {span[1]} {span[2]}, and {count} {datatype} belong there",
                operation=operation,
                parameter=name,
            )

    def _refuse_place(self, operation: str, name: str, x: Any, span: Span) -> None:
        """Host memory where devices communicate, or memory of another device. The runtime is asked when in doubt."""
        if self._on_host or not span[1]:
            return
        kind, device = type(x).__name__, span[3]
        if device is None:
            device = self._device_by_address(span[0])
        if device == HOST:
            raise errors.ArgumentValueError(
                f"`{operation}` of {self.runtime.title} takes device memory, and `{name}` ({kind}) is host memory",
                hint="copy it to the device, or open the backend `host`",
                operation=operation,
                parameter=name,
            )
        if device != self.device:
            raise errors.ArgumentValueError(
                f"`{operation}`: `{name}` is on device {device}, and rank {self.rank} is on device {self.device}",
                operation=operation,
                parameter=name,
            )

    def _device_by_address(self, address: int) -> int:
        if not self.runtime.supports("pointer_attributes"):
            return self.device
        memory, device, *_addresses = self.runtime.pointer_attributes(address)
        return HOST if memory == "unregistered" else device if memory == "device" else self.device

    def _reduction(self, operation: str, op: str) -> None:
        if op not in REDUCTIONS:
            close = errors.nearest(str(op), sorted(REDUCTIONS))
            raise errors.ArgumentValueError(
                f"`{operation}`: `op` is one of {', '.join(sorted(REDUCTIONS))}, not {op!r}",
                hint=f"did you mean `{close}`?" if close else "",
                operation=operation,
                parameter="op",
                value=op,
            )

    def _peer(self, operation: str, name: str, rank: Any) -> int:
        if rank.__class__ is not int:
            raise errors.ArgumentTypeError(f"`{operation}`: `{name}` is a rank, not {rank!r}", parameter=name)
        if not 0 <= rank < self.size:
            raise errors.ArgumentValueError(
                f"`{operation}`: `{name}` is a rank below {self.size}, not {rank}", operation=operation, parameter=name
            )
        return int(rank)

    # giving work; a group does the same for several communicators at once

    def _give(self, name: str, arguments: tuple[Any, ...], stream: Any, *arrays: Any) -> None:
        handle = stream if stream.__class__ is int else self._spans.stream(stream)
        if self._broken is not None or self._closed:
            self._refuse_if_over()
        for array in arrays:
            if array is not None:
                self._spans.use(array, handle)
        if self.collecting is not None:
            self.collecting.add(self, name, arguments, handle)
            return
        if self._checks:
            self.agree(name, arguments)
        try:
            self.send_off(name, arguments, handle)
        except FAILURES as failure:
            raise self.meaning(name, failure) from failure.__cause__
        if self._marks is not None:
            self._marks.put(name, handle)

    def agree(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Where the check is asked for, see that all ranks call the same. Messages are between two, and not seen here.

        Raises: ArgumentValueError on every rank; CommunicatorError.
        """
        if self._checks and name not in MESSAGES:
            agreement.demand([answer.decode() for answer in self.gather(agreement.said(name, arguments).encode())])

    def send_off(self, name: str, arguments: tuple[Any, ...], stream: int) -> None:
        """Give an operation to the library; none for no elements. Raises: one of FAILURES."""
        if not (arguments[1] if name in MESSAGES else arguments[2]):
            return
        operation = self._operations.get(name)
        if operation is None:
            operation = self._operations[name] = self.link.operation(name)
        if self._progress is not None:
            self._progress.advance()
        self._last = name
        operation(*arguments, *self.link.handles, stream)

    def mark(self, name: str, stream: int) -> None:
        """Note that an operation was given to a stream."""
        if self._marks is not None:
            self._marks.put(name, stream)

    def gather(self, said: bytes) -> list[bytes]:
        """What every rank says, in order of rank: two small collectives of the communicator's own.

        Raises: CommunicatorError; DeviceError.
        """
        lengths = self._gathered(len(said).to_bytes(8, "little"))
        longest = max(int.from_bytes(length, "little") for length in lengths)
        answers = self._gathered(said.ljust(longest, b"\0")) if longest else [b""] * self.size
        return [answer[: int.from_bytes(length, "little")] for answer, length in zip(answers, lengths, strict=True)]

    def _gathered(self, part: bytes) -> list[bytes]:
        nbytes = len(part)
        try:
            with self.link.on_device():
                whole = self.link.gather(part, self.size, self._wait_for_own)
        except FAILURES as failure:
            raise self.meaning(self._last, failure) from failure.__cause__
        return [whole[start : start + nbytes] for start in range(0, len(whole), nbytes)]

    def _wait_for_own(self, stream: int) -> None:
        self._wait(stream, self._last, self.timeout)

    # failing

    def _refuse_if_over(self) -> None:
        if self._broken is not None:
            raise errors.again(self._broken)
        if self._closed:
            raise errors.ArgumentValueError("the communicator is closed", hint="make a new one with `split` or `init`")

    def _wait(self, stream: int, operation: str, seconds: float) -> None:
        end, pause = time.monotonic() + seconds, 0.0
        while not self.link.is_settled(stream):
            if self._broken is None and time.monotonic() > end:
                self._fail(operation, seconds)
            if self._broken is not None:
                raise errors.again(self._broken)
            time.sleep(pause)
            pause = min(pause + 2e-5, 1e-3)
            if pause == 1e-3:
                self.look()
        self.look()
        self._refuse_if_over()

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
        said = str(failure) if isinstance(failure, Lost) else self.link.error()
        return self._fail(operation, said=said) if said else failure

    def _outstanding(self) -> str:
        return (self._marks.oldest() if self._marks is not None else "") or self._last

    def _fail(
        self, operation: str, seconds: float = 0.0, missing: Sequence[int] = (), said: str = ""
    ) -> errors.CommunicatorError:
        """Break the communicator: what is under way ends, and every later use raises this error."""
        if self._broken is not None:
            return errors.again(self._broken)  # type: ignore[return-value]
        watch.note_failure()
        behind = dict(self._progress.behind()) if self._progress is not None else {}
        behind |= {rank: f"rank {rank} has not come" for rank in missing if rank not in behind}
        why = said or f"not finished within {seconds:g} s"
        whole = [why, *(each for each in behind.values() if each != why)]
        message = f"rank {self.rank} of {self.size}, `{operation}`: {'; '.join(whole)}"
        kind = errors.CommunicatorTimeoutError if seconds else errors.CommunicatorError
        self._broken = error = kind(
            message,
            hint="the communicator was aborted; make a new one of the ranks that are left",
            operation=operation,
            rank=self.rank,
            size=self.size,
            device=self.device,
            missing=tuple(sorted(behind)),
            seconds=seconds,
        )
        with contextlib.suppress(errors.NbxrtError), self.link.on_device():
            self.link.abort()
        self._end()
        return error

    def _finish(self, seconds: float) -> None:
        """Wait for what is under way, then leave."""
        end = time.monotonic() + seconds
        while self._marks is not None and (name := self._marks.oldest()):
            self.look()
            if self._broken is None and time.monotonic() > end:
                self._fail(name, seconds)
            if self._broken is not None:
                raise errors.again(self._broken)
            time.sleep(2e-4)
        try:
            self.link.close(seconds)
        except Stuck:
            raise self._fail("close", seconds) from None

    def _end(self) -> None:
        watch.forget(self)
        if self._marks is not None:
            self._marks.close()

    def leave_at_exit(self) -> None:
        """Leave as well as it can be done in a few seconds, silently: nobody is left who could be told."""
        with contextlib.suppress(Exception):
            if not self._closed and self._broken is None:
                self.timeout = min(self.timeout, watch.GRACE)
                self._finish(self.timeout)
            self._closed = True


def start(link: Link, identity: bytes, rank: int, size: int, *, timeout: float) -> Communicator:
    """The communicator of a link that all ranks have joined; `identity` is the same on all of them, and nobody else's.

    Raises: CommunicatorError.
    """
    progress = board(identity, rank, size)
    communicator = Communicator(link, rank, size, timeout=timeout, progress=progress)
    communicator.barrier()
    if progress is not None:
        progress.all_are_here()
    return communicator


def board(identity: bytes, rank: int, size: int) -> Progress | None:
    """What tells how far the ranks of this host are; None where they can share no file."""
    from nbxrt.distributed.progress import Progress

    try:
        return Progress(identity, rank, size) if size > 1 else None
    except OSError:
        return None
