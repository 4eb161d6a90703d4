"""What the functions that are generated for launches have in common: lines of their text, and how they are made."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any


#: What every generated function is called: a kernel's own name may be no identifier, or one that the text uses.
NAME = "_nbx_launch"


def made(text: str, names: "dict[str, Any]", title: str) -> "Callable[..., Any]":
    """The function in the text, which is named for a kernel where Python speaks of it."""
    code = compile(text, f"<nbxrt launch of {title}>", "exec")
    exec(code, names)  # noqa: S102  # the text is made here, of the kernel's own parameter names
    result: Callable[..., Any] = names[NAME]
    result.__name__ = result.__qualname__ = title
    return result


def globals_lines(
    used: "Iterable[tuple[str, Any, dict[str, Any]]]", names: "dict[str, Any]", otherwise: str
) -> "list[str]":
    """Triton refuses to run a kernel whose global variables have changed: let it say so.

    `used` are names, values and where they have to be found unchanged.
    """
    lines = []
    names["_nbx_missing"] = object()
    for at, (name, value, variables) in enumerate(used):
        names |= {f"_nbx_value{at}": value, f"_nbx_globals{at}": variables}
        lines += [
            f"    if (_nbx_now := _nbx_globals{at}.get({name!r}, _nbx_missing)) is not _nbx_value{at} "
            f"and _nbx_now != _nbx_value{at}:",
            f"        return {otherwise}",
        ]
    return lines


def device_lines(device: "int | str", otherwise: str) -> "list[str]":
    """What is launched runs on the thread's current device."""
    return [f"    if _nbx_current.__dict__.get('index') != {device}: return {otherwise}"]


def stream_lines(device: "int | str", otherwise: str) -> "list[str]":
    """The thread's current stream, or torch's where torch is in use and there is none."""
    return [
        f"    if _nbx_entered and (_nbx_streams := _nbx_current.streams) and {device} in _nbx_streams:",
        f"        _nbx_s = _nbx_streams[{device}].handle",
        f"        if _nbx_s is None: return {otherwise}",
        f"    else: _nbx_s = _nbx_torch[0]({device}) if 'torch' in _nbx_modules else 0",
    ]


def memory_lines(arrays: "Sequence[str]") -> "list[str]":
    """Arrays of nbxrt that are closed, or of another stream than the launch, are looked at more closely."""
    if not arrays:
        return []
    elsewhere = " or ".join(f"{name}.memory.home != _nbx_s" for name in arrays)
    return [f"    if {elsewhere}: _nbx_note(_nbx_s, {', '.join(arrays)})"]
