"""Collectives on host memory by Ray: elements travel through its object store, and a small actor tells who has come."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import ray

from nbxrt.distributed import agreement
from nbxrt.distributed.hostmath import elements_at, reduced, stored
from nbxrt.distributed.links import Lost, Stuck, nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from nbxrt.runtime import Runtime

#: A call: the name that its elements have in the meeting, and what is called, which all ranks of it say.
_Call = tuple[str, str]
#: Bytes from which elements go into the object store; fewer travel with the message.
_STORED = 1 << 16
#: Seconds after which a rank that waits looks whether others have ended.
_LOOK = 0.5


class Meeting:
    """An actor in which the ranks of all communicators meet: what each says under a name, until all have it."""

    def __init__(self) -> None:
        import asyncio

        self._changed = asyncio.Condition()
        self._said: dict[str, dict[int, Any]] = {}
        self._taken: dict[str, int] = {}

    async def say(self, name: str, rank: int, value: Any) -> None:
        """Keep what a rank says under a name."""
        async with self._changed:
            self._said.setdefault(name, {})[rank] = value
            self._changed.notify_all()

    async def hear(self, name: str, ranks: list[int], takers: int) -> list[Any]:
        """What these ranks say under a name, once all of them have; forgotten when as many as `takers` have heard."""
        async with self._changed:
            await self._changed.wait_for(lambda: all(rank in self._said.get(name, {}) for rank in ranks))
            said = [self._said[name][rank] for rank in ranks]
            self._taken[name] = self._taken.get(name, 0) + 1
            if self._taken[name] == takers:
                del self._said[name], self._taken[name]
            return said

    async def missing(self, name: str, ranks: list[int]) -> list[int]:
        """Which of these ranks have said nothing under a name."""
        return [rank for rank in ranks if rank not in self._said.get(name, {})]


class RayLink:
    """One rank's end of a communicator that meets in an actor, for a backend whose device memory is the host's."""

    asynchronous = False

    def __init__(
        self, runtime: Runtime, device: int, meeting: Any, name: str, rank: int, size: int, seconds: float
    ) -> None:
        self.runtime, self.device = runtime, device
        self.who_is_lost: Callable[[], str] = nobody
        self.guard = threading.Lock()
        self._meeting, self._name, self._seconds = meeting, name, seconds
        self._rank, self._size = rank, size
        self._calls = 0
        self._what = ""
        self._messages: dict[tuple[int, int], int] = {}
        self._later: list[Callable[[], None]] | None = None

    def prepared(self, name: str, arguments: tuple[Any, ...], stream: int) -> Callable[[], object]:  # noqa: ARG002
        begin, what = getattr(self, f"_{name}"), agreement.said(name, arguments)

        def run() -> None:
            self._what = what
            finish = begin(*arguments)
            if self._later is not None:
                self._later.append(finish)
            else:
                finish()

        return run

    def start_group(self) -> None:
        self._later = []

    def end_group(self) -> None:
        later, self._later = self._later or [], None
        for finish in later:
            finish()

    # operations: each says this rank's part, and gives what hears the others' and stores it

    def _all_reduce(self, send: int, receive: int, count: int, datatype: str, reduction: str) -> Callable[[], None]:
        hear = self._gathering(elements_at(send, count, datatype))
        return lambda: stored(reduced(hear(), datatype, reduction), elements_at(receive, count, datatype), datatype)

    def _reduce(
        self, send: int, receive: int, count: int, datatype: str, reduction: str, root: int
    ) -> Callable[[], None]:
        hear = self._gathering(elements_at(send, count, datatype), takers=1)
        if self._rank != root:
            return _nothing
        return lambda: stored(reduced(hear(), datatype, reduction), elements_at(receive, count, datatype), datatype)

    def _reduce_scatter(self, send: int, receive: int, count: int, datatype: str, reduction: str) -> Callable[[], None]:
        hear = self._gathering(elements_at(send, count * self._size, datatype))
        own = slice(self._rank * count, (self._rank + 1) * count)

        def finish() -> None:
            made = reduced([row[own] for row in hear()], datatype, reduction)
            stored(made, elements_at(receive, count, datatype), datatype)

        return finish

    def _broadcast(self, send: int, receive: int, count: int, datatype: str, root: int) -> Callable[[], None]:
        call = self._next()
        if self._rank == root:
            self._say(call, elements_at(send, count, datatype))
        return self._storing(lambda: self._hear(call, [root], self._size), receive, count, datatype)

    def _all_gather(self, send: int, receive: int, count: int, datatype: str) -> Callable[[], None]:
        hear = self._gathering(elements_at(send, count, datatype))
        return self._storing(hear, receive, count * self._size, datatype)

    def _all_to_all(self, send: int, receive: int, count: int, datatype: str) -> Callable[[], None]:
        hear = self._gathering(elements_at(send, count * self._size, datatype))
        own = slice(self._rank * count, (self._rank + 1) * count)
        return self._storing(lambda: [row[own] for row in hear()], receive, count * self._size, datatype)

    def _send(self, address: int, count: int, datatype: str, peer: int) -> Callable[[], None]:
        self._say(self._message(self._rank, peer), elements_at(address, count, datatype))
        return _nothing

    def _receive(self, address: int, count: int, datatype: str, peer: int) -> Callable[[], None]:
        call = self._message(peer, self._rank)
        return self._storing(lambda: self._hear(call, [peer], 1), address, count, datatype)

    @staticmethod
    def _storing(hear: Callable[[], list[Any]], address: int, count: int, datatype: str) -> Callable[[], None]:
        """What stores the rows that are heard one after the other."""

        def store() -> None:
            elements_at(address, count, datatype)[...] = np.concatenate(hear())

        return store

    # meeting

    def _next(self) -> _Call:
        self._calls += 1
        return f"{self._name}/{self._calls}", self._what

    def _message(self, sender: int, receiver: int) -> _Call:
        number = self._messages[sender, receiver] = self._messages.get((sender, receiver), 0) + 1
        return f"{self._name}/{sender}-{receiver}/{number}", self._what

    def _gathering(self, own: Any, takers: int | None = None) -> Callable[[], list[Any]]:
        """Say this rank's elements; what hears those of all ranks, as so many of them do."""
        call = self._next()
        self._say(call, own)
        return lambda: self._hear(call, list(range(self._size)), takers or self._size)

    def _say(self, call: _Call, elements: Any) -> None:
        (name, what), kept = call, elements.copy()
        value = [ray.put(kept)] if kept.nbytes >= _STORED else kept
        self._answer(self._meeting.say.remote(name, self._rank, (what, value)), name, [])

    def _hear(self, call: _Call, ranks: list[int], takers: int) -> list[Any]:
        name, own = call
        said = self._answer(self._meeting.hear.remote(name, ranks, takers), name, ranks)
        for rank, (what, _value) in zip(ranks, said, strict=True):
            if what != own:
                raise Lost(f"rank {rank} calls {what}, and rank {self._rank} calls {own}")
        return [self._answer(each[0], name, ranks) if isinstance(each, list) else each for _what, each in said]

    def _answer(self, reference: Any, name: str, ranks: list[int]) -> Any:
        end = time.monotonic() + self._seconds
        while True:
            left = end - time.monotonic()
            try:
                return ray.get(reference, timeout=max(min(left, _LOOK), 0))
            except ray.exceptions.GetTimeoutError:
                if said := self.who_is_lost():
                    raise Lost(said) from None
                if left <= _LOOK:
                    raise Stuck(self._missing(name, ranks)) from None
            except ray.exceptions.RayError as error:
                raise Lost(f"Ray says: {str(error).splitlines()[0]}") from error

    def _missing(self, name: str, ranks: list[int]) -> list[int]:
        try:
            missing: list[int] = ray.get(self._meeting.missing.remote(name, ranks), timeout=_LOOK)
        except (ray.exceptions.GetTimeoutError, ray.exceptions.RayError):
            return []
        return missing

    # everything else

    def is_settled(self, stream: int) -> bool:
        return self.runtime.stream_query(stream)

    def error(self) -> str:
        return ""

    def gather(self, part: bytes, size: int, wait: Callable[[int], None]) -> bytes:  # noqa: ARG002  # it is done here
        self._what = f"a message of {len(part)} bytes"
        return b"".join(row.tobytes() for row in self._gathering(np.frombuffer(part, np.uint8))())

    def split(
        self, members: Sequence[int], rank: int, exchange: Callable[[bytes], list[bytes]]
    ) -> tuple[RayLink, bytes]:
        name = f"{self._next()[0]}/{'-'.join(map(str, members))}"
        exchange(b"")
        if not members:
            return self, b""
        own = members.index(rank)
        link = RayLink(self.runtime, self.device, self._meeting, name, own, len(members), self._seconds)
        return link, name.encode()

    def abort(self) -> None:
        """The meeting keeps nothing of a communicator that nobody asks for."""

    def close(self, seconds: float) -> None:
        """As `abort`."""

    def on_device(self) -> AbstractContextManager[None]:
        return nullcontext()


def _nothing() -> None:
    pass
