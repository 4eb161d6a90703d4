"""Steps as a file has them: the calls in them, the names that these take and bind, and what tells calls apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Argument = tuple[Any, ...]


def names_of_objects(steps: Sequence[Any]) -> dict[str, str]:
    """The names of objects behind addresses: what such an object is, its memory is here."""
    found: dict[str, str] = {}
    for verb, payload, *_rest in flat(steps):
        if verb == "track" and payload[4]:
            found[payload[0]] = payload[4]
        if verb == "untrack" and payload[2]:
            found[payload[2]] = payload[0]
    return found


def is_object(tracked: Sequence[Any]) -> bool:
    """Whether what `track` puts into the table has no address of its own."""
    _object, _nbytes, _of, _memory, address, aligned = tracked
    return address is not None and not aligned


def seen_object(steps: Sequence[Any]) -> str:
    """The name of an object whose memory the host sees at an address of its own; empty where there is none."""
    tracked = (payload for verb, payload, *_rest in steps if verb == "track")
    return next((str(payload[2]) for payload in tracked if payload[2] and payload[4] is None), "")


def answered(arguments: Sequence[Argument]) -> Iterator[str]:
    """The names of what a call answers."""
    for argument in arguments:
        if argument[0] in ("out", "buffer"):
            yield argument[1]
        elif argument[0] == "struct_out":
            yield from (name for name, _field in argument[2])


def told_apart(arguments: Sequence[Argument]) -> tuple[tuple[int, Any], ...]:
    """The positions of constants and null pointers with their values: what tells the calls of a function apart."""
    return tuple(
        (at, argument[2] if argument[0] == "const" else None)
        for at, argument in enumerate(arguments)
        if argument[0] in ("const", "null")
    )


def flat(steps: Sequence[Any]) -> Iterator[Any]:
    """Steps, and those inside them, undoing and following them."""
    for step in steps:
        verb, payload, undo, always = step
        yield step
        for inner in (payload[3] if verb == "each" else (), undo, always):
            yield from flat(inner)


def calls_in(steps: Sequence[Any]) -> list[Any]:
    """(symbols, role, arguments, returns) of every call."""
    return [payload for verb, payload, *_rest in flat(steps) if verb == "call"]


def called(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(operation, symbol) of every call that an operation makes in steps, in whatever version."""
    for operation, (_line, variants) in description["operations"].items():
        for form, _since, _before, _platforms, what, _extras in variants:
            if form == "steps":
                yield from ((operation, symbol) for symbols, *_rest in calls_in(what[2]) for symbol in symbols)


def mentioned(arguments: Sequence[Argument], returns: Argument) -> Iterator[str]:
    """The names that a call takes and binds."""
    if returns[0] in ("result", "pointer"):
        yield returns[1]
    for argument in arguments:
        if argument[0] in ("param", "out", "buffer", "length", "pointer_to", "padded"):
            yield argument[1]
        elif argument[0] in ("struct_in", "struct_out"):
            for pair in argument[2]:
                yield from _of_field(pair if argument[0] == "struct_in" else pair[::-1])
        elif argument[0] == "array":
            yield from (item if isinstance(item, str) else item[1] for item in argument[1] if not isinstance(item, int))


def _of_field(pair: tuple[str, Any]) -> Iterator[str]:
    value = pair[1]
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str):
        yield value[1]
