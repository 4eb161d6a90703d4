"""What was compared, and what came of it."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

import attrs


class State(str, Enum):
    """What became of a statement of the file: `unverified` where nothing at hand could tell."""

    OK = "ok"
    WRONG = "wrong"
    UNVERIFIED = "unverified"

    def __str__(self) -> str:
        return self.value


@attrs.frozen
class Row:
    """A part of the file: an operation, a call of a role, an enum, the codes of a role, or a structure.

    `subject` names it as the file does, `operations.malloc`; `line` is where it stands. `by` are the sources that were
    compared, `declared` how the header spells a function, `notes` why something could not be told.
    """

    subject: str
    line: int | str
    state: State
    by: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()


@attrs.frozen
class Result:
    """The rows of one comparison. `versions` are those that the file was read for, by role.

    `headers` has the SHA-256 of each header that was given, `signatures` the role of each function that they declare
    and its signature, as recording.py writes it.
    """

    backend: str
    title: str
    file: str
    versions: dict[str, str]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    headers: dict[str, str] = attrs.field(factory=dict)
    signatures: dict[str, tuple[str, str]] = attrs.field(factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows came to each state."""
        counted = Counter(row.state for row in self.rows)
        return {state.value: counted[state] for state in State}

    @property
    def faults(self) -> tuple[Row, ...]:
        """The rows that are wrong."""
        return tuple(row for row in self.rows if row.state is State.WRONG)

    @property
    def ok(self) -> bool:
        """Whether everything that was checked agrees, and something was checked."""
        return not self.faults and self.counts["ok"] > 0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        plain = attrs.asdict(self, value_serializer=lambda _owner, _field, value: getattr(value, "value", value))
        return {**plain, "counts": self.counts, "ok": self.ok}
