"""The command: gather, show, and exit with 1 when there is something to mend."""

from __future__ import annotations

import click

from nbxrt.cli.console import Writer
from nbxrt.cli.doctor import report, text
from nbxrt.cli.problems import FINDINGS, FINE


@click.command("doctor")
@click.option("as_json", "--json", is_flag=True, help="The same facts as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Explain what was found on this machine, and what to do.

    Of every backend: its libraries, its devices, whether one can be used; then variables and conflicts. Nothing of this
    process touches a driver. Exits with 1 when something should be mended; a machine without a GPU is fine.
    """
    found = report.gather()
    writer = Writer()
    if as_json:
        writer.json(found)
    else:
        text.write(writer, found)
    ctx.exit(FINDINGS if found["problems"] else FINE)
