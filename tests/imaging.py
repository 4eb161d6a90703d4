"""Machines as descriptions: a folder is built that looks like one, and the library search runs below it.

`has` maps a path to what is there: `library`, `link TARGET`, `truncated`, `zeros` after its beginning,
`another processor`, `32 bits`, `script`, `text`, or `{linked_to: SONAME}`, `{exports: [SYMBOL]}`, `{text: CONTENT}`.
`{machine}` is this machine's processor.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from libraries import as_32_bit, for_machine, make_library
from machines import add_card, add_node, empty_bus
from nbxrt.binding.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "images"
PROCESSOR = Machine().processor


def images() -> dict[str, dict[str, Any]]:
    """Every image by its name; a name stands once."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        for image in yaml.safe_load(file.read_text("utf-8").replace("{machine}", PROCESSOR)):
            assert image["image"] not in found
            assert set(image) <= {*KEYS}, image
            found[image["image"]] = image
    return found


#: What an image may say; the last three are what is expected of it.
KEYS = (
    "image", "backend", "python", "prefix", "environ", "has", "cache", "cards", "nodes", "device", "chooses", "says",
)  # fmt: skip


def build(image: Mapping[str, Any], root: Path) -> Machine:
    """Build the image below a folder, and describe the machine."""
    empty_bus(root)
    for path, what in image.get("has", {}).items():
        _put(root, path, what)
    for vendor in image.get("cards", ()):
        add_card(root, vendor)
    for node in image.get("nodes", ()):
        add_node(root, node)
    if "cache" in image:
        _write_cache(root / "etc/ld.so.cache", image["cache"])
    environ = {name: _below(root, value) for name, value in image.get("environ", {}).items()}
    return Machine(
        environ=environ,
        root=str(root),
        paths=[str(root) + path for path in image.get("python", ())],
        prefix=str(root) + image.get("prefix", "/usr"),
    )


def _below(root: Path, value: str) -> str:
    return ":".join(str(root) + part if part else "" for part in value.split(":"))


def _put(root: Path, path: str, what: Any) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(what, dict):
        _SPECIAL[next(iter(what))](place, next(iter(what.values())))
    elif what.startswith("link "):
        target = what.removeprefix("link ")
        place.symlink_to(str(root) + target if target.startswith("/") else target)
    else:
        _PLAIN[what](place)


def _truncate(place: Path) -> None:
    whole = make_library(place).read_bytes()
    place.write_bytes(whole[: len(whole) // 2])


def _fill_with_zeros(place: Path) -> None:
    whole = make_library(place).read_bytes()
    place.write_bytes(whole[:1024] + bytes(len(whole) - 1024))


def _linked(place: Path, soname: str) -> None:
    needed = make_library(place.parent / "elsewhere" / soname, "int needed(void) { return 1; }")
    make_library(place, needs=(needed,))
    needed.unlink()


def _exporting(place: Path, symbols: list[str]) -> None:
    make_library(place, "".join(f"int {symbol}(void) {{ return 0; }}\n" for symbol in symbols))


_PLAIN: dict[str, Any] = {
    "library": make_library,
    "truncated": _truncate,
    "zeros": _fill_with_zeros,
    "another processor": lambda place: for_machine(make_library(place), 183 if PROCESSOR == "x86_64" else 62),
    "32 bits": lambda place: as_32_bit(make_library(place)),
    "script": lambda place: place.write_text("/* GNU ld script */ INPUT(libx.so)"),
    "text": lambda place: place.write_text("raise SystemExit('run')"),
}
_SPECIAL: dict[str, Any] = {
    "linked_to": _linked,
    "exports": _exporting,
    "text": lambda place, content: place.write_text(content),
}


def _write_cache(place: Path, entries: Mapping[str, str]) -> None:
    """A loader cache in the format of glibc (elf/dl-cache.h): header, entries, strings."""
    strings = b"\0"
    rows = b""
    start = 48 + 24 * len(entries)
    for name, path in entries.items():
        key, value = start + len(strings), start + len(strings) + len(name) + 1
        strings += name.encode() + b"\0" + path.encode() + b"\0"
        rows += struct.pack("=iIIIQ", 0x0303, key, value, 0, 0)
    header = b"glibc-ld.so.cache1.1" + struct.pack("=II", len(entries), len(strings)) + bytes(20)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(header + rows + strings)
