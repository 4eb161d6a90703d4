"""What a communicator's operations demand of their arguments, and the arguments of the library's call that follow.

All that counts is what an array tells of itself, so that a communicator asks once for each kind of call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nbxrt import errors
from nbxrt.distributed.datatypes import NBYTES, REDUCTIONS
from nbxrt.distributed.spans import HOST, Span

if TYPE_CHECKING:
    from nbxrt.distributed.links import Link

#: Seconds that a timeout may have: some thirty years, which the system's clocks can count.
LONGEST = 1e9
#: Of an operation in the contract: addresses, count, element type, how or from whom; not communicator and stream.
Arguments = tuple[Any, ...]


class Given(NamedTuple):
    """What an array tells of itself; see `Span`."""

    address: int
    elements: int
    datatype: str
    device: int | None
    is_writable: bool

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.elements * NBYTES[self.datatype]


class Checks:
    """The demands of one communicator. With `asks`, arrays that do not tell their device are asked for by address."""

    def __init__(self, link: Link, rank: int, size: int, *, asks: bool) -> None:
        self._runtime, self._device = link.runtime, link.device
        self._rank, self._size = rank, size
        self._asks = asks
        self._on_host = link.runtime.kind == "cpu"

    def arguments(
        self, operation: str, x: Any, span: Span, out: Any, target: Span | None, op: str, peer: int
    ) -> Arguments:
        """The arguments of the library's operation; `op` and `peer` have been looked at already.

        Raises: ArgumentTypeError, ArgumentValueError.
        """
        given, received = Given(*span), None if target is None else Given(*target)
        self._demand_place(operation, "x", x, given)
        if received is not None:
            self._demand_place(operation, "out", out, received)
        arguments: Arguments = getattr(self, f"_{operation}")(given, received, op, peer)
        return arguments

    # by operation

    def _all_reduce(self, span: Given, target: Given | None, op: str, _peer: int) -> Arguments:
        return span.address, self._receiver("all_reduce", span, target), span.elements, span.datatype, op

    def _broadcast(self, span: Given, target: Given | None, _op: str, root: int) -> Arguments:
        return span.address, self._receiver("broadcast", span, target), span.elements, span.datatype, root

    def _reduce(self, span: Given, target: Given | None, op: str, root: int) -> Arguments:
        return (
            span.address,
            self._receiver("reduce", span, target, root == self._rank),
            span.elements,
            span.datatype,
            op,
            root,
        )

    def _all_gather(self, span: Given, target: Given, _op: str, _peer: int) -> Arguments:
        _demand_receiver("all_gather", "out", target)
        _demand_fit("all_gather", "out", target, span.datatype, span.elements * self._size)
        if span.address != target.address + self._rank * span.nbytes:
            _demand_apart("all_gather", span, target, f"in place, `x` is part {self._rank} of `out`")
        return span.address, target.address, span.elements, span.datatype

    def _reduce_scatter(self, span: Given, target: Given, op: str, _peer: int) -> Arguments:
        _demand_receiver("reduce_scatter", "out", target)
        _demand_fit("reduce_scatter", "x", span, target.datatype, target.elements * self._size)
        if target.address != span.address + self._rank * target.nbytes:
            _demand_apart("reduce_scatter", span, target, f"in place, `out` is part {self._rank} of `x`")
        return span.address, target.address, target.elements, target.datatype, op

    def _all_to_all(self, span: Given, target: Given, _op: str, _peer: int) -> Arguments:
        _demand_receiver("all_to_all", "out", target)
        _demand_fit("all_to_all", "out", target, span.datatype, span.elements)
        if span.elements % self._size:
            raise errors.ArgumentValueError(
                f"`all_to_all` of {span.elements} elements: they cannot be divided among {self._size} ranks",
                operation="all_to_all",
                parameter="x",
            )
        _demand_apart("all_to_all", span, target)
        return span.address, target.address, span.elements // self._size, span.datatype

    def _send(self, span: Given, _target: None, _op: str, peer: int) -> Arguments:
        return span.address, span.elements, span.datatype, peer

    def _receive(self, span: Given, _target: None, _op: str, peer: int) -> Arguments:
        _demand_receiver("recv", "x", span)
        return span.address, span.elements, span.datatype, peer

    @staticmethod
    def _receiver(operation: str, span: Given, target: Given | None, receives: bool = True) -> int:
        """Where the elements of an operation go that receives as many as it sends: in place, or in `out`."""
        if target is None:
            if receives:
                _demand_receiver(operation, "x", span)
            return span.address
        _demand_receiver(operation, "out", target)
        _demand_fit(operation, "out", target, span.datatype, span.elements)
        if span.address != target.address:
            _demand_apart(operation, span, target, "in place, `out` is left out")
        return target.address

    # where arrays are

    def _demand_place(self, operation: str, name: str, x: Any, span: Given) -> None:
        """No host memory where devices communicate, and none of another device; asked for only when in doubt."""
        device = span.device
        if device == self._device or self._on_host or not span.elements:
            return
        if device is None:
            device = self._device_by_address(span.address) if self._asks else self._device
        said = _said(operation)
        if device == HOST:
            raise errors.ArgumentValueError(
                f"`{said}` of {self._runtime.title} takes device memory, and `{name}` ({type(x).__name__}) is host "
                "memory",
                hint="copy it to the device, or open the backend `host`",
                operation=said,
                parameter=name,
            )
        if device != self._device:
            raise errors.ArgumentValueError(
                f"`{said}`: `{name}` is on device {device}, and rank {self._rank} is on device {self._device}",
                operation=said,
                parameter=name,
            )

    def _device_by_address(self, address: int) -> int:
        if not self._runtime.supports("pointer_attributes"):
            return self._device
        memory, device, *_addresses = self._runtime.pointer_attributes(address)
        return HOST if memory == "unregistered" else device if memory == "device" else self._device

    # what is not of arrays

    def demand_peer(self, operation: str, name: str, rank: Any) -> None:
        """A rank is a number below the size. Raises: ArgumentTypeError, ArgumentValueError."""
        if rank.__class__ is not int:
            raise errors.ArgumentTypeError(f"`{operation}`: `{name}` is a rank, not {rank!r}", parameter=name)
        if not 0 <= rank < self._size:
            raise errors.ArgumentValueError(
                f"`{operation}`: `{name}` is a rank below {self._size}, not {rank}", operation=operation, parameter=name
            )


def seconds_of(timeout: Any) -> float:
    """A time that something has, in seconds. Raises: ArgumentTypeError, ArgumentValueError."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise errors.ArgumentTypeError(f"`timeout` is seconds, not {timeout!r}", parameter="timeout", value=timeout)
    if not 0 < timeout <= LONGEST:
        raise errors.ArgumentValueError(
            f"`timeout` is more than 0 seconds and at most {LONGEST:g}, not {timeout!r}", parameter="timeout"
        )
    return timeout


def demand_reduction(operation: str, op: Any) -> None:
    """A reduction is a word. Raises: ArgumentValueError."""
    if op.__class__ is not str or op not in REDUCTIONS:
        close = errors.nearest(str(op), sorted(REDUCTIONS))
        raise errors.ArgumentValueError(
            f"`{operation}`: `op` is one of {', '.join(sorted(REDUCTIONS))}, not {op!r}",
            hint=f"did you mean `{close}`?" if close else "",
            operation=operation,
            parameter="op",
            value=op,
        )


def _demand_receiver(operation: str, name: str, span: Given) -> None:
    if not span.is_writable:
        raise errors.ArgumentValueError(
            f"`{operation}`: `{name}` is read-only, and it is where elements are received", operation=operation
        )


def _demand_fit(operation: str, name: str, span: Given, datatype: str, count: int) -> None:
    if span.datatype != datatype or span.elements != count:
        raise errors.ArgumentValueError(
            f"`{operation}`: `{name}` holds {span.elements} {span.datatype}, and {count} {datatype} belong there",
            operation=operation,
            parameter=name,
        )


def _demand_apart(operation: str, span: Given, target: Given, hint: str = "") -> None:
    """What is sent and what is received have no byte in common."""
    if span.address < target.address + target.nbytes and target.address < span.address + span.nbytes:
        raise errors.ArgumentValueError(f"`{operation}`: `x` and `out` overlap", hint=hint, operation=operation)


def _said(operation: str) -> str:
    """An operation's name as a communicator has it."""
    return "recv" if operation == "receive" else operation
