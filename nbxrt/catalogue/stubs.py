"""Type information of the operations, made from the contract: nbxrt/operations.pyi, which editors and checkers read.

Runtime inherits it, so its methods complete with their documentation and runtime.py itself stays visible to checkers.
"""

from __future__ import annotations

from typing import Any

#: Contract types whose Python type is not `int`: taken, and given back.
_TAKEN = {
    "boolean": "bool",
    "text": "str",
    "bytes": "bytes | bytearray | memoryview",
    "dim3": "tuple[int, ...] | list[int]",
    "arguments": "Sequence[object] | int",
}
_GIVEN = {
    "boolean": "bool",
    "text": "str",
    "bytes": "bytes",
    "milliseconds": "float",
    "processes": "list[tuple[int, int]]",
}


def write(data: dict[str, Any]) -> str:
    """The text of nbxrt/operations.pyi, from the data of schema/operations.yaml."""
    lines = [
        '"""The operations of the contract as methods. Written by `python -m nbxrt.catalogue.compiling` from',
        "schema/operations.yaml; edit that and run it again.",
        '"""',
        "",
        "from collections.abc import Sequence",
        "from typing import Literal, SupportsIndex",
        "",
    ]
    for name, entry in data["enums"].items():
        lines += _alias(name, entry)
    lines += [
        "",
        "class Operations:",
        '    """Every operation, in the contract\'s form; nbxrt.Runtime has them.',
        "",
        "    One that a backend lacks raises CapabilityError with the reason from its file.",
        "    Behind DeviceError stand the kinds (`error.kind`) that are to be expected.",
        '    """',
        "",
    ]
    for name, entry in data["operations"].items():
        lines += _method(name, entry, data)
    return "\n".join(lines)


def _alias(name: str, entry: dict[str, Any]) -> list[str]:
    words = [f'    "{word}",' for word in entry["words"]]
    return [f"type_{name} = Literal[", *words, "]"]


def _method(name: str, entry: dict[str, Any], data: dict[str, Any]) -> list[str]:
    parameters = [_parameter(parameter, spec, data["enums"]) for parameter, spec in entry["takes"].items()]
    given = [_result(kind, data["enums"]) for kind in entry["gives"].values()]
    answer = "None" if not given else given[0] if len(given) == 1 else f"tuple[{', '.join(given)}]"
    lines = [f"    def {name}(", *[f"        {each}," for each in ["self", *parameters]], f"    ) -> {answer}:"]
    return [*lines, f'        """{_documented(entry, data)}"""', ""]


def _parameter(name: str, spec: Any, enums: dict[str, Any]) -> str:
    kind = spec if isinstance(spec, str) else spec["type"]
    taken = f"type_{kind} | SupportsIndex" if kind in enums else _TAKEN.get(kind, "SupportsIndex")
    default = "" if isinstance(spec, str) or "default" not in spec else f" = {spec['default']!r}".replace("'", '"')
    return f"{name}: {taken}{default}"


def _result(kind: str, enums: dict[str, Any]) -> str:
    return "str" if kind in enums else _GIVEN.get(kind, "int")


def _documented(entry: dict[str, Any], data: dict[str, Any]) -> str:
    """The contract's sentence, then what each parameter is, what is returned, and what is raised."""
    more = [f"{', '.join(names)}: {said}" for said, names in _parameters_by_meaning(entry, data).items()]
    if entry["gives"]:
        more.append(f"Returns: {', '.join(entry['gives'])}.")
    if "released_by" in entry:
        more.append(f"Released by `{entry['released_by']}`.")
    more.append(f"Raises: {', '.join(raised(entry, data))}.")
    body = "\n".join(f"        {line}" for line in more)
    return f"{entry['says']}\n\n{body}\n        "


def _parameters_by_meaning(entry: dict[str, Any], data: dict[str, Any]) -> dict[str, list[str]]:
    """What parameters are, in the words of their types; those that are the same thing share a line."""
    found: dict[str, list[str]] = {}
    for name, spec in entry["takes"].items():
        kind = spec if isinstance(spec, str) else spec["type"]
        said: str = (data["enums"].get(kind) or data["types"][kind])["says"]
        if isinstance(spec, dict) and spec.get("zero") == "skips":
            said = f"{said.removesuffix('.')}; 0 is nothing to do."
        found.setdefault(said, []).append(name)
    return found


def raised(entry: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """The classes of errors, the general one with the kinds that are to be expected."""
    raised = ["ArgumentError"] if entry["takes"] else []
    raised += [] if entry.get("required") else ["CapabilityError"]
    kinds = {kind: data["errors"][kind].get("raises", "DeviceError") for kind in entry.get("errors", ())}
    raised += dict.fromkeys(name for name in kinds.values() if name != "DeviceError")
    plain = [f"`{kind}`" for kind, name in kinds.items() if name == "DeviceError"]
    return [*raised, f"DeviceError ({', '.join(plain)})" if plain else "DeviceError"]
