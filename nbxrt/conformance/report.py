"""The result of a run: its rows, what they come to, and how people and programs read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """What became of a check."""

    WORKS = "works"
    ABSENT = "absent"
    SKIPPED = "skipped"
    WRONG = "wrong"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Row:
    """One check: group, sentence, the operations that it needs, what became of it and why, and how long it took."""

    group: str
    check: str
    needs: tuple[str, ...]
    outcome: Outcome
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """The rows of one run on one device. `versions` and `libraries` are by library role."""

    backend: str
    title: str
    device: int
    device_name: str
    versions: dict[str, str]
    libraries: dict[str, str]
    rows: tuple[Row, ...] = field(default=())

    @property
    def counts(self) -> dict[str, int]:
        """How many checks came to each outcome."""
        counted = Counter(row.outcome for row in self.rows)
        return {outcome.value: counted[outcome] for outcome in Outcome}

    @property
    def wrong(self) -> tuple[Row, ...]:
        """The rows that are wrong."""
        return tuple(row for row in self.rows if row.outcome is Outcome.WRONG)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong and something works."""
        return not self.wrong and self.counts["works"] > 0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        rows = [{**asdict(row), "outcome": row.outcome.value, "needs": list(row.needs)} for row in self.rows]
        return {**asdict(self), "rows": rows, "counts": self.counts, "ok": self.ok}

    def __str__(self) -> str:
        """The table that people read: a line a check, its detail indented below it, then the sum."""
        lines = [self.heading, ""]
        for row in self.rows:
            lines.append(f"{row.outcome:<8} {row.group:<15} {row.check}")
            lines += [f"{'':<25}{line}" for line in row.detail.splitlines()]
        return "\n".join([*lines, "", self.sum])

    @property
    def heading(self) -> str:
        """What was checked, in one line."""
        versions = ", ".join(f"{role} {version}" for role, version in self.versions.items() if version)
        return f"{self.title} ({self.backend}), device {self.device}: {self.device_name}" + (
            f"; {versions}" if versions else ""
        )

    @property
    def sum(self) -> str:
        """The counts, in one line."""
        return ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items())
