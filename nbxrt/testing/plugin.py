"""The plugin: `--nbxrt-backends PATH` makes three tests of each backend file, `--nbxrt-conform NAME` those of a device.

It is loaded in every run of pytest where nbxrt is installed, so it imports nothing of nbxrt before an option asks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbxrt.testing import checking

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("nbxrt", "backend files of nbxrt")
    group.addoption(
        "--nbxrt-backends",
        action="append",
        default=[],
        metavar="PATH",
        help="A backend file, or a folder of them: each file becomes the tests `schema`, `parity` and `meaning`.",
    )
    group.addoption(
        "--nbxrt-conform",
        action="append",
        default=[],
        metavar="NAME",
        help="A backend, by name or file: each check of `nbxrt conform` becomes a test, on the device that is here.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the paths beside what is collected anyway."""
    for path in config.getoption("--nbxrt-backends"):
        whole = str(config.invocation_params.dir / path)
        if not Path(whole).exists():
            message = f"--nbxrt-backends: there is no {path}"
            raise pytest.UsageError(message)
        if not any(checking.files(Path(whole))):
            message = f"--nbxrt-backends: the folder {path} holds no *.yaml file"
            raise pytest.UsageError(message)
        if whole not in config.args:
            config.args.append(whole)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Make a collector of each file that the option names."""
    chosen = parent.config.getoption("--nbxrt-backends")
    roots = [Path(os.path.realpath(parent.config.invocation_params.dir / path)) for path in chosen]
    if any(Path(os.path.realpath(file_path)) in checking.files(root) for root in roots):
        return BackendFile.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the checks of the backends that `--nbxrt-conform` names, before `-k` and `-m` choose."""
    for name in config.getoption("--nbxrt-conform"):
        from nbxrt.testing import conforming

        items += conforming.items(session, name)


class BackendFile(pytest.File):
    """One backend file."""

    def collect(self) -> Iterator[pytest.Item]:
        """The tests of the file."""
        yield from (BackendTest.from_parent(self, name=name) for name in checking.TESTS)


class FaultsFoundError(Exception):
    """The faults that a test found, as people read them."""


class BackendTest(pytest.Item):
    """One question about a backend file."""

    def runtest(self) -> None:
        """Ask it. Raises: FaultsFoundError."""
        from nbxrt.catalogue.diagnostics import rendered

        found = checking.faults(self.path, self.name)
        if found:
            raise FaultsFoundError(rendered(found))
        if self.name != "schema" and not checking.is_readable(self.path):
            pytest.skip("the file cannot be read, as `schema` says")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The faults alone: no traceback of ours helps to mend a file."""
        if isinstance(excinfo.value, FaultsFoundError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the test is, for reports."""
        return self.path, None, f"{self.path.name}: {self.name}"
