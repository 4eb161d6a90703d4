"""Memory of other Python objects: where it is, and what keeps it in place while something is copied."""

import ctypes

from nbxrt import errors
from nbxrt.errors import wrong_type
from nbxrt.objects.pythonapi import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Py_buffer(ctypes.Structure):  # noqa: N801  # the name in C
    """What `PyObject_GetBuffer` fills: the part of CPython's stable interface that Python itself does not show."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_get = function("PyObject_GetBuffer", ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_release = function("PyBuffer_Release", None, ctypes.c_void_p)


def view_of(value: "Any", what: str) -> memoryview:
    """The bytes of an object, in one piece; the object cannot be resized or moved while the view lives.

    Raises: ArgumentTypeError for what has no memory on the host; ArgumentValueError where it is not contiguous.
    """
    try:
        view = memoryview(value)
    except (TypeError, BufferError):
        said = f"{type(value).__name__} has no memory on the host, or none that the buffer protocol has a word for"
        raise wrong_type(
            what, "memory: an object with the buffer protocol, a Buffer or a DeviceArray", value, said
        ) from None
    except ValueError as error:  # NumPy has no buffer format for types that it was taught, such as bfloat16
        if not hasattr(value, "flags"):  # a view that was released, a file that was closed
            raise errors.ArgumentValueError(f"{what}: {type(value).__name__}: {error}", value=value) from None
        if not value.flags.c_contiguous:
            raise _scattered(what, value) from None
        return view_of(value.reshape(-1).view("uint8"), what)
    if not view.c_contiguous:
        raise _scattered(what, value)
    if view.format == "B" and view.ndim == 1:
        return view
    memory: Any = (ctypes.c_ubyte * view.nbytes).from_address(address_of(view) or ctypes.addressof(_nothing))
    memory.kept = view
    plain = memoryview(memory).cast("B")
    return plain.toreadonly() if view.readonly else plain


_nothing = ctypes.c_ubyte()


def _scattered(what: str, value: "Any") -> errors.ArgumentValueError:
    return errors.ArgumentValueError(f"{what}: the memory of {type(value).__name__} is not contiguous", value=value)


def address_of(view: memoryview) -> int:
    """Where the memory of a view begins; 0 when it is empty."""
    if not view.nbytes:
        return 0
    filled = _Py_buffer()
    at = ctypes.addressof(filled)
    _get(view, at, 0)
    address: int = filled.buf
    _release(at)
    return address


def memory_at(address: int, nbytes: int, *, readonly: bool, owner: object = None) -> memoryview:
    """The bytes at an address of the host; `owner` keeps them alive, or who asks does."""
    if not nbytes:
        return memoryview(b"" if readonly else bytearray())
    memory: Any = (ctypes.c_ubyte * nbytes).from_address(address)
    memory.kept = owner
    view = memoryview(memory).cast("B")
    return view.toreadonly() if readonly else view
