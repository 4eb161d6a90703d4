"""`nbxrt list`: every backend that can be named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nbxrt import descriptions
from nbxrt.cli.console import Writer
from nbxrt.cli.problems import FINDINGS, FINE
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command("list")
@click.option("as_json", "--json", is_flag=True, help="As JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the backends that can be named, in order of detection.

    Built-in ones, those of the files in NBXRT_BACKEND_PATH, and those that installed packages offer, which are opened
    by name and never detected. Exits with 1 when a file cannot be used or is not there.
    """
    rows = [facts(name) for name in descriptions.with_packages()]
    writer = Writer()
    if as_json:
        writer.json(rows)
    else:
        for row in rows:
            _write(writer, row)
    missing = descriptions.missing()
    for each in (*missing, *descriptions.passed_over()):
        Writer(stderr=True).line(f"warning: {each}")
    ctx.exit(FINDINGS if missing or any(row["faults"] for row in rows) else FINE)


def facts(name: str) -> dict[str, Any]:
    """What the list says of a backend; `faults` says why its file cannot be used, or is empty."""
    try:
        return {**_described(descriptions.load(name)), "faults": []}
    except DescriptionError as error:
        return {"name": name, "faults": [diagnostic.one_line() for diagnostic in error.diagnostics]}


def _described(description: Mapping[str, Any]) -> dict[str, Any]:
    keys, target = description["triton"] or ((), None)
    return {
        "name": description["name"],
        "title": description["title"],
        "kind": description["kind"],
        "platforms": list(description["platforms"]),
        "priority": description["priority"],
        "triton": {"keys": list(keys), "target": target} if keys else None,
        "bound": len(description["operations"]),
        "absent": len(description["absent"]),
        "evidence": dict(description["evidence"]),
        "maturity": descriptions.maturity(description),
        "file": description["file"],
    }


def _write(writer: Writer, row: Mapping[str, Any]) -> None:
    if row["faults"]:
        said = "\n".join(["cannot be used:", *row["faults"]])
        writer.row(row["name"], said, indent=0, style="bold red", word="cannot be used")
        return
    triton = f", Triton key {' or '.join(row['triton']['keys'])}" if row["triton"] else ""
    said = f"{row['title']}: {row['kind']} on {', '.join(row['platforms'])}; priority {row['priority']}{triton}"
    counts = f"{row['bound']} operations bound, {row['absent']} absent, in {row['file']}"
    evidence = f"evidence: {row['maturity']}{_counted(row)}"
    writer.row(row["name"], f"{said}\n{counts}\n{evidence}", indent=0, style="bold", word=row["title"])


def _counted(row: Mapping[str, Any]) -> str:
    """How many bound operations rest on what; empty where the maturity says it all."""
    said = [f"{count} {kind}" for kind, count in row["evidence"].items()]
    return f" ({', '.join(said)})" if len(said) > 1 else ""
