"""`nbxrt simulate`: a library that stands in for a vendor's, built from a backend file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nbxrt import descriptions, simulation
from nbxrt.cli import files
from nbxrt.cli.console import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbxrt.simulation import Simulation, StandIn

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _bytes(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    """A size as people write it: bytes, or with K, M or G."""
    found = re.fullmatch(r"(\d+)([KMG]?)", value)
    if not found:
        raise click.BadParameter(f"`{value}` is no size: it is bytes, or a number with K, M or G, as 512M")
    nbytes = int(found[1]) * _UNITS[found[2]]
    if nbytes >= 1 << 64:
        raise click.BadParameter(f"`{value}` is more than 64 bits can count")
    return nbytes


@click.command("simulate")
@click.argument("name")
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Where the library is written, under the vendor's file names; made when it is not there.",
)  # fmt: skip
@click.option("--version", metavar="VERSION", help="The version that the runtime answers; the best of the file's.")
@click.option("--devices", type=click.IntRange(0, 64), default=2, show_default=True, help="How many devices it has.")
@click.option("--memory", callback=_bytes, default="16G", metavar="SIZE", show_default=True, help="Memory of each.")
@click.option("--without", multiple=True, metavar="SYMBOL", help="A function that it lacks; may be given again.")
@click.option("as_json", "--json", is_flag=True, help="As JSON.")
def command(
    name: str,
    folder: Path,
    version: str | None,
    devices: int,
    memory: int,
    without: Sequence[str],
    as_json: bool,
) -> None:
    """Build a vendor's library with simulated devices behind it.

    NAME is a backend's name or the path of its file. Prints the variables that make a process use the library, as
    lines for a shell; docs/simulating.md lists those that set its devices, faults and times. Needs a C compiler.
    Where the file does not tell what each of its calls does, it is a library that was written for the vendor's
    interface.
    """
    description = descriptions.load(name)
    is_written = simulation.has_stand_in(description) and not simulation.is_made_from_file(description)
    if is_written and (version or without):
        raise click.UsageError("--version and --without are for libraries that are made from the file")
    with files.writing(folder):
        made = (
            simulation.stand_in(name, folder, devices=devices, memory=memory)
            if is_written
            else simulation.build(name, folder, version=version, without=without, devices=devices, memory=memory)
        )
    if as_json:
        Writer().json({"backend": made.name, "environment": made.environment(), **_facts(made)})
        return
    for variable, value in made.environment().items():
        click.echo(f"export {variable}={shlex.quote(value)}")
    said = f"wrote {made.paths['runtime']}: {made.name}, {_counted(devices)}; {_source(made)}"
    Writer(stderr=True).line(said)


def _facts(made: Simulation | StandIn) -> dict[str, Any]:
    paths = {role: str(path) for role, path in made.paths.items()}
    if isinstance(made, simulation.StandIn):
        return {"libraries": paths, "made_from": "vendor's interface"}
    versions = {role: ".".join(map(str, numbers)) for role, numbers in made.versions.items()}
    counts = {"functions": len(made.symbols), "from_headers": sorted(made.from_headers)}
    return {"libraries": paths, "made_from": "backend file", "versions": versions, **counts}


def _source(made: Simulation | StandIn) -> str:
    if isinstance(made, simulation.StandIn):
        return "written after the vendor's interface, not after the file"
    return f"{len(made.from_headers)} of {len(made.symbols)} signatures are the vendor's headers'"


def _counted(devices: int) -> str:
    return f"{devices} simulated device{'' if devices == 1 else 's'}"
