"""Suite reports as JUnit XML, which build systems show."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from webhook.admission.suite import CaseReport, SuiteReport


def junit(reports: Iterable[SuiteReport]) -> bytes:
    """One `testsuite` for each file. A problem of a file is an `error`, a case that failed a `failure`."""
    root = ElementTree.Element("testsuites")
    for report in reports:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=report.file,
            tests=str(len(report.cases) + len(report.problems)),
            failures=str(sum(not case.passed for case in report.cases)),
            errors=str(len(report.problems)),
            time=f"{sum(case.seconds for case in report.cases):.6f}",
        )
        for case in report.cases:
            _case(suite, report, case)
        for problem in report.problems:
            place = f"{problem.file}:{problem.line}:{problem.column}"
            broken = ElementTree.SubElement(suite, "testcase", name=place, classname=report.file, time="0")
            ElementTree.SubElement(broken, "error", message=problem.message, type=problem.rule).text = str(problem)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(suite: ElementTree.Element, report: SuiteReport, case: CaseReport) -> None:
    element = ElementTree.SubElement(
        suite,
        "testcase",
        name=case.name,
        classname=report.file,
        file=report.file,
        line=str(case.line),
        time=f"{case.seconds:.6f}",
    )
    if not case.passed:
        failure = ElementTree.SubElement(element, "failure", message=case.failures[0], type="expectation")
        failure.text = "\n".join(case.failures)
