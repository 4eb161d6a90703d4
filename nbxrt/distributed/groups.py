"""Operations that start together: sends and receives between the same ranks would wait for each other otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.links import FAILURES
from nbxrt.objects.array import DeviceArray
from nbxrt.objects.buffer import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from nbxrt.distributed.communicator import Communicator
    from nbxrt.distributed.standing import Work

    Operations = list[tuple[Communicator, Work]]


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
        #: What they read and write, which nobody else may hold by the end of the block.
        self._arrays: list[Any] = []

    def __enter__(self) -> None:
        for communicator in self._communicators:
            if communicator.collecting is not None:
                raise errors.ArgumentValueError("a group was begun inside a group of the same communicator")
        for communicator in self._communicators:
            communicator.collecting = self

    def add(self, communicator: Communicator, work: Work, arrays: Sequence[Any]) -> None:
        """Keep an operation, and the arrays that it is of, until the block ends."""
        self._operations.append((communicator, work))
        self._arrays += arrays

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for communicator in self._communicators:
            communicator.collecting = None
        operations, self._operations = self._operations, []
        arrays, self._arrays = self._arrays, []
        if kind is None and operations:
            _demand_open(operations, arrays)
            _start(operations)


def _demand_open(operations: Operations, arrays: Sequence[Any]) -> None:
    """Refuse what was closed, or broke, inside the block: the operations are those of before."""
    for communicator, _work in operations:
        communicator.standing.refuse_if_over()
    for array in arrays:
        if array.__class__ is DeviceArray or array.__class__ is Buffer:
            array.memory.check()


def _start(operations: Operations) -> None:
    """Give the operations to the libraries as one group."""
    for communicator, work in operations:
        communicator.agree(work)
    begun: list[Communicator] = []
    failures: list[Exception] = []
    communicator = operations[0][0]
    try:
        for leader in _leaders(operations):
            leader.link.start_group()
            begun.append(leader)
        for communicator, work in operations:
            communicator.standing.give(work)
    except FAILURES as failure:
        failures.append(communicator.standing.meaning("group", failure))
    except errors.NbxrtError as failure:
        failures.append(failure)
    for leader in begun:
        try:
            leader.link.end_group()
        except FAILURES as failure:
            failures.append(leader.standing.meaning("group", failure))
    if failures:
        raise failures[0]
    for communicator, work in operations:
        communicator.standing.mark(work)


def _leaders(operations: Operations) -> Iterable[Communicator]:
    """Who begins and ends the group: one for all communicators of a vendor's library, and each one of an engine."""
    leaders: dict[int, Communicator] = {}
    for communicator, _work in operations:
        link = communicator.link
        leaders.setdefault(id(link.runtime if link.asynchronous else link), communicator)
    return leaders.values()
