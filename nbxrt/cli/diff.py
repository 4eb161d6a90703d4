"""`nbxrt diff`: what differs in meaning between two descriptions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs
import click

from nbxrt import descriptions, errors
from nbxrt.cli import cforms, problems
from nbxrt.cli.console import Writer
from nbxrt.cli.problems import FINDINGS, FINE, MISUSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What tells descriptions apart and is no part of what they mean.
_IDENTITY = ("name", "file", "layers", "operations", "absent", "libraries", "structs", "enums", "evidence")


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
    """Show what differs in meaning between two descriptions, each a name or a file.

    Spelling, order of keys and comments are no difference. Exits with 0 when there is none, 1 when there is one, and 2
    when a description cannot be read.
    """
    try:
        found = differences(descriptions.load(one), descriptions.load(other))
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


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """What differs, in the order of the format and then of the contract."""
    first, second = dict(_meanings(one)), dict(_meanings(other))
    return [
        Difference(path, *_without_common(_lines(first, path), _lines(second, path)))
        for path in dict.fromkeys((*first, *second))
        if first.get(path, _NOTHING) != second.get(path, _NOTHING)
    ]


def _without_common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines that only one side has; all of them where they differ by their order alone."""
    mine, yours = (tuple(line for line in a if line not in b) for a, b in ((one, other), (other, one)))
    return (mine, yours) if mine or yours else (one, other)


_NOTHING = object()


def _write(writer: Writer, difference: Difference) -> None:
    writer.line(difference.path, "bold")
    for sign, lines, style in (("-", difference.one, "red"), ("+", difference.other, "green")):
        for line in lines:
            writer.row(sign, line, column=2, style=style, word=line)


def _lines(meanings: Mapping[str, Any], path: str) -> tuple[str, ...]:
    value = meanings.get(path, _NOTHING)
    if value is _NOTHING:
        return ()
    kind, _dot, name = path.partition(".")
    if kind == "operations":
        return tuple(_operation(name, *value))
    is_list = isinstance(value, tuple) and any(isinstance(item, tuple) for item in value)
    return tuple(json.dumps(item, ensure_ascii=False) for item in (value if is_list else (value,)))


def _operation(name: str, variants: tuple[Any, ...] | None, reason: str) -> Iterator[str]:
    if variants is None:
        yield f"absent: {reason}"
        return
    contract = descriptions.contract()
    yield from cforms.variants((0, variants), contract["groups"][contract["operations"][name]["group"]])


def _meanings(description: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each thing that a description says, by its path: what two descriptions are compared by."""
    yield from _flat("", {key: value for key, value in description.items() if key not in _IDENTITY})
    for role, library in description["libraries"].items():
        yield from _flat(f"libraries.{role}", {key: value for key, value in library.items() if key != "line"})
    for section in ("structs", "enums"):
        for name, ranges in description[section].items():
            for since, before, *layout in ranges:
                path = f"{section}.{name}"
                span = cforms.span(since, before)
                said = (
                    layout[0] if len(layout) == 1 else dict(zip(("bytes", "fields", "constants"), layout, strict=True))
                )
                yield from _flat(f"{path} {span}".rstrip(), said)
    for name in descriptions.contract()["operations"]:
        if name in description["operations"]:
            yield f"operations.{name}", (description["operations"][name][1], "")
        else:
            yield f"operations.{name}", (None, description["absent"][name][0])


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of nested mappings."""
    if not isinstance(value, dict):
        yield path, value
        return
    for key, inner in value.items():
        yield from _flat(f"{path}.{key}" if path else key, inner)
