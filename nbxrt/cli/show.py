"""`nbxrt show`: what a backend is, one of its operations, or the function that was generated for one."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

import click

from nbxrt import descriptions, errors, runtime
from nbxrt.binding.machine import Machine
from nbxrt.cli import cforms, explain
from nbxrt.cli.console import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@click.command("show")
@click.argument("name", metavar="NAME|FILE")
@click.option("--operation", metavar="OP", help="Only this operation: what it means and how the backend does it.")
@click.option("--source", metavar="OP", help="The function that is generated for this operation; opens the backend.")
@click.option("--origin", is_flag=True, help="Every value with the file and line that says it, and what it replaced.")
def command(name: str, operation: str | None, source: str | None, origin: bool) -> None:
    """Show a backend: libraries, operations, and what it lacks.

    A backend is named, or given by the path of its file.
    """
    writer = Writer()
    if origin:
        explain.write_origins(writer, name)
        return
    if source is not None:
        writer.line(generated_source(name, known_operation(source)))
        return
    description = descriptions.load(name)
    if operation is not None:
        _operation(writer, description, known_operation(operation))
        return
    for section in (_heading, _presence, _libraries, _operations, _absent):
        section(writer, description)


def known_operation(name: str) -> str:
    """The name, when the contract has an operation of it. Raises: ArgumentValueError."""
    operations = descriptions.contract()["operations"]
    if name not in operations:
        close = errors.nearest(name, list(operations))
        raise errors.ArgumentValueError(
            f"`{name}` is no operation of the contract", hint=f"did you mean `{close}`?" if close else ""
        )
    return name


def generated_source(name: str, operation: str) -> str:
    """The text of the function that the backend's runtime uses here. Raises: what says why there is none."""
    opened = runtime.opened(name)
    function = getattr(opened, operation)
    lines = linecache.getlines(f"<nbxrt {opened.name}.{operation}>")
    if not lines:
        function()  # an operation that is not offered says why when it is called
    return "".join(lines).rstrip()


# What a backend is


def _heading(writer: Writer, description: Mapping[str, Any]) -> None:
    writer.line(f"{description['title']} ({description['name']}), {description['file']}", "bold")
    keys, target = description["triton"] or ((), None)
    writer.row("kind", description["kind"])
    writer.row("platforms", ", ".join(description["platforms"]))
    writer.row("priority", str(description["priority"]))
    writer.row("contract", f"{description['contract']}, abi {description['abi']}, handles {description['handles']}")
    if keys:
        writer.row("Triton", f"key {' or '.join(keys)}, target {target}")


def _presence(writer: Writer, description: Mapping[str, Any]) -> None:
    writer.heading("How a device shows")
    for platform in description["platforms"]:
        beside = description["nodes_beside"].get(platform, ())
        opened = [f"opened beside it: {', '.join(beside)}"] if beside else []
        writer.row(platform, "; ".join([*_signs(description["presence"].get(platform)), *opened]))
    if description["visibility"]:
        writer.row("hidden by", ", ".join(description["visibility"]))


def _signs(rule: tuple[Any, ...] | None) -> Iterator[str]:
    if rule is None:
        yield "only the runtime can tell"
        return
    pci, nodes, ask, _hint = rule
    if pci:
        yield f"PCI vendor {pci[0]:#06x}, classes {', '.join(f'{each:#04x}' for each in pci[1])}"
    if nodes:
        yield f"a node {' or '.join(nodes)}"
    if ask:
        yield f"only the runtime can tell where {' or '.join(ask)} is there"


def _libraries(writer: Writer, description: Mapping[str, Any]) -> None:
    here = Machine().system
    system = here if here in description["platforms"] else description["platforms"][0]
    for role, data in description["libraries"].items():
        writer.heading(f"Library `{role}` on {system}")
        if "same_as" in data:
            writer.row("same as", data["same_as"])
            continue
        writer.row("names", "\n".join(_names(data["names"], system)) or f"none on {system}")
        writer.row("search", "in this order")
        for number, (kind, where, folders) in enumerate(data["search"], 1):
            writer.row(f"{number}.", _STEPS[kind](where, folders.get(system, ())), indent=14, column=3)
        if data["hint"]:
            writer.row("hint", data["hint"])


def _names(names: tuple[Any, ...], system: str) -> Iterator[str]:
    for major, files in names:
        if system in files:
            yield files[system] + (f"  (major {major})" if major is not None else "")


def _below(what: str, folders: tuple[str, ...]) -> str:
    """A place and its folders; `.` is the place itself."""
    return f"{what}: {', '.join(folders)}" if folders and folders != (".",) else what


#: A search step in words, by its kind: the step's places and its folders on this system.
_STEPS: dict[str, Callable[[tuple[str, ...], tuple[str, ...]], str]] = {
    "loaded": lambda _where, _folders: "a copy that the process has mapped already",
    "package": lambda where, folders: _below(f"package {where[0]}", folders),
    "conda": lambda _where, _folders: "the conda environment",
    "environment": lambda where, folders: _below(" or ".join(f"${name}" for name in where), folders),
    "system": lambda _where, _folders: "the system's loader",
    "root": lambda where, folders: _below(where[0], folders),
    "process": lambda _where, _folders: "the symbols of the process itself",
    "finder": lambda where, _folders: f"what {where[0]}.{where[1]}({where[2]!r}) answers, when there is nothing else",
}


def _operations(writer: Writer, description: Mapping[str, Any]) -> None:
    entries = descriptions.contract()["operations"]
    group = ""
    for name, operation in description["operations"].items():
        if entries[name]["group"] != group:
            group = entries[name]["group"]
            writer.heading(f"Operations: {group}")
        writer.row(name, "\n".join(cforms.variants(operation, _usual_role(name))), column=_COLUMN)


#: Where an operation's text begins.
_COLUMN = 28


def _usual_role(operation: str) -> str:
    contract = descriptions.contract()
    role: str = contract["groups"][contract["operations"][operation]["group"]]
    return role


def _absent(writer: Writer, description: Mapping[str, Any]) -> None:
    by_reason: dict[str, list[str]] = {}
    for name, (reason, _line) in description["absent"].items():
        by_reason.setdefault(reason, []).append(name)
    if by_reason:
        writer.heading("Not offered")
    for reason, names in by_reason.items():
        writer.row("-", f"{reason}: {', '.join(names)}", column=2)


# One operation


def _operation(writer: Writer, description: Mapping[str, Any], name: str) -> None:
    entry = descriptions.contract()["operations"][name]
    writer.line(f"{name} of {description['title']}", "bold")
    for label, text in _meaning(entry):
        writer.row(label, text)
    if name in description["absent"]:
        reason, line = description["absent"][name]
        writer.row("absent", f"{reason}\n{errors.place(description, line)}", style="bold", word=reason)
        return
    operation = description["operations"][name]
    writer.row("bound", "\n".join(cforms.variants(operation, _usual_role(name))))
    if name in description["needs"]:
        writer.row("needs", f"a device whose {description['needs'][name]} is not 0")
    for used, ranges in _layouts(description, operation):
        writer.row("structure", f"{used}: {ranges}")
    writer.row("file", errors.place(description, operation[0]))


def _typed(parameters: tuple[tuple[Any, ...], ...]) -> str:
    return ", ".join(f"{parameter[0]}: {parameter[1]}" for parameter in parameters)


def _meaning(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "means", entry["says"]
    yield "takes", _typed(entry["takes"]) or "nothing"
    yield "gives", _typed(entry["gives"]) or "nothing"
    yield "group", f"{entry['group']}{', required' if entry['required'] else ''}"
    yield "may wait", "no: it may keep the interpreter's lock" if entry["never_waits"] else "yes"
    if entry["released_by"]:
        yield "freed by", entry["released_by"]
    if entry["errors"]:
        yield "errors", ", ".join(entry["errors"])
    if entry["tolerates"]:
        yield "tolerates", ", ".join(entry["tolerates"])


def _layouts(description: Mapping[str, Any], operation: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """The structures that the operation's calls use, with their sizes by version."""
    calls = [what for form, _since, _before, _platforms, what, _results in operation[1] if form == "call"]
    forms = [
        argument for call in calls for argument in call[2] if argument[0].startswith("struct") or argument[0] == "rows"
    ]
    for name in dict.fromkeys(argument[1] for argument in forms):
        layouts = description["structs"][name]
        sizes = (f"{nbytes} bytes {cforms.span(since, before)}" for since, before, nbytes, *_rest in layouts)
        yield name, "; ".join(map(str.strip, sizes))
