"""A kernel's signature as Triton writes it: which arguments reach the kernel, in which order, as which types.

Constants of the compilation are dropped, tuples are flattened, a tensor descriptor becomes what its kernel reads.
"""

import re

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from nbxrt.launch.versions import Facts

CONSTANT = "constexpr"

_DESCRIPTOR = re.compile(r"tensordesc(?:_im2col)?<([^[>]*)\[([^\]]*)\]")


def is_plain(kind: "Any") -> bool:
    """Whether a type is one value of a scalar or a pointer."""
    return isinstance(kind, str) and kind != CONSTANT and not kind.startswith("tensordesc")


def types(kind: "Any", facts: "Facts", opaque: "Iterator[Any]") -> "Iterator[str]":
    """The types that one argument's type comes to.

    `opaque` gives for each tensor descriptor, in order, how the device reads it; None where it reads its parts.
    """
    if isinstance(kind, tuple):
        for each in kind:
            yield from types(each, facts, opaque)
    elif is_plain(kind):
        yield kind
    elif kind != CONSTANT:
        yield from _descriptor_types(kind, facts, next(opaque, None))


def values(kind: "Any", value: "Any", facts: "Facts", opaque: "Iterator[Any]") -> "Iterator[Any]":
    """The values that go with `types`.

    Raises: ArgumentTypeError for a tuple of another length.
    """
    if isinstance(kind, tuple):
        if not isinstance(value, tuple) or len(value) != len(kind):
            raise errors.ArgumentTypeError(f"a tuple of {len(kind)} is wanted, not {value!r}")
        for each, part in zip(kind, value, strict=True):
            yield from values(each, part, facts, opaque)
    elif is_plain(kind):
        yield value
    elif kind != CONSTANT:
        yield from _descriptor_values(value, facts, next(opaque, None))


def _descriptor_types(kind: str, facts: "Facts", opaque: "Any") -> "Iterator[str]":
    """A descriptor in parts: base, shape, strides, flags; then, as for an opaque one, shape and strides again."""
    found = _DESCRIPTOR.match(kind)
    if found is None:
        raise errors.ArgumentTypeError(f"`{kind}` is no tensor descriptor")
    rank = re.search(r",input_rank=(\d+)", kind)
    ndim = int(rank[1]) if rank else found[2].count(",") + 1
    if opaque is None:
        yield "*" + found[1]
        yield from ["i64"] * (2 * ndim)
        yield from ["i1"] * (2 if facts.descriptors_round else 1)
    else:
        yield "nvTmaDesc"
    yield from ["i32"] * ndim
    yield from ["i64"] * ndim


def _descriptor_values(value: "Any", facts: "Facts", opaque: "Any") -> "Iterator[Any]":
    if opaque is None:
        yield value.base
        yield from (*value.shape, *value.strides, value.padding == "nan")
        if facts.descriptors_round:
            yield value.round_f32_to_tf32
        shape = value.shape
    else:
        described, shape = opaque(value)
        yield described
    yield from (*shape, *value.strides)


def flattened(kinds: "Sequence[Any]", facts: "Facts", opaque: "Sequence[Any]") -> "list[str]":
    """The types that reach the kernel, of the types of all its parameters."""
    rest = iter(opaque)
    return [each for kind in kinds for each in types(kind, facts, rest)]


def flattened_values(
    kinds: "Sequence[Any]", given: "Sequence[Any]", facts: "Facts", opaque: "Sequence[Any]"
) -> "list[Any]":
    """The values that reach the kernel."""
    rest = iter(opaque)
    return [each for kind, value in zip(kinds, given, strict=True) for each in values(kind, value, facts, rest)]
