"""What to do: the problems of a report, the gravest first, each as one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Report = Mapping[str, Any]
    Descriptions = Mapping[str, Mapping[str, Any]]

#: The most sentences that the last section has.
MOST = 3


def problems(found: Report, known: Descriptions) -> list[str]:
    """Everything that should be mended, the gravest first."""
    return list(dict.fromkeys(said for rule in _RULES for said in rule(found, known)))


def sentences(found: Report) -> list[str]:
    """At most three sentences: the gravest problems, or what to expect of this machine."""
    said: list[str] = found["problems"] or list(_outlook(found))
    return said[:MOST]


def _outlook(found: Report) -> Iterator[str]:
    opens = found["opens"]["name"]
    gpus = [backend for backend in found["backends"] if backend["kind"] == "gpu"]
    if any(backend["name"] == opens and _works(backend) for backend in gpus):
        yield f"Nothing: `nbxrt.open()` opens `{opens}`, and its device can be used."
        return
    yield "Nothing is wrong, and there is no GPU that nbxrt can use here."
    if any(backend["name"] == opens for backend in gpus):
        yield f"`nbxrt.open()` opens `{opens}` all the same, because its library loads; what needs a device will fail."
    host = next((backend["name"] for backend in found["backends"] if backend["kind"] == "cpu"), "")
    if host and opens != host:
        yield f'To work in host memory, call `nbxrt.open("{host}")` or set NBX_GPU_BACKEND={host}.'
    elif host:
        yield f"`nbxrt.open()` opens `{host}`, which works in host memory."


def _works(backend: Mapping[str, Any]) -> bool:
    return any(device["is_usable"] for device in backend["devices"])


# The rules, each a function of the report and the descriptions


def _crashed(found: Report, _known: Descriptions) -> Iterator[str]:
    if found["crash"]:
        yield f"Looking at the backends failed: {found['crash']}; set NBX_GPU_BACKEND to the one that you want."
    for backend in found["backends"]:
        if backend["crash"]:
            yield f"Update the driver of `{backend['name']}`, or its library: {backend['crash']}."


def _unusable_file(found: Report, _known: Descriptions) -> Iterator[str]:
    for name, fault in found["unusable"].items():
        yield f"Mend the file of `{name}`: {fault}."


def _contradictions(found: Report, _known: Descriptions) -> Iterator[str]:
    for conflict in found["conflicts"]:
        yield f"Settle the environment: {conflict}."


def _card_without_library(found: Report, known: Descriptions) -> Iterator[str]:
    for backend in _gpus(found):
        if backend["device"] != "no" and backend["is_seen"] and backend["library"] == "no":
            hint = _hint(known, backend["name"], "runtime")
            yield f"`{backend['name']}` has a card here and no library: {hint or 'install its runtime'}."


def _broken_library(found: Report, known: Descriptions) -> Iterator[str]:
    for backend in _gpus(found):
        # A file that does not offer what a runtime must has nothing to do with the library.
        is_at_fault = backend["error"] is not None and backend["error"]["reference"] != "capability"
        if backend["library"] == "broken" and is_at_fault and backend["name"] in known:
            yield f"Replace or remove what is broken: {backend['library_reason']}."


def _card_without_driver(found: Report, known: Descriptions) -> Iterator[str]:
    for backend in _gpus(found):
        if backend["device"] == "no" and not backend["is_seen"] and "kernel driver" in backend["device_reason"]:
            hint = _presence_hint(found, known, backend["name"]) or _hint(known, backend["name"], "driver")
            yield f"`{backend['name']}`: {backend['device_reason']}" + (f"; {hint}." if hint else ".")


def _hidden(found: Report, known: Descriptions) -> Iterator[str]:
    for backend in _gpus(found):
        if variables := _hiding(found, known, backend):
            yield f"Unset {' and '.join(variables)} to see the devices of `{backend['name']}`."


def _hiding(found: Report, known: Descriptions, backend: Mapping[str, Any]) -> list[str]:
    """The variables that may hide every device of a backend whose card is there."""
    if not backend["is_seen"] or backend["count"] != 0 or backend["name"] not in known:
        return []
    return [name for name in known[backend["name"]]["visibility"] if name in found["environment"]["set"]]


def _card_without_device(found: Report, known: Descriptions) -> Iterator[str]:
    for backend in _gpus(found):
        is_told = backend["crash"] or _hiding(found, known, backend)
        if backend["is_seen"] and backend["library"] == "yes" and not backend["devices"] and not is_told:
            reason = backend["devices_reason"] or backend["device_reason"]
            hint = backend["devices_hint"] or _hint(known, backend["name"], "driver")
            yield f"`{backend['name']}` has a card here and counts no device ({reason})" + (
                f": {hint}." if hint else "."
            )


def _unusable_device(found: Report, _known: Descriptions) -> Iterator[str]:
    for backend in _gpus(found):
        for device in backend["devices"]:
            if not device["is_usable"]:
                yield f"Device {device['index']} of `{backend['name']}` cannot be used: {device['reason']}."


def _differing_messages(found: Report, _known: Descriptions) -> Iterator[str]:
    for backend in _gpus(found):
        differences = backend["messages"]["differences"]
        if differences:
            yield f"Report that the file of `{backend['name']}` does not fit this system: {differences[0]}."


def _management_trouble(found: Report, _known: Descriptions) -> Iterator[str]:
    for backend in _gpus(found):
        for library in backend["libraries"]:
            if library["trouble"] and library["hint"] and backend["is_seen"]:
                hint = library["hint"]
                yield f"{hint[0].upper()}{hint[1:]}: {library['path']} cannot be used, {library['trouble']}."


def _gpus(found: Report) -> Iterator[Mapping[str, Any]]:
    return (backend for backend in found["backends"] if backend["kind"] != "cpu")


def _presence_hint(found: Report, known: Descriptions, name: str) -> str:
    """What the backend's file advises where a card is there and its device node is not."""
    rule = known[name]["presence"].get(found["machine"]["system"]) if name in known else None
    return str(rule[3]) if rule else ""


def _hint(known: Descriptions, name: str, role: str) -> str:
    """What the backend's file advises for a library."""
    libraries = known[name]["libraries"] if name in known else {}
    role = libraries.get(role, {}).get("same_as", role)
    hint: str = libraries.get(role, {}).get("hint", "")
    return hint


_RULES: tuple[Callable[[Report, Descriptions], Iterator[str]], ...] = (
    _crashed,
    _unusable_file,
    _card_without_library,
    _card_without_driver,
    _hidden,
    _card_without_device,
    _unusable_device,
    _differing_messages,
    _management_trouble,
    _contradictions,
    _broken_library,
)
