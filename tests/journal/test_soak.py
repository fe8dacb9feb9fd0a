"""A short soak; `make soak` is the long one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bench.soak import Plan, Run, counted, faults, soak


def test_a_short_soak_counts_every_event_that_was_answered_once(tmp_path: Path) -> None:
    run = soak(Plan(seconds=6, kill_every=1.5, workers=2, clients=4), tmp_path)
    assert run.killed >= 2
    assert sum(run.answered.values()) > 100
    assert run.lost == 0
    assert {place: faults(run, found) for place, found in counted(run).items()} == {"journal": []}


def test_a_soak_would_notice_what_is_lost_doubled_or_made_up() -> None:
    run = Run(Path(), sent=Counter(a=3, b=3, c=3), answered=Counter(a=3, b=2, c=3))
    assert faults(run, Counter(a=3, b=3, c=3)) == []
    assert len(faults(run, Counter(a=2, b=1, c=4, d=1))) == 4
