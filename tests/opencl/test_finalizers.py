"""Finalizers run in the middle of any call, with real drivers, which crash where a queue is used after its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tier("all"), pytest.mark.needs("opencl")]

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("driver", ["pocl", "intel", "pocl-buffers", "intel-buffers"])
def test_finalizers_run_in_the_middle_of_any_call(run: Callable[..., Any], driver: str) -> None:
    found = run(
        driver,
        f"""
        import sys
        sys.path[:0] = [{str(TESTS)!r}, {str(TESTS / "objects")!r}]
        import finalizing

        with nbxrt.use(nbxrt.open("opencl")):
            finalizing.dropping_at_every(17)
        said(whole=True)
        """,
    )

    assert found == {"whole": True}
