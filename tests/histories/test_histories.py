"""Random histories on a real API server, whose author knows who did what: every Change says so, or why it cannot."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.histories.conftest import PROPERTY
from tests.histories.play import Fault, Stage, histories, prepare
from tests.histories.undecided import UNDECIDED

if TYPE_CHECKING:
    from webhook.sandbox import Sandbox

WRITES = 1000
SEED = "fieldwarden"
UNDECIDED_SHARE = 0.15  # of the reviews judged


@pytest.fixture
def stage(sandbox: Sandbox, namespace: str) -> Iterator[Stage]:
    from webhook.sandbox import Capture

    with Capture.start() as capture:
        prepare(sandbox, capture)
        try:
            yield Stage(sandbox, capture, namespace, Counter())
        finally:
            sandbox.unregister_webhooks()


def test_every_change_in_random_histories_is_the_true_one(
    stage: Stage, record_property: Callable[[str, object], None]
) -> None:
    """HISTORY_WRITES and HISTORY_SEED in the environment ask for more histories, and for others."""
    wanted, seed = int(os.environ.get("HISTORY_WRITES", WRITES)), os.environ.get("HISTORY_SEED", SEED)
    try:
        _play(stage, wanted, seed)
    finally:
        record_property(PROPERTY, dict(stage.tally))
    undecided = sum(stage.tally[name] for name in UNDECIDED)
    assert undecided <= UNDECIDED_SHARE * stage.tally["reviews"], "too much is said to be undecided"


def _play(stage: Stage, wanted: int, seed: str) -> None:
    for kind, steps in histories(seed):
        try:
            stage.play(kind, steps)
        except Fault as fault:
            pytest.fail(_story(seed, kind.name, *stage.shrunk(kind, steps, fault)), pytrace=False)
        stage.tally["histories"] += 1
        if stage.tally["writes"] >= wanted:
            return


def _story(seed: str, kind: str, steps: list[object], fault: Fault) -> str:
    """All that it takes to play it again, or to pin it."""
    lines = [f"seed {seed!r}, {kind}, {len(steps)} steps:", *fault.log, "", *map(str, fault.findings), ""]
    return "\n".join([*lines, f"the {fault.seen.phase} review to pin:", json.dumps(fault.seen.review)])
