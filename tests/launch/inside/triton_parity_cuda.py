"""A launch by nbxrt is, byte for byte, the launch that Triton's own launcher in C makes of the same call."""

from __future__ import annotations

import pytest
from parity import CASES, compared


@pytest.mark.parametrize("case", CASES)
def test_a_launch_is_tritons_byte_for_byte(case, simulate, stub, monkeypatch):
    mine, theirs = compared(case, "cuda", simulate, stub, monkeypatch)

    assert mine == theirs
