"""Streams as other libraries know them, by numbers, and the order between their work and ours."""

from nbxrt import errors
from nbxrt.objects.event import Event
from nbxrt.objects.stream import Stream, current_stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nbxrt.objects.array import DeviceArray
    from nbxrt.objects.device import Device

#: Greater numbers are handles.
_LAST_WORD = 2


def number_of(stream: Stream) -> "int | None":
    """The number by which other libraries know a stream; None where they know none of this backend."""
    numbers = stream.runtime.description["interop"]["streams"]
    if numbers is None:
        return None
    handle: int = stream.handle
    return int(numbers["default"]) if handle == 0 else handle


def stream_by_number(device: "Device", number: "Any", what: str) -> Stream:
    """The stream that another library means by a number; `what` says where it stood.

    Raises: ExchangeError for a number that stands for no stream of the backend.
    """
    runtime = device.runtime
    numbers = runtime.description["interop"]["streams"]
    number = _whole(number, what)
    if numbers is None:
        raise errors.ExchangeError(f"{what} is {number}, and other libraries know no streams of {runtime.title}")
    if number == numbers["default"]:
        return device.default_stream
    if _LAST_WORD < number < 1 << 64 or number == numbers.get("per_thread"):
        return Stream.from_handle(number, device)
    raise errors.ExchangeError(f"{what} is {number}, which stands for no stream of {runtime.title}", value=number)


def _whole(number: "Any", what: str) -> int:
    """A number as an integer. Raises: ExchangeError."""
    try:
        return errors.integer(what, "a stream's number", number)
    except errors.ArgumentTypeError as error:
        raise errors.ExchangeError(error.message, value=number) from None


def order(first: Stream, later: Stream) -> None:
    """Let the later stream wait for what was given to the first one."""
    if first.key == later.key:
        return
    if not first.runtime.supports("stream_wait_event"):
        first.sync()
        return
    with Event(first.device, timing=False) as event:
        event.record(first)
        later.wait(event)


def hand_over(array: "DeviceArray", number: "Any", what: str) -> None:
    """Make what was given to the thread's current stream ready for the consumer's one; -1 asks for no order.

    Raises: ExchangeError.
    """
    if number is not None:
        number = _whole(number, what)
    if number == -1:
        return
    if number is None:
        if array.runtime.description["interop"]["streams"] is None:
            return
        consumer = array.device.default_stream
    else:
        consumer = stream_by_number(array.device, number, what)
    order(current_stream_of(array.device), consumer)
    array.memory.used_on(consumer)
