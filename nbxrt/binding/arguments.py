"""What the parameters of an operation accept, checked before any vendor call.

The generated functions test the common case inline; what fails that test comes here, to be converted or refused.
"""

import ctypes

from nbxrt import errors
from nbxrt.binding.layout import RANGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Check = Callable[[Any], Any]


class Checks:
    """The checks of one operation's parameters, in order, for the arguments that the inline test did not accept."""

    def __init__(self, operation: str, checks: "Sequence[tuple[str, str | None, Check]]") -> None:
        self.operation = operation
        self._checks = checks

    def __call__(self, *values: "Any") -> "tuple[Any, ...]":
        """Every value as it goes into the call.

        Raises: ArgumentTypeError, ArgumentValueError or DeviceIndexError, naming operation and parameter.
        """
        converted = []
        for (name, _zero, check), value in zip(self._checks, values, strict=True):
            try:
                converted.append(check(value))
            except errors.ArgumentError as error:
                raise self._named(error, name, value) from None
        self._refuse_zero(converted)
        return tuple(converted)

    def _refuse_zero(self, converted: "list[Any]") -> None:
        named = list(zip(self._checks, converted, strict=True))
        if any(zero == "skips" and value == 0 for (_name, zero, _check), value in named):
            return
        for (name, zero, _check), value in named:
            if zero == "refused" and value == 0:
                raise self._named(errors.ArgumentValueError("must not be 0"), name, value)

    def _named(self, error: errors.ArgumentError, name: str, value: "Any") -> errors.ArgumentError:
        facts = {**error.__dict__, "operation": self.operation, "parameter": name, "value": value}
        said = f"`{self.operation}`: `{name}` {error.message}"
        hint = facts.pop("hint", "")
        facts.pop("message", None)
        return type(error)(said, hint=hint, **facts)


def index(value: "Any") -> int:
    """An int of anything with `__index__`, bool excepted."""
    if not isinstance(value, bool):
        try:
            return int(value.__index__())
        except (AttributeError, TypeError):  # also of an array of NumPy's that is no number
            pass
    raise errors.ArgumentTypeError(f"must be an integer, not {type(value).__name__} {errors.shown(value)}")


def integer(c_type: str) -> "Check":
    """Integers that the C type can hold."""
    low, high = RANGES[c_type]

    def check(value: "Any") -> int:
        number = index(value)
        if not low <= number <= high:
            raise errors.ArgumentValueError(f"must be from {low} to {high}, not {number}")
        return number

    return check


def device(count: "Callable[[], int]") -> "Check":
    """Ordinals of devices that are there; the count is asked anew before one is refused.

    Where there is no device at all, the vendor's own answer says more than a range would: the call is made.
    """

    def check(value: "Any") -> int:
        number = index(value)
        there = count()
        if not 0 <= number < (there or RANGES["int"][1]):
            devices = "is 1 device" if there == 1 else f"are {there} devices"
            raise errors.DeviceIndexError(f"is {number}, and there {devices}", count=there)
        return number

    return check


def word(words: "Mapping[Any, int]", known: "Sequence[str]", *, numbers: bool, offered_by: str) -> "Check":
    """Words that the backend maps; also numbers, the contract's own or (`numbers`) the vendor's as they are."""

    def check(value: "Any") -> int:
        if not isinstance(value, str):
            number = index(value)
            if numbers:
                return int(integer("int")(number))
            if number in words:
                return words[number]
        elif value in words:
            return words[value]
        elif value in known:
            raise errors.CapabilityError(f"`{value}` is not offered: {offered_by} gives no number for it")
        close = errors.nearest(value, known) if isinstance(value, str) else ""
        raise errors.ArgumentValueError(
            f"must be one of {', '.join(known)}, not {errors.shown(value)}",
            hint=f"did you mean `{close}`?" if close else "",
        )

    return check


def boolean(value: "Any") -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise errors.ArgumentTypeError(f"must be True or False, not {type(value).__name__} {errors.shown(value)}")
    return value


def text(value: "Any") -> bytes:
    """Text without null characters, as UTF-8."""
    if not isinstance(value, str):
        raise errors.ArgumentTypeError(f"must be a str, not {type(value).__name__} {errors.shown(value)}")
    if "\0" in value:
        raise errors.ArgumentValueError(f"must have no null character, not {errors.shown(value)}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise errors.ArgumentValueError(f"must be Unicode text, not {errors.shown(value)}") from None


def buffer(value: "Any") -> bytes:
    """Bytes of any bytes-like object."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)) or hasattr(type(value), "__buffer__"):
        return bytes(value)
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise errors.ArgumentTypeError(f"must be bytes, not {type(value).__name__} {errors.shown(value)}") from None


def axes(value: "Any") -> "tuple[int, int, int]":
    """One to three positive extents; those left out are 1."""
    if not isinstance(value, (tuple, list)) or not 1 <= len(value) <= 3:
        raise errors.ArgumentTypeError(f"must be a tuple of one to three integers, not {errors.shown(value)}")
    extents = [integer("uint")(extent) for extent in value]
    if 0 in extents:
        raise errors.ArgumentValueError(f"must have no extent of 0, not {errors.shown(value)}")
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def pointers(value: "Any") -> "Any":
    """Kernel arguments as an array of pointers to each: a sequence of ctypes values, or an address packed before."""
    if isinstance(value, int) and not isinstance(value, bool):
        return integer("pointer")(value)
    if isinstance(value, ctypes.Array):
        return value
    if not isinstance(value, (tuple, list)):
        raise errors.ArgumentTypeError(f"must be a sequence of ctypes values, not {type(value).__name__}")
    for position, item in enumerate(value):
        if not isinstance(item, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):  # noqa: SLF001
            raise errors.ArgumentTypeError(f"[{position}] must be a ctypes value, not {type(item).__name__}")
    packed: Any = (ctypes.c_void_p * max(len(value), 1))(*map(ctypes.addressof, value))
    packed.kept = value  # the array points into these: they live as long as it does
    return packed


def pci_number(widths: "Sequence[int]") -> "Check":
    """A PCI address such as 0000:3b:00.0 as one integer: function, device, bus, domain from the lowest bit."""

    def check(value: "Any") -> int:
        said = text(value).decode()
        try:
            domain, bus, rest = said.split(":")
            place, function = rest.split(".")
            parts = [int(part, 16) for part in (function, place, bus, domain)]
        except ValueError:
            raise errors.ArgumentValueError(f"must be like 0000:3b:00.0, not {errors.shown(value)}") from None
        number = shift = 0
        for part, width in zip(parts, widths, strict=True):
            if part >> width:
                raise errors.ArgumentValueError(f"does not fit into {width} bits: {errors.shown(value)}")
            number |= part << shift
            shift += width
        return number

    return check
