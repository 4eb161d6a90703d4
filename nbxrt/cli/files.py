"""Files that the user names to be written or changed."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Write to a place in a `with` block; what the system has against it is told with its name.

    Raises: click.FileError.
    """
    try:
        yield
    except OSError as error:
        raise click.FileError(str(place), error.strerror) from error


def give(text: str, output: Path | None) -> bool:
    """Write a text to a file, else to standard output; whether it was a file. Raises: click.FileError."""
    if output is None:
        click.echo(text, nl=False)
        return False
    with writing(output):
        output.write_text(text, "utf-8", newline="\n")
    return True


def replace(file: Path, content: bytes) -> None:
    """Put other content in a file's place, all of it or none: a full disk must not cost anybody their file.

    A link stays a link. Raises: OSError.
    """
    place = Path(os.path.realpath(file))
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content)
        shutil.copymode(place, fresh)
        fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)
