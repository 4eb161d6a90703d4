"""What the stand-in for Objective-C takes from a file: its codes, and the messages that operations fail by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbxrt.simulation.calls import flat
from nbxrt.simulation.primitives import PARTS, known_as
from nbxrt.simulation.roles import code_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def hearts(description: Mapping[str, Any]) -> dict[str, list[str]]:
    """By operation, the messages that decide it: the file says what it means that they give no object."""
    found: dict[str, list[str]] = {}
    for operation, steps in _steps(description):
        told = [payload[0] for verb, payload, *_rest in flat(steps) if verb == "send" and _is_told(payload)]
        found.setdefault(operation, []).extend(told[-1:])
    return {operation: selectors for operation, selectors in found.items() if selectors}


def failing(description: Mapping[str, Any]) -> Iterator[str]:
    """The messages that can fail: those that give an object, and the one that gives a queue its work."""
    for selectors in description["messages"].values():
        yield from (selector for selector, (_text, (result, _given), *_) in selectors.items() if result == "object")
    yield "commit"


def _steps(description: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    for operation, (_line, variants) in description["operations"].items():
        yield from ((operation, what[2]) for form, _s, _b, _p, what, _extras in variants if form == "steps")
    for part, meaning in PARTS.items():
        policy, _dot, name = part.partition(".")
        parts = description["policies"].get(policy, {"parts": {}})["parts"]
        for variant in parts[name][2] if name in parts else ():
            yield known_as(meaning), variant[4][2]


def _is_told(payload: Sequence[Any]) -> bool:
    """Whether a message gives an object, and the file says what it means when none comes."""
    (kind, _types), nil = payload[5], payload[9]
    return bool(kind == "object" and nil not in ("unknown", "allowed"))


def described_header(description: Mapping[str, Any], contract: Mapping[str, Any]) -> str:
    """The text of described.h."""
    status = description["libraries"]["runtime"]["status"]
    codes = ", ".join(str(code_of(contract, status, kind)) for kind in ("success", *contract["errors"]))
    rows = [
        f'{{ "{selector}", "{operation}" }}' for operation, each in hearts(description).items() for selector in each
    ]
    names = (f'"{name}"' for name in dict.fromkeys((*hearts(description), *failing(description))))
    return "\n".join(
        (
            "/* Written by nbxrt.simulation from the backend file. */",
            "struct stub_name { const char *selector, *operation; };",
            f"static const struct stub_name stub_names[] = {{ {', '.join((*rows, '{ 0, 0 }'))} }};",
            f"const char *const sim_names[] = {{ {', '.join((*names, '0'))} }};",
            f"static const long stub_codes[] = {{ {codes} }};\n",
        )
    )
