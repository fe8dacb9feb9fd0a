"""Pods come and go under constant writes, failing closed: no write escapes, and none fails but what a kill cuts off."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.load import CLIENTS, Load, Write, failed, shown
from tests.e2e.release import Release

MakeLoad = Callable[[], Load]
NOTICED = 3.0  # seconds until nothing is sent any more to what was killed
KILL = "import os, signal, sys; [os.kill(int(pid), signal.SIGKILL) for pid in sys.argv[1:]]"


@pytest.fixture(autouse=True)
def closed(release: Release) -> None:
    release.having(mode="Enforce", webhooks={"failurePolicy": "Fail"})


def pods(release: Release) -> set[str]:
    return {pod["metadata"]["name"] for pod in release.pods("webhook")}


def whole(release: Release, count: int = 2) -> bool:
    """So many pods, all ready, and none that is still ending."""
    found = release.pods("webhook", ending=True)
    ready = [
        pod
        for pod in found
        for condition in pod["status"].get("conditions", ())
        if condition["type"] == "Ready" and condition["status"] == "True"
    ]
    return len(found) == len(ready) == count


def none_failed(load: Load, since: float) -> None:
    lost = failed(load.since(since))
    assert not lost, shown(lost, since)


def cut_off(load: Load, killed: float) -> list[Write]:
    """What failed for a kill: for nothing else, soon after it, and not more than was under way."""
    lost = failed(load.since(killed))
    assert all("failed calling webhook" in write.said for write in lost), shown(lost, killed)
    assert all(write.began < killed + NOTICED for write in lost), shown(lost, killed)
    return lost


def test_a_rolling_update(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    with load() as running:
        began, before = time.monotonic(), pods(release)
        cluster.kubectl("rollout", "restart", "deployment/fieldwarden-webhook", "-n", release.namespace)
        cluster.wait_until(lambda: not before & pods(release) and whole(release))
        running.settle()
    none_failed(running, began)


def test_a_scale_to_one_and_back(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    with load() as running:
        began = time.monotonic()
        for count in (1, 2):
            to = f"--replicas={count}"
            cluster.kubectl("scale", "deployment/fieldwarden-webhook", to, "-n", release.namespace)
            cluster.wait_until(lambda: whole(release, count))  # noqa: B023
            running.settle()
    none_failed(running, began)


def test_pods_evicted_one_after_the_other(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    """As a node's drain does it: refused for as long as another is away, and asked again."""
    with load() as running:
        began = time.monotonic()
        statuses = set()
        for name in sorted(pods(release)):
            path = f"/api/v1/namespaces/{release.namespace}/pods/{name}/eviction"
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}

            def evicted() -> bool:
                statuses.add(status := cluster.request("POST", path, eviction).status)  # noqa: B023
                return status == 201

            cluster.wait_until(evicted)
        cluster.wait_until(lambda: whole(release))
        running.settle()
    assert statuses == {201, 429}
    none_failed(running, began)


def test_a_pod_deleted(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    with load() as running:
        began = time.monotonic()
        cluster.kubectl("delete", "pod", min(pods(release)), "-n", release.namespace, "--wait=false")
        cluster.wait_until(lambda: whole(release))
        running.settle()
    none_failed(running, began)


def test_a_pod_killed(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    with load() as running:
        killed = time.monotonic()
        victim = min(pods(release))
        cluster.kubectl("delete", "pod", victim, "-n", release.namespace, "--grace-period=0", "--force", "--wait=false")
        cluster.wait_until(lambda: victim not in pods(release) and whole(release))
        running.settle()
    cut_off(running, killed)


@pytest.mark.parametrize("count", [1, 2], ids=["one", "all of a pod"])
def test_workers_killed(cluster: Cluster, release: Release, load: MakeLoad, count: int) -> None:
    """The image has no shell and no kill, but it has Python."""
    with load() as running:
        pod = min(pods(release))
        victims = _workers(release, pod)[:count]
        killed = time.monotonic()
        cluster.kubectl("exec", pod, "-n", release.namespace, "--", "python3", "-c", KILL, *map(str, victims))
        cluster.wait_until(lambda: len(now := _workers(release, pod)) == 2 and not set(now) & set(victims))
        running.settle()
    lost = cut_off(running, killed)
    assert len(lost) <= CLIENTS, shown(lost, killed)


def _workers(release: Release, pod: str) -> list[int]:
    return [worker["pid"] for worker in release.workers() if worker["pod"] == pod]


def test_a_controller_killed(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    """What it has registered stays, and another takes over what there is to do."""
    with load() as running:
        began = time.monotonic()
        cluster.kubectl("delete", "pod", "-n", release.namespace, "--grace-period=0", "--force", "--wait=false",
                        "-l", "app.kubernetes.io/component=controller")  # fmt: skip
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{release.namespace}/leases/fieldwarden-controller"
        before = json.dumps(cluster.get(lease)["spec"]["holderIdentity"])
        cluster.wait_until(lambda: json.dumps(cluster.get(lease)["spec"].get("holderIdentity")) != before)
        running.settle()
    none_failed(running, began)
