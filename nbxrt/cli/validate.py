"""`nbxrt validate`: every fault of backend files, for people, for programs, or as annotations of a hosted CI run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from nbxrt import describing
from nbxrt.cli.console import Writer
from nbxrt.cli.problems import FINDINGS, FINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nbxrt.catalogue.diagnostics import Diagnostic


@attrs.frozen
class Result:
    """The files that were validated, in order, each with its faults."""

    faults: tuple[tuple[Path, tuple[Diagnostic, ...]], ...]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """All faults, file by file and in order of place."""
        return [diagnostic for _file, diagnostics in self.faults for diagnostic in diagnostics]

    @property
    def wrong(self) -> int:
        """How many files have a fault."""
        return sum(bool(diagnostics) for _file, diagnostics in self.faults)

    def summary(self) -> str:
        """The result in one line."""
        files = _counted(len(self.faults), "file")
        if not self.wrong:
            return f"{files}: no faults"
        return f"{files}: {_counted(len(self.diagnostics), 'fault')} in {self.wrong} of them"


@click.command("validate")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(["human", "json", "github"]), default="human", show_default=True,
    help="For people, for programs, or as annotations of a GitHub workflow.",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No summary line; nothing at all when there is no fault.")
@click.pass_context
def command(ctx: click.Context, paths: Sequence[Path], form: str, quiet: bool) -> None:
    """Check backend files: their YAML, their form, their meaning. A folder stands for its *.yaml files.

    Every fault is reported at once. Exits with 1 when there is one. Nothing is loaded, and nothing is fetched.
    """
    files = dict.fromkeys(file for path in paths for file in _files(path))
    result = Result(tuple((file, describing.validate(file)) for file in files))
    _REPORTERS[form](Writer(), result)
    if not quiet:
        for other in (other for path in paths if path.is_dir() for other in _passed_over(path)):
            Writer(stderr=True).line(f"{other}: passed over, since the name of a backend file ends in .yaml")
        Writer(stderr=True).line(result.summary())
    ctx.exit(FINDINGS if result.wrong else FINE)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    files = sorted(path.glob("*.yaml"))
    others = [f"{each.name} is none" for each in _passed_over(path)[:1]]
    if not files:
        raise click.UsageError(", and ".join([f"the folder {path} holds no *.yaml file", *others]))
    yield from files


def _passed_over(path: Path) -> list[Path]:
    """What is YAML by its name in a folder, and stands for nothing."""
    taken = {*path.glob("*.yaml")}
    return sorted(each for each in path.glob("*") if each.suffix.lower() in (".yml", ".yaml") and each not in taken)


def _human(writer: Writer, result: Result) -> None:
    for diagnostic in result.diagnostics:
        writer.line(f"{diagnostic.one_line()} [{diagnostic.reference}]", "bold")
        for line in _below_place(diagnostic):
            writer.line(f"  {line}".rstrip())
        writer.line()


def _below_place(diagnostic: Diagnostic) -> list[str]:
    """The excerpt, the notes and the hint; what stands above them is in the fault's own line already."""
    _message, _arrow, below = diagnostic.render().partition("\n  --> ")
    return below.split("\n")[1:]


def _json(writer: Writer, result: Result) -> None:
    writer.json(
        {
            "files": [os.fspath(file) for file, _diagnostics in result.faults],
            "faults": [diagnostic.to_dict() for diagnostic in result.diagnostics],
        }
    )


def _github(writer: Writer, result: Result) -> None:
    """Workflow commands: `::error file=…,line=…::message`, in GitHub's own escaping."""
    for each in result.diagnostics:
        where = {
            "file": each.file, "line": each.line, "col": each.column, "endColumn": each.end_column,
            "title": each.reference,
        }  # fmt: skip
        properties = ",".join(f"{key}={_escaped(str(value), property_=True)}" for key, value in where.items())
        hint = f"\nhint: {each.hint}" if each.hint else ""
        writer.line(f"::error {properties}::{_escaped(each.message + hint)}")


def _escaped(text: str, *, property_: bool = False) -> str:
    escapes = {"%": "%25", "\r": "%0D", "\n": "%0A"} | ({":": "%3A", ",": "%2C"} if property_ else {})
    return "".join(escapes.get(character, character) for character in text)


#: How a result is reported, by the word of `--format`.
_REPORTERS: dict[str, Callable[[Writer, Result], None]] = {"human": _human, "json": _json, "github": _github}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
