"""The chart's release in the cluster: installed, changed, looked at, and taken away with Helm as people do."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.cluster import Cluster
from webhook.sandbox import Completed

Object = dict[str, Any]

CHART = Path(__file__).parents[2] / "charts" / "fieldwarden"
POLICIES = "/apis/fieldwarden.dev/v1alpha1/fieldpolicies"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/fieldpolicies.fieldwarden.dev"
_WAIT = "3m"
_touches = itertools.count(1)


def image() -> Object:
    """What FIELDWARDEN_IMAGE names, as the chart's values."""
    name = os.environ["FIELDWARDEN_IMAGE"]
    if "@" in name:
        repository, _, digest = name.partition("@")
        return {"repository": repository, "digest": digest}
    repository, _, tag = name.rpartition(":")
    return {"repository": repository, "tag": tag}


@dataclass
class Release:
    """One release. `values` are those that differ from the chart's; None while it is not installed."""

    cluster: Cluster
    name: str = "fieldwarden"
    namespace: str = "fieldwarden"
    values: Mapping[str, Any] | None = None

    def install(self, values: Mapping[str, Any], chart: Path = CHART) -> Completed:
        """As the docs say, where pods are restricted."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.cluster.put(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}}
        )
        said = self._helm("install", self.name, str(chart), "--create-namespace", "--wait", values=values)
        self.values = values
        return said

    def upgrade(self, values: Mapping[str, Any], chart: Path = CHART) -> Completed:
        """To the values given and no others."""
        said = self._helm("upgrade", self.name, str(chart), "--reset-values", "--wait", values=values)
        self.values = values
        return said

    def having(self, **values: Any) -> None:
        """Installed with these values and no others, by whatever it takes."""
        if self.values is None:
            self.install(values)
        elif self.values != values:
            self.upgrade(values)

    def test(self) -> Completed:
        return self._helm("test", self.name, "--logs")

    def uninstall(self) -> None:
        self._helm("uninstall", self.name, "--wait", "--ignore-not-found")
        self.values = None

    def purge(self) -> None:
        """Also of what is kept on purpose, and its namespace; its pods need not end in peace."""
        self.uninstall()
        at_once = {"gracePeriodSeconds": 0}
        self.cluster.request("DELETE", f"/api/v1/namespaces/{self.namespace}/pods", at_once)
        paths = (DEFINITION, f"/api/v1/namespaces/{self.namespace}")
        for path in paths:
            self.cluster.remove(path)
        self.cluster.wait_until(lambda: all(map(self._is_gone, paths)))

    def _is_gone(self, path: str) -> bool:
        """The API server may pass over the deletion of a definition that meets another write of it, until it is touched."""
        if not self.cluster.get(path):
            return True
        number = next(_touches)
        if path == DEFINITION and number % 20 == 0:
            touched = {"metadata": {"annotations": {"e2e.fieldwarden.dev/touched": str(number)}}}
            self.cluster.request("PATCH", path, touched, content_type="application/merge-patch+json")
        return False

    def pods(self, component: str, *, ending: bool = False) -> list[Object]:
        """Those that serve or start; with `ending` also those that end."""
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        reply = self.cluster.request("GET", path, params={"labelSelector": selector})
        assert reply.status == 200, reply.body
        return [pod for pod in reply.body["items"] if ending or "deletionTimestamp" not in pod["metadata"]]

    def touch(self) -> None:
        """Have kubelet look at once at what is mounted into the pods: by itself it looks once a minute or so."""
        for component in ("webhook", "controller"):
            for pod in self.pods(component):
                path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"
                touched = {"metadata": {"annotations": {"e2e.fieldwarden.dev/touched": str(next(_touches))}}}
                reply = self.cluster.request("PATCH", path, touched, content_type="application/merge-patch+json")
                assert reply.status in (200, 404), reply.body

    def proxied(self, pod: str, port: int, scheme: str = "http") -> str:
        """The path by which the API server passes a request on to a pod."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{scheme}:{pod}:{port}/proxy"

    def workers(self) -> list[Object]:
        """What each worker of each webhook pod says of itself, with the pod's name."""
        said = {pod["metadata"]["name"]: pod for pod in self.pods("webhook")}
        return [
            {"pod": pod, **worker}
            for pod in said
            for worker in self.cluster.request("GET", f"{self.proxied(pod, 8080)}/readyz").body.get("workers", ())
        ]

    def told(self) -> str:
        """How it is, for whoever has to find out why a test failed."""
        here = ("-n", self.namespace)
        chosen = [f"--selector=app.kubernetes.io/component={one}" for one in ("controller", "webhook")]
        asked = [("get", "pods,events", *here)] + [("logs", "--tail=20", "--prefix", *here, one) for one in chosen]
        said = [self.cluster.kubectl(*one, check=False) for one in asked]
        return "\n".join(f"{one.stdout}{one.stderr}" for one in said)

    def _helm(self, verb: str, *args: str, values: Mapping[str, Any] | None = None) -> Completed:
        argv = ["helm", verb, *args, f"--namespace={self.namespace}"]
        argv += [f"--timeout={_WAIT}"] if "--wait" in args or verb == "test" else []
        argv += ["--values=-"] if values is not None else []
        whole = None if values is None else json.dumps({**values, "image": image()})
        return self.cluster.run(argv, input=whole)
