"""Operations that start together: sends and receives between the same ranks would wait for each other otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbxrt import errors
from nbxrt.distributed.links import Lost, Stuck

if TYPE_CHECKING:
    from types import TracebackType

    from nbxrt.distributed.communicator import Communicator, Work


class Group:
    """Collects the operations of some communicators inside a `with` block and starts them at its end.

    An exception inside the block sends nothing. One thread uses a communicator at a time.
    """

    def __init__(self, communicators: tuple[Communicator, ...]) -> None:
        if not communicators:
            raise errors.ArgumentValueError("a group is of one communicator at least")
        for each in communicators:
            if not hasattr(each, "collecting"):
                raise errors.ArgumentTypeError(f"a group is of communicators, not of {each!r}", value=each)
        self._communicators = communicators
        self._operations: list[tuple[Communicator, Work]] = []

    def __enter__(self) -> None:
        for communicator in self._communicators:
            if communicator.collecting is not None:
                raise errors.ArgumentValueError("a group was begun inside a group of the same communicator")
        for communicator in self._communicators:
            communicator.collecting = self

    def add(self, communicator: Communicator, work: Work) -> None:
        """Keep an operation until the block ends."""
        self._operations.append((communicator, work))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for communicator in self._communicators:
            communicator.collecting = None
        operations, self._operations = self._operations, []
        if kind is None and operations:
            _start(operations)


def _start(operations: list[tuple[Communicator, Work]]) -> None:
    """Give the operations to the library as one group; the first communicator's library begins and ends it."""
    first = operations[0][0]
    for communicator, work in operations:
        communicator.agree(work)
    try:
        first.link.start_group()
        try:
            for communicator, work in operations:
                communicator.send_off(work)
        finally:
            first.link.end_group()
    except (Stuck, Lost, errors.DeviceError) as failure:
        raise first.meaning("group", failure) from failure.__cause__
    for communicator, work in operations:
        communicator.mark(work)
