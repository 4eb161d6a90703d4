"""The contract: every operation of a device runtime, as frozen values, from schema/operations.yaml.

A contract that does not hold together is refused (contract_checks.py): the schema, the compiled form and the checks of
backend files all rely on it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import attrs

from nbxrt.catalogue import contract_checks, reading
from nbxrt.catalogue.sources import data_folder
from nbxrt.errors import DescriptionError

if TYPE_CHECKING:
    import sys
    from collections.abc import Mapping
    from pathlib import Path

    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable


@attrs.frozen
class Type:
    """How values of a contract type travel through C; `zero` is what a null value means unless a parameter says."""

    name: str
    c: str
    says: str
    zero: str | None = None


@attrs.frozen
class Words:
    """An enum or a set of flags: words and what each of them means."""

    name: str
    says: str
    words: Mapping[str, str]
    numbered: bool = False


@attrs.frozen
class ErrorKind:
    """A meaning of a status code; `is_` names the wider meaning, `raises` the class of nbxrt.errors."""

    name: str
    says: str
    is_: str | None = None
    raises: str | None = None
    sticky: bool = False


@attrs.frozen
class Group:
    """A group of operations, and the role of the library that they are called from."""

    name: str
    library: str
    says: str


@attrs.frozen
class Parameter:
    """What an operation takes or gives; a parameter that may be left out has a `default`, which is never None."""

    name: str
    type: str
    zero: str | None = None
    default: object = None


@attrs.frozen
class Operation:
    """One operation; docs/format.md explains the keys. `c` holds arguments as written, or is None: no usual C form."""

    name: str
    group: str
    says: str
    takes: tuple[Parameter, ...]
    gives: tuple[Parameter, ...]
    c: tuple[Any, ...] | None = None
    since: int = 1
    required: bool = False
    never_waits: bool = False
    released_by: str | None = None
    errors: tuple[str, ...] = ()
    tolerates: tuple[str, ...] = ()
    done: str | None = None
    zero_on: str | None = None
    answers: str | None = None

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name."""
        return next((each for each in self.takes if each.name == name), None)

    def result(self, name: str) -> Parameter | None:
        """The result of that name."""
        return next((each for each in self.gives if each.name == name), None)


@attrs.frozen(eq=False)
class Contract:
    """All operations, and the words that they use."""

    number: int
    types: Mapping[str, Type]
    enums: Mapping[str, Words]
    flags: Mapping[str, Words]
    errors: Mapping[str, ErrorKind]
    groups: Mapping[str, Group]
    operations: Mapping[str, Operation]


@functools.cache
def load() -> Contract:
    """The contract that this nbxrt was made for."""
    return read(data_folder("schema") / "operations.yaml")


def read(source: Path | Traversable | bytes, name: str = "schema/operations.yaml") -> Contract:
    """The contract in a file. Raises: DescriptionError with every fault of it."""
    document = reading.read(source, name)
    faults = contract_checks.check(document)
    if faults:
        raise DescriptionError(faults)
    return _structured(document.data)


def _structured(data: dict[str, Any]) -> Contract:
    return Contract(
        number=data["contract"],
        types={name: Type(name, **entry) for name, entry in data["types"].items()},
        enums={name: Words(name, **entry) for name, entry in data["enums"].items()},
        flags={name: Words(name, **entry) for name, entry in data["flags"].items()},
        errors={name: ErrorKind(name, **_renamed(entry, "is", "is_")) for name, entry in data["errors"].items()},
        groups={name: Group(name, **entry) for name, entry in data["groups"].items()},
        operations={name: _operation(name, entry) for name, entry in data["operations"].items()},
    )


def _renamed(entry: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if key == old else key: value for key, value in entry.items()}


def _operation(name: str, entry: dict[str, Any]) -> Operation:
    facts: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    facts["takes"] = tuple(map(_parameter, entry["takes"], entry["takes"].values()))
    facts["gives"] = tuple(map(_parameter, entry["gives"], entry["gives"].values()))
    return Operation(name, **facts)


def _parameter(name: str, entry: str | dict[str, Any]) -> Parameter:
    return Parameter(name, entry) if isinstance(entry, str) else Parameter(name, **entry)
