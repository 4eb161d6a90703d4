"""What `nbxrt demo` moves: a file's bytes, in pieces that fit into one buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Bytes of a piece. A smaller file is repeated to fill one: a copy of a few bytes tells nothing of a link's speed.
PIECE = 64 << 20


@attrs.frozen
class Payload:
    """A file to move: `content` is all of it where it fits into one piece, else None and the file is read in pieces."""

    shown: str
    nbytes: int
    content: bytes | None
    file: Path | None = None

    @property
    def is_repeated(self) -> bool:
        """Whether the file is smaller than a piece, so that its bytes are moved again and again."""
        return self.nbytes < PIECE

    @property
    def moved(self) -> int:
        """The number of bytes that are moved each way."""
        return max(self.nbytes, PIECE)

    def pieces(self, buffer: bytearray) -> Iterator[int]:
        """Fill the buffer with one piece after another; each time, the number of bytes in it."""
        if self.content is not None:
            times = PIECE // len(self.content) + 1
            buffer[:] = (self.content * times)[:PIECE]
            yield PIECE
        elif self.file is not None:
            with self.file.open("rb", buffering=0) as file:
                while nbytes := file.readinto(buffer):
                    yield nbytes


def own_file() -> Payload:
    """The contract, which every installation has, from a wheel or a zip as well."""
    from nbxrt.catalogue.sources import data_folder

    content = (data_folder("schema") / "operations.yaml").read_bytes()
    return Payload("schema/operations.yaml of nbxrt itself", len(content), content)


def of_file(path: Path) -> Payload:
    """A file of the user's. Raises: OSError; ValueError for what is no file, or has no bytes."""
    if not path.is_file():
        raise ValueError("it is not a regular file")
    nbytes = path.stat().st_size
    if not nbytes:
        raise ValueError("it is empty: there is nothing to move")
    content = path.read_bytes() if nbytes < PIECE else None
    return Payload(str(path), nbytes, content, path)
