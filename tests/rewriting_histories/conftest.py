"""The count of what was rewritten, and of what the server did of its own, at the end of the run."""

from __future__ import annotations

import pytest

from tests.rewriting_histories.expected import SERVERS_OWN

PROPERTY = "rewriting histories"
"""A test's property: it comes back from an xdist worker with the test's report, as nothing else does."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, tally in report.user_properties:
                if name == PROPERTY:
                    _tell(terminalreporter, tally)


def _tell(terminalreporter: pytest.TerminalReporter, tally: dict[str, int]) -> None:
    terminalreporter.section(PROPERTY)
    for what, count in sorted(tally.items()):
        if what not in SERVERS_OWN:
            terminalreporter.line(f"{count:6}  {what}")
    terminalreporter.line("the server's own doing:")
    for what in SERVERS_OWN:
        terminalreporter.line(f"{tally.get(what, 0):6}  {what}")
