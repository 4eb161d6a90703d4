"""The plugin of pytest: each backend file is three tests, which fail for faults of their own kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from nbxrt.catalogue.references import STAGES
from nbxrt.catalogue.sources import data_folder
from nbxrt.testing import checking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOST = (data_folder("backends") / "host.yaml").read_bytes().decode()

#: What is changed in a file, and the tests that fail for it.
FAULTS = {
    "priority: 1000": ("priority: high", "schema"),
    "  sync: {value: success}\n": ("", "parity"),
    "out_of_memory: 12, invalid_value: 22": ("out_of_memory: 12, invalid_value: 12", "meaning"),
}


@pytest.fixture
def backends(tmp_path: Path) -> Path:
    folder = tmp_path / "backends"
    folder.mkdir()
    (folder / "mine.yaml").write_text(HOST, "utf-8")
    (folder / "notes.txt").write_text("no backend", "utf-8")
    return folder


@pytest.fixture
def tested(python: Callable[..., Any], backends: Path) -> Callable[..., Any]:
    """Runs pytest with the plugin alone; answers with its exit code and the outcome of each test."""

    def run(*arguments: Any) -> tuple[int, dict[str, str], str]:
        command = ("-m", "pytest", "-p", "nbxrt.testing.plugin", "-p", "no:cacheprovider", "-rA", "-q", *arguments)
        ended = python(*command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        outcomes = re.findall(r"(?m)^(PASSED|FAILED|SKIPPED) (?:\[\d+\] )?(\S+?)(?: - .*)?$", ended.stdout)
        return ended.returncode, {name.rpartition("/")[2]: outcome for outcome, name in outcomes}, ended.stdout

    return run


def test_a_right_file_passes_three_tests(tested: Callable[..., Any], backends: Path) -> None:
    code, outcomes, _said = tested("--nbxrt-backends", "backends/")

    assert code == 0
    assert outcomes == {f"mine.yaml::{name}": "PASSED" for name in ("schema", "parity", "meaning")}


@pytest.mark.tier("all")
def test_a_file_may_be_named_and_is_tested_once(tested: Callable[..., Any], backends: Path) -> None:
    code, outcomes, said = tested("backends", "--nbxrt-backends", "backends/mine.yaml", "--nbxrt-backends", "backends")

    assert (code, len(outcomes)) == (0, 3)
    assert "3 passed" in said


@pytest.mark.tier("all")
@pytest.mark.parametrize(("old", "new", "test"), [(old, *rest) for old, rest in FAULTS.items()], ids=["1", "2", "3"])
def test_each_kind_of_fault_fails_its_own_test(
    old: str, new: str, test: str, tested: Callable[..., Any], backends: Path
) -> None:
    (backends / "mine.yaml").write_text(HOST.replace(old, new, 1), "utf-8")

    code, outcomes, said = tested("--nbxrt-backends", "backends")

    assert code == 1
    assert [name for name, outcome in outcomes.items() if outcome == "FAILED"] == [f"mine.yaml::{test}"]
    assert "error[" in said
    assert "Traceback" not in said
    assert "plugin.py" not in said


def test_of_a_file_that_cannot_be_read_only_that_is_said(tested: Callable[..., Any], backends: Path) -> None:
    (backends / "mine.yaml").write_text("a: [1\n", "utf-8")

    _code, _outcomes, said = tested("--nbxrt-backends", "backends")

    assert "1 failed, 2 skipped" in said


@pytest.mark.tier("all")
def test_other_tests_run_beside_them(tested: Callable[..., Any], backends: Path) -> None:
    (backends.parent / "test_mine.py").write_text("def test_one(): pass\n", "utf-8")

    _code, outcomes, _said = tested("--nbxrt-backends", "backends")

    assert set(outcomes) == {"test_mine.py::test_one", *(f"mine.yaml::{name}" for name in checking.TESTS)}


def test_without_the_option_no_file_is_touched(tested: Callable[..., Any], backends: Path) -> None:
    code, outcomes, _said = tested("backends")

    assert (code, outcomes) == (5, {})


@pytest.mark.tier("all")
@pytest.mark.parametrize("path", ["nowhere", "empty"])
def test_a_path_that_is_not_there_and_a_folder_without_files_are_misuse(
    path: str, tested: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()

    code, outcomes, _said = tested("--nbxrt-backends", path)

    assert (code, outcomes) == (4, {})


@pytest.mark.tier("all")
def test_the_module_tests_the_paths_alone(python: Callable[..., Any], backends: Path) -> None:
    (backends.parent / "test_mine.py").write_text("def test_one(): assert False\n", "utf-8")

    ended = python("-m", "nbxrt.testing", "backends", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")

    assert ended.returncode == 0
    assert "3 passed" in ended.stdout
    assert "warning" not in ended.stdout


def test_the_module_without_a_path_says_how_it_is_used(python: Callable[..., Any]) -> None:
    ended = python("-m", "nbxrt.testing")

    assert (ended.returncode, ended.stderr) == (2, "usage: python -m nbxrt.testing PATH...\n")


def test_every_stage_is_asked_by_one_test() -> None:
    asked = [stage for stages in checking.TESTS.values() for stage in stages]

    assert len(set(asked)) == len(asked)
    assert set(asked) <= set(STAGES)


@pytest.mark.tier("all")
def test_loading_the_plugin_reads_no_description(python: Callable[..., Any]) -> None:
    code = "import sys, {module}; print([n for n in ('yaml', 'jsonschema', 'attrs', 'click') if n in sys.modules])"

    without = python("-c", code.format(module="pytest"))
    with_it = python("-c", code.format(module="nbxrt.testing.plugin"))

    assert with_it.stdout == without.stdout


# The hook for commits.


@pytest.mark.checkout
def test_the_commit_hook_runs_a_command_that_is_there_on_backend_files(root: Path) -> None:
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text("utf-8"))
    pattern = re.compile(hook["files"])

    assert (hook["id"], hook["entry"], hook["language"]) == ("nbxrt-validate", "nbxrt validate", "python")
    assert pattern.search("backends/mine.yaml")
    assert pattern.search("src/mine/backends/mine.yaml")
    assert not pattern.search("compose.yaml")


@pytest.mark.tier("all")
def test_each_check_of_a_backend_is_a_test_and_what_is_absent_is_skipped(tested: Callable[..., Any]) -> None:
    code, _outcomes, said = tested("--nbxrt-conform", "host", "-k", "stored or ipc")

    assert code == 0
    assert "PASSED ::nbxrt-conform-host::error: a failure leaves no stored error" in said
    assert "absent: `ipc_get_mem_handle` is not offered by Host memory" in said


@pytest.mark.tier("all")
def test_a_backend_that_cannot_be_opened_fails_with_its_error_alone(tested: Callable[..., Any]) -> None:
    code, _outcomes, said = tested("--nbxrt-conform", "ascend", "-k", "stored")

    assert code == 1
    assert "error[library-not-found]: no Huawei Ascend `runtime` library could be loaded" in said
    assert "Traceback" not in said


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", ["hots", "nowhere.yaml", ""])
def test_a_backend_that_is_not_there_is_misuse(name: str, tested: Callable[..., Any]) -> None:
    code, outcomes, _said = tested("--nbxrt-conform", name)

    assert (code, outcomes) == (4, {})
