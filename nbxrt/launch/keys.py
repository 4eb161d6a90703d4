"""What Triton looks at in an argument when it chooses a kernel, as a key: equal keys mean the same kernel.

A pointer's key also holds its device and its runtime, so that a kernel found by it is of that device. Keys of pointers
are large integers, those of integers small ones; keys of other things are no integers. So an argument of another kind
never looks like one that was seen.
"""

import itertools
import math
import weakref

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from nbxrt.runtime import Runtime

#: Larger than any key of an integer.
FIRST_POINTER = 1024
#: AMD's compiler asks whether an offset into the allocation fits 32 bits.
_MOST_SMALL = 2**31 - 1

#: The attribute in which an array of nbxrt keeps its key; None before its first launch.
ATTRIBUTE = "launch_key"

#: Values of these types are equal only where they are the same; of floats, tuples and others that does not hold.
PLAIN = frozenset((int, bool, str, type(None)))

_pointers: "dict[tuple[Any, ...], int]" = {}
_codes = itertools.count(FIRST_POINTER)
#: A number for each runtime, so that no key keeps one alive; never given twice.
_numbers: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
_next_number = itertools.count()


class UnknownKindError(Exception):
    """An argument is of a kind that keys are not known for."""


def integer(value: int) -> int:
    """The key of an integer: what Triton tells apart, which is 1, multiples of 16, and the width of its type."""
    if -0x80000000 <= value < 0x80000000:
        return 2 if value == 1 else 0 if value & 15 else 1
    return (4 if -(2**63) <= value < 2**63 else 8 if 0 <= value < 2**64 else 16) + (not value & 15)


#: The same as text, for generated functions: `{n}` is the argument, `_nbx_key` is `of`; no name is one that a kernel's
#: parameter may have.
INTEGER = (
    "((2 if {n} == 1 else 0 if {n} & 15 else 1) if -2147483648 <= {n} < 2147483648 else _nbx_integer({n})) "
    "if _nbx_type({n}) is _nbx_int else _nbx_key({n})"
)
CONSTANT = "{n} if _nbx_type({n}) is _nbx_int else _nbx_constant({n})"


def constant(value: "Any") -> "Any":
    """The key of a constant of the compilation: 1, True and 1.0 are equal and yet not the same; NaN is one constant.

    An object may change what it says and stay the same object: its hash tells.
    Raises: TypeError for one without a hash.
    """
    kind = value.__class__
    if kind is tuple:
        return (tuple, tuple(map(constant, value)))
    if kind is float and math.isnan(value):
        return (float, "nan")
    if kind is int:
        return value
    return (kind, value) if kind in PLAIN or kind is float else (kind, value, hash(value))


def _unasked(_address: int) -> None:
    """What is not known of an address."""


def of(value: "Any", place: "Callable[[int], Any]" = _unasked) -> "Any":
    """The key of an argument; `place` tells of an address what `device_of` tells of an array, which may not say.

    Raises: UnknownKindError; TypeError for a constant without a hash; what `place` raises.
    """
    kind = value.__class__
    if kind is int:
        return integer(value)
    found = getattr(value, ATTRIBUTE, None)
    if found is not None:
        return found
    if value is None or kind is bool or kind is float:
        return kind
    if isinstance(value, tuple):
        return (kind, tuple([of(each, place) for each in value]))
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _pointer(value, place)
    return _special(kind, value, place)


def _special(kind: type, value: "Any", place: "Callable[[int], Any]") -> "Any":
    """The key of what only Triton's own classes are."""
    if kind.__name__ == "constexpr" and hasattr(value, "value"):
        return (kind, constant(value.value))
    if is_descriptor(value):
        described = (tuple(value.block_shape), len(value.shape), value.padding)
        return (kind, of(value.base, place), *described, getattr(value, "round_f32_to_tf32", False))
    if kind.__name__ == "JITFunction":
        return constant(value)
    raise UnknownKindError(kind.__name__)


def is_descriptor(value: "Any") -> bool:
    """Whether it is a tensor descriptor of Triton's own; Gluon's says more, by which kernels differ."""
    kind = type(value)
    return kind.__name__ == "TensorDescriptor" and kind.__module__ == "triton.tools.tensor_descriptor"


def parts(value: "Any") -> "Iterator[Any]":
    """The values in an argument: those of a tuple, and the tensor of a descriptor."""
    if isinstance(value, tuple):
        for each in value:
            yield from parts(each)
    else:
        yield value.base if is_descriptor(value) else value


def give(*arrays: "Any") -> bool:
    """Give keys to those arrays of nbxrt that have none yet. Raises: ArgumentTypeError."""
    for array in arrays:
        if array.launch_key is None:
            known = array.device.launch_keys
            facts = array.dtype.name, array.is_aligned, array.memory.nbytes <= _MOST_SMALL
            array.launch_key = known.get(facts) or known.setdefault(
                facts, _code(array, array.ptr, _number(array.runtime), _unasked)
            )
    return True


def _pointer(value: "Any", place: "Callable[[int], Any]") -> int:
    """The key of something with an address and an element type; arrays of nbxrt keep it. Raises: ArgumentTypeError."""
    if not hasattr(type(value), ATTRIBUTE):
        return _code(value, value.data_ptr(), None, place)
    give(value)
    key: int = value.launch_key
    return key


def _code(value: "Any", address: int, runtime: "int | None", place: "Callable[[int], Any]") -> int:
    device = device_of(value)
    if device is None:
        device = place(address)
    facts = (element_type(value.dtype), address % 16 == 0, _is_small(value), device, runtime)
    code = _pointers.get(facts)
    return _pointers.setdefault(facts, next(_codes)) if code is None else code


def _number(runtime: "Runtime") -> int:
    found = _numbers.get(runtime)
    return _numbers.setdefault(runtime, next(_next_number)) if found is None else found


def _is_small(value: "Any") -> bool:
    ask: Callable[[], int] | None = getattr(value, "ptr_range", None)
    if ask is not None:
        return ask() <= _MOST_SMALL
    storage = getattr(value, "untyped_storage", None)
    size = getattr(storage(), "size", None) if storage is not None else None
    return size is not None and size() <= _MOST_SMALL


def device_of(value: "Any") -> "Any":
    """The device index of a pointer argument: an integer, `cpu` for host memory, None when it does not say."""
    index = getattr(value, "_device_idx", None)
    if index is not None:
        return index
    device = getattr(value, "device", None)
    kind = getattr(device, "type", None)
    if kind == "cpu":
        return "cpu"
    return getattr(device, "index", None) if kind is not None else None


#: Triton's name of an element type by the type's hash, and the type: Triton itself goes by the hash alone.
_elements: "dict[int, tuple[Any, str]]" = {}


def element_type(dtype: "Any") -> str:
    """The element type as text, refused where Triton would take it for another.

    Raises: ArgumentTypeError.
    """
    known = _elements.get(hash(dtype))
    if known is not None and known[0] is dtype:
        return known[1]
    said = str(dtype).rsplit(".", 1)[-1]
    if known is not None and known[1] != said:
        raise errors.ArgumentTypeError(
            f"the element types `{known[1]}` and `{said}` have the same hash, by which Triton tells them apart",
            hint="give each type a hash of its own",
        )
    _elements[hash(dtype)] = (dtype, said)
    return said
