"""What holds for every operation: it is bound or says why not, and wrong arguments are refused before any call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import errors
from nbxrt.binding.layout import RANGES
from nbxrt.conformance.checking import check, expect, expect_bytes, expect_error, expect_that

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbxrt.conformance.bench import Bench

#: An acceptable value of each type that is no integer. Integers are 256, sizes 0 where that does nothing.
PLAIN: dict[str, Any] = {"boolean": False, "text": "0000:00:00.0", "bytes": b"", "dim3": (1, 1, 1), "arguments": ()}

#: Values of the wrong type for each type that is no integer and no word, and for those.
WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "boolean": (0, 1, None, "yes", 1.0),
    "text": (b"text", 1, None, ["text"]),
    "bytes": ("text", 1.0, None),
    "dim3": (None, 1, "1", (1.0,), (True,), ("1", 1, 1)),
    "arguments": ("text", 1.0, None, (1,), ([],)),
}
WRONG_INTEGERS: tuple[Any, ...] = (True, False, 1.0, "1", b"1", None, [1], 1j)
WRONG_WORDS: tuple[Any, ...] = (True, 1.0, b"default", None, ["default"])


class Index:
    """An integer of another type, as numpy's are."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


@check("surface")
def every_operation_is_offered_or_absent_with_a_reason(bench: Bench) -> str:
    """Nothing of the contract is left unanswered, and what is offered has its meaning as documentation."""
    runtime = bench.runtime
    answered = {*runtime.description["operations"], *runtime.description["absent"]}
    expect(sorted(answered), sorted(runtime.contract["operations"]), "operations that the backend answers")
    offered = [name for name in answered if runtime.supports(name)]
    for name in offered:
        expect(
            getattr(runtime, name).__doc__, runtime.contract["operations"][name]["says"], f"documentation of `{name}`"
        )
    return f"{len(offered)} of {len(answered)} operations are offered here"


@check("surface")
def an_operation_that_is_not_offered_says_why_when_it_is_called(bench: Bench) -> None:
    """The reason comes with any arguments: an absent operation never complains of those."""
    runtime = bench.runtime
    for name in runtime.contract["operations"]:
        if runtime.supports(name):
            continue
        refused = (errors.CapabilityError, errors.LibraryNotFoundError)
        for given in ((), (0,), ("x", None)):
            error = expect_error(refused, f"`{name}`", getattr(runtime, name), *given)
            reason, _line = runtime.description["absent"].get(name, ("", 0))
            expect_that(reason in str(error), f"`{name}`: its reason, {reason!r}, is not in the error: {error}")


@check("surface")
def a_name_that_is_no_operation_is_refused(bench: Bench) -> None:
    """Both `supports` and the attribute refuse it."""
    expect_error(errors.ArgumentValueError, "supports", bench.runtime.supports, "mallocate")
    expect_error(AttributeError, "attribute", getattr, bench.runtime, "mallocate")


@check("surface")
def arguments_of_the_wrong_type_are_refused_before_any_call(bench: Bench) -> str:
    """bool, float, str, None and the like are tried for every parameter of every operation that is offered."""
    return _all_refused(bench, errors.ArgumentTypeError, _wrong_types)


@check("surface")
def numbers_out_of_range_and_unknown_words_are_refused_before_any_call(bench: Bench) -> str:
    """Negative sizes, 2**64 and words that are no words are tried for every parameter."""
    return _all_refused(bench, errors.ArgumentValueError, _out_of_range)


@check("surface")
def zero_is_refused_where_it_means_nothing(bench: Bench) -> str:
    """Address 0 and handle 0 are errors, but where the contract says that they do nothing."""
    return _all_refused(bench, errors.ArgumentValueError, _refused_zeros)


@check("surface", ("malloc", "free", "memset", "memcpy"))
def anything_with_an_index_is_an_integer(bench: Bench) -> None:
    """What has `__index__`, as numpy's integers have, is taken for addresses, sizes and values."""
    address = bench.runtime.malloc(Index(512))
    bench.later(bench.runtime.free, Index(address))
    bench.runtime.memset(Index(address), Index(7), Index(512))
    expect_bytes(bench.read(address, 512), bytes([7]) * 512, "memory filled by index-like arguments")


def _all_refused(
    bench: Bench, kind: type[BaseException], values: Callable[[Bench, str, str, str | None], Iterator[Any]]
) -> str:
    """Every operation with one wrong argument at a time; all other arguments are such that a call would do little."""
    tried = 0
    for operation, entry in bench.runtime.contract["operations"].items():
        if not entry["takes"] or not bench.runtime.supports(operation):
            continue
        function = getattr(bench.runtime, operation)
        for name, type_, zero, _default in entry["takes"]:
            for value in values(bench, operation, type_, zero):
                nothing = kind is errors.ArgumentTypeError
                given = {other: _plain(bench, t, z, nothing=nothing) for other, t, z, _d in entry["takes"]} | {
                    name: value
                }
                what = f"`{operation}` with `{name}` {value!r}"
                error = expect_error(kind, what, function, *given.values())
                expect(getattr(error, "parameter", None), name, f"{what}: parameter that the error names")
                tried += 1
    return f"{tried} calls refused"


def _plain(bench: Bench, type_: str, zero: str | None, *, nothing: bool) -> Any:
    if type_ in PLAIN:
        return PLAIN[type_]
    if type_ == "device":
        return bench.device
    if type_ in bench.runtime.contract["enums"]:
        return _words(bench, type_)[0]
    return 0 if zero == "skips" and nothing else 256


def _words(bench: Bench, enum: str) -> list[str]:
    """The words of an enum that the backend gives a number to; all when it gives numbers to none."""
    known = bench.runtime.contract["enums"][enum][1]
    mapped = {word for _since, _before, words in bench.runtime.description["enums"].get(enum, ()) for word in words}
    return [word for word in known if word in mapped] or list(known)


def _wrong_types(bench: Bench, _operation: str, type_: str, _zero: str | None) -> Iterator[Any]:
    if type_ in WRONG_TYPES:
        yield from WRONG_TYPES[type_]
    elif type_ in bench.runtime.contract["enums"]:
        yield from WRONG_WORDS
    else:
        yield from WRONG_INTEGERS


def _out_of_range(bench: Bench, _operation: str, type_: str, _zero: str | None) -> Iterator[Any]:
    enums = bench.runtime.contract["enums"]
    if type_ in enums:
        numbered, words = enums[type_]
        yield from ("", words[0].upper(), "sideways")
        yield from (-1, len(words)) if numbered else (2**31, -(2**31) - 1)
    elif type_ == "device":
        yield from (-1, bench.devices, 2**31, 2**64)
    elif type_ == "dim3":
        yield from ((0,), (1, 0, 1), (1, 1, -1), (2**32, 1, 1))
    elif type_ == "text":
        yield "a\0b"
    elif type_ not in PLAIN:
        low, high = RANGES[bench.runtime.contract["types"][type_][0]]
        yield from (low - 1, high + 1, -(2**64), 2**80)


def _refused_zeros(bench: Bench, _operation: str, type_: str, zero: str | None) -> Iterator[Any]:
    types = bench.runtime.contract["types"]
    if zero == "refused" or (zero is None and type_ in types and types[type_][1]):
        yield 0


@check("surface")
def a_device_that_is_not_there_is_named_with_the_number_of_devices(bench: Bench) -> None:
    """The error is also an IndexError."""
    for index in (bench.devices, bench.devices + 7, -1):
        error = expect_error(errors.DeviceIndexError, f"set_device({index})", bench.runtime.set_device, index)
        expect_that(isinstance(error, IndexError), "a DeviceIndexError is no IndexError")
        expect(error.count, bench.devices, "number of devices that the error names")
