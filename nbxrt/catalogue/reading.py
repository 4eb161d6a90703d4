"""From the bytes of a YAML file to plain Python data, with the place of every node.

YAML is read as people mean it: the 1.2 core schema, so `off` is a word, `12.10` a number that remembers how it was
written, and one file holds one document. Merge keys `<<` are YAML 1.1's, and read, because the readers of such files
read them. What readers disagree about is refused: tags, keys that are not text, duplicate keys. What the data means is
not asked here; parsing.py reads the text, document.py is the answer.
"""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from nbxrt.catalogue.diagnostics import Diagnostic
from nbxrt.catalogue.document import Document, Place, Span
from nbxrt.catalogue.parsing import Refused, at_index, parse
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    import sys

    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

__all__ = ["Document", "Place", "Reading", "Span", "content_of", "read", "scan"]

MAX_BYTES = 1 << 20

# YAML 1.1 breaks lines at U+0085, U+2028 and U+2029 and YAML 1.2 does not: they are refused with what YAML forbids.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@attrs.frozen
class Reading:
    """What could be read of a file, and every fault that was found in doing so."""

    document: Document | None
    diagnostics: tuple[Diagnostic, ...]


def read(source: Path | Traversable | bytes, name: str) -> Document:
    """The document of a file, shown as `name` in messages. Raises: DescriptionError with every fault of its YAML."""
    reading = scan(source, name)
    if reading.document is None or reading.diagnostics:
        raise DescriptionError(reading.diagnostics)
    return reading.document


def scan(source: Path | Traversable | bytes, name: str) -> Reading:
    """What `read` does, with faults as values: a document can still be had beside those that do not end the reading."""
    document = None
    faults: list[Diagnostic] = []
    try:
        content = source if isinstance(source, bytes) else _content(source, name)
        document = parse(_decoded(content, name), name, faults)
    except Refused as refused:
        faults.append(refused.diagnostic)
    return Reading(document, tuple(sorted(faults)))


def content_of(path: Path) -> bytes:
    """The bytes of a file that is no larger than what is read. Raises: DescriptionError; a pipe is not waited for."""
    try:
        content = _content(path, str(path))
        _decoded(content, str(path))
    except Refused as refused:
        raise DescriptionError([refused.diagnostic]) from None
    return content


def _content(source: Path | Traversable, name: str) -> bytes:
    if not name:  # `Path("")` would be the working folder
        raise Refused(Diagnostic(name, 1, 1, 1, "unreadable-file", "the file cannot be read: its path is empty"))
    if isinstance(source, Path) and os.path.exists(source) and not os.path.isfile(source):  # opening a pipe may wait
        kind = "a folder" if os.path.isdir(source) else "no regular file"
        raise Refused(Diagnostic(name, 1, 1, 1, "unreadable-file", f"the file cannot be read: it is {kind}"))
    try:
        with source.open("rb") as file:
            return file.read(MAX_BYTES + 1)  # a device or a pipe may never end
    except (OSError, ValueError) as error:  # a path may hold what no file system takes
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise Refused(Diagnostic(name, 1, 1, 1, "unreadable-file", f"the file cannot be read: {reason}")) from error


def _decoded(content: bytes, name: str) -> str:
    if len(content) > MAX_BYTES:
        raise Refused(Diagnostic(name, 1, 1, 1, "file-too-large", f"the file is larger than {MAX_BYTES} bytes"))
    encoding, skipped = _encoding(content)
    try:
        text = content[skipped:].decode(encoding)
    except UnicodeDecodeError as error:
        offset = error.start + skipped
        before = content[skipped:offset].decode(encoding, "replace")
        message = f"byte 0x{content[offset]:02x} at offset {offset} is not {encoding.upper()}"
        hint = "save the file as UTF-8"
        raise Refused(at_index(before, len(before), name, "invalid-encoding", message, hint=hint)) from error
    found = _FORBIDDEN.search(text)
    if found:
        message = f"the character U+{ord(found.group()):04X} is not allowed in YAML"
        raise Refused(at_index(text, found.start(), name, "invalid-character", message))
    return text


def _encoding(content: bytes) -> tuple[str, int]:
    """The encoding of a file and the length of its byte order mark, found as the YAML specification says."""
    if content.startswith(codecs.BOM_UTF8):
        return "utf-8", 3
    if content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-8", 0  # refused: nobody writes it, and it begins like UTF-16
    for encoding, mark, zero in (("utf-16-le", codecs.BOM_UTF16_LE, 1), ("utf-16-be", codecs.BOM_UTF16_BE, 0)):
        if content.startswith(mark):
            return encoding, 2
        if len(content) > 1 and content[zero] == 0 and content[1 - zero] != 0:
            return encoding, 0
    return "utf-8", 0
