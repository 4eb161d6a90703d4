"""`nbxrt schema`: the JSON Schema of a backend file."""

from __future__ import annotations

from pathlib import Path

import click

from nbxrt.cli import files
from nbxrt.cli.console import Writer


@click.command()
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to FILE.", metavar="FILE"
)
def command(output: Path | None) -> None:
    """Print the JSON Schema of a backend file, or write it to a file."""
    from nbxrt.catalogue import contract, schema  # the other commands' help needs none of it

    text = schema.rendered(contract.load())
    if files.give(text, output):
        Writer(stderr=True).line(f"wrote {output}")
