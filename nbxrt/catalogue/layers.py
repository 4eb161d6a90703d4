"""One description out of several files that extend each other: unit by unit, each value with its place.

A unit is what is replaced as a whole, so that no mapping is ever half one file's and half another's. `merge` takes the
files with the base first and answers with a document like any other, whose nodes know the file that they stand in.
Which file extends which is asked in inheritance.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue.diagnostics import Related, did_you_mean, path_text, quoted
from nbxrt.catalogue.schema_extends import CHANGES, SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nbxrt.catalogue.diagnostics import Diagnostic
    from nbxrt.catalogue.document import Document, Entry, Path

# What a file says about itself.
_OWN = ("extends", "override")
# What the topmost file says for itself alone: what others know of their vendors is not known of this one.
_TOP = ("evidence",)

# Sections that are there even when nothing is left in them.
_ALWAYS = ("libraries", "operations")


@attrs.frozen(eq=False)
class Statement:
    """What one file says of a unit."""

    document: Document
    path: Path

    @property
    def value(self) -> Any:
        """The value as written: a whole one, `null`, or a change to a list."""
        return self.document.at(self.path)

    @property
    def where(self) -> str:
        """File, line and column."""
        return self.document.where(self.path)

    def diagnostic(self, reference: str, message: str, *, below: Path = (), **facts: Any) -> Diagnostic:
        """A fault of the statement, or of a node below it."""
        return self.document.diagnostic((*self.path, *below), reference, message, **{"at": "key", **facts})

    def related(self, message: str) -> Related:
        """The statement as what a fault elsewhere has to do with."""
        return self.document.related(self.path, message)


@attrs.frozen(eq=False)
class Merged:
    """The files as one document; for each unit the statements that were made of it, the one in force last."""

    document: Document
    history: Mapping[Path, tuple[Statement, ...]]
    faults: tuple[Diagnostic, ...]


def merge(documents: Sequence[Document]) -> Merged:
    """Files as one, the base first. Expects files whose form is right.

    A fault leaves its unit as it was, so that all of them are found.
    """
    return _Merge(documents).done()


def absence(file: str) -> str:
    """The reason of an operation that a file turns off without giving one."""
    return f"turned off by {file}"


@attrs.define(eq=False)
class _Unit:
    """A unit while it is put together: what was said of it, its value if it has one, and where that stands.

    `shown` is what was said before the unit was last begun anew, for the history alone.
    """

    path: Path
    shown: list[Statement] = attrs.field(factory=list)
    said: list[Statement] = attrs.field(factory=list)
    is_there: bool = False
    value: Any = None
    entry: tuple[Document, Entry] | None = None
    whole: Statement | None = None

    @property
    def last(self) -> Statement:
        """What is in force."""
        return (self.said or self.shown)[-1]

    def replace(self, statement: Statement) -> None:
        self.whole = statement
        self.is_there = statement.value is not None
        self.value = statement.value
        self.entry = statement.document.entry(statement.path)


@attrs.define(eq=False)
class _Merge:
    """The work of one merge. Units are kept by section, then by key; those of a role by role and key."""

    documents: Sequence[Document]
    units: dict[Path, _Unit] = attrs.field(factory=dict)
    order: dict[str, dict[str, None]] = attrs.field(factory=dict)
    roles: dict[str, list[Statement]] = attrs.field(factory=dict)
    joints: dict[int, Mapping[str | int, tuple[Document, Entry]]] = attrs.field(factory=dict)
    faults: list[Diagnostic] = attrs.field(factory=list)

    def done(self) -> Merged:
        for document in self.documents:
            self.joints.update(document.joints)
            for key, value in document.data.items():
                if key in _OWN or key.startswith("x-") or (key in _TOP and document is not self.documents[-1]):
                    continue
                self.order.setdefault(key, {})
                if key == "libraries":
                    self._say_libraries(document, value)
                elif key in SECTIONS:
                    for name in value:
                        self.order[key].setdefault(name)
                        self._say(Statement(document, (key, name)))
                else:
                    self._say(Statement(document, (key,)))
            self._settle_absences(document)
        top = self.documents[-1]
        document = attrs.evolve(top, data=self._data(), entries={}, joints=self.joints)
        history = {unit.path: (*unit.shown, *unit.said) for unit in self.units.values()}
        history.update({("libraries", role): tuple(said) for role, said in self.roles.items()})
        return Merged(document, history, tuple(sorted(self.faults)))

    # what a file says

    def _say(self, statement: Statement) -> None:
        """Let a unit follow what a file says of it."""
        unit = self.units.setdefault(statement.path, _Unit(statement.path))
        if statement.value is None:
            if self._may_remove(statement, is_there=unit.is_there):
                unit.replace(statement)
        elif is_change(statement.path, statement.value):
            self._change(unit, statement)
        else:
            unit.replace(statement)
        unit.said.append(statement)

    def _say_libraries(self, document: Document, libraries: Mapping[str, Any]) -> None:
        for role, spec in libraries.items():
            self.order["libraries"].setdefault(role)
            statement = Statement(document, ("libraries", role))
            self._say_role(statement, role, spec)
            self.roles.setdefault(role, []).append(statement)

    def _say_role(self, statement: Statement, role: str, spec: Mapping[str, Any] | None) -> None:
        """A role that is turned off, or is another one from now on, or was until now, is begun anew."""
        keys = [unit for unit in self._role_units(role) if unit.is_there]
        if spec is None:
            if self._may_remove(statement, is_there=bool(keys)):
                self._begin_anew(role)
            return
        is_other = any(unit.path[-1] == "same_as" for unit in keys)
        if "same_as" in spec or is_other:
            self._begin_anew(role)
        for key in spec:
            self._say(Statement(statement.document, ("libraries", role, key)))

    def _role_units(self, role: str) -> list[_Unit]:
        return [unit for path, unit in self.units.items() if path[:2] == ("libraries", role)]

    def _begin_anew(self, role: str) -> None:
        """Forget a role's keys; the history of those that come later shows what the role was."""
        for unit in self._role_units(role):
            unit.is_there = False
            unit.shown += unit.said
            unit.said = []

    def _may_remove(self, statement: Statement, *, is_there: bool) -> bool:
        name = quoted(path_text(statement.path))
        if statement.document.place(statement.path).written == "":
            message = f"nothing stands at {name}"
            hint = "write `null` to take out what the extended file says, or give a value"
            self.faults.append(statement.diagnostic("empty-value", message, hint=hint))
            return False
        if not is_there:
            message = f"there is no {name} to take out"
            self.faults.append(statement.diagnostic("nothing-to-change", message, related=self._lacking(statement)))
        return is_there

    def _lacking(self, statement: Statement) -> tuple[Related, ...]:
        """Where the extended file says that it has nothing of the kind, or would have said it."""
        below = self.documents[: self.documents.index(statement.document)]
        name = str(statement.path[-1])
        absent = self.units.get(("absent", name))
        if statement.path[0] == "operations" and absent is not None and absent.is_there:
            return (absent.last.related("absent"),)
        for document in reversed(below):
            for end in range(len(statement.path) - 1, 0, -1):
                if _has(document, statement.path[:end]):
                    said = f"{quoted(path_text(statement.path[:end]))} of what is extended is"
                    return (document.related(statement.path[:end], said),)
        return (Related("what is extended begins", below[-1].name, 1, 1),) if below else ()

    # lists

    def _change(self, unit: _Unit, statement: Statement) -> None:
        """Change a list: first what is removed, then what is put before and after it; what is in it already moves."""
        if not unit.is_there:
            message = f"there is no {quoted(path_text(unit.path))} to change"
            self.faults.append(statement.diagnostic("nothing-to-change", message, related=self._lacking(statement)))
            return
        items = [*zip(unit.value, self._item_entries(unit), strict=True)]
        if not self._may_take_out(unit, statement):
            return
        changed = {how: self._new_items(statement, how) for how in CHANGES}
        gone = [item for how in CHANGES for item, _entry in changed[how]]
        kept = [(item, entry) for item, entry in items if item not in gone]
        result = [*changed["prepend"], *kept, *changed["append"]]
        unit.value = [item for item, _entry in result]
        unit.entry = statement.document.entry(statement.path)
        self.joints[id(unit.value)] = {index: entry for index, (_item, entry) in enumerate(result)}

    def _item_entries(self, unit: _Unit) -> Iterator[tuple[Document, Entry]]:
        joined = self.joints.get(id(unit.value))
        if joined is not None:
            yield from joined.values()
            return
        if unit.whole is not None:
            yield from (unit.whole.document.entry((*unit.path, index)) for index in range(len(unit.value)))

    def _new_items(self, statement: Statement, how: str) -> list[tuple[Any, tuple[Document, Entry]]]:
        path = (*statement.path, how)
        given = statement.value.get(how, ())
        return [(item, statement.document.entry((*path, index))) for index, item in enumerate(given)]

    def _may_take_out(self, unit: _Unit, statement: Statement) -> bool:
        lacking = [(i, each) for i, each in enumerate(statement.value.get("remove", ())) if each not in unit.value]
        for index, item in lacking:
            message = f"{quoted(item)} is not in the list {quoted(path_text(unit.path))}"
            related = unit.last.related("the list is")
            known = [each for each in unit.value if isinstance(each, str)]
            hint = did_you_mean(item, known) if isinstance(item, str) else ""
            facts: dict[str, Any] = {"below": ("remove", index), "at": "value", "related": (related,), "hint": hint}
            self.faults.append(statement.diagnostic("nothing-to-change", message, **facts))
        return not lacking

    # operations that are turned off or on

    def _settle_absences(self, document: Document) -> None:
        """What a file turned off is absent now; what it binds may not be absent, nor what it calls absent be bound."""
        bound = document.data.get("operations", {})
        for name in dict.fromkeys((*bound, *document.data.get("absent", ()))):
            operation = self.units.get(("operations", name))
            absent = self.units.get(("absent", name))
            if operation is None:
                continue
            if absent is None or not absent.is_there:
                if name in bound and bound[name] is None and not operation.is_there and operation.entry is not None:
                    self._make_absent(name, operation)
            elif operation.is_there:
                self._tell_bound_and_absent(operation, absent)

    def _make_absent(self, name: str, operation: _Unit) -> None:
        turned_off = operation.said[-1]
        self.order.setdefault("absent", {}).setdefault(name)
        absent = self.units.setdefault(("absent", name), _Unit(("absent", name)))
        absent.shown = [*operation.shown, *operation.said]
        absent.said = []
        absent.is_there, absent.value, absent.entry = True, absence(turned_off.document.name), operation.entry

    def _tell_bound_and_absent(self, operation: _Unit, absent: _Unit) -> None:
        bound, gone = operation.said[-1], [*absent.shown, *absent.said][-1]
        name = str(operation.path[-1])
        if bound.document is gone.document:
            return  # one file's own contradiction, which meaning.py tells
        if self.documents.index(bound.document) > self.documents.index(gone.document):
            message = f"`{name}` is not offered by what is extended: {absent.value}"
            hint = f"add `absent: {{{name}: null}}` to bind it"
            related = (gone.related("absent"),)
            self.faults.append(bound.diagnostic("bound-and-absent", message, related=related, hint=hint))
        else:
            message = f"`{name}` is absent here and bound in what is extended"
            hint = f"add `operations: {{{name}: null}}` to turn it off"
            related = (bound.related("bound"),)
            self.faults.append(gone.diagnostic("bound-and-absent", message, related=related, hint=hint))

    # the document

    def _data(self) -> dict[str, Any]:
        data: dict[str, Any] = {}
        entries: dict[str | int, tuple[Document, Entry]] = {}
        for key, names in self.order.items():
            if key not in SECTIONS:
                self._place(data, entries, key, self.units[(key,)])
                continue
            section = self._libraries(names) if key == "libraries" else self._mapping(key, names)
            if section or key in _ALWAYS:
                data[key] = section
                entries[key] = self._section_entry(key)
        self.joints[id(data)] = entries
        return data

    def _section_entry(self, *path: str) -> tuple[Document, Entry]:
        """The topmost file's; the one that was turned off last where a section came about by that alone."""
        for document in reversed(self.documents):
            if _has(document, path):
                return document.entry(path)
        return self._section_entry("operations")

    def _mapping(self, section: str, names: Mapping[str, None]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        entries: dict[str | int, tuple[Document, Entry]] = {}
        for name in names:
            self._place(mapping, entries, name, self.units[(section, name)])
        self.joints[id(mapping)] = entries
        return mapping

    def _libraries(self, roles: Mapping[str, None]) -> dict[str, Any]:
        libraries: dict[str, Any] = {}
        entries: dict[str | int, tuple[Document, Entry]] = {}
        for role in roles:
            spec: dict[str, Any] = {}
            inside: dict[str | int, tuple[Document, Entry]] = {}
            for unit in self._role_units(role):
                self._place(spec, inside, str(unit.path[-1]), unit)
            if spec:
                libraries[role] = spec
                self.joints[id(spec)] = inside
                entries[role] = self._section_entry("libraries", role)
        self.joints[id(libraries)] = entries
        return libraries

    @staticmethod
    def _place(
        mapping: dict[str, Any], entries: dict[str | int, tuple[Document, Entry]], key: str, unit: _Unit
    ) -> None:
        if unit.is_there and unit.entry is not None:
            mapping[key] = unit.value
            entries[key] = unit.entry


def is_change(path: Path, value: Any) -> bool:
    """Whether a unit's value changes a list instead of replacing it."""
    is_list = path[-1] in ("platforms", "visibility") or (path[0] == "libraries" and path[-1] in ("names", "search"))
    return is_list and isinstance(value, dict)


def _has(document: Document, path: Sequence[str | int]) -> bool:
    node = document.data
    for part in path:
        if not isinstance(node, dict) or part not in node:
            return False
        node = node[part]
    return node is not None
