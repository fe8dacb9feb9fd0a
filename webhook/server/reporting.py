"""The process that tells the cluster what the journal holds, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from webhook.cluster.mirror import alive_with
from webhook.cluster.report_needs import Publishing
from webhook.cluster.report_objects import FORMATS
from webhook.cluster.reporter import ReporterSettings, ReporterState, settle
from webhook.cluster.reporter import run as report
from webhook.server.parts import Server

LAST_WORDS = 6.0
"""Seconds that it has when the server ends: for one look at every report that has changed."""


def run(server: Server) -> None:
    """For a forked process; ends with the server."""
    settings = server.settings
    if settings.reports is None or settings.journal is None:
        return
    told = settings.reports
    publishing = None
    if told.format is not None:
        keep = settings.journal.limits.keep_days
        publishing = Publishing(FORMATS[told.format], told.owner or "fieldwarden", told.owner, keep)
    report(
        ReporterSettings(
            journal=settings.journal.path,
            publishing=publishing,
            events=told.events,
            interval=told.interval,
            kubeconfig=told.kubeconfig,
            report=server.runtime.report_reporter,
            alive=alive_with(server.flags.owner),
            finishing=lambda: server.flags.finishing,
            settle=partial(settle, settings.journal.path, settings.journal.limits),
            log=server.log,
        )
    )


def warnings(state: ReporterState) -> tuple[str, ...]:
    """For people; nothing is out of service for them."""
    failure = (f"what was found cannot be reported: {state.failure}",) if state.failure else ()
    return (*failure, *(f"not reported: {trouble}" for trouble in state.troubles))


def metrics(state: ReporterState | None) -> Iterator[Metric]:
    """Without a value where nothing is reported."""
    told = state or ReporterState()
    gauges = {
        "reports_failing": ("1 while what was found cannot be reported.", 1 if told.failure else 0),
        "reports_troubles": ("Namespaces whose reports cannot be written.", len(told.troubles)),
        "reports_last_success_timestamp_seconds": ("When everything was last reported.", told.contact),
        "reports": ("Reports that there are of ours.", told.reports),
        "reports_rows": ("Rows in them that count what this pod has found.", told.rows),
    }
    counters = {
        "reports_writes": ("Writes of reports.", told.writes),
        "reports_conflicts": ("Writes that were tried again, since others wrote the same report.", told.conflicts),
        "events_written": ("Events written or continued.", told.events),
        "events_held_back": ("Repeats that were too many to be told at once.", told.held_back),
    }
    for name, (meaning, value) in gauges.items():
        yield GaugeMetricFamily(f"fieldwarden_{name}", meaning, value=value if state else None)
    for name, (meaning, value) in counters.items():
        yield CounterMetricFamily(f"fieldwarden_{name}", meaning, value=value if state else None)
