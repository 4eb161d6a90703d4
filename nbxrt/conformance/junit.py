"""A report as JUnit XML, which services that show test results read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from nbxrt.conformance.report import Outcome

if TYPE_CHECKING:
    from nbxrt.conformance.report import Report, Row

#: The element that stands inside a test case for an outcome; what works has none.
_ELEMENTS = {Outcome.WRONG: "failure", Outcome.ABSENT: "skipped", Outcome.SKIPPED: "skipped"}


def junit(report: Report) -> str:
    """The report as one test suite, a test case a check; an absent operation is a skipped one that says so."""
    counts = report.counts
    suite = ET.Element(
        "testsuite",
        name=f"nbxrt conform {report.backend}",
        tests=str(len(report.rows)),
        failures=str(counts["wrong"]),
        errors="0",
        skipped=str(counts["absent"] + counts["skipped"]),
        time=_seconds(sum(row.seconds for row in report.rows)),
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in {"device": report.device_name, **report.libraries}.items():
        ET.SubElement(properties, "property", name=name, value=_legal(value))
    for row in report.rows:
        _case(suite, report, row)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _case(suite: ET.Element, report: Report, row: Row) -> None:
    classname = f"nbxrt.{report.backend}.{row.group}"
    case = ET.SubElement(suite, "testcase", classname=classname, name=row.check, time=_seconds(row.seconds))
    element = _ELEMENTS.get(row.outcome)
    if element is not None:
        first = row.detail.split("\n", 1)[0]
        ET.SubElement(case, element, message=_legal(f"{row.outcome}: {first}")).text = _legal(row.detail)


def _seconds(seconds: float) -> str:
    return f"{seconds:.6f}"


def _legal(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return "".join(each if each >= " " or each in "\n\t" else repr(each)[1:-1] for each in text)
