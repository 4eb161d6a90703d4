"""What a check is, and how it says that something is wrong. What it works at is in bench.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbxrt.conformance.bench import Bench

    Body = Callable[[Bench], str | None]


class Wrong(Exception):  # noqa: N818  # a verdict, not a fault of this program
    """What came is not what the contract says."""


class Skipped(Exception):  # noqa: N818
    """The check cannot be made here, for the reason given."""


@dataclass(frozen=True)
class Check:
    """A check: the group and the operations that it needs, how many devices, and what it does."""

    group: str
    needs: tuple[str, ...]
    devices: int
    body: Body

    @property
    def name(self) -> str:
        """The check as a sentence."""
        return self.body.__name__.replace("_", " ")


def check(group: str, needs: tuple[str, ...] = (), *, devices: int = 1) -> Callable[[Body], Check]:
    """Make a function a check of a group. What it returns, if anything, is shown beside `works`."""

    def declare(body: Body) -> Check:
        return Check(group, needs, devices, body)

    return declare


def expect(came: Any, expected: Any, what: str) -> None:
    """Raises: Wrong when what came is not what was expected."""
    if came != expected:
        raise Wrong(f"{what}: expected {_shown(expected)}, came {_shown(came)}")


def expect_that(holds: bool, said: str) -> None:
    """Raises: Wrong, with the words given, when it does not hold."""
    if not holds:
        raise Wrong(said)


def expect_bytes(came: bytes, expected: bytes, what: str) -> None:
    """Raises: Wrong, naming the first byte that differs."""
    if came == expected:
        return
    expect(len(came), len(expected), f"{what}, length in bytes")
    at, end = 0, len(expected)
    while end - at > 1:  # by halves: a wrong last byte of a large copy is told at once
        middle = (at + end) // 2
        at, end = (middle, end) if came[at:middle] == expected[at:middle] else (at, middle)
    raise Wrong(f"{what}: byte {at} of {len(expected)}: expected {expected[at]:#04x}, came {came[at]:#04x}")


def expect_error(
    kinds: type[BaseException] | tuple[type[BaseException], ...], what: str, call: Callable[..., Any], *given: Any
) -> Any:
    """The error that the call raised.

    Raises: Wrong when the call raised none of these kinds.
    """
    named = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
    try:
        answer = call(*given)
    except kinds as error:
        return error
    except Exception as error:  # whatever it raised is what came
        raise Wrong(f"{what}: expected {named}, came {type(error).__name__}: {first_line(error)}") from error
    raise Wrong(f"{what}: expected {named}, it returned {_shown(answer)}")


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return str(error).split("\n", 1)[0]


def pattern(nbytes: int, start: int = 0) -> bytes:
    """Bytes in which a misplaced piece shows: they repeat after 251, a prime."""
    period = bytes((start + index) % 251 for index in range(251))
    return (period * (nbytes // 251 + 1))[:nbytes]


def _shown(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 100 else said[:97] + "…"
