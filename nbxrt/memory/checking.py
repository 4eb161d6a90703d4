"""What callers give an account, made sure of before any call of the vendor's library."""

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The largest request that is passed on: more than any machine has, and far from where sums would wrap.
LARGEST = 1 << 60


def size(function: str, nbytes: "Any", parameter: str = "nbytes") -> int:
    """A size in bytes. Raises: ArgumentTypeError, SizeError."""
    number = errors.integer(f"`{function}`", f"a number of bytes for `{parameter}`", nbytes)
    if not 0 <= number <= LARGEST:
        raise errors.SizeError(f"`{parameter}` is from 0 to {LARGEST}, not {number}", parameter=parameter, value=number)
    return number


def address(function: str, pointer: "Any") -> int:
    """An address. Raises: ArgumentTypeError."""
    return errors.integer(f"`{function}`", "an address", pointer)


def handle(function: str, stream: "Any") -> int:
    """The handle of a stream. Raises: ArgumentTypeError, ArgumentValueError."""
    number = errors.integer(f"`{function}`", "the handle of a stream", stream, "`stream.handle` is that of a Stream")
    if number < 0:
        raise errors.ArgumentValueError(
            f"`stream` is a handle, which is not negative, not {number}", parameter="stream", value=number
        )
    return number


def ordinal(device: "Any", count: int) -> int:
    """The ordinal of a device. Raises: ArgumentTypeError, DeviceIndexError."""
    number = errors.integer("`device`", "an ordinal", device)
    if not 0 <= number < count:
        raise errors.DeviceIndexError(
            f"`device` is an ordinal below {count}, not {number}", parameter="device", value=number, count=count
        )
    return number


def amount(what: str, number: "Any") -> int:
    """A number of things of which there is at least one. Raises: ArgumentTypeError, ArgumentValueError."""
    found = errors.integer(f"`{what}`", "a number", number)
    if found < 1:
        raise errors.ArgumentValueError(f"`{what}` is at least 1, not {found}", parameter=what, value=found)
    return found


def function(what: str, wanted: str, given: "Any") -> "Any":
    """Something that can be called. Raises: ArgumentTypeError."""
    if not callable(given):
        raise errors.wrong_type(f"`{what}`", wanted, given)
    return given
