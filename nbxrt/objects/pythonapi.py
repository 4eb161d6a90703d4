"""Functions of Python's own C interface, typed for this package alone: `ctypes.pythonapi` is everybody's."""

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_api = ctypes.PyDLL(None, handle=ctypes.pythonapi._handle)  # noqa: SLF001  # Windows opens no library of no name


def function(name: str, returns: "Any", *takes: "Any") -> "Any":
    """The function of that name; without types it takes ctypes values alone, which is the quickest way."""
    found = _api[name]  # a new object each time, so its types are nobody else's
    found.restype = returns
    if takes:
        found.argtypes = takes
    return found


def keep_for_ever(value: object) -> None:
    """Let an object outlive everything, also the interpreter's end."""
    _increase(ctypes.py_object(value))


def address_of_function(name: str) -> int:
    """Where a function is."""
    return ctypes.cast(_api[name], ctypes.c_void_p).value or 0


_increase = function("Py_IncRef", None)
