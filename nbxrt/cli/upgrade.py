"""`nbxrt upgrade`: a backend file brought to the contract of this nbxrt."""

from __future__ import annotations

import codecs
from pathlib import Path

import click

from nbxrt.cli import files
from nbxrt.cli.console import Writer


@click.command("upgrade")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def command(file: Path) -> None:
    """Add a newer contract's operations to a file, as absent.

    They are for review. Only those lines and the contract's number change; comments and layout stay as they are.
    """
    from nbxrt.catalogue import contract, reading, upgrading

    content = reading.content_of(file)
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        text = content[len(mark) :].decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not UTF-8, and is not edited: save it as UTF-8 first") from error
    upgrade = upgrading.upgraded(text, contract.load(), str(file))
    writer = Writer(stderr=True)
    if upgrade.now == upgrade.before:
        writer.line(f"{file} is written for contract {upgrade.now} already")
        return
    try:
        files.replace(file, mark + upgrade.text.encode())
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written, and is as it was: {error.strerror}") from error
    writer.line(f"{file}: contract {upgrade.before} to {upgrade.now}, {_counted(len(upgrade.added))} added as absent")
    for name in upgrade.added:
        writer.line(f"  {name}")


def _counted(number: int) -> str:
    return f"{number} operation" + ("" if number == 1 else "s")
