"""Write what the vendors' headers say; `--check` says whether it is current.

    VENV=.venv python scripts/vendors_table.py

It compares the backend files with the headers and libraries that scripts/setup-wheels.sh fetches, and writes
docs/vendors.md, what is known of every operation by backend and release, and backends/signatures, the signatures that
simulations are held to.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import attrs  # noqa: E402

import nbxrt  # noqa: E402
from nbxrt import descriptions  # noqa: E402
from nbxrt.catalogue.compiling import evidence_of  # noqa: E402
from nbxrt.verifying import recording  # noqa: E402
from releases import RELEASES  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbxrt.verifying import Result
    from releases import Release

PAGE = ROOT / "docs" / "vendors.md"
SIGNATURES = ROOT / "backends" / "signatures"
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

AMD SMI and RCCL are compared with AMD's own bindings, which are generated from headers that no registry has.
No mark says that it ran on a device: [hardware.md](hardware.md) does.
Each backend passes the [conformance suite](conforming.md) on its own [simulation](simulating.md) in CI, and `host` on
itself, which proves that the file holds together. It proves more where a library is written after the vendor's
interface, for `metal` and beside the simulation for `level_zero`, and on real drivers: two of OpenCL in CI.

| backend | vendor | maturity | operations | devices are seen by |
|---|---|---|---|---|
"""


def written() -> dict[Path, str]:
    """The files as they should be."""
    results = {release: release.verified(WHEELS) for release in RELEASES}
    page = HEAD + "\n".join(_backends()) + "\n\n" + "\n".join(_table(results)) + "\n"
    return {PAGE: page, **_records(results)}


def _records(results: Mapping[Release, Result]) -> dict[Path, str]:
    """A file of signatures for each backend."""
    records: dict[str, recording.Record] = {}
    for release, result in results.items():
        known = _known_headers(release, result) if "--check" in sys.argv[1:] else result.headers
        records[result.backend] = recording.with_result(
            records.get(result.backend), attrs.evolve(result, headers=known)
        )
    return {SIGNATURES / f"{name}.json": recording.text_of(record) for name, record in records.items()}


def _known_headers(release: Release, result: Result) -> Mapping[str, str]:
    """The headers of a release; those of packages move with the system, and are checked by their signatures alone."""
    file = SIGNATURES / f"{result.backend}.json"
    if not file.exists() or not any(each.startswith("debian/") for each in release.headers):
        return result.headers
    known = recording.load(file).releases.get(result.versions["runtime"])
    return result.headers if known is None else known.headers


def _backends() -> Iterator[str]:
    for name in descriptions.INDEX:
        description = descriptions.built_in(name)
        seen = description["presence"].get("linux")
        nodes = " ".join(f"`{node}`" for node in seen[1]) if seen else "the runtime"
        maturity, bound = descriptions.maturity(description), len(description["operations"])
        yield f"| `{name}` | {description['title']} | {maturity} | {bound} | {nodes or 'the runtime'} |"


def _table(results: Mapping[Release, Result]) -> Iterator[str]:
    compared = {release.backend for release in RELEASES}
    others = [name for name in descriptions.INDEX if name not in compared]
    columns = {release.name: _verified(release.backend, result) for release, result in results.items()}
    columns |= {name: _stated(name) for name in others}
    yield f"| operation | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for operation in descriptions.contract()["operations"]:
        marks = " | ".join(column[operation] for column in columns.values())
        yield f"| `{operation}` | {marks} |"


def _verified(backend: str, result: Result) -> dict[str, str]:
    """The marks of a backend, with those that a release verifies."""
    states = {row.subject: row.state.value for row in result.rows}
    stated = _stated(backend)
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
    texts = written()
    for file, text in texts.items():
        is_current = file.exists() and file.read_text("utf-8") == text
        if "--check" not in sys.argv[1:] and not is_current:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, "utf-8")
            print(f"{file.name}: written")
        elif not is_current:
            print(f"{file.name}: stale")
            return 1
    print("current")
    return 0


if __name__ == "__main__":
    sys.exit(main())
