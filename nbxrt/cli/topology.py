"""`nbxrt topology`: the devices of this host, and how they reach each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nbxrt.cli.console import Writer
from nbxrt.cli.problems import FINDINGS, FINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@click.command("topology")
@click.argument("name", required=False)
@click.option("--measure", is_flag=True, help="Copy between all of them, which takes memory of each.")
@click.option("as_json", "--json", is_flag=True, help="As JSON.")
@click.pass_context
def command(ctx: click.Context, name: str | None, measure: bool, as_json: bool) -> None:
    """Show the devices of this host, and how memory is copied.

    Where they are on PCI, and what lies between them. NAME is a backend's name or the path of its file, the best that
    is here when left out. `peer` copies go from device to device, `staged` ones through the host. Exits with 1 when
    there is no device.
    """
    from nbxrt import runtime
    from nbxrt.distributed.topology import topology

    found = topology(runtime.open(name), measure=measure)
    writer = Writer()
    if as_json:
        writer.json(found)
    else:
        _write(writer, found)
    ctx.exit(FINE if found["devices"] else FINDINGS)


def _write(writer: Writer, found: Mapping[str, Any]) -> None:
    count = len(found["devices"])
    said = f"{count} {'device' if count == 1 else 'devices'}" if count else "no device"
    writer.line(f"{found['title']} on {found['host']}: {said}", "bold")
    for device in found["devices"]:
        numa = "" if device["numa_node"] is None else f"NUMA node {device['numa_node']}"
        facts = [device["name"], device["pci_bus_id"], numa, device["uuid"]]
        writer.row(str(device["index"]), ", ".join(filter(None, facts)), column=4)
    if found["pairs"]:
        writer.heading("copies, from each row to each column")
        _write_matrix(writer, found, _copy)
    if any(pair["distance"] for pair in found["pairs"]):
        writer.heading("what lies between them, by the management library")
        _write_matrix(writer, found, _link)


def _write_matrix(writer: Writer, found: Mapping[str, Any], cell: Callable[[Mapping[str, Any]], str]) -> None:
    indices = [device["index"] for device in found["devices"]]
    cells = {(pair["from"], pair["to"]): cell(pair) for pair in found["pairs"]}
    width = max(map(len, cells.values())) + 2
    writer.line("      " + "".join(f"{index:<{width}}" for index in indices).rstrip())
    for row in indices:
        line = "".join(f"{cells.get((row, column), '-'):<{width}}" for column in indices)
        writer.line(f"  {row:<4}{line}".rstrip())


def _copy(pair: Mapping[str, Any]) -> str:
    speed = pair["gigabytes_per_second"]
    return pair["path"] if speed is None else f"{pair['path']} {speed:.0f} GB/s"


def _link(pair: Mapping[str, Any]) -> str:
    bus = (pair["distance"] or "not known").replace("_", " ")
    return f"own links, {bus}" if pair["direct_link"] else bus
