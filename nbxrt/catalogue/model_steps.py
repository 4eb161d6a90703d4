"""APIs of objects as frozen values: steps, what is kept of a device, and how devices are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen
class Step:
    """One step: its verb, what the file wrote, and the steps that undo it or follow it in the end."""

    verb: str
    written: Mapping[str, Any]
    undo: tuple[Step, ...] = ()
    finally_: tuple[Step, ...] = ()


@frozen
class Steps:
    """A list of steps; `library` is the usual role of its calls."""

    steps: tuple[Step, ...]
    library: str = ""
    only_default: tuple[str, ...] = ()


@frozen
class Entry:
    """What is kept of a device, or of the level that `scope` names; `line` is where its file says so."""

    name: str
    steps: tuple[Step, ...]
    release: tuple[Step, ...] = ()
    scope: str = ""
    line: int | str = 0


@frozen
class Level:
    """A level of the list of devices: a call that counts and fills, or steps that count and that give one."""

    name: str
    written: Mapping[str, Any]
    count: tuple[Step, ...] = ()
    at: tuple[Step, ...] = ()
    listing: tuple[Step, ...] = ()
    listed: tuple[Step, ...] = ()
    release: tuple[Step, ...] = ()


@frozen
class Devices:
    """How an API without ordinals lists its devices; `gpu`, `models` and `functions` are calls as written.

    Devices of different handles of the level `apart` know nothing of each other's memory.
    """

    levels: tuple[Level, ...]
    default: tuple[Step, ...] = ()
    identity: tuple[Step, ...] = ()
    gpu: Mapping[str, Any] = field(factory=dict)
    models: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    functions: Mapping[str, Any] = field(factory=dict)
    apart: str = ""


def steps(data: Any) -> tuple[Step, ...]:
    """Steps of validated data."""
    return tuple(map(_step, data or ()))


def _step(data: Mapping[str, Any]) -> Step:
    from nbxrt.catalogue.verbs import verb_of

    verb = verb_of(data)
    assert verb is not None, "the schema has seen to it"  # noqa: S101
    written = {key: value for key, value in data.items() if key not in ("undo", "finally")}
    return Step(verb.head, written, steps(data.get("undo")), steps(data.get("finally")))


def devices(data: Mapping[str, Any] | None) -> Devices | None:
    """The list of devices; None where a file has none."""
    if not data:
        return None
    asked = ("count", "at", "listing", "listed", "release")
    default = data.get("default") or {}
    return Devices(
        tuple(Level(each["as"], each, *(steps(each.get(key)) for key in asked)) for each in data["levels"]),
        steps(default.get("steps")),
        steps(default.get("identity")),
        dict(data.get("gpu") or {}),
        dict(data.get("models") or {}),
        dict(data.get("functions") or {}),
        data.get("apart", ""),
    )


def entries(data: Mapping[str, Any] | None, line: Any) -> dict[str, Entry]:
    """What is kept, by name."""
    return {
        name: Entry(
            name, steps(each["steps"]), steps(each.get("release")), each.get("scope", ""), line(("state", name))
        )
        for name, each in (data or {}).items()
    }
