"""Changing a file of the user's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


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
