"""The count of what was judged, and of what no review can show, at the end of the run."""

from __future__ import annotations

import pytest

from tests.histories.undecided import UNDECIDED

PROPERTY = "random histories"
"""A test's property: it comes back from an xdist worker with the test's report, as nothing else does."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, tally in report.user_properties:
                if name == PROPERTY:
                    _tell(terminalreporter, tally)


def _tell(terminalreporter: pytest.TerminalReporter, tally: dict[str, int]) -> None:
    terminalreporter.section(PROPERTY)
    terminalreporter.line(
        f"{tally.get('reviews', 0)} reviews judged, of {tally.get('writes', 0)} writes in {tally.get('histories', 0)} histories"
    )
    undecided = sum(tally.get(name, 0) for name in UNDECIDED)
    terminalreporter.line(f"{undecided} things could not be decided:")
    for name, (_, why) in UNDECIDED.items():
        terminalreporter.line(f"{tally.get(name, 0):6}  {name}: {why}")
