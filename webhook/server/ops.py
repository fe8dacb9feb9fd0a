"""The plain port: `/healthz`, `/readyz`, `/metrics`, in a process of its own that sees all workers."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import platform
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from webhook import __version__
from webhook.cluster.mirrored import MirrorState
from webhook.server import reporting
from webhook.server.inbox import Inbox
from webhook.server.pages import Page, Pages, PagesServer, healthy, metrics_of
from webhook.server.shared import Flags, Runtime, WorkerStatus

LATE = 2.0
"""Seconds without a sign of the journal's process after which what waits for it is worth a word."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Which processes beside the workers there are."""

    mirror: bool  # a cluster is followed
    reporter: bool  # and told what was found


@dataclass(frozen=True, slots=True)
class Overview:
    """Where it is seen how the server is."""

    runtime: Runtime
    flags: Flags
    workers: int  # that should serve
    beside: Followed
    inbox: Inbox | None  # of the journal, where there is one


@dataclass(frozen=True, slots=True)
class Serving:
    """One worker, and the policies that it judges by."""

    pid: int
    policies: int
    generation: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """`reasons` why not; `warnings` are for people and take nothing out of service."""

    ready: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    workers: tuple[Serving, ...]


def readiness(
    statuses: tuple[WorkerStatus, ...],
    expected: int,
    flags: Flags,
    mirror: MirrorState | None = None,
    inbox: Inbox | None = None,
) -> Readiness:
    """Ready from when all workers have first judged by good policies until the drain, as long as one worker serves.

    `mirror` is None where no cluster is followed, `inbox` where there is no journal. That the cluster cannot be
    followed any more, or the journal not be written, takes nothing out of service.
    """
    reasons: list[str] = []
    warnings = _about_cluster(mirror) if mirror else []
    if mirror and not mirror.read:
        reasons.append("policies from the cluster have not been read yet")
    serving = f"{len(statuses)} of {expected} workers serve"
    if flags.draining:
        reasons.append("draining: this server is about to stop")
    if len(statuses) >= expected:
        flags.start()
    elif not flags.started:
        reasons.append(f"starting: {serving}")
    elif not statuses:
        reasons.append(f"no worker serves: {serving}")
    else:
        warnings.append(serving)
    if len({status.generation for status in statuses}) > 1:
        warnings.append("workers judge by different policies until all have reloaded")
    warnings += _distinct(
        f"policies do not load, older ones are in force: {p}" for s in statuses for p in s.policy_failure
    )
    warnings += _distinct(
        f"the certificate does not load, the older one is in use: {s.certificate_failure}"
        for s in statuses
        if s.certificate_failure
    )
    warnings += _about_journal(inbox) if inbox else []
    warnings += _distinct(problem for status in statuses for problem in status.policy_warnings)
    serve = tuple(Serving(status.pid, status.policies, status.generation) for status in statuses)
    return Readiness(not reasons, tuple(reasons), tuple(warnings), serve)


def _about_cluster(mirror: MirrorState) -> list[str]:
    told = [f"a policy from the cluster is left out: {text}" for text in mirror.left_out]
    if mirror.failure:
        since = (
            f" since {dt.datetime.fromtimestamp(mirror.contact, dt.UTC):%Y-%m-%dT%H:%M:%SZ}" if mirror.contact else ""
        )
        told.insert(0, f"the cluster cannot be followed{since}: {mirror.failure}")
    return told


def _about_journal(inbox: Inbox) -> list[str]:
    told = inbox.board.text.splitlines()
    if (waiting := inbox.waiting) and inbox.board.silence > LATE:
        told.append(f"the journal is late: {waiting} events wait to be written")
    if lost := inbox.lost:
        told.append(f"{lost} events are not in the journal: there was no room for them while it could not be written")
    return told


def _distinct(texts: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(texts))


class _States(Collector):
    """Gauges out of the workers' statuses, the worst worker's where they differ, and the mirror's."""

    def __init__(self, seen: Overview) -> None:
        self._runtime = seen.runtime
        self._expected = seen.workers
        self._beside = seen.beside
        self._inbox = seen.inbox

    def collect(self) -> Iterator[Metric]:
        statuses = self._runtime.statuses()
        build = GaugeMetricFamily("fieldwarden_build_info", "Always 1.", labels=("version", "python"))
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        yield GaugeMetricFamily("fieldwarden_workers", "Workers that serve.", value=len(statuses))
        yield GaugeMetricFamily("fieldwarden_workers_expected", "Workers that should.", value=self._expected)
        yield from self._of_mirror()
        yield from self._of_journal()
        yield from reporting.metrics(self._runtime.reporter() if self._beside.reporter else None)
        if not statuses:
            return
        oldest = min(statuses, key=lambda status: status.loaded_at)
        failing = max(len(status.policy_failure) > 0 for status in statuses)
        yield GaugeMetricFamily("fieldwarden_policies_loaded", "Policies in force.", value=oldest.policies)
        yield GaugeMetricFamily(
            "fieldwarden_policy_warnings", "Warnings about policies in force.", value=len(oldest.policy_warnings)
        )
        yield GaugeMetricFamily(
            "fieldwarden_policies_stale", "1 while newer policies do not load.", value=1 if failing else 0
        )
        yield GaugeMetricFamily(
            "fieldwarden_policies_last_load_timestamp_seconds", "Of the policies in force.", value=oldest.loaded_at
        )
        yield GaugeMetricFamily(
            "fieldwarden_certificate_expiry_timestamp_seconds",
            "Of the serving certificate.",
            value=min(status.certificate_expires for status in statuses),
        )

    def _of_mirror(self) -> Iterator[GaugeMetricFamily]:
        """Without a value where no cluster is followed."""
        state = self._runtime.mirror()
        gauges = {
            "followed": ("1 while the API server can be followed.", 0 if state.failure else 1),
            "last_contact_timestamp_seconds": ("When the API server was last heard of.", state.contact),
            "policies": ("Policies taken from the cluster.", state.policies),
            "policies_left_out": ("Policies that are not in force as they are there.", len(state.left_out)),
            "namespaces": ("Namespaces whose labels are known.", state.namespaces),
        }
        for name, (meaning, value) in gauges.items():
            yield GaugeMetricFamily(
                f"fieldwarden_cluster_{name}", meaning, value=value if self._beside.mirror else None
            )

    def _of_journal(self) -> Iterator[Metric]:
        """Without a value where there is none."""
        inbox = self._inbox
        failing = 0 if not inbox else int(inbox.board.failing)
        yield CounterMetricFamily(
            "fieldwarden_journal_lost", "Events that were never written.", value=inbox.lost if inbox else None
        )
        yield GaugeMetricFamily(
            "fieldwarden_journal_waiting",
            "Events that are still to be written.",
            value=inbox.waiting if inbox else None,
        )
        yield GaugeMetricFamily(
            "fieldwarden_journal_failing", "1 while it cannot be written.", value=failing if inbox else None
        )


def _pages(seen: Overview) -> Pages:
    registry, runtime = CollectorRegistry(), seen.runtime
    MultiProcessCollector(registry, path=str(runtime.metrics))  # type: ignore[no-untyped-call]
    registry.register(_States(seen))

    def ready() -> Page:
        mirror = runtime.mirror() if seen.beside.mirror else None
        state = readiness(runtime.statuses(), seen.workers, seen.flags, mirror, seen.inbox)
        if seen.beside.reporter:
            state = replace(state, warnings=(*state.warnings, *reporting.warnings(runtime.reporter())))
        return Page.json(200 if state.ready else 503, asdict(state))

    return {"/healthz": healthy, "/readyz": ready, "/metrics": partial(metrics_of, registry)}


class _OpsServer(PagesServer):
    """Ends with the process that forked it."""

    parent = 0

    def service_actions(self) -> None:
        if os.getppid() != self.parent:
            os._exit(0)


def run(listener: socket.socket, seen: Overview) -> None:
    """Serve until killed; for a forked process."""
    with contextlib.suppress(Exception):
        server = _OpsServer(listener, _pages(seen))
        server.parent = os.getppid()
        server.serve_forever(poll_interval=0.5)
