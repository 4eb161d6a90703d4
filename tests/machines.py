"""Machines that tests describe: cards on the bus, device nodes, and vendors' libraries by name only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from libraries import make_library
from nbxrt import descriptions

if TYPE_CHECKING:
    from pathlib import Path

DISPLAY, AUDIO = 0x03, 0x04


def add_card(root: Path, vendor: int, base_class: int = DISPLAY) -> None:
    """A card on the PCI bus, as the kernel of Linux shows it."""
    bus = root / "sys/bus/pci/devices"
    card = bus / f"0000:{len(list(bus.glob('*'))) + 1:02x}:00.0"
    card.mkdir(parents=True)
    (card / "vendor").write_text(f"{vendor:#06x}\n")
    (card / "class").write_text(f"{base_class << 16:#08x}\n")


def add_node(root: Path, path: str) -> None:
    """A device node (an empty file does for looking)."""
    node = root / path.lstrip("/")
    node.parent.mkdir(parents=True, exist_ok=True)
    node.touch()


def empty_bus(root: Path) -> None:
    (root / "sys/bus/pci/devices").mkdir(parents=True, exist_ok=True)


def stub_runtime(path: Path, backend: str, *, count: int = 0, code: int = 0, log: Path | None = None) -> Path:
    """A library with every symbol of a backend's runtime; each answers `code` and writes itself into `log`."""
    description = descriptions.built_in(backend)
    symbols = {
        symbol
        for _line, variants in description["operations"].values()
        for variant in variants
        if variant[0] == "call"
        for symbol in variant[4][0]
    }
    (counting,) = {variant[4][0][0] for variant in description["operations"]["device_count"][1]}
    written = f'FILE *f = fopen("{log}", "a"); fputs(what, f); fputs("\\n", f); fclose(f);' if log else ""
    lines = ["#include <stdio.h>", f"static int say(const char *what) {{ {written} return {code}; }}"]
    lines += [f'int {symbol}(void) {{ return say("{symbol}"); }}' for symbol in sorted(symbols - {counting})]
    lines.append(f'int {counting}(int *n) {{ if (!{code}) *n = {count}; return say("{counting}"); }}')
    return make_library(path, "\n".join(lines))
