"""`nbxrt diff`: what differs in meaning between two descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import click

from nbxrt import descriptions, errors
from nbxrt.cli import cforms, problems
from nbxrt.cli.console import Writer
from nbxrt.cli.problems import FINDINGS, FINE, MISUSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbxrt.catalogue.document import Document

    Path = tuple[str, ...]

#: Sections whose entries are a list of ranges of versions.
_LAYOUTS = ("structs", "enums")
#: What tells descriptions apart and is no part of what they mean, or is compared in a way of its own.
_IDENTITY = ("name", "file", "layers", "operations", "absent", "libraries", "state", *_LAYOUTS, "evidence")


@attrs.frozen
class Difference:
    """What two descriptions say of one thing, in lines for people; empty where one says nothing."""

    path: str
    one: tuple[str, ...]
    other: tuple[str, ...]


@click.command("diff")
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option("as_json", "--json", is_flag=True, help="As JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Only the exit code.")
@click.pass_context
def command(ctx: click.Context, one: str, other: str, as_json: bool, quiet: bool) -> None:
    """Show what differs in meaning between two descriptions.

    Each is a name or a file. Spelling, order of keys and comments are no difference. Exits with 0 when there is none, 1
    when there is one, and 2 when a description cannot be read.
    """
    try:
        found = differences(_Side(one), _Side(other))
    except errors.NbxrtError as error:
        problems.tell(error)
        ctx.exit(MISUSE)
    writer = Writer()
    if as_json and not quiet:
        writer.json([attrs.asdict(each) for each in found])
    elif not quiet:
        for each in found:
            _write(writer, each)
        Writer(stderr=True).line(f"{len(found)} difference{'' if len(found) == 1 else 's'}")
    ctx.exit(FINDINGS if found else FINE)


class _Side:
    """One of the two descriptions: what it means, by path, and what its files say there."""

    def __init__(self, name: str) -> None:
        from nbxrt.catalogue import loading

        self.meanings = dict(_meanings(descriptions.load(name)))
        document = loading.whole(*descriptions.source(name)).document
        assert document is not None  # noqa: S101  # there was no fault
        self._document: Document = document

    def lines(self, path: Path, *, as_written: bool = False) -> tuple[str, ...]:
        """What is said at a path, an item of a list a line; where the files say nothing, what that means.

        An operation is shown in C, which leaves some of it out, unless it is wanted as written.
        """
        from nbxrt.catalogue.yaml_text import flow

        if path[0] == "operations" and not as_written:
            return tuple(_operation(path[1], *self.meanings[path]))
        written = _written(self._document.data, path)
        said = _as_lists(self.meanings.get(path)) if written is None else written
        if isinstance(said, dict) and said.keys() == {"steps"}:
            said = said["steps"]
        return tuple(map(flow, said)) if isinstance(said, list) else () if said is None else (flow(said),)


def differences(one: _Side, other: _Side) -> list[Difference]:
    """What differs, in the order of the format and then of the contract."""
    return [
        Difference(".".join(path), *_without_common(*_sides(one, other, path)))
        for path in dict.fromkeys((*one.meanings, *other.meanings))
        if one.meanings.get(path) != other.meanings.get(path)
    ]


def _sides(one: _Side, other: _Side, path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first, second = one.lines(path), other.lines(path)
    return (
        (first, second) if first != second else (one.lines(path, as_written=True), other.lines(path, as_written=True))
    )


def _without_common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines that only one side has; all of them where they differ by their order alone."""
    mine, yours = (tuple(line for line in a if line not in b) for a, b in ((one, other), (other, one)))
    return (mine, yours) if mine or yours else (one, other)


def _write(writer: Writer, difference: Difference) -> None:
    writer.line(difference.path, "bold")
    for sign, lines, style in (("-", difference.one, "red"), ("+", difference.other, "green")):
        for line in lines:
            writer.row(sign, line, column=2, style=style, word=line)


def _operation(name: str, variants: tuple[Any, ...] | None, reason: str) -> Iterator[str]:
    if variants is None:
        yield f"absent: {reason}"
        return
    contract = descriptions.contract()
    yield from cforms.variants((0, variants), contract["groups"][contract["operations"][name]["group"]])


def _written(data: Any, path: Path) -> Any:
    """What stands in a file at a path, None where nothing does."""
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return None
        data = data[part]
    return data


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_lists(inner) for key, inner in value.items()}
    return [_as_lists(each) for each in value] if isinstance(value, tuple) else value


#: Where a file says what a description has under keys of its own; in `structs` and `enums` there are none.
_STANDS: dict[str, Path] = {
    "visibility": ("presence", "visibility"),
    "device_required": ("presence", "required"),
    "triton_architecture": ("triton",),
    "digits": ("version",),
    "driver_digits": ("driver_version",),
    "init_tolerates": ("init",),
    "only_with_attributes": ("only",),
    "parts": (),
    "values": (),
}


def _meanings(description: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Each thing that a description says, by the path at which a file says it: what two are compared by."""
    told: dict[Path, list[Any]] = {}
    for path, value in _leaves(description):
        told.setdefault(path if path[0] in _LAYOUTS else _standing(path), []).append(value)
    yield from ((path, values[0] if len(values) == 1 else tuple(values)) for path, values in told.items())


def _standing(path: Path) -> Path:
    return tuple(part for key in path for part in _STANDS.get(key, (key,)))


def _leaves(description: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    yield from _flat((), {key: value for key, value in description.items() if key not in _IDENTITY})
    for role, library in description["libraries"].items():
        yield from _flat(("libraries", role), {key: value for key, value in library.items() if key != "line"})
    for entry, (_line, *kept) in description["state"].items():
        yield ("state", entry), kept
    for section in _LAYOUTS:
        for name, ranges in description[section].items():
            for since, before, *layout in ranges:
                span = cforms.span(since, before)
                said = (
                    layout[0] if len(layout) == 1 else dict(zip(("bytes", "fields", "constants"), layout, strict=True))
                )
                yield from _flat((section, f"{name} {span}".rstrip()), said)
    for name in descriptions.contract()["operations"]:
        if name in description["operations"]:
            yield ("operations", name), (description["operations"][name][1], "")
        else:
            yield ("operations", name), (None, description["absent"][name][0])


def _flat(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """The leaves of nested mappings, less those that say nothing."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat((*path, str(key)), inner)
    elif value is not False and value not in (None, "", ()):
        yield path, value
