"""What each function of an API of objects does by itself, read off the steps that call it.

A file says what several calls do together: an operation, or a part of a policy. The call that has most of what that
takes and gives is the one that does it; what makes a thing for it is a maker, and what ends a thing ends it. A function
whose meaning cannot be told in this way is no simulation's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt import errors
from nbxrt.simulation.calls import (
    answered,
    calls_in,
    flat,
    is_object,
    mentioned,
    names_of_objects,
    seen_object,
    told_apart,
)
from nbxrt.simulation.primitives import ALONE, BESIDE, CLOCK, LEVELS, PARTS, PRIMITIVES, RENAMED
from nbxrt.simulation.probing import Probes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Argument = tuple[Any, ...]


@attrs.frozen
class Stepped:
    """What one call does: the arguments are the contract's forms, and these.

    `("object", sort)`, `("level", number)`, `("here",)`: a handle that has to be right, the last one of the device that
    the call is about. `("ordinal", name)`: the handle of a device that is a parameter. `("stream", is_given)`: that of
    a stream, whose device the call is about. `("cells", arguments, type)`: an array of these.
    `written` is the call as the file has it, `values` are parameters that no argument gives, and `fixed`
    what results are, as numbers or in C, that the core does not give. `models` are those of the devices that have it,
    `serves` other operations whose heart it is.
    """

    symbols: tuple[str, ...]
    role: str
    operation: str
    arguments: tuple[Argument, ...]
    returns: Argument
    written: tuple[tuple[Argument, ...], Argument]
    values: tuple[tuple[str, int], ...] = ()
    fixed: tuple[tuple[str, int | str], ...] = ()
    models: frozenset[str] = frozenset()
    serves: tuple[str, ...] = ()


@attrs.define
class Names:
    """What the names of one list of steps stand for: `event`, or the maker of an object; and names of addresses."""

    operation: str
    models: frozenset[str]
    things: dict[str, str] = attrs.field(factory=dict)
    renamed: dict[str, str] = attrs.field(factory=dict)


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
        self._models = frozenset(description["devices"]["models"] or ())
        self._found: dict[tuple[Any, ...], Stepped] = {}
        #: The functions that make objects; which one made it is an object's sort.
        self._makers: list[str] = []
        self._kept: dict[str, str] = {}
        #: What the box of a mark holds, in order.
        self._box: tuple[str, ...] = ()

    def all(self) -> list[Stepped]:
        """What each call does."""
        self._list()
        for name, (_line, _scope, make, release) in self._description["state"].items():
            self._objects(name, make, release)
        for _models, steps in self._part("marks.record"):
            self._note_box(steps)
        for part, operation in PARTS.items():
            for models, steps in self._part(part):
                self._read(self._built(operation), models, steps, BESIDE.get(part, ""))
        for word in self._words:
            for models, steps in self._part(f"facts.{word}"):
                self._fact(word, models, steps)
        for operation, models, steps in self._operations():
            self._note_served(operation, steps)
            self._read(operation, models, steps, "")
        self._probes()
        return self._with_facts_as_one()

    def _built(self, operation: str) -> str:
        """Code that a call of its own builds is only given by the one that loads it."""
        return "module_create" if operation == "module_load" and self._part("kernels.build") else operation

    def _unable(self, reason: str) -> errors.CapabilityError:
        return errors.CapabilityError(
            f"{self._description['title']} cannot be simulated: {reason}",
            hint="`nbxrt conform` needs no simulation where the vendor's own library is here",
            backend=self._description["name"],
        )

    # where steps are

    def _part(self, part: str) -> list[tuple[frozenset[str], Sequence[Any]]]:
        policy, _dot, name = part.partition(".")
        parts = self._description["policies"].get(policy, {"parts": {}})["parts"]
        return list(self._by_model(parts[name][2])) if name in parts else []

    def _by_model(self, variants: Sequence[Any]) -> Iterator[tuple[frozenset[str], Sequence[Any]]]:
        """The steps of each variant, and the models of the devices that it is for."""
        left = self._models
        for form, _since, _before, _platforms, what, _extras in variants:
            models = frozenset({what[0]}) if isinstance(what, tuple) and what[0] in self._models else left
            if form == "steps":
                yield models, what[2]
            left -= models if models < self._models else frozenset()

    def _operations(self) -> list[tuple[str, frozenset[str], Sequence[Any]]]:
        """The operations that are steps: those on a stream first, and of these the ones with least beside the call."""
        found = [
            (operation, models, steps)
            for operation, (_line, variants) in self._description["operations"].items()
            for models, steps in self._by_model(variants)
        ]
        return sorted(found, key=lambda each: self._order(each[0]))

    def _order(self, operation: str) -> tuple[bool, int, bool]:
        """What ends memory is known before what undoes its making; what is both the host's and managed is managed."""
        takes = [name for name, *_rest in self._entries[operation]["takes"]]
        is_last = operation not in ("free", "free_host") and self._entries[operation]["group"] != "managed"
        return "stream" not in takes, len(takes), is_last

    # what calls do

    def _objects(self, name: str, make: Sequence[Any], release: Sequence[Any]) -> None:
        """What is kept of a device is an object of the sort that its last call makes."""
        for symbols, role, arguments, returns in calls_in(make):
            self._makers.append(symbols[0])
            self._kept[name] = symbols[0]
            names = Names("object_create", self._models, {name: symbols[0]})
            self._add(names, symbols, role, arguments, returns)
        for symbols, role, arguments, returns in calls_in(release):
            names = Names("object_destroy", self._models, {name: self._kept[name]})
            self._add(names, symbols, role, arguments, returns)

    def _list(self) -> None:
        """Devices, and what is above them, that are counted and asked for one by one."""
        devices = self._description["devices"]
        for at, (form, name, listed) in enumerate(devices["levels"]):
            for key, operation in LEVELS.items() if form == "ask" else ():
                self._of_level(name, operation, listed[key], is_of_devices=at == len(devices["levels"]) - 1)
        if devices["default"] is not None:
            name, default, identity = devices["default"]
            self._of_level(name, "level_at", default, is_of_devices=True)
            for symbols, role, arguments, returns in calls_in(identity):
                self._add(Names("device_facts", self._models), symbols, role, arguments, returns)
                self._fix(self._key(symbols, arguments), {"identity": "(p_device + 1)"})

    def _of_level(self, name: str, operation: str, steps: Sequence[Any], *, is_of_devices: bool) -> None:
        for symbols, role, arguments, returns in calls_in(steps):
            if operation == "object_create":
                self._makers.append(symbols[0])
                self._kept["list"] = symbols[0]
            things = {"list": self._kept["list"]} if "list" in self._kept else {}
            names = Names(operation, self._models, things, {name: "handle"})
            self._add(names, symbols, role, arguments, returns)
            if operation in ("level_count", "level_at"):
                key = self._key(symbols, arguments)
                values = (("is_of_devices", int(is_of_devices)),)
                self._found[key] = attrs.evolve(self._found[key], values=values)

    def _fix(self, key: tuple[Any, ...], values: Mapping[str, int | str]) -> None:
        """Results of a call that the core does not give."""
        self._found[key] = attrs.evolve(self._found[key], fixed=tuple(values.items()))

    def _note_box(self, steps: Sequence[Any]) -> None:
        """Which things a mark is: the one that goes into the queue is the event, the others are objects."""
        boxed = next((payload[1] for verb, payload, *_rest in steps if verb == "mint"), ())
        made: dict[str, str] = {}
        for symbols, _role, arguments, _returns in calls_in(steps):
            names = [argument[1] for argument in arguments if argument[0] == "param"]
            made |= {argument[1]: symbols[0] for argument in arguments if argument[0] == "out"}
            if "queue" in names:
                made |= {name: "event" for name in names if name in boxed}
        self._box = tuple(made.get(name, "event") for name in boxed)
        self._makers += [maker for maker in self._box if maker != "event"]

    def _read(self, operation: str, models: frozenset[str], steps: Sequence[Any], beside: str) -> None:
        """Tell what each call of some steps does."""
        names = Names(operation, models, self._boxed(steps), names_of_objects(steps))
        calls = [call for call in calls_in(steps) if not self._is_known(call, models)]
        main = max(calls, key=lambda call: self._score(operation, call, names), default=None)
        if operation in ("free", "free_host"):
            operation = "memory_release" if any(verb == "each" for verb, *_rest in steps) else "memory_free"
        if operation == "malloc" and any(verb == "track" and is_object(payload) for verb, payload, *_rest in steps):
            operation = "buffer_create"
        seen = seen_object(steps) if operation == "malloc" else ""
        for call in calls:
            symbols, role, arguments, returns = call
            if seen and self._is_of_buffer(call, seen, names):
                continue
            meaning = self._meaning(operation if call is main else beside, call, names)
            self._add(attrs.evolve(names, operation=meaning), symbols, role, arguments, returns)

    def _is_of_buffer(self, call: Any, thing: str, names: Names) -> bool:
        """Whether a call makes an object whose memory the host sees, or tells where; then it is told."""
        symbols, role, arguments, returns = call
        made = {each[1] for each in (*arguments, returns) if each[0] in ("out", "result", "pointer")}
        told = {thing: ("buffer_create", "address"), "address": ("buffer_contents", "buffer")}
        if len(made & told.keys()) != 1:
            return False
        operation, known_as = told[(made & told.keys()).pop()]
        of_buffer = attrs.evolve(names, operation=operation, renamed={**names.renamed, thing: known_as})
        self._add(of_buffer, symbols, role, arguments, returns)
        return True

    def _note_served(self, operation: str, steps: Sequence[Any]) -> None:
        """A call that is known already may be the heart of this operation, too."""
        names = Names(operation, self._models, self._boxed(steps), names_of_objects(steps))
        heart = max(calls_in(steps), key=lambda call: self._score(operation, call, names), default=None)
        key = () if heart is None else self._key(heart[0], heart[2])
        known = self._found.get(key)
        if known is not None and operation not in (*PRIMITIVES, known.operation, *known.serves):
            self._found[key] = attrs.evolve(known, serves=(*known.serves, operation))

    def _is_known(self, call: Any, models: frozenset[str]) -> bool:
        """Whether it was told before what a call does; it does so for these models of device, too."""
        key = self._key(call[0], call[2])
        if key in self._found:
            known = self._found[key]
            self._found[key] = attrs.evolve(_with_numbers(known, call[2]), models=known.models | models)
        return key in self._found

    def _boxed(self, steps: Sequence[Any]) -> dict[str, str]:
        """What the names stand for that are in the box of a mark."""
        found: dict[str, str] = {}
        for verb, payload, *_rest in flat(steps):
            if verb in ("mint", "take", "retire"):
                found |= dict(zip(payload[1], self._box, strict=False))
        return found

    def _score(self, operation: str, call: Any, names: Names) -> int:
        """How much of what an operation takes and gives a call has."""
        entry = self._entries[operation]
        known = {name for name, *_rest in entry["takes"]} | {name for name, _kind in entry["gives"]}
        known |= CLOCK.keys() if operation == "device_facts" else set()
        return len(known & {self._known_as(name, names) for name in mentioned(call[2], call[3])})

    def _known_as(self, name: str, names: Names) -> str:
        base, _dot, item = name.partition(".")
        if item in self._levels and base not in ("state", "owner"):
            return base
        thing = names.things.get(name)
        return ("event" if thing == "event" else "object") if thing else {**RENAMED, **names.renamed}.get(name, name)

    def _meaning(self, operation: str, call: Any, names: Names) -> str:
        """The operation, where the call has some of it; else what it does to the only thing that it makes or ends."""
        symbols, _role, arguments, _returns = call
        if operation and self._score(operation, call, names):
            return ALONE[operation] if self._is_alone(operation, call, names) else operation
        made = [self._known_as(argument[1], names) for argument in arguments if argument[0] == "out"]
        if "event" in made or "object" in made:
            return "mark_create" if "event" in made else "object_create"
        ended = [argument[1] for argument in arguments if argument[0] == "param" and argument[1] in names.things]
        if len(arguments) == 1 and ended:
            return "event_destroy" if names.things[ended[0]] == "event" else "object_destroy"
        if [self._known_as(name, names) for name in mentioned(arguments, ("status",))] == ["stream"]:
            return "stream_flush"
        raise self._unable(f"what `{symbols[0]}` does by itself is not told by its steps")

    def _is_alone(self, operation: str, call: Any, names: Names) -> bool:
        """Whether a call has by itself what the operation needs others for elsewhere: the event, or the stream."""
        forms = {"mark_record": ("out", "event"), "memcpy": ("param", "stream")}
        known = {(each[0], self._known_as(each[1], names)) for each in call[2] if each[0] in ("out", "param")}
        return forms.get(operation) in known

    def _key(self, symbols: tuple[str, ...], arguments: Sequence[Argument]) -> tuple[Any, ...]:
        return (symbols[0], told_apart(arguments), tuple(each for each in arguments if each[0] == "struct_out"))

    def _add(
        self, names: Names, symbols: tuple[str, ...], role: str, arguments: Sequence[Argument], returns: Argument
    ) -> None:
        if self._is_known((symbols, role, arguments, returns), names.models):
            return
        given = tuple(self._argument(argument, names) for argument in arguments)
        self._refuse_unknown(symbols[0], names.operation, given)
        if returns[0] == "result" and self._entries[names.operation]["done"]:
            result: Argument = ("status",)
        elif returns[0] in ("result", "pointer"):
            result = (returns[0], self._known_as(returns[1], names), *returns[2:])
        else:
            result = returns
        self._found[self._key(symbols, arguments)] = Stepped(
            symbols,
            role,
            names.operation,
            given,
            result,
            (tuple(arguments), returns),
            self._values(names, given, arguments, returns),
            self._numbers_of(names.operation, given),
            names.models,
        )

    def _values(
        self, names: Names, given: Sequence[Argument], arguments: Sequence[Argument], returns: Argument
    ) -> tuple[tuple[str, int], ...]:
        """What an object is told apart by: the function that makes it, and whether it is of one device."""
        if not names.operation.startswith("object_"):
            return ()
        things = [names.things[name] for name in mentioned(arguments, returns) if name in names.things]
        flat = [part for each in given for part in (each[1] if each[0] == "cells" else (each,))]
        sort = ("sort", self._sort(things[-1]))
        return (sort, ("is_of_device", int(("here",) in flat))) if names.operation == "object_create" else (sort,)

    def _numbers_of(self, operation: str, given: Sequence[Argument]) -> tuple[tuple[str, int | str], ...]:
        """Results that are numbers of a policy's own: how far work is, and what an argument of a kernel is."""
        policies = self._description["policies"]
        if operation == "event_query" and ("out", "status") in (each[:2] for each in given):
            values = {**policies["queues"]["values"], **policies["marks"]["values"]}
            return (("status", f"sim_told(&call, told, {values.get('complete', 0)}, {values['busy'][0]})"),)
        if operation == "function_kind":
            values = policies["kernels"]["values"]
            pointers, local = values.get("pointers", ()), values.get("local", ())
            other = next(number for number in range(64) if number not in (*pointers, *local))
            kinds = ", ".join(str(numbers[0] if numbers else other) for numbers in ((other,), pointers, local))
            return (("kind", f"((const unsigned[]){{ {kinds} }})[r_kind]"),)
        return ()

    def _refuse_unknown(self, symbol: str, operation: str, given: Sequence[Argument]) -> None:
        takes = {name for name, *_rest in self._entries[operation]["takes"]}
        flat = [part for each in given for part in (each[1] if each[0] == "cells" else (each,))]
        if any(each[0] in ("param", "length", "pointer_to", "padded") and each[1] not in takes for each in flat):
            raise self._unable(f"what `{symbol}` does by itself is not told by its steps")

    def _sort(self, maker: str) -> int:
        return self._makers.index(maker)

    # arguments

    def _argument(self, argument: Argument, names: Names) -> Argument:
        form = argument[0]
        if form == "param":
            return self._param(argument, names)
        if form in ("out", "pointer_to", "padded"):
            return (form, self._known_as(argument[1], names), *argument[2:])
        if form == "struct_out":
            return (form, argument[1], tuple((RENAMED.get(name, name), field) for name, field in argument[2]))
        if form == "array" and not all(isinstance(item, int) for item in argument[1]):
            return ("cells", tuple(self._cell(item, argument[2], names) for item in argument[1]), argument[2])
        return argument

    def _cell(self, item: Any, c_type: str, names: Names) -> Argument:
        if isinstance(item, str):
            return self._param(("param", item, c_type), names)
        return ("const", c_type, item) if isinstance(item, int) else (*item, c_type)

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

    def _fact(self, word: str, models: frozenset[str], steps: Sequence[Any]) -> None:
        """A fact is a field that a call about the device fills."""
        for symbols, role, arguments, returns in calls_in(steps):
            named = tuple(
                (*each[:2], tuple((word, field) for _value, field in each[2])) if each[0] == "struct_out" else each
                for each in arguments
            )
            self._add(Names("device_facts", models), symbols, role, named, returns)
            self._fix(self._key(symbols, named), {word: f"sim_fact(p_device, DEVICE_ATTRIBUTE_{word.upper()})"})

    def _probes(self) -> None:
        """Every simulated device is a GPU; of which model it is, who uses the library says."""
        devices = self._description["devices"]
        asked: dict[Any, Probes] = {}
        for model, probe in [("", devices["gpu"]), *(devices["models"] or {}).items()]:
            if probe is not None:
                (symbols, role, arguments, returns), how, wanted, *_said = probe
                self._add(Names("device_facts", self._models), symbols, role, arguments, returns)
                key = self._key(symbols, arguments)
                asked.setdefault(key, Probes(tuple(devices["models"] or ()))).add(model, how, wanted)
        for key, probes in asked.items():
            if (answer := probes.answer()) is None:
                raise self._unable("what tells its models of devices apart is not one number or text of each")
            self._fix(key, dict.fromkeys(answered(self._found[key].arguments), answer))

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
