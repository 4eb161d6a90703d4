"""What a communicator stands on: one rank's end of the collectives of some library or engine.

Addresses, counts and words have been checked before they come here. Operations have the contract's order of arguments.
`Stuck` says that something was not done in time, where it is the host that waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from nbxrt import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from threading import Lock

    from nbxrt.runtime import Runtime


#: Operations between two ranks.
MESSAGES = ("send", "receive")
#: Seconds for what another thread may be using, before it is taken for a call that hangs.
MOMENT = 0.1
#: Seconds for a call that hangs to come back, which the library has been told to end.
PATIENCE = 5.0


class Stuck(Exception):  # noqa: N818  # not an error by itself: the communicator says what it means
    """A collective on host memory was not done in time; `missing` are the ranks that are known not to have come."""

    def __init__(self, missing: Sequence[int] = ()) -> None:
        super().__init__()
        self.missing = tuple(missing)


class Lost(Exception):  # noqa: N818
    """The engine says that its communicator cannot be used any more."""


#: What an operation of a link raises; `Standing.meaning` says what it is to the caller.
FAILURES = (Stuck, Lost, errors.DeviceError)


class Link(Protocol):
    """One rank's end.

    `asynchronous` says that operations return before they are done, on a stream. One that waits in its operations asks
    `who_is_lost` now and then, and raises Lost with the answer unless that is empty.
    """

    runtime: Runtime
    device: int
    asynchronous: bool
    #: Held while an operation is given to the library, and while what is the link's own is given back.
    guard: Lock
    who_is_lost: Callable[[], str]

    def prepared(self, name: str, arguments: tuple[Any, ...], stream: int) -> Callable[[], object]:
        """What gives a collective operation to the library, each time that it is called.

        Raises: Lost; CapabilityError.
        """

    def start_group(self) -> None:
        """Operations that follow are started together by `end_group`."""

    def end_group(self) -> None:
        """Start them, and where operations are not asynchronous finish them."""

    def is_settled(self, stream: int) -> bool:
        """Whether the work of a stream is done."""

    def error(self) -> str:
        """What went wrong after an operation had returned; empty while all is well."""

    def gather(self, part: bytes, size: int, wait: Callable[[int], None]) -> bytes:
        """What all ranks say, as long as this rank's part each: the communicator's own messages.

        `wait` waits for a stream. Raises: Stuck, Lost, DeviceError; what `wait` raises.
        """

    def split(self, members: Sequence[int], rank: int, exchange: Callable[[bytes], list[bytes]]) -> tuple[Link, bytes]:
        """The end of a communicator of some of the ranks, in this order, and what tells it apart.

        All ranks call it, those without members too: they get no end. `rank` is the caller's in the old communicator.
        """

    def abort(self) -> None:
        """Leave at once, without waiting for anybody."""

    def close(self, seconds: float) -> None:
        """Leave after the work has finished. Raises: Stuck when the others do not let it in so many seconds."""

    def on_device(self) -> AbstractContextManager[None]:
        """Inside a `with` block the device is the calling thread's current one."""


def nobody() -> str:
    """Nobody is lost, as far as is known."""
    return ""
