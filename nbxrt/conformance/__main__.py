"""Run the suite and print its report: `python -m nbxrt.conformance [BACKEND]`.

Exit status 0 when nothing is wrong and something works, 1 otherwise, 2 for misuse.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nbxrt import conformance, errors, runtime

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run the suite as the arguments say; the exit status."""
    asked = _parser().parse_args(arguments)
    faulthandler.enable()  # a library that crashes the process is named by the check that called it
    try:
        opened = runtime.open(asked.backend)
        report = conformance.run(opened, asked.group, asked.device, module_image=_image(asked.image, asked.kernel))
    except errors.NbxrtError as error:
        print(f"error[{error.reference}]: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report.to_dict(), indent=2) if asked.json else report)
    return 0 if report.ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nbxrt.conformance", description="Check what each operation does.")
    parser.add_argument("backend", nargs="?", help="a backend's name or file; the best that is here if left out")
    parser.add_argument("--group", action="append", metavar="GROUP", help="only this group; may be given again")
    parser.add_argument("--device", type=int, help="which device")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--image", type=Path, help="a module with a kernel `add(a, b, out, n)` of 32-bit integers")
    parser.add_argument("--kernel", default="add", help="the name of its kernel")
    return parser


def _image(path: Path | None, kernel: str) -> conformance.ModuleImage | None:
    return None if path is None else conformance.ModuleImage(path.read_bytes(), kernel)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
