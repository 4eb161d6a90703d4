"""The conformance suite on the host, where every tier runs it, and what a run gives back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import nbxrt
from nbxrt import conformance
from nbxrt.conformance import Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    yield conformance.run(nbxrt.open("host"))
    nbxrt.reset()


def test_nothing_is_wrong_on_the_host(report: Report) -> None:
    assert [(row.check, row.detail) for row in report.wrong] == []
    assert report.ok


def test_on_the_host_only_what_belongs_to_everybody_or_needs_two_devices_is_skipped(report: Report) -> None:
    skipped = {row.check: row.detail for row in report.rows if row.outcome is Outcome.SKIPPED}

    assert skipped == {
        "free memory falls with an allocation and rises again": "the host's memory is everybody's",
        "each device has its own memory and streams": "needs 2 devices, and there is 1",
    }


def test_an_absent_row_quotes_the_reason_of_the_file(report: Report) -> None:
    absent = {row.group: row.detail for row in report.rows if row.outcome is Outcome.ABSENT}

    assert absent["ipc"].endswith("memory of the C library cannot be shared between processes")
    assert absent["peer"].endswith("there is one device")


def test_every_check_has_a_row_and_the_counts_add_up(report: Report) -> None:
    assert [row.check for row in report.rows] == [check.name for check in conformance.checks()]
    assert sum(report.counts.values()) == len(report.rows)


def test_a_report_is_plain_values_for_json(report: Report) -> None:
    data = json.loads(json.dumps(report.to_dict()))

    assert data["backend"] == "host"
    assert data["ok"] is True
    assert data["counts"] == report.counts
    assert data["rows"][0].keys() == {"group", "check", "needs", "outcome", "detail", "seconds"}


def test_the_text_has_a_line_for_every_check_and_the_sum_at_its_end(report: Report) -> None:
    lines = str(report).splitlines()

    assert lines[0] == "Host memory (host), device 0: host memory"
    assert lines[-1] == report.sum
    assert sum(line.startswith(("works", "absent", "skipped", "wrong")) for line in lines) == len(report.rows)


def test_every_operation_of_the_contract_is_needed_by_a_check() -> None:
    needed = {operation for check in conformance.checks() for operation in check.needs}

    assert needed == set(nbxrt.open("host").contract["operations"])


def test_every_check_belongs_to_a_group_of_the_contract_or_to_the_surface() -> None:
    assert set(conformance.groups()) == {"surface", *nbxrt.open("host").contract["groups"]}


def test_no_two_checks_have_the_same_name() -> None:
    names = [check.name for check in conformance.checks()]

    assert len(names) == len(set(names))


def test_a_run_can_be_of_some_groups() -> None:
    report = conformance.run(nbxrt.open("host"), groups=["event", "error"])

    assert {row.group for row in report.rows} == {"event", "error"}


def test_an_unknown_group_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(nbxrt.ArgumentValueError, match="`streams` is no group of checks") as caught:
        conformance.run(nbxrt.open("host"), groups=["streams"])

    assert caught.value.hint == "did you mean `stream`?"


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(nbxrt.DeviceIndexError):
        conformance.run(nbxrt.open("host"), device=1)


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nbxrt.conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_prints_the_table_and_ends_with_0() -> None:
    done = _command("host", "--group", "event", "--group", "device")

    assert done.returncode == 0
    assert done.stdout.startswith("Host memory (host), device 0")
    assert done.stdout.rstrip().endswith("0 wrong")


def test_the_command_prints_json() -> None:
    done = _command("host", "--group", "error", "--json")

    assert json.loads(done.stdout)["counts"]["wrong"] == 0


def test_the_command_ends_with_2_for_a_backend_or_a_group_that_is_not_there() -> None:
    for arguments in (["hosts"], ["host", "--group", "streams"]):
        done = _command(*arguments)

        assert done.returncode == 2
        assert done.stdout == ""
        assert "hint: did you mean" in done.stderr
