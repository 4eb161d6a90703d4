"""`nbxrt libraries`: every place where a backend's libraries were looked for, and what was found there."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import click

from nbxrt import descriptions
from nbxrt.binding import search
from nbxrt.binding.binder import Binder
from nbxrt.binding.machine import Machine
from nbxrt.cli.console import TIED, Writer
from nbxrt.cli.problems import FINDINGS, FINE
from nbxrt.errors import DescriptionError, LibraryBrokenError, LibraryNotFoundError, NbxrtError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nbxrt.binding.candidates import Candidate

#: How a verdict is said and shown; a copy that another came before is no verdict on it.
_SAID = {"untried": "not tried"}
_STYLES = {"chosen": "green", "broken": "red", "refused": "yellow"}


@click.command("libraries")
@click.argument("name", required=False)
@click.option("as_json", "--json", is_flag=True, help="As JSON.")
@click.pass_context
def command(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """List where each library was looked for, with verdicts.

    Every candidate stands in the order of the search. NAME is a backend's name or the path of its file; without it, all
    that can be named are listed. The chosen libraries are loaded and none of their functions is called. Exits with 1
    when a file or a library cannot be used, or when the library of a backend given by name is not found.
    """
    reports = [report(name, Machine())] if name else [_report_of_all(each) for each in descriptions.names()]
    writer = Writer()
    if as_json:
        writer.json(reports)
    else:
        for each in reports:
            _write(writer, each)
    ctx.exit(FINDINGS if any(_is_finding(each, named=name is not None) for each in reports) else FINE)


def report(name: str, machine: Machine) -> dict[str, Any]:
    """Everything about the libraries of a backend on a machine, as plain values.

    Raises: BackendNotFoundError, DescriptionError for a file with faults, or that somebody else may change.
    """
    description = descriptions.load(name)
    descriptions.demand_trust(description)
    facts = {"name": description["name"], "title": description["title"], "warnings": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        binder = Binder(description, descriptions.contract(), machine)
        roles = [_role(binder, role, machine) for role in description["libraries"]]
    return {**facts, "warnings": list(dict.fromkeys(str(each.message) for each in caught)), "libraries": roles}


def _report_of_all(name: str) -> dict[str, Any]:
    """The report of one of all backends: a file that cannot be used keeps nobody from the others."""
    try:
        return report(name, Machine())
    except DescriptionError as error:
        said = [each.one_line() for each in error.diagnostics]
        return {"name": name, "title": "cannot be used", "warnings": said, "libraries": []}


def _role(binder: Binder, role: str, machine: Machine) -> dict[str, Any]:
    data = binder.description["libraries"][role]
    facts = {"role": role, "same_as": data.get("same_as", ""), "status": "same", "path": "", "says": "", "hint": ""}
    if facts["same_as"]:
        return {**facts, "says": f"the same library as `{facts['same_as']}`", "candidates": []}
    try:
        library = binder.library(role)
    except LibraryNotFoundError as error:
        status = "broken" if isinstance(error, LibraryBrokenError) else "missing"
        rest = search.untried(binder.description["name"], role, data, machine, error.candidates)  # type: ignore[attr-defined]
        facts |= {"status": status, "says": _why_none(error), "hint": error.hint}
        return {**facts, "candidates": _facts([*error.candidates, *rest])}  # type: ignore[attr-defined]
    facts |= {"status": "chosen", "path": library.path, "says": _why(library.choice)}
    return {**facts, "candidates": _facts([*library.candidates, *library.untried()])}


def _why(choice: Candidate) -> str:
    major = f", major {choice.major}" if choice.major is not None else ""
    odd = f": {choice.reason}" if choice.reason != "loaded" else ""
    return f"{choice.path}{major}, by `{choice.step}`{odd}"


def _why_none(error: NbxrtError) -> str:
    return "not found" if type(error) is LibraryNotFoundError else error.message.split("\n", 1)[0]


def _facts(candidates: Iterable[Candidate]) -> list[dict[str, Any]]:
    keys = ("step", "path", "verdict", "reason", "major")
    return [{key: getattr(candidate, key) for key in keys} for candidate in candidates]


def _is_finding(found: Mapping[str, Any], *, named: bool) -> bool:
    status = {library["role"]: library["status"] for library in found["libraries"]}
    return not status or "broken" in status.values() or (named and status.get("runtime") == "missing")


def _write(writer: Writer, found: Mapping[str, Any]) -> None:
    writer.heading(f"{found['name']}: {found['title']}")
    for library in found["libraries"]:
        word = library["says"].split(" ", 1)[0] if library["status"] in ("broken", "missing") else ""
        writer.row(library["role"], library["says"], style="bold", word=word)
        for candidate in library["candidates"]:
            _write_candidate(writer, candidate)
        if library["hint"]:
            writer.row("hint", library["hint"], indent=4, column=13)
    for said in found["warnings"]:
        writer.row("warning", said, style="yellow", word=said.split(" ", 1)[0])


def _write_candidate(writer: Writer, candidate: Mapping[str, Any]) -> None:
    verdict = _SAID.get(candidate["verdict"], candidate["verdict"])
    where = f"{candidate['path']}: " if candidate["path"] else ""
    said = f"{f'{verdict:<9} '.replace(' ', TIED)}{where}{candidate['reason']}"
    writer.row(candidate["step"], said, indent=4, column=13, style=_STYLES.get(verdict, ""), word=verdict)
