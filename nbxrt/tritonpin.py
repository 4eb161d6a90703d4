"""Telling Triton which of its backends is here, by TRITON_DEFAULT_BACKEND.

Asked for a driver without it, Triton asks every backend it has whether it is active, and one of those answers imports
torch. The variable is set only when the user has not set it, only to a key that the installed Triton has, and only when
a device is there; `nbxrt.reset()` puts it back. Triton itself is not imported.
"""

import os
import sys

from nbxrt import descriptions, presence, runtime
from nbxrt.binding.machine import Machine

VARIABLE = "TRITON_DEFAULT_BACKEND"

#: What was set here, and what stood there before (None: nothing).
_ours: "tuple[str, str | None] | None" = None


def pin(name: str) -> None:
    """Set the variable for a backend, where all of the above holds."""
    global _ours  # noqa: PLW0603  # one environment a process
    triton = descriptions.triton(name)
    if triton is None or os.environ.get(VARIABLE, "").strip() or sys.is_finalizing():
        return
    key = next((key for key in triton[0] if _installed(key)), None)
    if key is None or not _device_is_there(name):
        return
    _ours = (key, os.environ.get(VARIABLE))
    os.environ[VARIABLE] = key


def unpin() -> None:
    """Put the variable back, unless somebody has changed it since."""
    global _ours  # noqa: PLW0603
    if _ours is not None and os.environ.get(VARIABLE) == _ours[0]:
        if _ours[1] is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = _ours[1]
    _ours = None


def _device_is_there(name: str) -> bool:
    there, _why = presence.device_there(descriptions.load(name), Machine())
    if there is not None:
        return there
    return any(each.name == name and each.has_gpu for each in runtime.all_open())  # where only the runtime can tell


def _installed(key: str) -> bool:
    """Whether the installed Triton has a backend of that key: in its own tree, or offered by an entry point."""
    home = _home()
    if not home:
        return False
    if os.path.isdir(os.path.join(home, "backends", key)):
        return True
    from importlib.metadata import entry_points  # 20 ms: only for a Triton without the key in its tree

    return any(point.name == key for point in entry_points(group="triton.backends"))


def _home() -> str:
    """The folder of the installed Triton, or an empty string."""
    for entry in sys.path:
        home = os.path.join(entry or os.curdir, "triton") if isinstance(entry, str) else ""
        if os.path.isdir(os.path.join(home, "backends")):
            return home
    return ""
