"""Whether messages hold together: encodings parse, and have as many arguments as the selector has colons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import encodings
from nbxrt.catalogue.diagnostics import did_you_mean, path_text, quoted
from nbxrt.catalogue.encodings import EncodingError
from nbxrt.catalogue.sequences import sequences

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
            yield subject.diagnostic(path, "bad-encoding", message, related=(subject.related(other, "there"),))


def _arguments(number: int) -> str:
    return "1 argument" if number == 1 else f"{number or 'no'} arguments"


def check_abi(subject: Subject) -> Iterator[Diagnostic]:
    """`abi: objc` is of files that have messages, and of no others; the library `driver` carries them."""
    abi = subject.value("abi")
    if abi is None or ("messages",) in subject.faulty:
        return
    has_messages = "messages" in subject.document.data
    if has_messages and abi != "objc":
        message, hint = "a file of C functions sends no messages", "say `abi: objc`, or drop the messages"
        yield subject.diagnostic(_own(subject, "messages", "abi"), "wrong-abi", message, at="key", hint=hint)
    elif abi == "objc" and not has_messages:
        message = "a file of `abi: objc` sends messages, and this one describes none"
        yield subject.diagnostic(("abi",), "wrong-abi", message, hint="say `abi: c`, or describe them under `messages`")
    elif has_messages and "driver" not in subject.mapping("libraries") and "libraries" in subject.document.data:
        message = "messages are carried by the library `driver`, which the file does not describe"
        yield subject.diagnostic(_own(subject, "libraries", "abi"), "unknown-role", message, at="key")


def _own(subject: Subject, *keys: str) -> Path:
    """The first of two keys that contradict each other, unless only the second is this file's own."""
    own = (key for key in keys if subject.document.place((key,)).value.file == subject.document.name)
    return (next(own, keys[0]),)


def _sends(subject: Subject) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Path and step of every sound `send`."""
    for section in ("operations", "state", "policies", "devices"):
        for path, step in _below((section,), subject.mapping(section)):
            if path not in subject.broken:
                yield path, step


def _below(path: Path, node: Any) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if isinstance(node, dict):
        if isinstance(node.get("send"), str) and isinstance(
            path[-1], int
        ):  # a step; there is an operation of that name
            yield path, node
        for key, value in node.items():
            if key != "args":
                yield from _below((*path, key), value)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _below((*path, index), value)


def check_sends(subject: Subject) -> Iterator[Diagnostic]:
    """Every message that is sent is described, and sent as it is described."""
    known = _signatures(subject)
    users: dict[str, list[tuple[Path, str]]] = {}
    for path, step in _sends(subject):
        selector = step["send"]
        if selector not in known:
            users.setdefault(selector, []).append(((*path, "send"), path_text(path)))
        elif known[selector] is not None:
            yield from _misfits(subject, path, step, known[selector])
    if any(each[0] == "messages" for each in subject.broken if each):
        return
    for selector, found in users.items():
        says = f"{quoted(selector)} is not among the file's `messages`, and USERS send(s) it"
        facts = subject.lacking(found, says, of=("messages",))
        yield subject.diagnostic(found[0][0], "unknown-message", **facts, hint=did_you_mean(selector, known))


def _given(number: int) -> str:
    return "1 is" if number == 1 else f"{number or 'none'} are"


def _signatures(subject: Subject) -> dict[str, Any]:
    """The signature of each selector; None of one whose encoding is a fault by itself."""
    found: dict[str, Any] = {}
    for _path, selector, encoding in all_messages(subject):
        try:
            signature = encodings.parse(encoding)
        except EncodingError:
            found[selector] = None
            continue
        fits = len(signature[1]) == encodings.arguments_of(selector)
        found[selector] = signature if fits else None
    return found


def _misfits(subject: Subject, path: Path, step: Mapping[str, Any], signature: Any) -> Iterator[Diagnostic]:
    selector, given = step["send"], step.get("args", [])
    returns, arguments = signature
    if len(given) != len(arguments):
        message = f"{quoted(selector)} takes {_arguments(len(arguments))}, and {_given(len(given))} given"
        where, at = ((*path, "args"), "key") if "args" in step else ((*path, "send"), "value")
        yield subject.diagnostic(where, "wrong-message", message, at=at)
    if ("to" in step) == ("class" in step):
        message = f"{quoted(selector)} is sent to an object, `to`, or to a `class`"
        yield subject.diagnostic((*path, "send"), "wrong-message", message)
    yield from _wrong_results(subject, path, step, returns)
    for index, (argument, kind) in enumerate(zip(given, arguments, strict=False)):
        is_structure = isinstance(argument, dict) and ("fields" in argument or "axes" in argument)
        number = len(argument.get("fields", "xyz")) if is_structure else 0
        if is_structure != isinstance(kind, tuple) or (is_structure and number != len(kind)):
            wanted = f"a structure of {len(kind)} fields" if isinstance(kind, tuple) else "no structure"
            message = f"{quoted(selector)} takes {wanted} here"
            yield subject.diagnostic((*path, "args", index), "wrong-message", message)


def _wrong_results(subject: Subject, path: Path, step: Mapping[str, Any], returns: Any) -> Iterator[Diagnostic]:
    selector, given = step["send"], step.get("as", [])
    names = [given] if isinstance(given, str) else given
    fields = len(returns) if isinstance(returns, tuple) else int(returns != "void")
    if names and len(names) != fields:
        message = f"{quoted(selector)} gives {fields or 'nothing'}, and {len(names)} names are to be bound"
        yield subject.diagnostic((*path, "as"), "wrong-message", message)
    for key in ("keep", "nil"):
        if key in step and (returns != "object" or not names):
            message = f"`{key}` is about an object that the message gives, and {quoted(selector)} binds none"
            yield subject.diagnostic((*path, key), "wrong-message", message, at="key")
    kinds = ("allowed", *subject.contract.errors)
    if "nil" in step and step["nil"] not in kinds:
        message = f"nil is `allowed`, or a kind of error, and {quoted(step['nil'])} is none"
        hint = did_you_mean(step["nil"], kinds)
        yield subject.diagnostic((*path, "nil"), "wrong-message", message, hint=hint)


def check_unused_messages(subject: Subject) -> Iterator[Diagnostic]:
    """A message that is never sent is a leftover, or its sender is misspelt."""
    if any(path[:1] in (("operations",), ("messages",), ("policies",), ("devices",)) for path in subject.broken):
        return
    sent = {step["send"] for _path, step in _sends(subject)}
    for path, selector, _encoding in all_messages(subject):
        if selector not in sent:
            message = f"no step sends {quoted(selector)}"
            yield subject.diagnostic(path[:3], "unused-message", message, at="key")


def check_ownership(subject: Subject) -> Iterator[Diagnostic]:
    """What is ours is released or handed over; what is not ours is not handed over: it goes with the pool."""
    known = _signatures(subject)
    for sequence in sequences(subject):
        for index, step in enumerate(sequence.steps):
            path, selector, name = (*sequence.path, index), str(step.get("send")), step.get("as")
            signature = known.get(selector)
            if path in subject.broken or signature is None or signature[0] != "object" or not isinstance(name, str):
                continue
            is_ours = step.get("keep", False) or encodings.gives_ownership(selector, "object")
            is_given = name in sequence.gives or any(_hands_over(each, name) for each in sequence.steps)
            if is_given and not is_ours:
                message = f"{quoted(name)} is not ours by its selector's name, and is gone when the steps end"
                hint = "say `keep: true`"
                yield subject.diagnostic((*path, "as"), "wrong-owner", message, hint=hint)
            if is_ours and not is_given and not any(_may_release(each, name, known) for each in sequence.steps):
                message = f"{quoted(name)} is ours, and is neither released nor handed over"
                label, hint = "nothing sends `release` to it", "release it under `finally`"
                yield subject.diagnostic((*path, "as"), "wrong-owner", message, label=label, hint=hint)


def _hands_over(step: Mapping[str, Any], name: str) -> bool:
    """Whether a step gives an object to what keeps it beyond the steps."""
    return name in (step.get("object") if {"track", "mint"} & step.keys() else "", step.get("pend"), step.get("put"))


def _may_release(step: Mapping[str, Any], name: str, known: Mapping[str, Any]) -> bool:
    """Whether a step, or what follows it in any case, releases an object; an unknown message is told by itself."""
    sent = [each for each in (step, *step.get("finally", ())) if each.get("to") == name]
    return any(each.get("send") == "release" or each.get("send") not in known for each in sent)


CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    check_encodings,
    check_abi,
    check_sends,
    check_ownership,
    check_unused_messages,
)
