"""Triton's kernels on nbxrt: `nbxrt.triton`. No torch, no C compiler, and less than Triton's own cost of a launch.

import nbxrt

nbxrt.triton.install()          # before `import triton` where kernels are interpreted, on `host`
import triton, triton.language as tl
kernel[(n // 1024,)](x, y, n, BLOCK=1024)
"""

from nbxrt.launch.ahead import compile  # noqa: A004  # Triton's word
from nbxrt.launch.installing import install, uninstall
from nbxrt.launch.installing import session as _session
from nbxrt.launch.saved import CompiledKernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CompiledKernel", "compile", "install", "stats", "uninstall"]


def stats() -> "dict[str, Any]":
    """What was launched since `install`: `kernels` seen, `compiled` launches made ready, and `fallbacks`.

    A fallback is a launch that Triton's own `run` did, on nbxrt's driver; the dictionary counts them by reason.
    """
    session = _session()
    if session is None:
        return {"kernels": 0, "compiled": 0, "fallbacks": {}}
    return {
        "kernels": session.seen,
        "compiled": session.compiled,
        "fallbacks": dict(session.fallbacks),
    }
