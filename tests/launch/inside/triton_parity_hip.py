"""A launch by nbxrt is, byte for byte, the launch that Triton's own launcher in C makes of the same call."""

from __future__ import annotations

import pytest
from parity import CASES, OF_NVIDIA, compared


@pytest.mark.parametrize("case", [case for case in CASES if case not in OF_NVIDIA])
def test_a_launch_is_tritons_byte_for_byte(case, simulate, hip_stub, monkeypatch):
    mine, theirs = compared(case, "hip", simulate, hip_stub, monkeypatch)

    assert mine == theirs
