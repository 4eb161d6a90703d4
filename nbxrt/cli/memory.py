"""`nbxrt memory plot`: a snapshot of an account, drawn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import IO, Any

import click

from nbxrt.cli import drawing, files, pictures
from nbxrt.errors import ArgumentValueError

#: How a picture is written, by the end of its file's name.
WRITERS = {".svg": pictures.as_svg, ".png": pictures.as_png}


@click.group("memory")
def command() -> None:
    """Look at snapshots of memory."""


@command.command()
@click.argument("snapshot", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The picture, as its name ends: .svg, or .png where Pillow is installed.",
)
@click.option("--device", type=click.IntRange(min=0), default=0, show_default=True, help="The device that is drawn.")
def plot(snapshot: Path, output: Path, device: int) -> None:
    """Draw SNAPSHOT, which `account.snapshot(PATH)` or PyTorch's `_dump_snapshot` wrote.

    What is held and what is reserved over time, as far as events were remembered, and a map of the segments.
    """
    write = WRITERS.get(output.suffix.lower())
    if write is None:
        message = f"{output} ends in {output.suffix or 'nothing'}: a picture is written as {' or '.join(WRITERS)}"
        raise ArgumentValueError(message, hint="`-o memory.svg`", parameter="output", value=str(output))
    data = load(snapshot)
    known = drawing.devices(data)
    if device not in known:
        message = f"{snapshot} has nothing of device {device}, but of {', '.join(map(str, known)) or 'none'}"
        raise ArgumentValueError(message, parameter="device", value=device)
    picture = write(drawing.drawn(data, device))
    with files.writing(output):
        output.write_bytes(picture)
    click.echo(output)


class _PlainData(pickle.Unpickler):
    """Reads plain data only: a pickle may otherwise call anything."""

    def find_class(self, module: str, name: str) -> Any:
        message = f"it holds `{module}.{name}`, which is no plain data"
        raise pickle.UnpicklingError(message)


def load(path: Path) -> dict[str, Any]:
    """The snapshot in a file. Raises: ArgumentValueError for a file that holds none."""
    with path.open("rb") as file:
        data, why = _unpickled(file)
    if isinstance(data, dict) and isinstance(data.get("segments"), list):
        return data
    raise ArgumentValueError(f"{path} is no snapshot of memory{why}")


def _unpickled(file: IO[bytes]) -> tuple[Any, str]:
    try:
        return _PlainData(file).load(), ""
    except Exception as error:  # noqa: BLE001  # damaged pickles raise anything
        return None, f": {error}"
