"""Shapes and strides: plain arithmetic, no memory. Strides are in bytes."""

from nbxrt import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Shape = tuple[int, ...]

#: The most elements that an array may have along all dimensions together.
LARGEST = 1 << 62


def shape_of(given: "Any") -> "Shape":
    """A shape as a tuple of integers; one integer is a shape of one dimension.

    Raises: ArgumentTypeError; ArgumentValueError for negative extents, or more elements than any memory has.
    """
    extents = given if isinstance(given, (tuple, list)) else (given,)
    checked = []
    size = 1
    for extent in extents:
        number = errors.integer("a shape", "integers", extent)
        if number < 0:
            raise errors.ArgumentValueError(f"an extent is not negative; this one is {number}", value=given)
        size *= number or 1
        checked.append(number)
    if size > LARGEST:
        raise errors.ArgumentValueError(f"{given!r} has more elements than any memory", value=given)
    return tuple(checked)


def size_of(shape: "Shape") -> int:
    """The number of elements."""
    size = 1
    for extent in shape:
        size *= extent
    return size


def strides_of(shape: "Shape", itemsize: int) -> "Shape":
    """The strides of a contiguous array in C order."""
    strides = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent or 1
    return tuple(reversed(strides))


#: What `dense` answered, at most so often.
_dense: "dict[tuple[Shape, int], tuple[Shape, int, Shape]]" = {}
_SEEN = 1024


def dense(given: "Any", itemsize: int) -> "tuple[Shape, int, Shape]":
    """Shape, bytes and strides of a contiguous array in C order, of a shape that a caller gives. Raises: as `shape_of`.

    A shape that was seen before was checked then.
    """
    if given.__class__ is tuple:
        for extent in given:
            if extent.__class__ is not int:  # to a table True is as good as 1
                break
        else:
            found = _dense.get((given, itemsize))
            if found is not None:
                return found
    shape = shape_of(given)
    if len(_dense) >= _SEEN:
        _dense.clear()
    found = _dense[shape, itemsize] = shape, size_of(shape) * itemsize, strides_of(shape, itemsize)
    return found


def is_contiguous(shape: "Shape", strides: "Shape", itemsize: int) -> bool:
    """Whether the elements lie in C order without gaps; dimensions of one element and empty arrays do not matter."""
    step = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 0:
            return True
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def span_of(shape: "Shape", strides: "Shape", itemsize: int) -> "tuple[int, int]":
    """First and last byte (the latter not included) that an array touches, from its first element."""
    if 0 in shape:
        return 0, 0
    first, last = 0, itemsize
    for extent, stride in zip(shape, strides):  # noqa: B905  # on the way of every exchange, where strictness costs
        if stride < 0:
            first += (extent - 1) * stride
        else:
            last += (extent - 1) * stride
    return first, last


def indexed(shape: "Shape", strides: "Shape", index: "Any") -> "tuple[int, Shape, Shape]":
    """Offset in bytes, shape and strides of basic indexing: integers, slices, `...` and None.

    Raises: ArgumentTypeError for anything else; ArgumentValueError for too many indices; ArgumentIndexError.
    """
    parts = _expanded(index if isinstance(index, tuple) else (index,), len(shape))
    offset, at = 0, 0
    new_shape: list[int] = []
    new_strides: list[int] = []
    for part in parts:
        if part is None:
            new_shape.append(1)
            new_strides.append(0)
            continue
        extent, stride = shape[at], strides[at]
        at += 1
        if isinstance(part, slice):
            start, stop, step = _slice(part).indices(extent)
            length = len(range(start, stop, step))
            offset += start * stride if length else 0
            new_shape.append(length)
            new_strides.append(step * stride)
        else:
            offset += position(part, extent) * stride
    return offset, tuple(new_shape), tuple(new_strides)


def _expanded(parts: "tuple[Any, ...]", ndim: int) -> "Iterator[Any]":
    """The parts of an index, one for each dimension and each None."""
    if sum(part is Ellipsis for part in parts) > 1:
        raise errors.ArgumentValueError("an index has one `...` at most", value=parts)
    named = sum(part is not None and part is not Ellipsis for part in parts)
    if named > ndim:
        raise errors.ArgumentValueError(f"{named} indices are too many for {ndim} dimensions", value=parts)
    rest = [slice(None)] * (ndim - named)
    for part in parts:
        if part is Ellipsis:
            yield from rest
            rest = []
        else:
            yield part
    yield from rest


def _slice(part: slice) -> slice:
    """A slice of integers. Raises: ArgumentTypeError; ArgumentValueError for a step of 0."""
    start, stop, step = (
        None if each is None else errors.integer("a slice", "integers", each)
        for each in (part.start, part.stop, part.step)
    )
    if step == 0:
        raise errors.ArgumentValueError("the step of a slice is not 0", value=part)
    return slice(start, stop, step)


def position(part: "Any", extent: int) -> int:
    """An index as one from 0. Raises: ArgumentTypeError, ArgumentIndexError."""
    hint = "CuPy, PyTorch and JAX index by arrays, through DLPack"
    at = errors.integer("an index", "integers, slices, `...` and None", part, hint)
    if not -extent <= at < extent:
        raise errors.ArgumentIndexError(f"the index {at} is outside an extent of {extent}", value=part)
    return at % extent


def reshaped(shape: "Shape", strides: "Shape", itemsize: int, wanted: "Any") -> "tuple[Shape, Shape | None]":
    """Another shape of the same elements with its strides, None where they cannot be had without a copy.

    One extent may be -1. Raises: ArgumentTypeError, ArgumentValueError.
    """
    new = _without_unknown(shape, wanted)
    if is_contiguous(shape, strides, itemsize) or 0 in shape:
        return new, strides_of(new, itemsize)
    return new, _kept_strides(shape, strides, new)


def _without_unknown(shape: "Shape", wanted: "Any") -> "Shape":
    extents = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    unknown = [at for at, extent in enumerate(extents) if extent == -1 and not isinstance(extent, bool)]
    size = size_of(shape)
    if len(unknown) > 1:
        raise errors.ArgumentValueError(f"one extent may be -1, not {len(unknown)}", value=wanted)
    if unknown:
        extents[unknown[0]] = 1
        known = size_of(shape_of(extents))
        if known and size % known == 0:
            extents[unknown[0]] = size // known
    new = shape_of(extents)
    if size_of(new) != size:
        raise errors.ArgumentValueError(f"{size} elements do not have the shape {wanted!r}", value=wanted)
    return new


def _kept_strides(shape: "Shape", strides: "Shape", new: "Shape") -> "Shape | None":
    """Strides of the new shape over the same memory: each run of old dimensions must be one even step."""
    old = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    answer: list[int] = []
    at = first = 0
    while at < len(new):
        if new[at] == 1:
            answer.append(0)
            at += 1
            continue
        if first == len(old):
            return None
        last, next_at = first + 1, at + 1
        have, want = old[first][0], new[at]
        while have != want:
            if have < want:
                have, last = have * old[last][0], last + 1
            else:
                want, next_at = want * new[next_at], next_at + 1
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(first, last - 1)):
            return None
        answer += strides_of(new[at:next_at], old[last - 1][1])
        at, first = next_at, last
    return tuple(answer)


def runs(shape: "Shape", strides: "Shape", itemsize: int) -> "tuple[int, Iterator[int]]":
    """The elements in C order as pieces without gaps: the bytes of each, and where each begins."""
    nbytes, depth = itemsize, len(shape)
    while depth and (shape[depth - 1] == 1 or strides[depth - 1] == nbytes):
        depth -= 1
        nbytes *= shape[depth]
    return nbytes, _offsets(shape[:depth], strides[:depth])


def _offsets(shape: "Shape", strides: "Shape") -> "Iterator[int]":
    if not shape:
        yield 0
        return
    for position in range(shape[0]):
        for rest in _offsets(shape[1:], strides[1:]):
            yield position * strides[0] + rest
