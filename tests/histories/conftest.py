"""The count of what was judged, and of what no review can show, at the end of the run."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.histories.undecided import UNDECIDED

TALLY = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TALLY] = Counter()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash[TALLY]
    if not tally:
        return
    terminalreporter.section("random histories")
    terminalreporter.line(
        f"{tally['reviews']} reviews judged, of {tally['writes']} writes in {tally['histories']} histories"
    )
    undecided = sum(tally[name] for name in UNDECIDED)
    terminalreporter.line(f"{undecided} things could not be decided:")
    for name, (_, why) in UNDECIDED.items():
        terminalreporter.line(f"{tally[name]:6}  {name}: {why}")
