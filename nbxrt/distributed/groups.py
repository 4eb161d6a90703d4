"""Operations that start together: sends and receives between the same ranks would wait for each other otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.distributed.links import Lost, Stuck

if TYPE_CHECKING:
    from types import TracebackType

    from nbxrt.distributed.communicator import Communicator


class Group:
    """Collects the operations of some communicators inside a `with` block and starts them at its end.

    An exception inside the block sends nothing. One thread uses a communicator at a time.
    """

    def __init__(self, communicators: tuple[Communicator, ...]) -> None:
        if not communicators:
            raise errors.ArgumentValueError("a group is of one communicator at least")
        self._communicators = communicators
        self._operations: list[tuple[Communicator, str, tuple[Any, ...], int]] = []

    def __enter__(self) -> None:
        for communicator in self._communicators:
            if communicator.collecting is not None:
                raise errors.ArgumentValueError("a group was begun inside a group of the same communicator")
        for communicator in self._communicators:
            communicator.collecting = self

    def add(self, communicator: Communicator, name: str, arguments: tuple[Any, ...], stream: int) -> None:
        """Keep an operation until the block ends."""
        self._operations.append((communicator, name, arguments, stream))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for communicator in self._communicators:
            communicator.collecting = None
        operations, self._operations = self._operations, []
        if kind is None and operations:
            _start(operations)


def _start(operations: list[tuple[Communicator, str, tuple[Any, ...], int]]) -> None:
    """Give the operations to the library as one group; the first communicator's library begins and ends it."""
    first = operations[0][0]
    for communicator, name, arguments, _stream in operations:
        communicator.agree(name, arguments)
    try:
        first.link.start_group()
        try:
            for communicator, name, arguments, stream in operations:
                communicator.send_off(name, arguments, stream)
        finally:
            first.link.end_group()
    except (Stuck, Lost, errors.DeviceError) as failure:
        raise first.meaning("group", failure) from failure.__cause__
    for communicator, name, _arguments, stream in operations:
        communicator.mark(name, stream)
