"""From steps, and what is kept of devices, to the plain values that the binder reads.

A step is (verb, payload, undo, finally); undo and finally are steps. The payloads:

    call     (symbols, role, arguments, returns)        pend     (work,)
    send     (selector, receiver or None, class or None, arguments, names, signature, optional, owned, kept, nil,
              what needs no more to be undone or None)
    track    (address, nbytes, object or None, memory, new address or None, alignment or 0)
    untrack  (address, owner or None, object or None)
    locate   (address, object or None, offset or None, nbytes or None)
    each     (set, device, member, steps)
    mint     (handle, objects)                          put      (objects, handle, former or None)
    take     (handle, objects, ends when empty)         retire   (handle, objects, ends when empty)

Names are as the file wrote them: a parameter, a name that an earlier step bound, or `state.NAME`, an entry of what is
kept of the current device. Arguments and returns are those of compiling.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue import encodings
from nbxrt.catalogue.policies import POLICIES
from nbxrt.catalogue.resolving import Resolver
from nbxrt.catalogue.verbs import VERBS, Bind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nbxrt.catalogue.model import Backend, Message, Role, Variant
    from nbxrt.catalogue.model_steps import Level, Step

    Plain = tuple[Any, ...]


class Names(dict[str, str]):
    """The type of every name that is bound; an entry of what is kept is a handle."""

    def __missing__(self, name: str) -> str:
        if "." not in name:
            raise KeyError(name)
        return "pointer"


class Scope:
    """What the steps of one backend may name, and the roles that they call."""

    def __init__(self, backend: Backend, roles: dict[str, Role], contract: dict[str, Any]) -> None:
        self.backend = backend
        self.roles = roles
        self.contract = contract

    def message(self, selector: str) -> Message:
        """The message of a selector."""
        return next(methods[selector] for methods in self.backend.messages.values() if selector in methods)

    def operation(self, variant: Variant, entry: dict[str, Any]) -> Plain:
        """A variant of an operation that is steps."""
        names = Names({name: kind for name, kind, _zero, _default in entry["takes"]})
        if "queues" in self.backend.policies:
            names["stream"] = "pointer"
        return self.variant(variant, names, dict(entry["gives"]), self.contract["groups"][entry["group"]])

    def variant(self, variant: Variant, names: Names, gives: Mapping[str, str], usual: str) -> Plain:
        applies, form = variant.applies, variant.steps
        assert form is not None  # noqa: S101
        role = form.library or usual
        steps = Context(self, names, gives, role).steps(form.steps)
        results = tuple((result, spec["of"], spec["equals"]) for result, spec in variant.result.items())
        what = (variant.model, role, steps, form.only_default)
        return ("steps", applies.since, applies.before, applies.platforms, what, results)


class Context:
    """Steps that are being resolved: the names bound so far, the results that are wanted, the usual role."""

    def __init__(self, scope: Scope, names: Names, gives: Mapping[str, str], role: str) -> None:
        self.scope = scope
        self.names = names
        self.gives = gives
        self.role = role

    def steps(self, steps: tuple[Step, ...]) -> Plain:
        return tuple(map(self.step, steps))

    def step(self, step: Step) -> Plain:
        payload = _PAYLOADS[step.verb](self, step)
        self.bind(step)
        return (step.verb, payload, self.steps(step.undo), self.steps(step.finally_))

    def bind(self, step: Step) -> None:
        for name in VERBS[step.verb].names_in(step.written):
            if isinstance(name, Bind):
                self.names[name.name] = name.type or self.gives.get(name.name, "pointer")

    def resolver(self, role: str) -> Resolver:
        return Resolver(self.names, dict(self.gives), self.scope.roles[role], self.scope.contract)

    def call(self, written: Mapping[str, Any]) -> Plain:
        """(symbols, role, arguments, returns) of a call as written."""
        role = written.get("library", self.role)
        resolve = self.resolver(role)
        symbols = written["call"]
        arguments = tuple(_listing(argument) or resolve.argument(argument) for argument in written["args"])
        returns = self.returns(written.get("returns", "status"), resolve)
        return (tuple(symbols) if isinstance(symbols, list) else (symbols,), role, arguments, returns)

    def returns(self, written: Any, resolve: Resolver) -> Plain:
        if isinstance(written, str):
            return (written,)
        if "pointer" in written:
            return ("pointer", written["pointer"])
        kind = written.get("type") or self.gives.get(written["result"], "pointer")
        return ("result", written["result"], resolve.c_type(kind))


def _listing(argument: Any) -> Plain | None:
    """An argument that only a call has that fills a list."""
    if not isinstance(argument, dict):
        return None
    key = next(iter(argument))
    return (key, argument[key]) if key in ("room", "list", "found") else None


def _each(context: Context, step: Step) -> Plain:
    from nbxrt.catalogue.model_steps import steps

    written = step.written
    context.bind(step)
    return (written["each"], written.get("of", "state"), written["as"], context.steps(steps(written["steps"])))


def _send(context: Context, step: Step) -> Plain:
    written = step.written
    message = context.scope.message(written["send"])
    signature = encodings.parse(message.encoding)
    given = written.get("as", [])
    return (
        written["send"],
        written.get("to"),
        written.get("class"),
        tuple(map(_sent, written.get("args", ()))),
        (given,) if isinstance(given, str) else tuple(given),
        signature,
        message.optional,
        encodings.gives_ownership(written["send"], signature[0]),
        written.get("keep", False),
        written.get("nil", "unknown"),
        written.get("settles"),
    )


def _sent(argument: Any) -> Plain:
    """An argument of a message; its C type follows from the encoding."""
    if argument is None:
        return ("null",)
    if isinstance(argument, str):
        return ("param", argument)
    head = next(iter(key for key in (*_SENT, *argument) if key in argument))
    return _SENT[head](argument) if head in _SENT else ("const", argument[head])


_SENT: dict[str, Callable[[Mapping[str, Any]], Plain]] = {
    "out": lambda argument: ("out", argument["out"], argument["type"]),
    "error": lambda _argument: ("error",),
    "length": lambda argument: ("length", argument["length"]),
    "axes": lambda argument: ("axes", argument["axes"]),
    "fields": lambda argument: ("fields", tuple(argument["fields"])),
    "rounded": lambda argument: ("rounded", argument["rounded"], argument["to"]),
}


def _named(written: Any) -> tuple[str, ...]:
    """The names of one object or of several; none where nothing is written."""
    return tuple(written) if isinstance(written, list) else (written,) if written else ()


#: What each verb becomes.
_PAYLOADS: dict[str, Callable[[Context, Step], Plain]] = {
    "call": lambda context, step: context.call(step.written),
    "send": _send,
    "track": lambda _context, step: (
        step.written["track"],
        step.written["nbytes"],
        step.written.get("object"),
        step.written.get("memory", "device"),
        step.written.get("as"),
        step.written.get("aligned", 0),
    ),
    "untrack": lambda _context, step: (step.written["untrack"], step.written.get("as"), step.written.get("object")),
    "locate": lambda _context, step: (
        step.written["locate"],
        *step.written.get("as", (None, None)),
        step.written.get("nbytes"),
    ),
    "pend": lambda _context, step: (step.written["pend"],),
    "each": _each,
    "mint": lambda _context, step: (step.written["mint"], _named(step.written.get("object"))),
    "put": lambda _context, step: (_named(step.written["put"]), step.written["into"], step.written.get("former")),
    "take": lambda _context, step: (step.written["take"], _named(step.written["as"]), "empty" in step.written),
    "retire": lambda _context, step: (step.written["retire"], _named(step.written.get("as")), "empty" in step.written),
}


def state(scope: Scope) -> dict[str, Plain]:
    """Entry to (line, scope, steps, steps that release it)."""
    compiled = {}
    for name, entry in scope.backend.state.items():
        context = Context(scope, Names(), {}, "runtime")
        compiled[name] = (entry.line, entry.scope, context.steps(entry.steps), context.steps(entry.release))
    return compiled


def policies(scope: Scope) -> dict[str, dict[str, Any]]:
    """Policy to its parts, each (names that it takes, names that it gives, variants), and its plain values."""
    compiled: dict[str, dict[str, Any]] = {}
    for name, written in scope.backend.policies.items():
        spec = POLICIES[name].parts
        compiled[name] = {
            "parts": {
                part: (
                    tuple(spec[part].takes),
                    tuple(spec[part].gives),
                    tuple(
                        scope.variant(each, Names(spec[part].takes), spec[part].gives, "runtime") for each in variants
                    ),
                )
                for part, variants in written.parts.items()
            },
            "values": dict(written.values),
        }
    return compiled


def devices(scope: Scope) -> dict[str, Any] | None:
    """How devices are listed; None where a file does not say."""
    written = scope.backend.devices
    if written is None:
        return None
    names = Names()
    levels: list[Plain] = []
    for level in written.levels:
        context = Context(scope, Names(names), {"count": "size"}, "runtime")
        if level.count:
            levels.append(("ask", level.name, _asked(scope, names, level)))
        else:
            levels.append(("fill", level.name, context.call(level.written)))
        names[level.name] = "pointer"
    last = written.levels[-1].name
    default, identity = (Context(scope, Names(names), {}, "runtime") for _each in range(2))
    return {
        "levels": tuple(levels),
        "default": (last, default.steps(written.default), identity.steps(written.identity))
        if written.default
        else None,
        "gpu": _probe(scope, names, written.gpu),
        "models": {name: _probe(scope, names, each) for name, each in written.models.items()},
        "says": {name: each["says"] for name, each in written.models.items() if "says" in each},
        "functions": _functions(scope, names, written.functions),
        "apart": written.apart,
    }


def _asked(scope: Scope, names: Names, level: Level) -> dict[str, Plain]:
    """The steps of a level that is asked for its handles, by key."""
    known = Names(names, list="pointer") if level.listing else Names(names)
    contexts = {"listing": names, "count": known, "at": Names(known, index="size"), "listed": known,
                "release": Names(names, **{level.name: "pointer"})}  # fmt: skip
    return {
        key: Context(scope, Names(bound), {"count": "size"}, "runtime").steps(getattr(level, key))
        for key, bound in contexts.items()
    }


def _probe(scope: Scope, names: Names, written: Mapping[str, Any]) -> Plain | None:
    """(call, how the answer is judged, by what)."""
    if not written:
        return None
    how = next(key for key in ("bits", "equals", "has") if key in written)
    return (Context(scope, Names(names), {}, "runtime").call(written), how, written[how])


def _functions(scope: Scope, names: Names, written: Mapping[str, Any]) -> Plain | None:
    if not written:
        return None
    context = Context(scope, Names(names, symbol="text"), {}, "runtime")
    return context.call({"returns": {"result": "address", "type": "pointer"}, **written})
