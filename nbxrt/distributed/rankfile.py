"""The file by which the ranks of one host see each other: found by what tells their communicator apart.

It has a name for as long as ranks join. Each of them holds a lock on it meanwhile, which the system takes from a
process that ends: a file that nobody holds is one of ranks that were ended as they joined, and the next removes it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mmap
import os
import sys
import tempfile
from pathlib import Path

from nbxrt.distributed.hosts import neighbourhood

if sys.platform != "win32":
    import fcntl

#: What the names of all such files begin with.
PREFIX = "nbxrt-ranks-"


class RankFile:
    """A file of so many bytes that the ranks of one host map, all zero at first. Raises: OSError."""

    def __init__(self, path: Path, nbytes: int) -> None:
        self._path, self._file = path, _held(path)
        try:
            os.lseek(self._file, nbytes - 1, os.SEEK_SET)  # ranks that disagree on their number never make it shorter
            os.write(self._file, b"\0")
            self.map = mmap.mmap(self._file, nbytes)
        except OSError:
            os.close(self._file)
            raise

    def unlink(self) -> None:
        """Take it off the file system; those who have it mapped keep it."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._file)


def file_of(identity: bytes, nbytes: int) -> RankFile | None:
    """The file of a communicator; None where the ranks of a host can share none."""
    try:
        path = path_of(identity)
        remove_abandoned(path.parent)
        return RankFile(path, nbytes)
    except (OSError, TypeError):  # what is no identity is for the library's operation to refuse
        return None


def path_of(identity: bytes) -> Path:
    """Where the ranks of a communicator find its file."""
    folder = Path("/dev/shm")  # noqa: S108  # unreadable to other users, and gone before the program uses it
    folder = folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())
    name = hashlib.sha256(identity)
    name.update(neighbourhood().encode())  # a folder may be shared by containers, whose processes have other numbers
    return folder / f"{PREFIX}{name.hexdigest()[:24]}"


def _held(path: Path) -> int:
    """The open file of that name, which no other rank takes for abandoned. Raises: OSError."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):  # of a file system without locks: there nobody takes it for abandoned
            _lock(file)
        if _is_at(file, path):
            return file
        os.close(file)  # somebody removes it as abandoned, who came between its opening and its lock


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def remove_abandoned(folder: Path) -> None:
    """Remove the files of ranks that were ended as they joined, as far as they are this user's. Raises: OSError."""
    for entry in os.scandir(folder):
        if entry.name.startswith(PREFIX):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(path: Path) -> None:
    """Remove a file that nobody holds. Raises: OSError, also where somebody does."""
    file = os.open(path, os.O_RDWR)
    try:
        _lock(file, alone=True)
        if _is_at(file, path):
            path.unlink()
    finally:
        os.close(file)


def _lock(file: int, *, alone: bool = False) -> None:
    """Hold an open file with others, or alone, until it is closed. Raises: OSError, also where it cannot be alone."""
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
    else:
        raise OSError(errno.ENOTSUP, "files are not held here")
