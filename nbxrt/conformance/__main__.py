"""`python -m nbxrt.conformance …` is `nbxrt conform …`."""

from __future__ import annotations

import sys

from nbxrt.cli.app import commands

if __name__ == "__main__":
    commands(["conform", *sys.argv[1:]], prog_name="nbxrt")
