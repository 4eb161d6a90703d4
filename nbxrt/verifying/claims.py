"""What a backend file states of the vendor's interface in one version: functions, numbers, codes, layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.binding.library import applies
from nbxrt.catalogue.policies import NUMBERED
from nbxrt.verifying import comparing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Version = tuple[int, ...]


@attrs.frozen
class Function:
    """A call: one of the symbols is a function of the role's library, with these parameters and this result.

    Calls of one subject and one `place` stand in for each other: the first that the library has is the one. What
    `may_lack` is there in some versions only.
    """

    subject: str
    role: str
    symbols: tuple[str, ...]
    takes: tuple[comparing.Type, ...]
    returns: comparing.Type
    place: int = 0
    may_lack: bool = False


@attrs.frozen
class Constant:
    """A number that the vendor's headers have under a name; an empty name is one that the file does not tell."""

    subject: str
    word: str
    name: str
    value: int


@attrs.frozen
class Passed:
    """A number that the file gives a function or a structure: where it says so, to what, at which place there."""

    subject: str
    of: str
    place: tuple[int | str, ...]
    value: int


@attrs.frozen
class Field:
    """A member of a structure: its paths in the headers, of which one counts, where it lies, its type or its size."""

    name: str
    members: tuple[str, ...]
    offset: int
    type: comparing.Type


@attrs.frozen
class Layout:
    """A structure, by its name in the header."""

    subject: str
    role: str
    name: str
    nbytes: int
    fields: tuple[Field, ...]


@attrs.frozen(eq=False)
class Claims:
    """Everything that a description states for these versions; `names` are the file's `headers`."""

    description: Mapping[str, Any]
    contract: Mapping[str, Any]
    versions: Mapping[str, Version]
    names: Mapping[str, Any]
    system: str

    def served(self, role: str) -> str:
        """The role whose library serves a role."""
        return str(self.description["libraries"].get(role, {}).get("same_as", role))

    def functions(self) -> Iterator[Function]:
        """Every call of an operation, those that keep and list devices and serve policies, then the roles' own."""
        for operation, (_line, variants) in self.description["operations"].items():
            yield from self._functions(f"operations.{operation}", variants)
        for place, (subject, call) in enumerate(self._kept()):
            yield self._function(subject, call[1], call, place)
        yield from self._role_functions()
        if launch := self.description["launch"]:
            pointers = (comparing.scalar("pointer"),) * 4
            role = self.served(launch["library"])
            yield Function("launch", role, (launch["call"],), pointers, comparing.scalar("int"), may_lack=True)
            if asks := launch["parameters"]:
                taken = tuple(map(comparing.scalar, ("pointer", "size", "pointer", "pointer")))
                yield Function("launch", role, (asks,), taken, comparing.scalar("int"), 2, may_lack=True)

    def _functions(self, subject: str, variants: Iterable[tuple[Any, ...]]) -> Iterator[Function]:
        """The calls of an operation: of plain ones the first that is there counts, of steps each."""
        for call in self._calls(variants, ("call",)):
            yield self._function(subject, call[1], call)
        for place, call in enumerate(self._calls(variants, ("steps",)), 1):
            yield self._function(subject, call[1], call, place)

    def _kept(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """The calls of the sections about objects, each with where it stands."""
        for name, (_line, _scope, steps, release) in self.description["state"].items():
            yield from ((f"state.{name}", call) for call in _in_steps((*steps, *release)))
        for policy, given in self.description["policies"].items():
            for part, (_takes, _gives, variants) in given["parts"].items():
                yield from ((f"policies.{policy}.{part}", call) for call in self._calls(variants))
        yield from (("devices", call) for call in _listing(self.description["devices"]))

    def _calls(
        self, variants: Iterable[tuple[Any, ...]], forms: tuple[str, ...] = ("call", "steps")
    ) -> Iterator[tuple[Any, ...]]:
        """The calls of an operation's variants in these versions: the one, or those among its steps."""
        for form, since, before, platforms, what, _results in variants:
            if form not in forms or (platforms is not None and self.system not in platforms):
                continue
            if applies(self.versions[self.served(what[1])], since, before):
                yield from (what,) if form == "call" else _in_steps(what[2])

    def _role_functions(self) -> Iterator[Function]:
        for role, key, call in self._role_calls():
            yield self._function(f"libraries.{role}.{key}", call[1] or role, call)

    def _role_calls(self) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
        """The calls of each role's library itself: (role, key, call)."""
        for role in self.versions:
            data = self.description["libraries"][role]
            calls = {key: data[key] for key in ("version", "driver_version", "init", "enter", "close")}
            calls |= {f"status.{key}": data["status"][key] for key in ("clear", "name", "text")}
            yield from ((role, key, call) for key, call in calls.items() if call)

    def _function(self, subject: str, role: str, call: tuple[Any, ...], place: int = 0) -> Function:
        symbols, _role, arguments, returns, *_usual = call
        takes = comparing.parameters(arguments, lambda struct: self._layout(struct, role)[0])
        return Function(subject, self.served(role), symbols, tuple(takes), comparing.returned(returns), place)

    def _layout(self, struct: str, role: str) -> tuple[int, Mapping[str, tuple[Any, ...]]]:
        """Size and fields of a structure in the role's version; the first of the file where none is for it."""
        layouts = self.description["structs"][struct]
        version = self.versions[self.served(role)]
        _since, _before, nbytes, fields, _constants = next(
            (layout for layout in layouts if applies(version, layout[0], layout[1])), layouts[0]
        )
        return nbytes, fields

    def constants(self) -> Iterator[Constant]:
        """The numbers of words and flags, of policies and of attributes of a launch, and the codes of each role."""
        for enum in self.description["enums"]:
            names = self.names.get("enums", {}).get(enum, {})
            for word, number in self._numbers(enum, self._role_using(enum)).items():
                yield Constant(f"enums.{enum}", word, names.get(word, ""), number)
        yield from self._codes()
        yield from self._numbers_of_policies()
        if launch := self.description["launch"]:
            named_attributes = self.names.get("launch", {}).get("attributes", {})
            for word, (number, _value, _above) in launch["attributes"].items():
                yield Constant("launch.attributes", word, named_attributes.get(word, ""), number)

    def _codes(self) -> Iterator[Constant]:
        for role in self.versions:
            status = self.description["libraries"][role]["status"]
            kinds = self.names.get("codes", {}).get(role, {})
            for kind, codes in {"success": (status["success"],), **status["kinds"]}.items():
                yield from _named(f"libraries.{role}.status", kind, kinds.get(kind, ()), codes)

    def _numbers_of_policies(self) -> Iterator[Constant]:
        for policy, given in self.description["policies"].items():
            names = self.names.get("policies", {}).get(policy, {})
            for word in (word for word in NUMBERED.get(policy, ()) if word in given["values"]):
                yield from _named(f"policies.{policy}", word, names.get(word, ()), given["values"][word])

    def named_numbers(self) -> Mapping[str, tuple[str, ...]]:
        """The names in headers of numbers that stand in calls, by the function or structure that is given them."""
        return {of: _members(names) for of, names in self.names.get("constants", {}).items()}

    def passed(self) -> Iterator[Passed]:
        """The numbers that stand in calls, and those that are written into their structures."""
        for operation, (_line, variants) in self.description["operations"].items():
            for call in self._calls(variants):
                yield from _numbers_in(f"operations.{operation}", call)
        for subject, call in self._kept():
            yield from _numbers_in(subject, call)
        for role, key, call in self._role_calls():
            yield from _numbers_in(f"libraries.{role}.{key}", call)
        for struct, role in self._structs().items():
            version = self.versions[self.served(role)]
            for since, before, _nbytes, _fields, constants in self.description["structs"][struct]:
                if applies(version, since, before):
                    yield from (Passed(f"structs.{struct}", struct, (at,), value) for at, value in constants.items())

    def _numbers(self, enum: str, role: str) -> Mapping[str, int]:
        entries = self.description["enums"].get(enum, ())
        version = self.versions[role]
        return next((words for since, before, words in entries if applies(version, since, before)), {})

    def _role_using(self, enum: str) -> str:
        """The role whose library an enum, or a set of flags, is passed to."""
        for operation, (_line, variants) in self.description["operations"].items():
            entry = self.contract["operations"][operation]
            kinds = {kind for _name, kind, _zero, _default in entry["takes"]} | {kind for _name, kind in entry["gives"]}
            calls = [*self._calls(variants)]
            flags = {argument[1] for call in calls for argument in call[2] if argument[0] == "flags"}
            if calls and enum in kinds | flags:
                return self.served(calls[0][1])
        return "runtime"

    def layouts(self) -> Iterator[Layout]:
        """The structures that calls use."""
        for struct, role in self._structs().items():
            nbytes, fields = self._layout(struct, role)
            named = self.names.get("structs", {}).get(struct, {})
            stated = tuple(
                Field(field, _members(named.get(field, field)), spec[0], _field_type(spec))
                for field, spec in fields.items()
            )
            yield Layout(f"structs.{struct}", self.served(role), struct, nbytes, stated)
        for part, names in self.names.get("launch", {}).items():
            if part != "attributes" and self.description["launch"]:
                yield self._launch_layout(part, names)

    def _launch_layout(self, part: str, names: Mapping[str, str]) -> Layout:
        """A structure that a launch is given, of which places are stated and no types."""
        launch = self.description["launch"]
        places = {name: at for name, at in launch[part].items() if name != "bytes"}
        fields = tuple(Field(name, (names[name],), places[name], comparing.ANY) for name in places if name in names)
        return Layout(f"launch.{part}", self.served(launch["library"]), names["type"], launch[part]["bytes"], fields)

    def _structs(self) -> dict[str, str]:
        """Each structure that a call of these versions uses, and the role of its library."""
        used: dict[str, str] = {}
        operations = [call for _line, each in self.description["operations"].values() for call in self._calls(each)]
        for _symbols, role, arguments, *_rest in (*operations, *(call for _subject, call in self._kept())):
            names = (each[1] for each in arguments if each[0] == "rows" or each[0].startswith("struct"))
            used.update((name, role) for name in names if name not in used)
        return used


def _numbers_in(subject: str, call: tuple[Any, ...]) -> Iterator[Passed]:
    """The numbers among a call's arguments, in its arrays and in its structures."""
    for symbol in call[0]:
        for at, argument in enumerate(call[2]):
            if argument[0] == "const":
                yield Passed(subject, symbol, (at,), argument[2])
            elif argument[0] == "array":
                numbers = [(place, item) for place, item in enumerate(argument[1]) if isinstance(item, int)]
                yield from (Passed(subject, symbol, (at, place), number) for place, number in numbers)
            elif argument[0] == "struct_in":
                given = [(field, value) for field, value in argument[2] if isinstance(value, int)]
                yield from (Passed(subject, argument[1], (field,), number) for field, number in given)


def _in_steps(steps: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The calls among steps, and among what undoes and follows them."""
    for verb, payload, undo, always in steps:
        if verb == "call":
            yield payload
        nested = payload[3] if verb == "each" else ()
        for inner in (nested, undo, always):
            yield from _in_steps(inner)


def _listing(devices: Mapping[str, Any] | None) -> Iterator[tuple[Any, ...]]:
    """The calls that list devices, tell their kinds, and find functions that are not exported."""
    if devices is None:
        return
    for form, _name, listed in devices["levels"]:
        yield from (listed,) if form == "fill" else (call for steps in listed.values() for call in _in_steps(steps))
    _level, *steps = devices["default"] or (None,)
    yield from (call for each in steps for call in _in_steps(each))
    yield from (probe[0] for probe in (devices["gpu"], *devices["models"].values()) if probe is not None)
    if devices["functions"] is not None:
        yield devices["functions"]


def _named(subject: str, word: str, names: str | Iterable[str], numbers: int | Iterable[int]) -> Iterator[Constant]:
    """Numbers with their names in headers, in one order."""
    of_numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    named = _members(names)
    if len(named) != len(of_numbers):  # they are of those that a file which extends that one has replaced
        named = ("",) * len(of_numbers)
    yield from (Constant(subject, word, *each) for each in zip(named, of_numbers, strict=True))


def _members(named: str | Iterable[str]) -> tuple[str, ...]:
    return (named,) if isinstance(named, str) else tuple(named)


def _field_type(spec: tuple[Any, ...]) -> comparing.Type:
    return comparing.Type("bytes", spec[2]) if len(spec) > 2 else comparing.scalar(spec[1])
