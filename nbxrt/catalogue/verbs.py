"""The verbs of steps: what each does, the keys that it takes, and the names that it uses and binds.

One table serves the schema, the checks and the compiled form: a new verb is added here, with the function that turns it
into plain values in compiling_steps.py and the one that writes its code in binding/sequence.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.forms import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: What a name stands for that has entries of its own: a device with what is kept of it.
DEVICE = "device"

#: What memory is, as the address table knows it.
MEMORY = ("device", "host", "managed")


@attrs.frozen
class Use:
    """A name that a step uses, and the path to it inside the step."""

    name: str
    path: tuple[str | int, ...]


@attrs.frozen
class Bind:
    """A name that a step binds, its type (a C type, a contract type or DEVICE; empty: the contract's result)."""

    name: str
    type: str
    path: tuple[str | int, ...]


@attrs.frozen
class Key:
    """A key of a verb: `kind` tells its schema (schema_steps.py), and what is bound by it has `type`."""

    kind: str
    says: str
    type: str = ""


@attrs.frozen
class Verb:
    """A verb, told by its head key."""

    head: str
    says: str
    keys: Mapping[str, Key]
    needed: tuple[str, ...] = ()
    names: Callable[[Mapping[str, Any]], Iterator[Use | Bind]] | None = None

    def names_in(self, step: Mapping[str, Any]) -> Iterator[Use | Bind]:
        """Every name that the step uses, then every name that it binds; modifiers and inner steps apart."""
        if self.names is not None:
            yield from self.names(step)
            return
        for key, rule in self.keys.items():
            if rule.kind in ("use", "uses") and key in step:
                yield from (Use(name, path) for name, path in _each_name(step[key], key))
        for key, rule in self.keys.items():
            if rule.kind in ("bind", "binds") and key in step:
                yield from (Bind(name, rule.type, path) for name, path in _each_name(step[key], key))


def _each_name(written: Any, key: str) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """The one name that a key has, or those of its list, with their paths."""
    if isinstance(written, list):
        yield from ((name, (key, index)) for index, name in enumerate(written))
    else:
        yield written, (key,)


def verb_of(step: Mapping[str, Any]) -> Verb | None:
    """The verb of a step; None when no key of it tells one."""
    return next((verb for head, verb in VERBS.items() if head in step), None)


def bound_by_return(returns: Any) -> tuple[str, str, str] | None:
    """(key, name, type) of what a call's own value is bound to; None when it is bound to nothing."""
    if not isinstance(returns, dict):
        return None
    key = "pointer" if "pointer" in returns else "result"
    return key, returns[key], "pointer" if key == "pointer" else returns.get("type", "")


def _names_of_call(step: Mapping[str, Any]) -> Iterator[Use | Bind]:
    named = [
        (name, ("args", index, *name.path), argument)
        for index, argument in enumerate(step.get("args", ()))
        for name in names_in(argument)
    ]
    for name, path, _argument in named:
        if name.role in ("parameter", "mention"):
            yield Use(name.name, path)
    for name, path, argument in named:
        if name.role == "result":
            yield Bind(name.name, argument.get("type", "") if "out" in argument else "", path)
    bound = bound_by_return(step.get("returns"))
    if bound is not None:
        key, given, kind = bound
        yield Bind(given, kind, ("returns", key))


def _names_of_locate(step: Mapping[str, Any]) -> Iterator[Use | Bind]:
    yield Use(step["locate"], ("locate",))
    if "nbytes" in step:
        yield Use(step["nbytes"], ("nbytes",))
    yield from (
        Bind(name, kind, ("as", index))
        for index, (name, kind) in enumerate(zip(step.get("as", ()), ("pointer", "size"), strict=False))
    )


def _names_of_send(step: Mapping[str, Any]) -> Iterator[Use | Bind]:
    if "to" in step:
        yield Use(step["to"], ("to",))
    arguments = list(enumerate(step.get("args", ())))
    for index, argument in arguments:
        yield from (Use(name, ("args", index, *path)) for name, path in _used_by_argument(argument))
    if "settles" in step:
        yield Use(step["settles"], ("settles",))
    for index, argument in arguments:
        if isinstance(argument, dict) and "out" in argument:
            yield Bind(argument["out"], argument.get("type", ""), ("args", index, "out"))
    given = step.get("as", [])
    if isinstance(given, str):
        yield Bind(given, "", ("as",))
    else:
        yield from (Bind(name, "", ("as", index)) for index, name in enumerate(given))


def _used_by_argument(argument: Any) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Every name whose value an argument of a message passes, and the path to it inside the argument."""
    if isinstance(argument, str):
        yield argument, ()
    elif isinstance(argument, dict):
        yield from ((argument[key], (key,)) for key in ("length", "axes", "rounded") if key in argument)
        yield from ((name, ("fields", at)) for at, name in enumerate(argument.get("fields", ())))


VERBS: dict[str, Verb] = {
    verb.head: verb
    for verb in (
        Verb(
            "call",
            "Calls a C function; a status that is not success ends the steps with an error.",
            {
                "call": Key("symbols", "The function."),
                "args": Key("args", "The arguments, in C order."),
                "returns": Key("returns", "What it returns; `status` when left out."),
                "library": Key("library", "The role whose library has the symbol."),
            },
            ("args",),
            _names_of_call,
        ),
        Verb(
            "send",
            "Sends a message of Objective-C; an object that it gives may not be nil.",
            {
                "send": Key("selector", "The selector, of the file's `messages`."),
                "to": Key("use", "The receiver."),
                "class": Key("class", "The class that receives it, instead of an object."),
                "args": Key("send_args", "The arguments, one for each colon."),
                "as": Key("binds", "What the method gives; of a structure each field."),
                "keep": Key("truth", "True: an object that is not ours by its name is kept beyond the operation."),
                "nil": Key("nil", "What nil means: a kind of error, or `allowed`; `unknown` when left out."),
                "settles": Key("use", "What needs no more to be undone once this is sent."),
            },
            (),
            _names_of_send,
        ),
        Verb(
            "track",
            "Puts memory into the address table.",
            {
                "track": Key("use", "Its address; with `as`, what the address is to stand for."),
                "nbytes": Key("use", "Its size."),
                "object": Key("use", "The object that the address stands for; the address itself when left out."),
                "memory": Key("memory", "What it is; `device` when left out."),
                "as": Key(
                    "bind",
                    "Its new address: one that nothing else has, or with `aligned` the next multiple.",
                    "pointer",
                ),
                "aligned": Key("multiple", "The number that the new address is to be a multiple of."),
            },
            ("nbytes",),
        ),
        Verb(
            "untrack",
            "Takes memory out of the address table; an address that does not begin any is an error.",
            {
                "untrack": Key("use", "Its address."),
                "as": Key("bind", "The device that it was made on.", DEVICE),
                "object": Key("bind", "The object that the address stood for.", "pointer"),
            },
        ),
        Verb(
            "locate",
            "Finds the memory that an address lies in; one that lies in none is an error.",
            {
                "locate": Key("use", "The address, inside an allocation or at its start."),
                "nbytes": Key("use", "So many bytes there; where they go beyond its end, it is an error."),
                "as": Key("pair", "The object and the offset in it."),
            },
            (),
            _names_of_locate,
        ),
        Verb(
            "pend",
            "Leaves work in flight on the stream: the policy `queues` finishes and releases it.",
            {"pend": Key("use", "The work.")},
        ),
        Verb(
            "each",
            "Does steps for every member of a set that the device keeps.",
            {
                "each": Key("set", "The set."),
                "of": Key("device", "The device that keeps it; the current one when left out."),
                "as": Key("bind", "What a member is called.", "pointer"),
                "steps": Key("steps", "The steps."),
            },
            ("as", "steps"),
        ),
        Verb(
            "mint",
            "Makes a handle for an object that has none of its own.",
            {
                "mint": Key("bind", "The handle.", "pointer"),
                "object": Key("uses", "The object in the box, or a list of them; empty when left out."),
            },
        ),
        Verb(
            "put",
            "Puts an object into the box of a handle.",
            {
                "put": Key("uses", "The object, or a list of them."),
                "into": Key("use", "The handle."),
                "former": Key("bind", "The object that was in it; 0 when it was empty.", "pointer"),
            },
            ("into",),
        ),
        Verb(
            "take",
            "Looks into the box of a handle.",
            {
                "take": Key("use", "The handle."),
                "as": Key("binds", "The object in it, or a list of them.", "pointer"),
                "empty": Key("empty", "`done`: an empty box ends the steps with success."),
            },
            ("as",),
        ),
        Verb(
            "retire",
            "Ends a handle.",
            {
                "retire": Key("use", "The handle."),
                "as": Key("binds", "The object that was in its box, or a list of them.", "pointer"),
                "empty": Key("empty", "`done`: an empty box ends the steps with success."),
            },
        ),
    )
}
