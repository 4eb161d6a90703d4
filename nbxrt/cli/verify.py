"""`nbxrt verify`: a backend file beside the vendor's header and library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbxrt import verifying
from nbxrt.cli import files
from nbxrt.cli.console import Writer
from nbxrt.cli.problems import FINDINGS, FINE
from nbxrt.verifying import recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nbxrt.verifying import Result, Row

_STYLES = {"ok": "green", "wrong": "bold red", "unverified": "yellow"}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("verify")
@click.argument("name", metavar="NAME|FILE")
@click.option("--header", "headers", multiple=True, type=_FILE, metavar="FILE", help="A header; may be given again.")
@click.option(
    "--include", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="FOLDER",
    help="Where headers that it includes are looked for, after its own folder.",
)  # fmt: skip
@click.option("--library", "libraries", multiple=True, type=_FILE, metavar="FILE", help="A library; it is not loaded.")
@click.option(
    "--version", "versions", multiple=True, metavar="[ROLE=]VERSION",
    help="The version of the runtime, or of another role; by the libraries' file names when left out.",
)  # fmt: skip
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Keep the signatures that the headers declare, for `nbxrt simulate`: `signatures/NAME.json` beside the file.",
)  # fmt: skip
@click.option("as_json", "--json", is_flag=True, help="As JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    headers: Sequence[Path],
    include: Sequence[Path],
    libraries: Sequence[Path],
    versions: Sequence[str],
    record: Path | None,
    as_json: bool,
) -> None:
    """Compare a backend file with the vendor's headers and libraries.

    Headers are read by this machine's C++ compiler. Of every function: how many parameters, and the size and kind of
    each; of numbers, codes, structures and fields: their values and places. What nothing at hand can tell is
    `unverified`. Exits with 1 when something disagrees, or nothing was verified. Nothing is loaded or called.
    """
    if not headers and not libraries:
        raise click.UsageError("there is nothing to compare with: give --header FILE, --library FILE, or both")
    if record is not None and not headers:
        raise click.UsageError("--record keeps what headers declare: give --header FILE too")
    result = verifying.verify(
        name, headers=headers, include=include, libraries=libraries, version=dict(map(_version, versions))
    )
    if record is not None:
        _keep(record, result)
    writer = Writer()
    if as_json:
        writer.json(result.to_dict())
    else:
        _write(writer, result)
    ctx.exit(FINE if result.ok else FINDINGS)


def _keep(file: Path, result: Result) -> None:
    if not result.ok:
        return  # what is wrong with the file, or with the headers, comes first
    with files.writing(file):
        recording.keep(file, result)


def _version(written: str) -> tuple[str, str]:
    role, equals, version = written.partition("=")
    return (role, version) if equals else ("runtime", written)


def _write(writer: Writer, result: Result) -> None:
    versions = ", ".join(f"{role} {version}" for role, version in result.versions.items() if version)
    writer.line(f"{result.title}, {result.file}{f': {versions}' if versions else ''}", "bold")
    for note in result.notes:
        writer.line(f"  {note}")
    writer.line()
    for row in result.rows:
        by = f"  {', '.join(row.by)}" if row.by else ""
        writer.line(f"{row.state:<10} {f'{row.subject}:{row.line}':<44}{by}".rstrip(), _STYLES[row.state.value])
        for line in _details(row):
            writer.line(f"{'':<13}{line}")
    writer.line()
    writer.line(", ".join(f"{count} {state}" for state, count in result.counts.items()))


def _details(row: Row) -> Iterator[str]:
    yield from row.faults
    yield from row.notes
    if row.faults:
        yield from (f"the header says {declared}" for declared in row.declared)
