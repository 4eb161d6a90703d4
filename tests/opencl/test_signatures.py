"""The file beside the headers of Khronos and the loader of Debian."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbxrt import verifying

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.needs("opencl"),
    pytest.mark.needs("cxx"),
    pytest.mark.needs("pyelftools"),
]

HEADERS = [Path("/usr/include/CL") / name for name in ("cl.h", "cl_ext.h")]


def test_every_call_and_number_is_that_of_the_headers() -> None:
    loader = next(Path("/usr/lib").glob("*-linux-gnu/libOpenCL.so.1"))

    result = verifying.verify("opencl", headers=HEADERS, include=[Path("/usr/include")], libraries=[loader])

    assert [row for row in result.rows if row.state is not verifying.State.OK] == []
    assert len(result.rows) > 40
