"""`fieldwarden test`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.common import colored, counted, no_color, output, print_data

if TYPE_CHECKING:
    from webhook.admission.suite import SuiteReport

_SUITES = click.Path(path_type=Path, exists=True)


@click.command()
@click.argument("suites", metavar="SUITE|DIR...", nargs=-1, required=True, type=_SUITES)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write the results here, as JUnit XML.")
@output(("table", "json", "yaml"), "table")
@no_color
def test(suites: tuple[Path, ...], junit: Path | None, output: str, no_color: bool) -> None:
    """Run policy suites: cases that policies must decide as written, without a cluster.

    A suite is YAML of kind Suite. A case is one write, as a captured AdmissionReview or as an old and a new object
    with user, manager and operation; and what is expected: the decision, its events, parts of its message, and with
    phase: mutate the values and claims after the patch. Folders are walked for suites. docs/suites.md describes the
    format.

    \b
    Examples:
      fieldwarden test policies/
      fieldwarden test policies/gitops-owns-labels/suite.yaml
      fieldwarden test policies/ --junit results.xml -o json

    Exit codes: 0 all passed, 1 a case failed or a suite is faulty, 2 no suite found, 4 its policies do not load.
    """
    from webhook.admission.suite import find_suites, run_suite

    try:
        files = find_suites(suites)
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None
    if not files:
        raise click.UsageError(f"no suite in {', '.join(map(str, suites))}: a suite is YAML with kind: Suite")
    reports = [run_suite(file) for file in files]
    if junit is not None:
        _write_junit(junit, reports)
    if output == "table":
        _print(reports, color=colored(no_color))
    else:
        print_data(_data(reports), output)
    raise click.exceptions.Exit(_code(reports))


def _code(reports: Sequence[SuiteReport]) -> int:
    if any(not report.policies_load for report in reports):
        return 4
    return 0 if all(report.passed for report in reports) else 1


def _write_junit(path: Path, reports: Sequence[SuiteReport]) -> None:
    from webhook.admission.suite_junit import junit

    try:
        path.write_bytes(junit(reports))
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None


def _print(reports: Sequence[SuiteReport], *, color: bool) -> None:
    from webhook.report.tables import Cell, table

    passed, failed = Cell("passed", "green"), Cell("failed", "bold red")
    rows = [
        (f"{report.file}:{case.line}", case.name, passed if case.passed else failed)
        for report in reports
        for case in report.cases
    ]
    if rows:
        click.echo(table(("Suite", "Case", "Outcome"), rows, color=color), color=color)
    for report in reports:
        for problem in report.problems:
            click.echo(str(problem))
        for case in report.cases:
            for failure in case.failures:
                click.echo(f"{report.file}:{case.line}: {case.name}: {failure}")
    bad = sum(not case.passed for report in reports for case in report.cases)
    faults = sum(len(report.problems) for report in reports)
    told = [counted(len(reports), "suite"), counted(len(rows), "case"), f"{bad} failed" if bad else "none failed"]
    click.echo(", ".join(told + ([counted(faults, "problem")] if faults else [])) + ".")


def _data(reports: Sequence[SuiteReport]) -> dict[str, Any]:
    return {
        "passed": all(report.passed for report in reports),
        "suites": [
            {
                "file": report.file,
                "passed": report.passed,
                "problems": [str(problem) for problem in report.problems],
                "cases": [
                    {
                        "name": case.name,
                        "line": case.line,
                        "passed": case.passed,
                        "failures": list(case.failures),
                        "seconds": round(case.seconds, 6),
                    }
                    for case in report.cases
                ],
            }
            for report in reports
        ],
    }
