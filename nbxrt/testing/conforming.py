"""The tests of `--nbxrt-conform NAME`: the checks of the conformance suite, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nbxrt import conformance, descriptions, errors
from nbxrt.conformance import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbxrt.conformance.checking import Check


def items(session: pytest.Session, name: str) -> Iterator[pytest.Item]:
    """A test for each check of the suite. Raises: UsageError where there is no such backend, or its file has faults."""
    try:
        descriptions.load(name)
    except errors.NbxrtError as error:
        message = f"--nbxrt-conform: {error}"
        raise pytest.UsageError(message) from None
    backend = ConformingBackend.from_parent(session, name=f"nbxrt-conform-{name}", backend=name)
    for check in conformance.checks():
        yield ConformanceTest.from_parent(backend, name=f"{check.group}: {check.name}", check=check)


class ConformingBackend(pytest.Collector):
    """A backend whose device the checks run on; it is opened at the first test, so that listing tests touches none."""

    def __init__(self, *, backend: str, **given: Any) -> None:
        super().__init__(**given)
        self._backend = backend
        self._run: conformance.Run | None = None

    def collect(self) -> list[pytest.Item]:
        """Nothing: `items` makes the tests."""
        return []

    def run(self) -> conformance.Run:
        """The run that every test is a part of. Raises: NbxrtError."""
        if self._run is None:
            self._run = conformance.Run(conformance.opened(self._backend))
        if not self._run.devices:
            why = self._run.runtime.why_no_device()
            raise why or errors.NoDeviceError(f"{self._run.runtime.title} has no device here")
        return self._run


class CheckFailedError(Exception):
    """What a check found wrong, as people read it."""


class ConformanceTest(pytest.Item):
    """One check; what is absent or cannot be tried here is skipped with its reason."""

    def __init__(self, *, check: Check, **given: Any) -> None:
        super().__init__(**given)
        self._check = check

    def runtest(self) -> None:
        """Make the check. Raises: CheckFailedError."""
        backend = self.getparent(ConformingBackend)
        assert backend is not None  # noqa: S101  # `items` made it
        row = backend.run().row(self._check)
        if row.outcome is Outcome.WRONG:
            raise CheckFailedError(row.detail)
        if row.outcome is not Outcome.WORKS:
            pytest.skip(f"{row.outcome}: {row.detail}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The finding alone: no traceback of the suite helps to mend a backend."""
        if isinstance(excinfo.value, CheckFailedError):
            return str(excinfo.value)
        if isinstance(excinfo.value, errors.NbxrtError):
            return f"error[{excinfo.value.reference}]: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the test is, for reports."""
        return self.path, None, f"{self.parent.name if self.parent else ''}: {self.name}"
