"""The Python side of a generated function: its signature, and each parameter's inline test and closer check."""

from nbxrt import errors
from nbxrt.binding import arguments as accept
from nbxrt.binding.layout import RANGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nbxrt.binding.source import Source


def signature(source: "Source") -> str:
    """The signature's text; fills in the inline conditions and the closer checks of each parameter."""
    signature = []
    for name, kind, zero, default in source.entry["takes"]:
        if default:
            source.globals[f"_default_{name}"] = default[0]
        signature.append(f"{name}=_default_{name}" if default else name)
        _parameter(source, name, kind, zero)
    return ", ".join(signature)


def _parameter(source: "Source", name: str, kind: str, zero: "str | None") -> None:
    contract = source.binder.contract
    if kind in contract["enums"]:
        _enum_parameter(source, name, kind)
    elif kind in _PARAMETERS:
        _PARAMETERS[kind](source, name)
    else:
        c_type, refused = contract["types"][kind]
        _integer_parameter(source, name, c_type, zero or ("refused" if refused else None))


def _integer_parameter(source: "Source", name: str, c_type: str, zero: "str | None") -> None:
    low, high = RANGES[c_type]
    if zero == "refused":
        low += 1
    source.checks.append(f"{name}.__class__ is int and {low} <= {name} <= {high}")
    source.checked.append((name, zero, accept.integer(c_type)))
    source.names[name] = name


def _device_parameter(source: "Source", name: str) -> None:
    source.globals["_devices"] = source.binder.devices
    source.checks.append(f"{name}.__class__ is int and 0 <= {name} < _devices[0]")
    source.checked.append((name, None, accept.device(source.binder.count_devices)))
    source.names[name] = name


def _enum_parameter(source: "Source", name: str, kind: str) -> None:
    numbered, words = source.binder.contract["enums"][kind]
    # A file without numbers for these words uses none of them: a call that ignores the parameter.
    numbers = dict(source.binder.variants.enum(kind, source.operation) or {word: at for at, word in enumerate(words)})
    if numbered:
        numbers |= {position: numbers[word] for position, word in enumerate(words) if word in numbers}
    source.globals[f"_number_{name}"] = numbers.get
    accepted = f"({name}.__class__ is str or {name}.__class__ is int)" if numbered else f"{name}.__class__ is str"
    source.checks.append(f"{accepted} and (_{name} := _number_{name}({name})) is not None")
    check = accept.word(numbers, words, numbers=not numbered, offered_by=source.binder.description["file"])
    source.checked.append((name, None, check))
    source.names[name] = f"_{name}"


def _boolean_parameter(source: "Source", name: str) -> None:
    source.checks.append(f"{name}.__class__ is bool")
    source.checked.append((name, None, accept.boolean))
    source.names[name] = name


def _converted(check: "Any") -> "Callable[[Source, str], None]":
    """Parameters that are always converted: the check is the conversion."""

    def parameter(source: "Source", name: str) -> None:
        source.checked.append((name, None, check))
        source.names[name] = f"_{name}"
        source.checks.append(f"(_{name} := _convert_{name}({name})) is not None")
        source.globals[f"_convert_{name}"] = _answering(check)

    return parameter


def _answering(check: "Any") -> "Any":
    """The check, answering None where it refuses: the closer check then raises with the parameter's name."""

    def convert(value: "Any") -> "Any":
        try:
            return check(value)
        except errors.ArgumentError:
            return None

    return convert


_PARAMETERS: "dict[str, Callable[[Source, str], None]]" = {
    "device": _device_parameter,
    "boolean": _boolean_parameter,
    "text": _converted(accept.text),
    "bytes": _converted(accept.buffer),
    "dim3": _converted(accept.axes),
    "arguments": _converted(accept.pointers),
}
