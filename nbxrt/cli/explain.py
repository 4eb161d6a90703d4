"""`nbxrt explain`: where a value of a description comes from, and what it replaced."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import attrs
import click

from nbxrt import descriptions, errors
from nbxrt.cli.console import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbxrt.catalogue.document import Document, Path
    from nbxrt.catalogue.layers import Statement


@attrs.frozen
class Said:
    """A value, and the file, line and column that say it."""

    value: Any
    file: str
    line: int
    column: int

    @property
    def where(self) -> str:
        """The place as editors and `grep` understand it."""
        return f"{self.file}:{self.line}:{self.column}"


@attrs.frozen
class Origin:
    """A value in force with its place, and what it replaced, the nearest first.

    `items` are those of a list that several files have put together, each with its own place.
    """

    path: str
    said: Said
    replaced: tuple[Said, ...] = ()
    items: tuple[Said, ...] = ()


@attrs.frozen(eq=False)
class Explained:
    """A description whose every value knows where it comes from."""

    name: str
    document: Document
    history: Mapping[Path, tuple[Statement, ...]]

    def origins(self, path: Path = ()) -> Iterator[Origin]:
        """The origin of a value; of each value below it where it is a section.

        Raises: ArgumentValueError when the description says nothing there.
        """
        path = self._meant(path)
        if self._unit(path) and not self._holds_units(path):
            yield self._origin(path)
            return
        if path:
            self._demand(path)
        below = [unit for unit in self.history if unit[: len(path)] == path and _has(self.document, unit)]
        yield from (self._origin(unit) for unit in below if not self._holds_units(unit))

    def _meant(self, path: Path) -> Path:
        """The path where the answer stands: the reason of an absent operation, the library that another one is."""
        if path[:1] == ("operations",) and len(path) > 1 and not _has(self.document, path[:2]):
            known = descriptions.contract()["operations"].get(path[1])
            places = [("absent", path[1]), ("absent", known["group"] if known else "")]
            return next((place for place in places if _has(self.document, place)), path)
        if path[:1] == ("libraries",) and len(path) > 2 and not _has(self.document, path):
            other = ("libraries", path[1], "same_as")
            return ("libraries", self.document.at(other), *path[2:]) if _has(self.document, other) else path
        return path

    def _unit(self, path: Path) -> Path | None:
        """The unit that a value is in, or is."""
        ends = range(len(path), 0, -1)
        return next((path[:end] for end in ends if path[:end] in self.history and _has(self.document, path)), None)

    def _holds_units(self, path: Path) -> bool:
        return any(unit[:-1] == path for unit in self.history)

    def _origin(self, path: Path) -> Origin:
        self._demand(path)
        unit = self._unit(path) or path
        is_item = len(path) > len(unit) and id(self.document.at(unit)) in self.document.joints
        before = () if is_item else self.history.get(unit, ())[:-1]  # an item took nobody's place in the list
        replaced = tuple(_said(each, path) for each in reversed(before))
        return Origin(_text(path), self._at(path), replaced, tuple(self._items(path)))

    def _at(self, path: Path) -> Said:
        place = self.document.place(path)
        return Said(self.document.at(path), place.value.file, place.line, place.column)

    def _items(self, path: Path) -> Iterator[Said]:
        value = self.document.at(path)
        if isinstance(value, list) and id(value) in self.document.joints:
            yield from (self._at((*path, index)) for index in range(len(value)))

    def _demand(self, path: Path) -> None:
        node, known = self.document.data, True
        for end, part in enumerate(path):
            keys = [str(key) for key in node] if isinstance(node, dict) else []
            known = isinstance(node, (dict, list)) and _has(self.document, path[: end + 1])
            if not known:
                close = errors.nearest(str(part), keys)
                hint = f"did you mean `{_text((*path[:end], close))}`?" if close else ""
                raise errors.ArgumentValueError(f"`{self.name}` says nothing of `{_text(path)}`", hint=hint)
            node = node[part]


def explained(name: str) -> Explained:
    """A description with its origins. Raises: BackendNotFoundError, DescriptionError with every fault."""
    from nbxrt.catalogue import layers, loading

    whole = loading.whole(*descriptions.source(name))
    if whole.history and whole.document is not None:
        return Explained(name, whole.document, whole.history)
    merged = layers.merge([whole.document] if whole.document is not None else [])
    return Explained(name, merged.document, merged.history)


@click.command("explain")
@click.argument("name", metavar="NAME|FILE")
@click.argument("path", default="")
@click.option("as_json", "--json", is_flag=True, help="As JSON.")
def command(name: str, path: str, as_json: bool) -> None:
    """Say where a description's value comes from.

    With it stands what it replaced, in the files that it extends. PATH is as in `operations.malloc_host` or
    `libraries.runtime.search`; a section stands for all that is in it.
    """
    asked = explained(name)
    found = [*asked.origins(_parsed(path))]
    writer = Writer()
    if as_json:
        writer.json({"name": name, "origins": [attrs.asdict(each) for each in found]})
        return
    for origin in found:
        _write(writer, origin)
    for note in _overridden(asked.document.data["name"], path):
        writer.row("overridden", note)


def write_origins(writer: Writer, name: str) -> None:
    """Every value of a description, one after the other, with its place and what it replaced."""
    for origin in explained(name).origins():
        _write(writer, origin)


def _write(writer: Writer, origin: Origin) -> None:
    writer.line(origin.path, "bold")
    if origin.items:
        writer.row("is", "\n".join(f"- {shown(each.value)}\n  {each.where}" for each in origin.items))
        writer.row("put", f"together at {origin.said.where}")
    else:
        writer.row("is", _told(origin.said))
    for before in origin.replaced:
        writer.row("replaced", _told(before))


def _told(said: Said) -> str:
    """A value and its place; a list with an item a line."""
    value = said.value
    is_long = isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)
    text = "\n".join(f"- {shown(item)}" for item in value) if is_long else shown(value)
    return f"{text}\n{said.where}"


def shown(value: Any) -> str:
    """A value as YAML, on one line."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, _data: Any) -> bool:
            return True

    style: Any = {"default_flow_style": True, "width": 10**6, "sort_keys": False, "allow_unicode": True}
    text: str = yaml.dump(value, Dumper=Plain, **style)
    return text.removesuffix("\n").removesuffix("\n...")


def _overridden(name: str, path: str) -> Iterator[str]:
    """The variable that names a library, which goes before all that a file says of finding it."""
    parts = _parsed(path)
    if parts[:1] == ("libraries",) and len(parts) > 1:
        variable = f"NBXRT_{name}_{parts[1]}".upper()
        value = os.environ.get(variable, "").strip()
        if value:
            yield f"by {variable}={value}: that library is taken, and nothing else is tried"


def _said(statement: Statement, path: Path) -> Said:
    """What an earlier file said of a value, or of the unit that the value is in."""
    where = path if _has(statement.document, path) else statement.path
    place = statement.document.place(where)
    return Said(statement.document.at(where), place.value.file, place.line, place.column)


def _parsed(text: str) -> Path:
    """`libraries.runtime.search[0]` as keys and indices."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"[.\[\]]+", text) if part)


def _text(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _has(document: Document, path: Path) -> bool:
    try:
        document.at(path)
    except (KeyError, IndexError, TypeError):
        return False
    return True
