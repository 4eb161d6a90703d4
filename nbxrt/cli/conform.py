"""`nbxrt conform`: what each operation of a backend does on the device that is here, beside what it must do."""

from __future__ import annotations

import faulthandler
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbxrt import conformance
from nbxrt.cli import files
from nbxrt.cli.console import Writer
from nbxrt.cli.problems import FINDINGS, FINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbxrt.conformance import Outcome, Report

_STYLES = {"works": "green", "absent": "dim", "skipped": "yellow", "wrong": "bold red"}


@click.command("conform")
@click.argument("name", required=False)
@click.option(
    "--library", type=click.Path(exists=True, path_type=Path), metavar="FILE|FOLDER",
    help="The runtime library, or a folder with the libraries of all roles, as `nbxrt simulate` writes one.",
)  # fmt: skip
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Only this group; may be given again.")
@click.option("--device", type=int, help="Which device; the current one when left out.")
@click.option(
    "--image", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="A module with a kernel `add(a, b, out, n)` of 32-bit integers, for the checks of launches.",
)  # fmt: skip
@click.option("--kernel", default="add", show_default=True, help="The name of its kernel.")
@click.option("as_json", "--json", is_flag=True, help="As JSON.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also as JUnit XML.")
@click.pass_context
def command(
    ctx: click.Context,
    name: str | None,
    library: Path | None,
    groups: Sequence[str],
    device: int | None,
    image: Path | None,
    kernel: str,
    as_json: bool,
    junit: Path | None,
) -> None:
    """Try every operation of a backend on a device.

    Each check works, is absent, skipped, or wrong. NAME is a backend's name or the path of its file; without it, the
    best backend that is here. The checks use little memory, release what they make and reset nothing. Exits with 1 when
    something is wrong, or nothing works.
    """
    if library is not None and name is None:
        raise click.UsageError("--library needs NAME: which backend the library is for")
    faulthandler.enable()  # a library that crashes the process is named by the check that called it
    opened = conformance.opened(name, library)
    given = None if image is None else conformance.ModuleImage(image.read_bytes(), kernel)
    report = conformance.run(opened, groups or None, device, module_image=given)
    if junit is not None:
        with files.writing(junit):
            junit.write_text(conformance.junit(report), "utf-8")
    writer = Writer()
    if as_json:
        writer.json(report.to_dict())
    else:
        _write(writer, report)
    ctx.exit(FINE if report.ok else FINDINGS)


def _write(writer: Writer, report: Report) -> None:
    writer.line(report.heading, "bold")
    for path in dict.fromkeys(report.libraries.values()):
        writer.line(f"  {path}")
    writer.line()
    for row in report.rows:
        _write_row(writer, row.outcome, f"{row.group:<15} {row.check}", row.detail)
    writer.line()
    writer.line(report.sum)


def _write_row(writer: Writer, outcome: Outcome, said: str, detail: str) -> None:
    writer.line(f"{outcome:<8} {said}", _STYLES[outcome.value])
    for line in detail.splitlines():
        writer.line(f"{'':<25}{line}")
