"""Whether messages hold together: encodings parse, and have as many arguments as the selector has colons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import encodings
from nbxrt.catalogue.diagnostics import quoted
from nbxrt.catalogue.encodings import EncodingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Path
    from nbxrt.catalogue.subject import Subject


def encoding_of(message: str | Mapping[str, Any]) -> str:
    """The encoding of a message as the file writes it."""
    return message if isinstance(message, str) else str(message["encoding"])


def all_messages(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    """Path, selector and encoding of every sound message."""
    for owner, methods in subject.mapping("messages").items():
        for selector, message in methods.items() if isinstance(methods, dict) else ():
            path = ("messages", owner, selector)
            if path not in subject.broken:
                yield (path if isinstance(message, str) else (*path, "encoding")), selector, encoding_of(message)


def check_encodings(subject: Subject) -> Iterator[Diagnostic]:
    """Every encoding parses, agrees with the colons of its selector, and is the selector's only one."""
    first: dict[str, tuple[Path, str]] = {}
    for path, selector, encoding in all_messages(subject):
        try:
            _returns, arguments = encodings.parse(encoding)
        except EncodingError as error:
            label = f"character {error.position + 1}"
            yield subject.diagnostic(path, "bad-encoding", f"the encoding {quoted(encoding)} {error}", label=label)
            continue
        wanted = encodings.arguments_of(selector)
        if len(arguments) != wanted:
            message = f"{quoted(selector)} takes {_arguments(wanted)} by its colons, and {quoted(encoding)} has "
            hint = "the first type is what the method returns"
            yield subject.diagnostic(path, "bad-encoding", f"{message}{len(arguments) or 'none'}", hint=hint)
        other, said = first.setdefault(selector, (path, encoding))
        if said != encoding:
            message = f"{quoted(selector)} has the encoding {quoted(said)} already, in another class"
            yield subject.diagnostic(path, "bad-encoding", message, notes=(f"there at {subject.where(other)}",))


def _arguments(number: int) -> str:
    return "1 argument" if number == 1 else f"{number or 'no'} arguments"


def check_abi(subject: Subject) -> Iterator[Diagnostic]:
    """Only Objective-C has messages, and it has a runtime library that carries them."""
    if not subject.mapping("messages"):
        return
    if subject.value("abi") == "c":
        hint = "say `abi: objc`, or drop the messages"
        yield subject.diagnostic(
            ("messages",), "unused-message", "a file of C functions sends no messages", at="key", hint=hint
        )


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (check_encodings, check_abi)
