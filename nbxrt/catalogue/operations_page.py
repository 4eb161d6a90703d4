"""The reference page of the operations, made from the contract: docs/operations.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.catalogue.stubs import raised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEAD = """# Operations

Every operation of the contract, as a method of a runtime: `rt = nbxrt.open()`, then `rt.malloc(1 << 20)`.
Name, parameters and meaning are the same on every backend.

Every backend has those in bold.
Of the others `rt.supports(name)` tells; one that is absent raises a `CapabilityError` with the reason from its file.
Wrong arguments are an `ArgumentTypeError` or an `ArgumentValueError`, and nothing is called.
Behind `DeviceError` stand the [kinds](#kinds-of-errors), `error.kind`, that are to be expected.
[Types](#types) are below; a parameter or a result that has the name of its type does not say it again.

`make generate` writes this page from [schema/operations.yaml](../schema/operations.yaml).
"""


def write(data: dict[str, Any]) -> str:
    """The text of docs/operations.md, from the data of schema/operations.yaml."""
    lines = [_HEAD]
    for group, about in data["groups"].items():
        lines += [f"## `{group}`", "", about["says"], ""]
        lines += ["| operation | what it does | raises |", "|---|---|---|"]
        lines += [_row(name, entry, data) for name, entry in data["operations"].items() if entry["group"] == group]
        lines.append("")
    return "\n".join([*lines, *_types(data), *_words(data), *_kinds(data)])


def _row(name: str, entry: dict[str, Any], data: dict[str, Any]) -> str:
    call = f"`{name}({', '.join(_typed(entry['takes']))})`"
    gives = ", ".join(_typed(entry["gives"]))
    shown = f"**{call}**" if entry.get("required") else call
    answer = f" → `{gives}`" if gives else ""
    released = f" Released by `{entry['released_by']}`." if "released_by" in entry else ""
    errors = [each for each in raised(entry, data) if each not in ("ArgumentError", "CapabilityError")]
    return f"| {shown}{answer} | {' '.join(entry['says'].split())}{released} | {', '.join(errors)} |"


def _typed(named: Mapping[str, Any]) -> Iterator[str]:
    for name, spec in named.items():
        kind = spec if isinstance(spec, str) else spec["type"]
        default = "" if isinstance(spec, str) or "default" not in spec else f" = {spec['default']!r}"
        yield (name if name == kind else f"{name}: {kind}") + default


def _types(data: dict[str, Any]) -> Iterator[str]:
    yield from ("## Types", "", "| type | is |", "|---|---|")
    for name, entry in data["types"].items():
        refused = " 0 is refused before any call." if entry.get("zero") == "refused" else ""
        yield f"| `{name}` | {entry['says']}{refused} |"
    yield ""


def _words(data: dict[str, Any]) -> Iterator[str]:
    """The types whose values are words, each with what its words mean."""
    for name, entry in data["enums"].items():
        yield from (f"### `{name}`", "", entry["says"], "", "| word | means |", "|---|---|")
        yield from (f"| `{word}` | {meaning} |" for word, meaning in entry["words"].items())
        yield ""


def _kinds(data: dict[str, Any]) -> Iterator[str]:
    yield from ("## Kinds of errors", "", "| kind | class | means |", "|---|---|---|")
    for kind, entry in data["errors"].items():
        yield f"| `{kind}` | {entry.get('raises', 'DeviceError')} | {entry['says']} |"
    yield ""
