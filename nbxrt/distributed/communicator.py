"""The communicator: one rank's end, whose operations check what they are given before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed import agreement, messages
from nbxrt.distributed.checks import Arguments, Checks, demand_reduction, seconds_of
from nbxrt.distributed.datatypes import datatype_of
from nbxrt.distributed.groups import Group
from nbxrt.distributed.links import FAILURES, MESSAGES, Link, Lost
from nbxrt.distributed.progress import Progress, joining
from nbxrt.distributed.repeating import keep, keep_repeat
from nbxrt.distributed.spans import Spans
from nbxrt.distributed.standing import Standing, Work
from nbxrt.objects.buffer import Buffer
from nbxrt.objects.device import as_device
from nbxrt.objects.state import refuse_copying

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from nbxrt.runtime import Runtime

#: Seconds that an operation has, unless a communicator says otherwise.
TIMEOUT = 600.0
#: Where the arguments of a message have the count; those of all operations are in one order.
COUNTS = dict.fromkeys(MESSAGES, 1)
#: Operations that combine elements.
_REDUCING = ("all_reduce", "reduce", "reduce_scatter")


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

    def __init__(self, link: Link, rank: int, size: int, *, timeout: float, progress: Progress) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self.runtime: Runtime = link.runtime
        self.device = link.device
        #: What it stands on, and how it stands.
        self.link = link
        self.standing = Standing(link, rank, size, timeout, progress)
        self._spans = Spans(link.runtime, as_device(link.device, link.runtime))
        self._compares = agreement.is_asked_for()
        self._checks = Checks(link, rank, size, asks=self._compares)
        self._works: dict[Any, Work] = {}
        #: What makes a call with an array again; and that, or nothing where a call has more to do than that.
        self._repeats: dict[Any, Callable[..., bool]] = {}
        self._again = self._repeats
        self.standing.kept += [self._works, self._repeats]
        self.collecting = None

    def __reduce__(self) -> Any:
        raise refuse_copying(self, "each rank makes its own; `comm.split(0, comm.rank)` is one of the same ranks")

    def __repr__(self) -> str:
        place = f"{self.standing.said}rank {self.rank} of {self.size}"
        return f"<nbxrt.Communicator {place} on {self.runtime.name}:{self.device}>"

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
        self.standing.refuse_if_over()
        self._compare("barrier")
        self.gather(b"", messages.BARRIER)

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
        self.standing.refuse_if_over()
        self._compare("split")
        own = f"{'-' if color is None else color} {key}".encode()
        said = [answer.split(b" ") for answer in self.gather(own, messages.SPLIT)]
        places = [(int(one_key), rank) for rank, (one, one_key) in enumerate(said) if one == str(color).encode()]
        members = [rank for _key, rank in sorted(places)]
        try:
            link, identity = self.link.split(members, self.rank, lambda said: self.gather(said, messages.SPLIT))
        except FAILURES as failure:
            raise self.standing.meaning("split", failure) from failure.__cause__
        if not members:
            return None
        rank, size = members.index(self.rank), len(members)
        with joining(identity, rank, size) as progress:
            return start(link, rank, size, timeout=self.timeout, progress=progress)

    def share(self, buffer: Buffer) -> list[Buffer | None]:
        """The buffer of every rank, in order of rank: its memory itself on the same host, None on another.

        All ranks call it, with a `Buffer(nbytes, shareable=True)`. A rank keeps its own until the others
        have closed theirs; nothing orders what they do with it but barriers and streams. No rank gets a context on
        another's device.
        Raises: CapabilityError where the backend cannot share memory; ArgumentTypeError, ArgumentValueError;
        CommunicatorError, on every rank; DeviceError.
        """
        from nbxrt.distributed.sharing import share

        if buffer.__class__ is not Buffer:
            raise errors.ArgumentTypeError(f"`share` takes a Buffer, not {buffer!r}", parameter="buffer", value=buffer)
        self.standing.refuse_if_over()
        self._compare("share")
        return share(self, buffer)

    def wait(self, stream: Any = None, timeout: float | None = None) -> None:
        """Wait until the work of a stream is done. A broken communicator ends the waiting, and is raised here.

        `timeout` is in seconds, the communicator's when left out; after it the communicator is broken.
        Raises: CommunicatorError, CommunicatorTimeoutError; DeviceError.
        """
        handle = self._spans.stream(stream)
        seconds = self.timeout if timeout is None else seconds_of(timeout)
        self.standing.refuse_if_over()
        self.standing.wait(handle, self.standing.last, seconds)

    # leaving

    def close(self) -> None:
        """Leave the communicator when its work is done. Closing one that is closed or broken does nothing.

        While it waits for other ranks, this rank leaves those communicators, too, that all others wait to leave.
        Raises: CommunicatorTimeoutError when the work is not done in time, or another rank of the host stays longer.
        """
        self.standing.close()

    def abort(self) -> None:
        """Leave the communicator at once. What is under way on streams ends, and its results are not to be used."""
        self.standing.abort()

    def __enter__(self) -> Communicator:  # noqa: PYI034  # `typing.Self` came with 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close() if kind is None else self.abort()

    # giving work; a group does the same for several communicators at once

    def _give(self, name: str, x: Any, out: Any, stream: Any, dtype: Any, op: str = "", peer: int = 0) -> None:
        handle = stream if stream.__class__ is int else self._spans.stream(stream)
        if out is None and dtype is None:
            again = self._again.get((name, id(x), op, peer, handle))
            try:
                if again is not None and again():
                    return
            except FAILURES as failure:
                raise self.standing.meaning(name, failure) from failure.__cause__
        self._anew(name, x, out, handle, dtype, op, peer)

    def _anew(self, name: str, x: Any, out: Any, stream: int, dtype: Any, op: str, peer: int) -> None:
        """Give work for arrays that were not seen before, or are no plain ones; inside a group, to that."""
        self.standing.refuse_if_over()
        if name in _REDUCING:
            demand_reduction(name, op)
        work = self._work(name, x, out, stream, dtype, op, peer)
        self._spans.use(x, stream)
        if out is not None:
            self._spans.use(out, stream)
        if self._collecting is not None:
            self._collecting.add(self, work, (x, out))
            return
        self.agree(work)
        try:
            self.standing.give(work)
        except FAILURES as failure:
            raise self.standing.meaning(name, failure) from failure.__cause__
        self.standing.mark(work)
        if out is None and dtype is None and not self._compares:
            keep_repeat(self._repeats, (name, id(x), op, peer, stream), x, work, self.standing, self._spans)

    @property
    def collecting(self) -> Group | None:
        """The group that is being collected, or None."""
        return self._collecting

    @collecting.setter
    def collecting(self, group: Group | None) -> None:
        self._collecting = group
        self._again = self._repeats if group is None and not self._compares else {}

    def _work(self, name: str, x: Any, out: Any, stream: int, dtype: Any, op: str, peer: int) -> Work:
        """What is to be done for arrays: looked up by what they tell of themselves, else after they were checked."""
        datatype = None if dtype is None else datatype_of(dtype)
        span = self._spans.read(x, datatype)
        target = None if out is None else self._spans.read(out, datatype)
        key = (name, span, target, op, peer, stream, self.runtime.revision)
        work = self._works.get(key)
        if work is None:
            work = self._prepared(name, self._checks.arguments(name, x, span, out, target, op, peer), stream)
            if not self._compares:  # what arrays do not tell is asked for each time
                keep(self._works, key, work)
        return work

    def _prepared(self, name: str, arguments: Arguments, stream: int) -> Work:
        count = arguments[COUNTS.get(name, 2)]
        try:
            return name, arguments, stream, self.link.prepared(name, arguments, stream) if count else None
        except Lost as failure:
            raise self.standing.meaning(name, failure) from None

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
            said = messages.exchanged(self.standing, name, (call or name).encode(), messages.CHECK)
            agreement.demand([answer.decode() for answer in said])

    def gather(self, said: bytes, purpose: str) -> list[bytes]:
        """What every rank says, in order of rank, for one of the purposes that messages have.

        Raises: ArgumentValueError where another rank calls something else; CommunicatorError; DeviceError.
        """
        return messages.exchanged(self.standing, purpose, said, purpose)


def _there(operation: str, out: Any) -> Any:
    """The array that receives, where there has to be one. Raises: ArgumentTypeError."""
    if out is None:
        raise errors.ArgumentTypeError(f"`{operation}`: `out` is an array, not None", parameter="out", value=out)
    return out


def start(link: Link, rank: int, size: int, *, timeout: float, progress: Progress) -> Communicator:
    """The communicator of a link that all ranks have joined. Raises: CommunicatorError."""
    communicator = Communicator(link, rank, size, timeout=timeout, progress=progress)
    communicator.barrier()
    progress.begin()
    return communicator
