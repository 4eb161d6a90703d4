"""Write docs/vendors.md, what is known of every operation by backend and release; `--check` says whether it is current.

    VENV=.venv python scripts/vendors_table.py

It compares the backend files with the vendors' headers and libraries that scripts/setup-wheels.sh fetches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import nbxrt  # noqa: E402
from nbxrt import descriptions  # noqa: E402
from nbxrt.catalogue.compiling import evidence_of  # noqa: E402
from releases import RELEASES  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "vendors.md"
WHEELS = ROOT / os.environ.get("VENV", ".venv") / "wheels"

HEAD = """# Vendors

Written by `scripts/vendors_table.py`.

What is known of each operation, by backend and release of the vendor's interface:

| mark | means |
|---|---|
| **verified** | compared with the vendor's own header in CI by `nbxrt verify`, and with its library if at hand |
| header | read in the vendor's header, or a copy of it; not compared in CI |
| call site | seen where other projects call it |
| inferred | follows from the rest |
| own | done without calling the vendor |
| not stated | the file does not say |
| - | not offered; the file says why: `nbxrt show NAME` |

No mark says that it ran on a device: [hardware.md](hardware.md) does.
Each backend but `metal`, `opencl`, `level_zero` and `host` passes the [conformance suite](conforming.md) on its own
[simulation](simulating.md) in CI, which proves that the file holds together, not that it is right.

| backend | vendor | maturity | operations | devices are seen by |
|---|---|---|---|---|
"""


def page() -> str:
    """The page as it should be."""
    return HEAD + "\n".join(_backends()) + "\n\n" + "\n".join(_table()) + "\n"


def _backends() -> Iterator[str]:
    for name in descriptions.INDEX:
        description = descriptions.built_in(name)
        seen = description["presence"].get("linux")
        nodes = " ".join(f"`{node}`" for node in seen[1]) if seen else "the runtime"
        maturity, bound = descriptions.maturity(description), len(description["operations"])
        yield f"| `{name}` | {description['title']} | {maturity} | {bound} | {nodes or 'the runtime'} |"


def _table() -> Iterator[str]:
    compared = {release.backend for release in RELEASES}
    others = [name for name in descriptions.INDEX if name not in compared]
    columns = {release.name: _verified(release) for release in RELEASES} | {name: _stated(name) for name in others}
    yield f"| operation | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for operation in descriptions.contract()["operations"]:
        marks = " | ".join(column[operation] for column in columns.values())
        yield f"| `{operation}` | {marks} |"


def _verified(release: object) -> dict[str, str]:
    """The marks of a backend, with those that a release verifies."""
    states = {row.subject: row.state.value for row in release.verified(WHEELS).rows}
    stated = _stated(release.backend)
    return {
        operation: "**verified**" if states.get(f"operations.{operation}") == "ok" else mark
        for operation, mark in stated.items()
    }


def _stated(name: str) -> dict[str, str]:
    """The marks of a backend by what its file says."""
    described, contract = nbxrt.describe(name), descriptions.contract()["operations"]
    marks = {}
    for operation, entry in contract.items():
        if operation not in described.operations:
            marks[operation] = "-"
        elif all(variant.form in ("value", "same", "policy") for variant in described.operations[operation].variants):
            marks[operation] = "own"
        else:
            found = evidence_of(described, operation, entry["group"])
            marks[operation] = "not stated" if found is None else found.kind.replace("_", " ")
    return marks


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        is_current = PAGE.read_text("utf-8") == text
        print(f"{PAGE.name}: {'current' if is_current else 'stale'}")
        return 0 if is_current else 1
    PAGE.write_text(text, "utf-8")
    print(f"{PAGE.name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
