"""The report as text: a newcomer reads the words at the left, an expert the reasons at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt import descriptions
from nbxrt.cli.console import TIED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbxrt.cli.console import Writer

#: Colour of a verdict; the word itself says it too.
_STYLES = {"yes": "green", "no": "dim", "broken": "bold red", "unknown": "yellow", "chosen": "green", "refused": "red"}


#: How a verdict is said; a copy that another came before is no verdict on it.
_SAID = {"untried": "unused"}


def write(writer: Writer, found: Mapping[str, Any]) -> None:
    """Write the report section by section."""
    for section in (_machine, _backends, _triton, _environment, _advice):
        section(writer, found)


def _machine(writer: Writer, found: Mapping[str, Any]) -> None:
    machine, python = found["machine"], found["python"]
    writer.line("Machine", "bold")
    writer.row("system", ", ".join(filter(None, (machine["distribution"], machine["kernel"], machine["processor"]))))
    writer.row("container", f"yes: {machine['container']}" if machine["container"] else "no sign of one")
    if machine["system"] == "linux":
        writer.row("C library", machine["libc"] or "not glibc")
        writer.row("WSL", f"yes: {machine['wsl']}" if machine["wsl"] else "no")
    if machine["root"]:
        writer.row("root", f"{machine['root']}, by NBXRT_SYSROOT: every path below is looked up in it")
    environment = f", {python['environment']}" if python["environment"] else ""
    writer.row("Python", f"{python['implementation']} {python['version']}, {python['executable']}{environment}")
    writer.row("nbxrt", f"{python['nbxrt']}, {python['nbxrt_path']}")


def _backends(writer: Writer, found: Mapping[str, Any]) -> None:
    others = [backend for backend in found["backends"] if _is_elsewhere(backend)]
    for backend in found["backends"]:
        if backend in others:
            continue
        writer.heading(f"Backend {backend['name']}: {backend['title']}")
        _verdict(writer, "library", backend["library"], backend["library_reason"])
        if backend["name"] not in found["unusable"]:
            _verdict(writer, "device", backend["device"], backend["device_reason"])
            _verdict(writer, "usable", backend["usable"], backend["usable_reason"])
        if backend["crash"]:
            writer.row("ended", backend["crash"], style="bold red", word=backend["crash"])
        for device in backend["devices"]:
            _device(writer, device)
        _libraries(writer, backend)
        _messages(writer, backend["messages"])
    if others:
        writer.heading("Other backends: neither a device nor a library of theirs is here")
    for backend in others:
        writer.row(backend["name"], f"{backend['title']}: {backend['device_reason']}")
    writer.line()
    opens = found["opens"]
    writer.row("opens", f"nbxrt.open() opens {opens['name']}" if opens["name"] else opens["reason"] or "not known")


def _is_elsewhere(backend: Mapping[str, Any]) -> bool:
    """Whether a vendor that counts only with a device has left no trace on this machine."""
    needed = descriptions.needing_a_device(backend["name"])
    return needed is not None and backend["library"] == backend["device"] == "no"


def _verdict(writer: Writer, label: str, verdict: str, reason: str) -> None:
    first = reason.split("\n", 1)[0]
    writer.row(label, f"{verdict}:{TIED}{first}" if first else verdict, style=_STYLES.get(verdict, ""), word=verdict)


def _device(writer: Writer, device: Mapping[str, Any]) -> None:
    memory = ""
    if device["total"] is not None:
        memory = f"{device['free'] / 2**30:.1f} of {device['total'] / 2**30:.1f} GiB free"
    facts = [
        device["name"],
        "a part of a card" if device["is_part"] else "",
        memory,
        f"PCI {device['pci']}" if device["pci"] else "",
        f"UUID {device['uuid']}" if device["uuid"] else "",
        "" if device["is_usable"] else f"cannot be used: {device['reason']}",
    ]
    writer.row(f"device {device['index']}", ", ".join(filter(None, facts)))


def _libraries(writer: Writer, backend: Mapping[str, Any]) -> None:
    libraries = backend["libraries"] or [{"role": "runtime", "path": "", "candidates": backend["candidates"]}]
    for library in libraries:
        if backend["libraries"]:
            writer.row(library["role"], _said_of(library))
        if library.get("driver_version"):
            writer.row("driver for", f"{backend['title']} up to {library['driver_version']}")
        if library.get("trouble"):
            writer.row("says", library["trouble"])
        for candidate in library["candidates"]:
            _candidate(writer, candidate)


def _messages(writer: Writer, found: Mapping[str, Any]) -> None:
    if found["compared"]:
        differing = len(found["differences"]) or "none"
        writer.row("messages", f"{found['compared']} compared with this system's classes, {differing} differ")
    for difference in found["differences"]:
        writer.row("differs", difference, style="bold red", word="differs")


def _said_of(library: Mapping[str, Any]) -> str:
    if library["same_as"]:
        return f"the same library as {library['same_as']}"
    if not library["path"]:
        return str(library["reason"])
    return f"{library['path']}, version {library['version'] or 'not known'}, found by `{library['origin']}`"


def _candidate(writer: Writer, candidate: Mapping[str, Any]) -> None:
    verdict = _SAID.get(candidate["verdict"], candidate["verdict"])
    said = f"{f'{verdict:<8} '.replace(' ', TIED)}{candidate['path']}: {candidate['reason'] or 'another came first'}"
    writer.row(candidate["step"], said, indent=4, column=13, style=_STYLES.get(verdict, ""), word=verdict)


def _triton(writer: Writer, found: Mapping[str, Any]) -> None:
    triton = found["triton"]
    writer.heading("Triton")
    if triton["path"]:
        writer.row("installed", f"{triton['version']}, {triton['path']}")
        writer.row("backends", ", ".join(triton["installed"]) or "none")
    else:
        writer.row("installed", "no")
    keys = triton["keys"].get(found["opens"]["name"])
    if keys:
        writer.row("key", f"{' or '.join(keys)}, for {found['opens']['name']}")


def _environment(writer: Writer, found: Mapping[str, Any]) -> None:
    environment = found["environment"]
    writer.heading("Environment")
    for name, value in environment["set"].items():
        writer.line(f"  {name}={value}")
    writer.row("not set", ", ".join(environment["unset"]) or "-")
    for warning in found["warnings"]:
        writer.row("warning", warning)
    for conflict in found["conflicts"]:
        writer.row("conflict", conflict, style="yellow", word=conflict.split(" ", 1)[0])


def _advice(writer: Writer, found: Mapping[str, Any]) -> None:
    writer.heading("What to do")
    for sentence in found["advice"]:
        writer.row("-", sentence, column=2)
