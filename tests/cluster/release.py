"""A release without pods: what the chart makes, on a real API server, and controllers that keep it."""

from __future__ import annotations

import base64
import datetime as dt
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webhook.certificates import certificates_in, is_issued_by
from webhook.cluster.api import Api
from webhook.cluster.controller import Controller, Release
from webhook.cluster.endpoints import Endpoint, Pods, Shown
from webhook.cluster.informer import Listed
from webhook.cluster.keeping import Secrets, Source
from webhook.cluster.known import KnownPolicies
from webhook.cluster.leader import Leader
from webhook.cluster.trust import Lifetimes
from webhook.policy import Mode
from webhook.sandbox import Sandbox

Object = dict[str, Any]

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
FIELDPOLICIES = "/apis/fieldwarden.dev/v1alpha1/fieldpolicies"
NAME, SERVICE = "fieldwarden", "fieldwarden-webhook"
LEAF, AUTHORITY, LEASE = f"{NAME}-webhook-tls", f"{NAME}-authority", f"{NAME}-controller"
SHORT = Lifetimes(dt.timedelta(days=40), dt.timedelta(days=12), dt.timedelta(minutes=5), dt.timedelta(hours=1))

_numbers = itertools.count(1)


class Log:
    """Remembers what is said."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Object]] = []

    def said(self, event: str, **more: object) -> None:
        self.lines.append((event, more))

    debug = info = warning = error = said

    def __contains__(self, event: str) -> bool:
        return any(event in line for line, _ in self.lines)


class FakePods(Pods):
    """Pods that show what was in their Secret when they last looked, and trust as a TLS client does."""

    def __init__(self) -> None:
        self.shown: bytes | None = None

    def look(self, found: Iterable[Endpoint]) -> tuple[Shown, ...]:
        return tuple(Shown(one, self.shown) for one in found)

    def trusts(self, one: Endpoint, bundle: bytes, name: str) -> bool:
        leaves, authorities = certificates_in(self.shown or b""), certificates_in(bundle)
        return any(is_issued_by(leaf, each) for leaf in leaves[:1] for each in authorities)


@dataclass
class Installed:
    """One release in a namespace of its own. Names of webhook configurations are its own too."""

    sandbox: Sandbox
    namespace: str
    folder: Path
    pods: FakePods = field(default_factory=FakePods)
    name: str = field(default_factory=lambda: f"{NAME}-{next(_numbers)}")

    def install(self) -> None:
        """Everything empty, as the chart makes it."""
        for kind, name, webhook in self._configurations():
            hook = {
                "name": webhook,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": SERVICE, "namespace": self.namespace, "path": "/validate"}},
                "failurePolicy": "Ignore",
                "sideEffects": "None",
            }
            self._make(f"{CONFIGURATIONS}/{kind.lower()}s", {"metadata": {"name": name}, "webhooks": [hook]})
        for name in (LEAF, AUTHORITY):
            self._make(f"/api/v1/namespaces/{self.namespace}/secrets", {"metadata": {"name": name}})
        self._make(self._leases, {"metadata": {"name": LEASE}})

    def uninstall(self) -> None:
        for kind, name, _ in self._configurations():
            self.sandbox.request("DELETE", f"{CONFIGURATIONS}/{kind.lower()}s/{name}")

    @property
    def _leases(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    def _configurations(self) -> list[tuple[str, str, str]]:
        return [
            ("ValidatingWebhookConfiguration", self.name, "validate.fieldwarden.dev"),
            ("MutatingWebhookConfiguration", self.name, "mutate.fieldwarden.dev"),
            ("ValidatingWebhookConfiguration", f"{self.name}-policies", "policies.fieldwarden.dev"),
        ]

    def _make(self, path: str, item: Object) -> None:
        reply = self.sandbox.request("POST", path, item)
        assert reply.status == 201, reply.body

    def controller(
        self,
        files: tuple[Path, ...] = (),
        *,
        source: Source = "own",
        identity: str = "one",
        from_cluster: bool = True,
        mode: Mode = Mode.ENFORCE,
    ) -> Controller:
        """Leads, unless another does; knows what policies there are now."""
        api = Api.connect(self.sandbox.kubeconfig("admin"))
        secrets = Secrets(self.namespace, LEAF, SERVICE, AUTHORITY if source == "own" else None)
        release = Release(
            self.namespace, self.name, SERVICE, LEASE, secrets, mode, from_cluster=from_cluster, lifetimes=SHORT
        )
        drafts = self.folder / identity
        drafts.mkdir(exist_ok=True)
        known = KnownPolicies(files, lambda: None, drafts, cluster=from_cluster, strict=False)
        controller = Controller(api, release, known, Leader(api, release.lease_path, identity), Log(), pods=self.pods)
        controller.leader.turn()
        if from_cluster:
            self.tell(controller)
        known.settle()
        return controller

    def tell(self, controller: Controller) -> None:
        """What a watch would."""
        controller.known.take(Listed(controller.api.list(FIELDPOLICIES).items))
        controller.known.settle()

    def start_pod(self, *, ready: bool = True) -> None:
        """A pod behind the Service, which shows what its Secret holds."""
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"
        item = {
            "metadata": {"name": "pods", "labels": {"kubernetes.io/service-name": SERVICE}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": ready, "serving": ready}}],
            "ports": [{"name": "https", "port": 8443, "protocol": "TCP"}, {"name": "ops", "port": 8080}],
        }
        self.sandbox.request("DELETE", f"{slices}/pods")
        self._make(slices, item)
        self.refresh_pod()

    def refresh_pod(self) -> None:
        self.pods.shown = self.secret(LEAF).get("tls.crt")

    def secret(self, name: str) -> dict[str, bytes]:
        reply = self.sandbox.request("GET", f"/api/v1/namespaces/{self.namespace}/secrets/{name}")
        return {key: base64.b64decode(text) for key, text in (reply.body.get("data") or {}).items()}

    def write_secret(self, name: str, data: dict[str, bytes | None]) -> None:
        texts = {key: base64.b64encode(value).decode() if value is not None else None for key, value in data.items()}
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{name}"
        merge = "application/merge-patch+json"
        assert self.sandbox.request("PATCH", path, {"data": texts}, content_type=merge).status == 200

    def webhook(self, number: int) -> Object:
        """The webhook of a configuration: validating, mutating, policies."""
        kind, name, _ = self._configurations()[number]
        item: Object = self.sandbox.request("GET", f"{CONFIGURATIONS}/{kind.lower()}s/{name}").body
        hook: Object = item["webhooks"][0]
        return hook

    def bundle(self, number: int = 0) -> bytes:
        return base64.b64decode(self.webhook(number)["clientConfig"].get("caBundle", ""))

    def resources(self, number: int = 0) -> list[str]:
        """What the API server sends."""
        return sorted({name for rule in self.webhook(number).get("rules", []) for name in rule["resources"]})


def settled(controller: Controller, turns: int = 12) -> Controller:
    """Turns, until there is nothing left to do."""
    for _ in range(turns):
        controller.leader.turn()
        if controller.turn() > 1:
            return controller
    raise AssertionError(f"it never rests: {controller.state.faults}")


def later(controller: Controller, time: dt.datetime) -> Controller:
    controller.now = lambda: time
    return controller
