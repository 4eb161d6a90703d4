"""What each function of an API of objects does by itself, read off the steps that call it.

A file says what several calls do together: an operation, or a part of a policy. The call that has most of what that
takes and gives is the one that does it; what makes a thing for it is a maker, and what ends a thing ends it. A function
whose meaning cannot be told in this way is no simulation's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt import errors
from nbxrt.simulation.primitives import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Argument = tuple[Any, ...]

#: The parts of policies, those first whose calls others use too: what the call does that the part is about, and what
#: other calls of it with the part's own names do.
PARTS = {
    "marks.record": ("mark_record", ""),
    "marks.pass": ("stream_wait_event", ""),
    "marks.status": ("event_query", ""),
    "marks.wait": ("event_sync", ""),
    "marks.time": ("mark_time", ""),
    "marks.release": ("event_destroy", ""),
    "marks.clock": ("device_facts", ""),
    "queues.create": ("stream_create", ""),
    "queues.destroy": ("stream_destroy", ""),
    "queues.wait": ("stream_sync", ""),
    "queues.status": ("event_query", ""),
    "queues.release": ("event_destroy", ""),
    "budget.total": ("mem_get_info", ""),
    "kernels.load": ("module_load", ""),
    "kernels.load_intermediate": ("module_load", ""),
    "kernels.unload": ("module_unload", ""),
    "kernels.function": ("module_get_function", ""),
    "kernels.release": ("function_release", ""),
    "kernels.set_value": ("function_set_argument", ""),
    "kernels.run": ("function_run", "function_set_block"),
}
#: Names of parts whose things the core knows by other names.
#: Ticks of a simulated device are nanoseconds, and do not begin anew.
CLOCK = {"tick": 1, "bits": 64}
RENAMED = {"queue": "stream", "mark": "event", "work": "event"}


@attrs.frozen
class Stepped:
    """What one call does: the arguments are the contract's forms, and these.

    `("object", sort)`, `("level", number)`, `("here",)`: a handle that has to be right, the last one of the device that
    the call is about. `("ordinal", name)`: the handle of a device that is a parameter. `("stream", is_given)`: that of
    a stream, whose device the call is about. `("cells", names, type)`: an array of handles.
    `written` is the call as the file has it, `values` are parameters that no argument gives, and `fixed`
    what results are, as numbers or in C, that the core does not give.
    """

    symbols: tuple[str, ...]
    role: str
    operation: str
    arguments: tuple[Argument, ...]
    returns: Argument
    written: tuple[tuple[Argument, ...], Argument]
    values: tuple[tuple[str, int], ...] = ()
    fixed: tuple[tuple[str, int | str], ...] = ()


@attrs.define
class Names:
    """What the names of one list of steps stand for: `event`, or the maker of an object."""

    operation: str
    things: dict[str, str] = attrs.field(factory=dict)


def stepped(description: Mapping[str, Any], contract: Mapping[str, Any]) -> list[Stepped]:
    """What every call does that steps, the list of devices and what is kept of them make; empty without steps.

    Raises: CapabilityError where it cannot be told.
    """
    if description["devices"] is None:
        return []
    return Reader(description, contract).all()


class Reader:
    """Reads one description."""

    def __init__(self, description: Mapping[str, Any], contract: Mapping[str, Any]) -> None:
        self._description = description
        self._entries = {**contract["operations"], **PRIMITIVES}
        self._words = contract["enums"]["device_attribute"][1]
        self._levels = [level[1] for level in description["devices"]["levels"]]
        self._found: dict[tuple[Any, ...], Stepped] = {}
        #: The functions that make objects; which one made it is an object's sort.
        self._makers: list[str] = []
        self._kept: dict[str, str] = {}
        #: What the box of a mark holds, in order.
        self._box: tuple[str, ...] = ()

    def all(self) -> list[Stepped]:
        """What each call does."""
        self._refuse_models()
        for name, (_line, _scope, make, release) in self._description["state"].items():
            self._objects(name, make, release)
        for steps in self._part("marks.record"):
            self._note_box(steps)
        for part, (operation, beside) in PARTS.items():
            for steps in self._part(part):
                self._read(operation, steps, beside)
        for word in self._words:
            for steps in self._part(f"facts.{word}"):
                self._fact(word, steps)
        for operation, steps in self._operations():
            self._read(operation, steps, "")
        if self._description["devices"]["gpu"] is not None:
            self._probe(*self._description["devices"]["gpu"])
        return self._with_facts_as_one()

    def _refuse_models(self) -> None:
        devices = self._description["devices"]
        if devices["models"] or devices["functions"] is not None:
            raise self._unable("its devices are of several models, or their functions are asked for by name")
        if any(level[0] != "fill" for level in devices["levels"]):
            raise self._unable("its devices are listed by steps")

    def _unable(self, reason: str) -> errors.CapabilityError:
        return errors.CapabilityError(
            f"{self._description['title']} cannot be simulated: {reason}", backend=self._description["name"]
        )

    # where steps are

    def _part(self, part: str) -> list[Sequence[Any]]:
        policy, _dot, name = part.partition(".")
        parts = self._description["policies"].get(policy, {"parts": {}})["parts"]
        return [variant[4][2] for variant in parts[name][2]] if name in parts else []

    def _operations(self) -> list[tuple[str, Sequence[Any]]]:
        """The operations that are steps: those on a stream first, and of these the ones with least beside the call."""
        found = [
            (operation, what[2])
            for operation, (_line, variants) in self._description["operations"].items()
            for form, _since, _before, _platforms, what, _extras in variants
            if form == "steps"
        ]
        return sorted(found, key=lambda each: self._order(each[0]))

    def _order(self, operation: str) -> tuple[bool, int]:
        takes = [name for name, *_rest in self._entries[operation]["takes"]]
        return "stream" not in takes, len(takes)

    # what calls do

    def _objects(self, name: str, make: Sequence[Any], release: Sequence[Any]) -> None:
        """What is kept of a device is an object of the sort that its last call makes."""
        for symbols, role, arguments, returns in _calls(make):
            self._makers.append(symbols[0])
            self._kept[name] = symbols[0]
            self._add(Names("object_create", {name: symbols[0]}), symbols, role, arguments, returns)
        for symbols, role, arguments, returns in _calls(release):
            self._add(Names("object_destroy", {name: self._kept[name]}), symbols, role, arguments, returns)

    def _note_box(self, steps: Sequence[Any]) -> None:
        """Which things a mark is: the one that goes into the queue is the event, the others are objects."""
        boxed = next((payload[1] for verb, payload, *_rest in steps if verb == "mint"), ())
        made: dict[str, str] = {}
        for symbols, _role, arguments, _returns in _calls(steps):
            names = [argument[1] for argument in arguments if argument[0] == "param"]
            made |= {argument[1]: symbols[0] for argument in arguments if argument[0] == "out"}
            if "queue" in names:
                made |= {name: "event" for name in names if name in boxed}
        self._box = tuple(made.get(name, "event") for name in boxed)
        self._makers += [maker for maker in self._box if maker != "event"]

    def _read(self, operation: str, steps: Sequence[Any], beside: str) -> None:
        """Tell what each call of some steps does."""
        names = Names(operation, self._boxed(steps))
        calls = [call for call in _calls(steps) if self._key(call[0], call[2]) not in self._found]
        main = max(calls, key=lambda call: self._score(operation, call, names), default=None)
        for call in calls:
            symbols, role, arguments, returns = call
            meaning = self._meaning(operation if call is main else beside, call, names)
            self._add(attrs.evolve(names, operation=meaning), symbols, role, arguments, returns)

    def _boxed(self, steps: Sequence[Any]) -> dict[str, str]:
        """What the names stand for that are in the box of a mark."""
        found: dict[str, str] = {}
        for verb, payload, *_rest in _flat(steps):
            if verb in ("mint", "take", "retire"):
                found |= dict(zip(payload[1], self._box, strict=False))
        return found

    def _score(self, operation: str, call: Any, names: Names) -> int:
        """How much of what an operation takes and gives a call has."""
        entry = self._entries[operation]
        known = {name for name, *_rest in entry["takes"]} | {name for name, _kind in entry["gives"]}
        known |= CLOCK.keys() if operation == "device_facts" else set()
        return len(known & {self._known_as(name, names) for name in _mentioned(call[2], call[3])})

    def _known_as(self, name: str, names: Names) -> str:
        base, _dot, item = name.partition(".")
        if item in self._levels and base not in ("state", "owner"):
            return base
        return "event" if names.things.get(name) == "event" else RENAMED.get(name, name)

    def _meaning(self, operation: str, call: Any, names: Names) -> str:
        """The operation, where the call has some of it; else what it does to the only thing that it makes or ends."""
        symbols, _role, arguments, _returns = call
        if operation and self._score(operation, call, names):
            releases = operation in ("free", "free_host")
            return "memory_release" if releases else operation
        made = [argument[1] for argument in arguments if argument[0] == "out" and argument[1] in names.things]
        if made:
            return "mark_create" if names.things[made[0]] == "event" else "object_create"
        ended = [argument[1] for argument in arguments if argument[0] == "param" and argument[1] in names.things]
        if len(arguments) == 1 and ended:
            return "event_destroy" if names.things[ended[0]] == "event" else "object_destroy"
        raise self._unable(f"what `{symbols[0]}` does by itself is not told by its steps")

    def _key(self, symbols: tuple[str, ...], arguments: Sequence[Argument]) -> tuple[Any, ...]:
        constants = tuple((at, argument[2]) for at, argument in enumerate(arguments) if argument[0] == "const")
        return (symbols[0], constants, tuple(argument for argument in arguments if argument[0] == "struct_out"))

    def _add(
        self, names: Names, symbols: tuple[str, ...], role: str, arguments: Sequence[Argument], returns: Argument
    ) -> None:
        key = self._key(symbols, arguments)
        if key in self._found:
            self._found[key] = _with_numbers(self._found[key], arguments)
            return
        given = tuple(self._argument(argument, names) for argument in arguments)
        is_status = returns[0] == "result" and self._entries[names.operation]["done"]
        things = [
            names.things[each[1]] for each in arguments if each[0] in ("param", "out") and each[1] in names.things
        ]
        values = (("sort", self._sort(things[-1])),) if names.operation.startswith("object_") else ()
        self._found[key] = Stepped(
            symbols,
            role,
            names.operation,
            given,
            ("status",) if is_status else returns,
            (tuple(arguments), returns),
            values,
        )

    def _sort(self, maker: str) -> int:
        return self._makers.index(maker)

    # arguments

    def _argument(self, argument: Argument, names: Names) -> Argument:
        form = argument[0]
        if form == "param":
            return self._param(argument, names)
        if form == "out":
            thing = names.things.get(argument[1])
            known = "object" if thing and thing != "event" else self._known_as(argument[1], names)
            return ("out", known, argument[2])
        if form == "struct_out":
            return (form, argument[1], tuple((RENAMED.get(name, name), field) for name, field in argument[2]))
        if form == "array" and all(isinstance(item, str) for item in argument[1]):
            return ("cells", tuple(self._known_as(item, names) for item in argument[1]), argument[2])
        return argument

    def _param(self, argument: Argument, names: Names) -> Argument:
        name = argument[1]
        base, dot, item = name.partition(".")
        last = self._levels[-1]
        if (dot and item in self._levels[:-1]) or name in self._levels[:-1]:
            return ("level", self._levels.index(item or name))
        if (dot and item == last) or name == last:
            return ("here",) if base in ("state", "stream", "owner") else ("ordinal", base if dot else "device")
        thing = self._kept.get(item) if dot else names.things.get(name)
        if thing and thing != "event":
            is_subject = names.operation == "object_destroy" and not dot
            return ("param", "object", "pointer") if is_subject else ("object", self._sort(thing))
        known = self._known_as(name, names)
        if known == "stream":
            takes = [taken for taken, *_rest in self._entries[names.operation]["takes"]]
            return ("stream", "stream" in takes)
        return ("param", known, argument[2])

    # facts of devices

    def _fact(self, word: str, steps: Sequence[Any]) -> None:
        """A fact is a field that a call about the device fills."""
        for symbols, role, arguments, returns in _calls(steps):
            named = tuple(
                (*each[:2], tuple((word, field) for _value, field in each[2])) if each[0] == "struct_out" else each
                for each in arguments
            )
            self._add(Names("device_facts"), symbols, role, named, returns)
            key, value = self._key(symbols, named), f"sim_fact(p_device, DEVICE_ATTRIBUTE_{word.upper()})"
            self._found[key] = attrs.evolve(self._found[key], fixed=((word, value),))

    def _probe(self, call: Any, how: str, wanted: int) -> None:
        """Every simulated device is a GPU: the probe's number is what is wanted."""
        if how == "has":
            raise self._unable("what tells its GPUs is a text")
        symbols, role, arguments, returns = call
        pairs = next((argument[2] for argument in arguments if argument[0] == "struct_out"), ())
        self._add(Names("device_facts"), symbols, role, arguments, returns)
        key = self._key(symbols, arguments)
        self._found[key] = attrs.evolve(self._found[key], fixed=tuple((name, wanted) for name, _field in pairs))

    def _with_facts_as_one(self) -> list[Stepped]:
        """Calls that differ only in the fields that they read are one, which fills them all."""
        merged: dict[tuple[Any, ...], Stepped] = {}
        for (symbol, constants, out), case in self._found.items():
            if not out or case.operation not in ("device_facts", "device_name", "device_uuid"):
                merged[symbol, constants, out] = case
                continue
            known, facts = merged.get((symbol, constants)), _facts(case)
            merged[symbol, constants] = facts if known is None else _with_fields(known, facts)
        return list(merged.values())


def _facts(case: Stepped) -> Stepped:
    """A call that reads facts of a device, be it the current one, as one of any device."""
    arguments = tuple(("ordinal", "device") if argument == ("here",) else argument for argument in case.arguments)
    return attrs.evolve(case, operation="device_facts", arguments=arguments, fixed=(*case.fixed, *CLOCK.items()))


def _with_fields(known: Stepped, other: Stepped) -> Stepped:
    arguments = tuple(
        (one[0], one[1], tuple(dict.fromkeys((*one[2], *two[2])))) if one[0] == "struct_out" else one
        for one, two in zip(known.arguments, other.arguments, strict=True)
    )
    return attrs.evolve(known, arguments=arguments, fixed=tuple(dict((*known.fixed, *other.fixed)).items()))


def _with_numbers(known: Stepped, arguments: Sequence[Argument]) -> Stepped:
    """The same call with another number in a structure: either is right."""
    merged = [
        (*one[:2], tuple(map(_either_number, one[2], two[2]))) if one[0] == two[0] == "struct_in" else one
        for one, two in zip(known.arguments, arguments, strict=True)
    ]
    return attrs.evolve(known, arguments=tuple(merged))


def _either_number(pair: tuple[str, Any], other: tuple[str, Any]) -> tuple[str, Any]:
    field, value = pair
    numbers = tuple(sorted({*_numbers(value), *_numbers(other[1])}))
    return (field, numbers) if numbers else pair


def _numbers(value: Any) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,)
    return value if isinstance(value, tuple) and all(isinstance(each, int) for each in value) else ()


def _flat(steps: Sequence[Any]) -> Iterator[Any]:
    """Steps, and those inside them, undoing and following them."""
    for step in steps:
        verb, payload, undo, always = step
        yield step
        for inner in (payload[3] if verb == "each" else (), undo, always):
            yield from _flat(inner)


def _calls(steps: Sequence[Any]) -> list[Any]:
    """(symbols, role, arguments, returns) of every call."""
    return [payload for verb, payload, *_rest in _flat(steps) if verb == "call"]


def called(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(operation, symbol) of every call that an operation makes in steps, in whatever version."""
    for operation, (_line, variants) in description["operations"].items():
        for form, _since, _before, _platforms, what, _extras in variants:
            if form == "steps":
                yield from ((operation, symbol) for symbols, *_rest in _calls(what[2]) for symbol in symbols)


def _mentioned(arguments: Sequence[Argument], returns: Argument) -> Iterator[str]:
    """The names that a call takes and binds."""
    if returns[0] in ("result", "pointer"):
        yield returns[1]
    for argument in arguments:
        if argument[0] in ("param", "out", "buffer", "length", "pointer_to"):
            yield argument[1]
        elif argument[0] in ("struct_in", "struct_out"):
            for pair in argument[2]:
                yield from _of_field(pair if argument[0] == "struct_in" else pair[::-1])
        elif argument[0] == "array":
            yield from (item for item in argument[1] if isinstance(item, str))


def _of_field(pair: tuple[str, Any]) -> Iterator[str]:
    value = pair[1]
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str):
        yield value[1]
