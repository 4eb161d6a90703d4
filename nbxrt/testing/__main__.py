"""`python -m nbxrt.testing PATH…`: test backend files and nothing else; exits as pytest does."""

from __future__ import annotations

import sys


def main(paths: list[str]) -> int:
    """Run the tests of the files at the paths."""
    if not paths or paths[0].startswith("-"):
        print("usage: python -m nbxrt.testing PATH...", file=sys.stderr)
        return 2
    try:
        import pytest
    except ImportError:
        print("error: pytest is not installed\n\nhint: `pip install pytest`", file=sys.stderr)
        return 2
    options = [option for path in paths for option in ("--nbxrt-backends", path)]
    # Nothing here asserts, and pytest would warn that it cannot rewrite what is imported already.
    alone = ["-p", "nbxrt.testing.plugin", "--override-ini=addopts=", "--assert=plain"]
    return int(pytest.main([*paths, *options, *alone]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
