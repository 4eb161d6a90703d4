"""Standard streams as a program may find them: closed, on a full disk, or of an encoding that lacks a letter."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

#: The exit code of a run whose answer could not be written.
UNWRITTEN = 2


def run(command: Callable[[], Any]) -> None:
    """Run what ends by SystemExit; when its answer cannot be written, say so and exit with UNWRITTEN."""
    _prepare()
    try:
        try:
            command()
        finally:
            sys.stdout.flush()
    except OSError as error:
        _throw_away_the_rest(sys.stdout)
        if error.filename is not None:  # an error about a file names it; one of a stream does not
            raise
        tell(f"error: standard output cannot be written: {error.strerror or error}")
        sys.exit(UNWRITTEN)
    finally:
        _throw_away_the_rest(sys.stderr)


def tell(text: str) -> None:
    """A line on standard error; nothing where that cannot be written."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text}\n")


def _prepare() -> None:
    for number in range(3):  # a file or a library opened next would get the number of a closed one, and its output
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or _nothing()
    sys.stderr = sys.stderr or _nothing()
    for stream in (sys.stdout, sys.stderr):
        # Paths and excerpts may hold what the terminal's encoding lacks: shown escaped rather than lost to an error.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _nothing() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # for as long as the process runs


def _throw_away_the_rest(stream: TextIO) -> None:
    """Throw away what the stream cannot write, or Python's own exit would complain of it."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
