"""Failing closed, with no pod of ours anywhere: people are refused, and the cluster heals all the same."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conftest import make_namespace
from tests.e2e.cluster import Cluster, Object
from tests.e2e.release import Release
from tests.e2e.served import in_force

DEPLOYMENT = "deployment/fieldwarden-{}"
EVERYTHING: Object = {
    "apiVersion": "fieldwarden.dev/v1alpha1",
    "kind": "FieldPolicy",
    "metadata": {"name": "everything"},
    "spec": {
        "mode": "Enforce",
        "match": {"resources": [{"groups": ["*"], "resources": ["*"]}]},
        "rules": [{"name": "unwanted", "writers": {"deny": ["unwanted"]}}],
    },
}


def worker(namespace: str) -> Object:
    """A Deployment of one pod, of the only image that is surely there."""
    labels = {"app": "worker"}
    container = {
        "name": "c",
        "image": os.environ["FIELDWARDEN_IMAGE"],
        "command": ["python3", "-c", "import signal; signal.pause()"],
    }
    pod = {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "worker", "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def running(cluster: Cluster, namespace: str) -> list[str]:
    """Names of pods that kubelet says are running, which it says in a status write."""
    items = cluster.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    alive = [pod["metadata"] for pod in items if pod["status"]["phase"] == "Running"]
    return [meta["name"] for meta in alive if "deletionTimestamp" not in meta]


def write(cluster: Cluster, namespace: str, manager: str = "somebody") -> tuple[int, str]:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    params = {"fieldManager": manager, "dryRun": "All"}
    reply = cluster.request("POST", path, {"metadata": {"name": "one"}}, "developer", params=params)
    return reply.status, str(reply.body.get("message"))


@pytest.fixture
def place(cluster: Cluster, release: Release) -> Iterator[str]:
    """A namespace in which controllers work, guarded as everything is."""
    release.having(mode="Enforce", webhooks={"failurePolicy": "Fail"})
    in_force(release, EVERYTHING)
    yield make_namespace(cluster.alive(), "heal")
    _scale(cluster, release, webhook=2, controller=1)
    cluster.kubectl("rollout", "status", DEPLOYMENT.format("webhook"), "-n", release.namespace)
    in_force(release)


def _scale(cluster: Cluster, release: Release, **replicas: int) -> None:
    for component, count in replicas.items():
        to = f"--replicas={count}"
        cluster.kubectl("scale", DEPLOYMENT.format(component), to, "-n", release.namespace)


def test_a_cluster_heals_with_no_pod_of_ours(cluster: Cluster, release: Release, place: str) -> None:
    cluster.put(worker(place))
    cluster.wait_until(lambda: bool(running(cluster, place)))
    _scale(cluster, release, webhook=0, controller=0)
    cluster.wait_until(lambda: not any(release.pods(one, ending=True) for one in ("webhook", "controller")))
    status, message = write(cluster, place)
    assert (status, "failed calling webhook" in message) == (500, True), message

    (victim,) = running(cluster, place)
    cluster.kubectl("delete", "pod", victim, "-n", place, "--wait=false")
    cluster.wait_until(lambda: running(cluster, place) not in ([], [victim]))
    _nodes_live(cluster)

    _scale(cluster, release, webhook=2, controller=1)
    cluster.wait_until(lambda: write(cluster, place)[0] == 201)
    status, message = write(cluster, place, "unwanted")
    assert (status, "[everything/unwanted]" in message) == (403, True), message


def _nodes_live(cluster: Cluster) -> None:
    """Every node renews its lease, and may write its status."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    before = {item["metadata"]["name"]: item["spec"]["renewTime"] for item in cluster.get(leases)["items"]}
    assert before

    def renewed() -> bool:
        now = {item["metadata"]["name"]: item["spec"]["renewTime"] for item in cluster.get(leases)["items"]}
        return all(now[name] > at for name, at in before.items())

    cluster.wait_until(renewed)
