"""`python -m nbxrt.conformance …` is `nbxrt conform …`."""

from __future__ import annotations

import sys

from nbxrt.cli.app import run

if __name__ == "__main__":
    run(["conform", *sys.argv[1:]])
