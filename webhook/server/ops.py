"""The plain port: `/healthz`, `/readyz`, `/metrics`, in a process of its own that sees all workers."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from webhook import __version__
from webhook.server.shared import Flags, Runtime, WorkerStatus


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


def readiness(statuses: tuple[WorkerStatus, ...], expected: int, flags: Flags) -> Readiness:
    """Ready from when all workers have first judged by good policies until the drain, as long as one worker serves."""
    reasons: list[str] = []
    warnings: list[str] = []
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
    warnings += _distinct(problem for status in statuses for problem in status.policy_warnings)
    serve = tuple(Serving(status.pid, status.policies, status.generation) for status in statuses)
    return Readiness(not reasons, tuple(reasons), tuple(warnings), serve)


def _distinct(texts: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(texts))


class _States(Collector):
    """Gauges out of the workers' statuses, the worst worker's where they differ."""

    def __init__(self, runtime: Runtime, expected: int) -> None:
        self._runtime = runtime
        self._expected = expected

    def collect(self) -> Iterator[GaugeMetricFamily]:
        statuses = self._runtime.statuses()
        build = GaugeMetricFamily("fieldwarden_build_info", "Always 1.", labels=("version", "python"))
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        yield GaugeMetricFamily("fieldwarden_workers", "Workers that serve.", value=len(statuses))
        yield GaugeMetricFamily("fieldwarden_workers_expected", "Workers that should.", value=self._expected)
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


class OpsServer(ThreadingHTTPServer):
    """Answers on a socket that listens already; ends with the process that forked it."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, runtime: Runtime, flags: Flags, expected: int) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.runtime = runtime
        self.flags = flags
        self.expected = expected
        self.parent = os.getppid()
        self.registry = CollectorRegistry()
        MultiProcessCollector(self.registry, path=str(runtime.metrics))  # type: ignore[no-untyped-call]
        self.registry.register(_States(runtime, expected))

    def service_actions(self) -> None:
        if os.getppid() != self.parent:
            os._exit(0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A probe that hangs up is nothing to report."""


class _Handler(BaseHTTPRequestHandler):
    server: OpsServer
    timeout = 10
    server_version = "fieldwarden"
    sys_version = ""

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/healthz":
                self._send_json(200, {"status": "ok"})
            case "/readyz":
                state = readiness(self.server.runtime.statuses(), self.server.expected, self.server.flags)
                self._send_json(200 if state.ready else 503, asdict(state))
            case "/metrics":
                self._send(200, CONTENT_TYPE_LATEST, generate_latest(self.server.registry))
            case _:
                self._send_json(404, {"error": {"code": 404, "reason": "not-found", "message": "no such page"}})

    def _send_json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(body).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base names it so)
        """Probes are not worth a line."""


def run(listener: socket.socket, runtime: Runtime, flags: Flags, expected: int) -> None:
    """Serve until killed; for a forked process. Signals to stop are for the one that forked it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(Exception):
        OpsServer(listener, runtime, flags, expected).serve_forever(poll_interval=0.5)
    os._exit(1)
