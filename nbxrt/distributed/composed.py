"""Collectives that a library lacks, made of those that it has: messages between all ranks, started together.

Their arguments are those of the contract, without communicator and stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.distributed.datatypes import NBYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbxrt.distributed.devicelink import DeviceLink


def composed(link: DeviceLink, name: str, arguments: tuple[Any, ...], stream: int) -> Callable[[], object] | None:
    """What does the operation by messages; None where it is no such operation, or the library has no groups of them."""
    make = _MAKERS.get(name)
    needed = ("send", "receive", "group_start", "group_end")
    if make is None or not all(map(link.runtime.supports, needed)):
        return None
    messages = make(link, arguments, stream)

    def run() -> None:
        if link.is_grouping:
            _call(messages)
            return
        link.start_group()
        try:
            _call(messages)
        finally:
            link.end_group()

    return run


def _call(messages: Sequence[Callable[[], object]]) -> None:
    for message in messages:
        message()


def _broadcast(link: DeviceLink, arguments: tuple[Any, ...], stream: int) -> Sequence[Callable[[], object]]:
    send, receive, count, datatype, root = arguments
    if link.rank != root:
        return [link.prepared("receive", (receive, count, datatype, root), stream)]
    messages = [
        link.prepared("send", (send, count, datatype, peer), stream) for peer in range(link.size) if peer != root
    ]
    return messages if send == receive else [*messages, _copy(link, receive, send, count, datatype, stream)]


def _all_to_all(link: DeviceLink, arguments: tuple[Any, ...], stream: int) -> Sequence[Callable[[], object]]:
    send, receive, count, datatype = arguments
    nbytes, messages = count * NBYTES[datatype], []
    for peer in range(link.size):
        if peer == link.rank:
            messages.append(_copy(link, receive + peer * nbytes, send + peer * nbytes, count, datatype, stream))
            continue
        messages.append(link.prepared("send", (send + peer * nbytes, count, datatype, peer), stream))
        messages.append(link.prepared("receive", (receive + peer * nbytes, count, datatype, peer), stream))
    return messages


def _copy(link: DeviceLink, target: int, source: int, count: int, datatype: str, stream: int) -> Callable[[], object]:
    return link.runtime.prepared("memcpy_async", target, source, count * NBYTES[datatype], "device_to_device", stream)


_MAKERS = {"broadcast": _broadcast, "all_to_all": _all_to_all}
