"""Counters that every worker writes to files of its own, so that their sum is right and survives a worker."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, values

from webhook.server.state import Call, ResultLike

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """No label holds the name of a user, an object or a path: their number has no bound."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry if registry is not None else CollectorRegistry()
        self._requests = Counter(
            "fieldwarden_requests", "Calls, by what was answered.", ("phase", "decision"), registry=registry
        )
        self._seconds = Histogram(
            "fieldwarden_request_duration_seconds",
            "From the first byte read to the answer.",
            ("phase",),
            buckets=BUCKETS,
            registry=registry,
        )
        self._answers: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        labels = ("policy", "rule", "event", "action", "mode", "dry_run")
        self._events = Counter("fieldwarden_events", "What rules found.", labels, registry=registry)
        self._bad_calls = Counter(
            "fieldwarden_bad_calls",
            "Calls that got no review for an answer, by reason.",
            ("reason",),
            registry=registry,
        )
        self._load_failures = Counter(
            "fieldwarden_policy_load_failures", "Changed policies that did not load, once a worker.", registry=registry
        )
        self._certificate_failures = Counter(
            "fieldwarden_certificate_load_failures",
            "Changed certificates that did not load, once a worker.",
            registry=registry,
        )

    @classmethod
    def shared(cls, folder: Path) -> Metrics:
        """Metrics whose numbers lie in files in the folder, one for each process."""
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        # The library chooses at import; here the folder is known only later.
        values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
        return cls()

    def answered(self, phase: Call, decision: str, seconds: float) -> None:
        known = self._answers.get((phase, decision))
        if known is None:  # labels() takes a lock and looks every label over, at every call
            known = (self._requests.labels(phase, decision), self._seconds.labels(phase))
            self._answers[phase, decision] = known
        requests, duration = known
        requests.inc()
        duration.observe(seconds)

    def found(self, results: Iterable[ResultLike], *, dry_run: bool) -> None:
        dry = "true" if dry_run else "false"
        for result in results:
            action = str(result.action) if result.action is not None else ""
            self._events.labels(result.policy, result.rule, result.kind, action, str(result.mode), dry).inc()

    def bad_call(self, reason: str) -> None:
        self._bad_calls.labels(reason).inc()

    def policies_failed(self) -> None:
        self._load_failures.inc()

    def certificate_failed(self) -> None:
        self._certificate_failures.inc()
