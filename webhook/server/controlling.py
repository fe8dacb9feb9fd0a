"""The composition root of `fieldwarden controller`."""

from __future__ import annotations

import os
import platform
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook import __version__
from webhook.cluster.access import Unconfigured
from webhook.cluster.api import Api
from webhook.cluster.controller import Controller, Release
from webhook.cluster.controller import run as take_turns
from webhook.cluster.known import KnownPolicies
from webhook.cluster.leader import Leader
from webhook.server.files import signature
from webhook.server.listening import complain, listen
from webhook.server.logs import make_logger
from webhook.server.pages import Page, PagesServer, metrics_of
from webhook.server.settings import Address, SettingsError

EXIT_USE = 2

STALLED = 300.0
"""Seconds without the end of a turn after which it is better to start anew. A turn may wait long for an API server."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """All of `fieldwarden controller`."""

    release: Release
    ops_listen: Address
    policies: tuple[Path, ...] = ()
    kubeconfig: Path | None = None
    identity: str = ""  # in the Lease; the host's name, which is the pod's, where it is empty
    log_level: str = "info"


def control(settings: ControllerSettings) -> int:
    """Run until told to stop. 0: stopped as told; 2: cannot start so."""
    log = make_logger(settings.log_level)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        api = Api.connect(settings.kubeconfig, agent="fieldwarden-controller")
        with listen(settings.ops_listen) as ops, TemporaryDirectory(prefix="fieldwarden-controller-") as folder:
            release = settings.release
            identity = settings.identity or f"{socket.gethostname()}_{os.getpid()}"
            known = KnownPolicies(
                settings.policies,
                partial(signature, settings.policies),
                Path(folder),
                cluster=release.from_cluster,
                strict=release.strict,
            )
            controller = Controller(api, release, known, Leader(api, release.lease_path, identity), log)
            serving = PagesServer(ops, _pages(controller))
            threading.Thread(target=serving.serve_forever, name="operations", daemon=True).start()
            log.info("controlling", release=release.name, namespace=release.namespace, identity=identity)
            take_turns(controller, stop)
            log.info("stopped")
    except (SettingsError, Unconfigured) as error:
        complain(str(error))
        return EXIT_USE
    return 0


def _pages(controller: Controller) -> dict[str, partial[Page]]:
    registry = CollectorRegistry()
    registry.register(_States(controller))
    return {
        "/healthz": partial(_health, controller, monotonic()),
        "/readyz": partial(_readiness, controller),
        "/metrics": partial(metrics_of, registry),
    }


def _health(controller: Controller, began: float) -> Page:
    quiet = monotonic() - max(controller.state.turned, began)
    if quiet > STALLED:
        return Page.json(503, {"status": "stalled", "seconds": round(quiet)})
    return Page.json(200, {"status": "ok"})


def _readiness(controller: Controller) -> Page:
    """Ready once it has taken a turn, leading or not; what is wrong in the cluster is told, and no reason to restart."""
    state = controller.state
    ready = state.turned > 0
    body = {
        "ready": ready,
        "reasons": [] if ready else ["starting: nothing has been looked at yet"],
        "warnings": [*state.faults, *state.doubts],
        "leads": state.leads,
        "leader": "this one" if state.leads else controller.leader.why,
    }
    return Page.json(200 if ready else 503, body)


class _States(Collector):
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def collect(self) -> Iterator[GaugeMetricFamily]:
        state = self._controller.state
        build = GaugeMetricFamily("fieldwarden_build_info", "Always 1.", labels=("version", "python"))
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        gauges = {
            "leads": ("1 while this one acts.", state.leads),
            "faults": ("What is not as it should be.", len(state.faults)),
            "doubts": ("Policies that cannot all be served as they are.", len(state.doubts)),
            "webhook_pods": ("Ready pods of the webhook.", state.pods),
            "registered_rules": ("Rules in the webhook configurations.", state.registered),
            "policies": ("Policies that are registered.", state.policies),
            "policies_left_out": ("Policies of the cluster that are not in force.", state.left_out),
        }
        for name, (meaning, value) in gauges.items():
            yield GaugeMetricFamily(f"fieldwarden_controller_{name}", meaning, value=float(value))
        if state.expires is not None:
            name = "fieldwarden_controller_authority_expiry_timestamp_seconds"
            yield GaugeMetricFamily(name, "Of the authority that signs.", value=state.expires.timestamp())
