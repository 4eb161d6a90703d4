"""Bad grids and arguments, refused by name before anything is launched."""

import contextlib

from nbxrt import errors
from nbxrt.launch import keys, streams
from nbxrt.objects.buffer import Buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from nbxrt.launch.kernel import Kernel
    from nbxrt.runtime import Runtime

_AXES = "xyz"
#: The most blocks along an axis that every vendor's types hold.
MOST_BLOCKS = 2**31 - 1
_MOST = (MOST_BLOCKS, MOST_BLOCKS, MOST_BLOCKS)
#: What is said to who gives these with a launch.
_ELSEWHERE = {
    "stream": "a launch goes to the current stream: `with stream: …`",
    "device": "a launch runs on the device of its arrays",
}


def most_blocks(runtime: "Runtime", devices: "Sequence[int]") -> "tuple[int, int, int]":
    """The largest grid that one of the devices takes, along each axis as far as the vendor tells."""

    def along(word: "Any") -> int:
        told = [_told(runtime, word, device) for device in devices]
        return min(max(told, default=MOST_BLOCKS), MOST_BLOCKS)

    return along("max_grid_x"), along("max_grid_y"), along("max_grid_z")


def _told(runtime: "Runtime", word: "Any", device: int) -> int:
    try:
        found: int = runtime.device_attribute(word, device)
    except (errors.CapabilityError, errors.ArgumentValueError, errors.DeviceError):
        return MOST_BLOCKS
    return found if found > 0 else MOST_BLOCKS


def extents(
    grid: "Any", kernel: str, what: str = "grid", hint: str = "", most: "tuple[int, int, int]" = _MOST
) -> "tuple[int, int, int]":
    """A grid, or a block, of one to three extents as three. `hint` is for who gives a number in its place.

    Raises: ArgumentTypeError, ArgumentValueError naming the axis, also for an extent beyond `most`.
    """
    if grid.__class__ is tuple and len(grid) == 1 and grid[0].__class__ is int and 0 <= grid[0] <= most[0]:
        return grid[0], 1, 1
    if not isinstance(grid, (tuple, list)):
        raise errors.ArgumentTypeError(
            f"the {what} of `{kernel}` is a tuple of one to three extents, not {type(grid).__name__} {grid!r}",
            hint=(hint or f"write `{kernel}[(n,)](…)`") if hasattr(type(grid), "__index__") else "",
            parameter=what,
        )
    if not 1 <= len(grid) <= 3:
        raise errors.ArgumentValueError(
            f"the {what} of `{kernel}` has one to three extents, not {len(grid)}", parameter=what, value=grid
        )
    whole = [_extent(axis, value, kernel, what, most) for axis, value in zip(_AXES, grid, strict=False)]
    return (*whole, 1, 1)[:3]  # type: ignore[return-value]


def _extent(axis: str, value: "Any", kernel: str, what: str, most: "tuple[int, int, int]") -> int:
    try:
        number = int(value.__index__())
    except (AttributeError, TypeError):
        raise errors.ArgumentTypeError(
            f"the {what}'s {axis} of `{kernel}` is an integer, not {type(value).__name__} {value!r}",
            parameter=what,
            value=value,
        ) from None
    along = most[_AXES.index(axis)]
    if not 0 <= number <= along:
        raise errors.ArgumentValueError(
            f"the {what}'s {axis} of `{kernel}` is {number}, which is not in 0 … {along}",
            hint=f"the device takes up to {most[0]} along x" if along < number <= most[0] else "",
            parameter=what,
            value=number,
        )
    return number


def arguments(kernel: "Kernel", given: "tuple[Any, ...]") -> "int | None":
    """The device of the pointers among the arguments; None when there is none, or none says where it is.

    Raises: ArgumentTypeError, ArgumentValueError naming what is no argument of a kernel, is in host memory, or is on
    another device than the first pointer.
    """
    values = []
    for name, value in _named(kernel, given):
        if name in kernel.constants:
            constant(kernel.name, name, value)
        else:
            values.append((name, value))
    return one_device(
        kernel.name, [(name, _one(kernel, name, part)) for name, value in values for part in keys.parts(value)]
    )


@contextlib.contextmanager
def naming_constants(kernel: "Kernel", given: "tuple[Any, ...]") -> "Iterator[None]":
    """Name the constant where Triton refuses one since it has no hash. Raises: ArgumentTypeError."""
    try:
        yield
    except TypeError as error:
        for name, value in zip(kernel.names, given, strict=True):
            if name in kernel.constants and not _has_hash(value):
                raise errors.ArgumentTypeError(
                    f"argument `{name}` of `{kernel.name}` is {errors.shown(value)}, and {error}: constants are told "
                    "apart by their hash",
                    hint="pass a tuple, or an object that has one",
                    parameter=name,
                    value=value,
                ) from error
        raise


def _has_hash(value: "Any") -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _named(kernel: "Kernel", given: "tuple[Any, ...]") -> "Iterator[tuple[str, Any]]":
    """The arguments with their names, those of `**named` by their own."""
    for parameter, value in zip(kernel.parameters, given, strict=True):
        if parameter.kind is parameter.VAR_KEYWORD:
            yield from value.items()
        else:
            yield parameter.name, value


def options(
    compiler: "Any", backend: str, given: "Mapping[str, Any]", kernel: str = "", names: "Sequence[str]" = ()
) -> "Any":
    """The options as Triton's compiler for a backend has them. A launch also says the kernel and its parameters.

    Raises: ArgumentValueError for a value that the compiler refuses, and naming what is no option.
    """
    where = f"`{kernel}`: " if kernel else ""
    try:
        parsed = compiler.parse_options(dict(given))
    except (AssertionError, ValueError, TypeError) as error:
        raise errors.ArgumentValueError(
            f"{where}the compiler for `{backend}` refuses the options: {error}", value=given
        ) from error
    unknown = next((name for name in given if name not in parsed.__dict__), "")
    if unknown:
        raise no_option(unknown, kernel, f"the compiler for `{backend}`", [*names, *parsed.__dict__])
    return parsed


def no_option(name: str, kernel: str, whose: str, known: "Sequence[str]") -> errors.ArgumentValueError:
    """The error for what is no option of a compiler; a launch also says the kernel, whose parameter it is not."""
    close = errors.nearest(name, known)
    what = f"`{kernel}`: `{name}` is no parameter, and no option" if kernel else f"`{name}` is no option"
    return errors.ArgumentValueError(
        f"{what} of {whose}",
        hint=_ELSEWHERE.get(name) or (f"did you mean `{close}`?" if close else ""),
        parameter=name,
    )


def one_device(kernel: str, devices: "Iterable[tuple[str, int | None]]") -> "int | None":
    """The one device of arguments, each with its name. Raises: ArgumentValueError naming two that are apart."""
    first: tuple[str, int] | None = None
    for name, device in devices:
        if device is None:
            continue
        if first is None:
            first = (name, device)
        elif first[1] != device:
            raise errors.ArgumentValueError(
                f"arguments of `{kernel}`: `{first[0]}` is on device {first[1]}, and `{name}` on {device}",
                hint="copy one of them to the other's device",
                parameter=name,
            )
    return first[1] if first else None


def _one(kernel: "Kernel", name: str, value: "Any") -> "int | None":
    """Check one value; its device where it is a pointer that says so."""
    if value.__class__ is not int and hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        elements(kernel.name, name, value)
        return pointer(kernel.name, name, value, kernel.session.driver.runtime)
    if hasattr(value, "__array_interface__") and getattr(value, "shape", ()) != ():
        raise errors.ArgumentTypeError(
            f"argument `{name}` of `{kernel.name}` is {type(value).__name__} in host memory, which no kernel reads",
            hint="`nbxrt.asarray` copies it to the device",
            parameter=name,
            value=value,
        )
    scalar(kernel.name, name, value)
    return None


def constant(kernel: str, name: str, value: "Any") -> None:
    """See that a constant is no array. Raises: ArgumentTypeError."""
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        raise errors.ArgumentTypeError(
            f"argument `{name}` of `{kernel}` is a constant of the compilation, and {errors.shown(value)} an array",
            hint=f"arrays are parameters that are not declared `{name}: tl.constexpr`",
            parameter=name,
            value=value,
        )


@contextlib.contextmanager
def telling_arguments(kernel: str, given: "Iterable[tuple[str, Any]]") -> "Iterator[None]":
    """Add the arguments to an error of Triton's, which tells the line of the kernel alone (from Python 3.11 on)."""
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import InterpreterError

    try:
        yield
    except (CompilationError, InterpreterError) as error:
        if hasattr(error, "add_note"):
            said = ", ".join(f"`{name}` is {errors.shown(value)}" for name, value in given)
            error.add_note(f"`{kernel}` was given these arguments: {said}")
        raise


def elements(kernel: str, name: str, array: "Any") -> None:
    """See that Triton has a type for the elements of an array. Raises: ArgumentTypeError."""
    if not _is_taken(array):
        raise errors.ArgumentTypeError(
            f"argument `{name}` of `{kernel}` has elements of {array.dtype}, for which Triton has no type",
            parameter=name,
            value=array,
        )


def scalar(kernel: str, name: str, value: "Any") -> None:
    """See that what is no array is an argument of kernels. Raises: ArgumentTypeError, ArgumentValueError."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise errors.ArgumentValueError(
            f"argument `{name}` of `{kernel}`: {errors.shown(value)} does not fit into 64 bits",
            parameter=name,
            value=value,
        )
    if not _is_taken(value):
        raise errors.ArgumentTypeError(
            f"argument `{name}` of `{kernel}` is {type(value).__name__} {errors.shown(value)}, which no kernel takes",
            hint=_instead_of(value),
            parameter=name,
            value=value,
        )


def _instead_of(value: "Any") -> str:
    """What to do with a value that is none of a kernel's."""
    if isinstance(value, Buffer):
        return "`nbxrt.asarray(…).view(…)` makes an array of it"
    return "pass a Python number" if hasattr(value, "item") else "a constant is declared `tl.constexpr`"


def _is_taken(value: "Any") -> bool:
    """Whether Triton has a type for it."""
    if value is None or isinstance(value, (bool, float)):
        return True
    from triton.runtime.jit import mangle_type

    try:
        mangle_type(value)
    except (TypeError, AttributeError, KeyError):
        return False
    return True


def place(runtime: "Runtime", address: int) -> "int | str | None":
    """Where an address is, as `keys.device_of` says it; None where it is null, or the vendor does not tell."""
    if not address or not runtime.supports("pointer_attributes"):
        return None
    kind, device = runtime.pointer_attributes(address)[:2]
    return "cpu" if kind in ("host", "unregistered") else device


def pointer(kernel: str, name: str, value: "Any", runtime: "Runtime") -> "int | None":
    """The device of something with an address; None where it is null, or neither it nor the vendor tells.

    Raises: ArgumentValueError for memory of the host or of another runtime.
    """
    device = keys.device_of(value)
    where = f"argument `{name}` of `{kernel}`"
    streams.demand_open(where, value)
    other = getattr(value, "runtime", None)
    if other is not None and other is not runtime:
        raise errors.ArgumentValueError(
            f"{where} is memory of {other!r}, and kernels run on {runtime!r}", parameter=name, value=value
        )
    if device is None:
        device = place(runtime, int(value.data_ptr()))
    if device == "cpu":
        raise errors.ArgumentValueError(
            f"{where} is in host memory, and the kernel runs on a device",
            hint="`nbxrt.asarray` copies an array to the device",
            parameter=name,
            value=value,
        )
    return None if device is None else int(device)
