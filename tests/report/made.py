"""Records for tests: made up, or of what policies find in the captured reviews."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from webhook.admission import Engine
from webhook.policy import Mode, load
from webhook.policy.policyset import PolicySet
from webhook.report.folding import fold, seen
from webhook.report.records import Record

TESTS = Path(__file__).parent.parent
REVIEWS = sorted(path for path in (TESTS / "reviews").glob("*.json") if path.stem != "index")
SHIPPED = TESTS.parent / "policies"
OBSERVING = Path(__file__).parent / "observing.yaml"
FLUX = "system:serviceaccount:flux-system:kustomize-controller"
DEVELOPER = "developer@example.com"
MONDAY = dt.datetime(2026, 11, 16, 9, 30, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


def record(**given: Any) -> Record:
    """A developer's edit of a label that Flux owns; what is given instead."""
    at: dt.datetime = given.get("last", MONDAY)
    count: int = given.get("count", 1)
    base: dict[str, Any] = {
        "policy": "labels",
        "rule": "team",
        "event": "change",
        "resource": "deployments.apps",
        "namespace": "team-a",
        "name": "web",
        "manager": "kubectl-edit",
        "operation": "Update",
        "user": DEVELOPER,
        "dry_run": False,
        "outcome": "recorded",
        "mode": "Audit",
        "would": "deny",
        "owner": "kustomize-controller (Apply)",
        "paths": (".metadata.labels.team",),
        "count": count,
        "first": given.get("first", at),
        "last": at,
        "days": {f"{at:%Y-%m-%d}": count},
    }
    return Record(**(base | given))


def policies(*paths: Path) -> PolicySet:
    loaded = load(paths)
    assert loaded.policies is not None, loaded.problems
    return loaded.policies


def judged(found: PolicySet, cap: Mode = Mode.AUDIT, reviews: Iterable[Path] = REVIEWS) -> dict[Path, Any]:
    """Each review's decisions, of both calls."""
    engine = Engine(found, cap)
    return {
        path: [engine.answer(path.read_bytes(), phase).decision for phase in ("mutate", "validate")] for path in reviews
    }


def observed(found: PolicySet, times: int = 1) -> list[Record]:
    """What is recorded of the captured reviews, each as often as it is said, a day apart."""
    decisions = judged(found)
    every = (
        seen(result, MONDAY + DAY * number)
        for number in range(times)
        for both in decisions.values()
        for decision in both
        for result in decision.results
    )
    return list(fold(every).values())
