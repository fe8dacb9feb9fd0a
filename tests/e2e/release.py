"""The chart's release in the cluster: installed, changed, looked at, and taken away with Helm as people do."""

from __future__ import annotations

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


def image() -> Object:
    """What FIELDWARDEN_IMAGE names, as the chart's values."""
    name = os.environ["FIELDWARDEN_IMAGE"]
    if "@" in name:
        repository, _, digest = name.partition("@")
        return {"repository": repository, "digest": digest}
    repository, _, tag = name.rpartition(":")
    return {"repository": repository, "tag": tag}


@dataclass(frozen=True)
class Release:
    """One release. Values are those that differ from the chart's."""

    cluster: Cluster
    name: str = "fieldwarden"
    namespace: str = "fieldwarden"

    def install(self, values: Mapping[str, Any], chart: Path = CHART) -> Completed:
        """As the docs say, with `--wait`."""
        return self._helm("install", self.name, str(chart), "--create-namespace", "--wait", values=values)

    def upgrade(self, values: Mapping[str, Any], chart: Path = CHART) -> Completed:
        """To the values given and no others."""
        return self._helm("upgrade", self.name, str(chart), "--reset-values", "--wait", values=values)

    def test(self) -> Completed:
        return self._helm("test", self.name, "--logs")

    def uninstall(self) -> None:
        self._helm("uninstall", self.name, "--wait", "--ignore-not-found")

    def purge(self) -> None:
        """Also of what is kept on purpose."""
        self.uninstall()
        self.cluster.remove(DEFINITION)
        self.cluster.remove(f"/api/v1/namespaces/{self.namespace}")
        self.cluster.wait_until(lambda: not self.cluster.get(DEFINITION))
        self.cluster.wait_until(lambda: not self.cluster.get(f"/api/v1/namespaces/{self.namespace}"))

    def pods(self, component: str) -> list[Object]:
        """Those that serve or start, and not those that end."""
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        reply = self.cluster.request("GET", path, params={"labelSelector": selector})
        assert reply.status == 200, reply.body
        return [pod for pod in reply.body["items"] if "deletionTimestamp" not in pod["metadata"]]

    def _helm(self, verb: str, *args: str, values: Mapping[str, Any] | None = None) -> Completed:
        argv = ["helm", verb, *args, f"--namespace={self.namespace}"]
        argv += [f"--timeout={_WAIT}"] if "--wait" in args or verb == "test" else []
        argv += ["--values=-"] if values is not None else []
        whole = None if values is None else json.dumps({**values, "image": image()})
        return self.cluster.run(argv, input=whole)
